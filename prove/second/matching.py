"""Whether a pattern stands for a term under some substitution. Both sides of a rule are looked at in this way: nothing is built."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from coset.ir.builtin import ABSENT
from coset.ir.dtype_classes import CLASSES
from coset.ir.op import Op
from coset.ir.term import TUPLE, Term
from coset.ir.types import DTYPES, DType, TensorType
from coset.prove.second import arithmetic
from coset.prove.second import syntax as l
from coset.prove.second.absent import LEFT_ALONE, neutral
from coset.prove.second.answer import CannotSay, Unknown
from coset.prove.second.attributes import match_attributes
from coset.prove.second.forms import SPECIAL, match_number, match_reduction
from coset.prove.second.scope import MARKS, MISSING, REDUCTIONS, Found, Unbound, rounds, value_of

Terms = Iterator[Found]
IMPLICIT = {"T": "any", "F": "float", "I": "int"}


def match(e: l.Expression, term: Term, found: Found) -> Terms:
    """The substitutions under which `e` is `term`."""
    scope = found.scope
    match e:
        case l.Name(name) if name in found.values and isinstance(found.values[name], Term):
            if found.values[name] is term:
                yield found
        case l.Name(name) if name in scope.variables and scope.variables[name].kind.dims is not None:
            yield from _variable(scope.variables[name], term, found)
        case l.Name(name) if name in scope.locals and scope.is_term(e):
            for inner in match(scope.locals[name], term, found):
                yield inner.bind(name, term)
        case l.Choice(condition, yes, no) if scope.is_term(e):
            yield from _chosen(condition, yes, no, term, found)
        case _ if not scope.is_term(e):
            yield from match_number(e, term, found)
        case l.Binary("@", left, right):
            yield from _product(left, right, term, found)
        case l.Binary(mark, left, right) if mark in MARKS:
            yield from _arithmetic(mark, left, right, term, found)
        case l.Binary("%", left, right):
            yield from _operands("stablehlo.remainder", (left, right), term, found)
        case l.Unary("-", inner):
            yield from _operands("stablehlo.negate", (inner,), term, found)
        case l.Unary(_, inner):
            yield from _operands("stablehlo.not", (inner,), term, found)
        case l.Grouped(items):
            if term.op is TUPLE and len(items) == len(term.operands):
                yield from _all(items, term.operands, found)
        case l.Item(whole, index):
            yield from _item(whole, index, term, found)
        case l.Call():
            yield from _call(e, term, found)
        case _:
            raise CannotSay(f"the pattern {e}")


def _all(patterns: tuple[l.Expression, ...], terms: tuple[Term, ...], found: Found) -> Terms:
    """Each pattern is the term beside it."""
    if not patterns:
        yield found
        return
    for inner in match(patterns[0], terms[0], found):
        yield from _all(patterns[1:], terms[1:], inner)


def _operands(name: str, patterns: tuple[l.Expression, ...], term: Term, found: Found) -> Terms:
    if term.op.name == name and len(term.operands) == len(patterns):
        yield from _all(patterns, term.operands, found)


def _variable(variable: l.Variable, term: Term, found: Found) -> Terms:
    """A variable of the entry is any term of its type."""
    known = found.values.get(variable.name)
    if known is MISSING:
        if term.op is ABSENT:
            yield found
        return
    if known is not None:  # several terms, or a number that was written for one
        return
    typed = declared(variable.kind, term, found)
    if typed is not None:
        yield typed.bind(variable.name, term)


def declared(kind: l.Kind, term: Term, found: Found) -> Found | None:
    """The substitution under which a term has a declared type, its dims still to be compared; None where there is none."""
    if not isinstance(term.type, TensorType) or term.type.shape is None:
        return None
    bound = element(kind.dtype, term.type.dtype, found)
    assert kind.dims is not None
    return None if bound is None else bound.wait(l.Listed(kind.dims), tuple(term.type.shape))


def element(name: str, dtype: DType, found: Found) -> Found | None:
    """The substitution under which the name of an element type is `dtype`."""
    if name in DTYPES:
        return found if DTYPES[name] is dtype else None
    if name in found.values:
        return found if found.values[name] is dtype else None
    variable = found.scope.variables.get(name)
    among = variable.kind.dtype if variable is not None else IMPLICIT.get(name, "")
    if name in CLASSES:
        return found if dtype in CLASSES[name] else None
    if among in DTYPES:
        return found.bind(name, dtype) if DTYPES[among] is dtype else None
    if among not in CLASSES:
        raise CannotSay(f"the element type `{name}`")
    allowed = dtype in CLASSES[among] and (among == "any" or dtype.name != "f8e8m0fnu")
    return found.bind(name, dtype) if allowed else None


# ---------------------------------------------------------------- numbers in every element


def _chosen(condition: l.Expression, yes: l.Expression, no: l.Expression, term: Term, found: Found) -> Terms:
    try:
        certain = value_of(condition, found)
    except (Unbound, Unknown):
        yield from match(yes, term, found.wait(condition, True))
        yield from match(no, term, found.wait(condition, False))
        return
    if not isinstance(certain, bool):
        raise Unknown("a choice by what is neither true nor false")
    yield from match(yes if certain else no, term, found)


# ---------------------------------------------------------------- operators


def _arithmetic(mark: str, left: l.Expression, right: l.Expression, term: Term, found: Found) -> Terms:
    a, b = neutral(left, found), neutral(right, found)
    if b is not None and LEFT_ALONE[mark](b):
        yield from match(left, term, found)
        return
    if a is not None and mark in ("+", "*") and LEFT_ALONE[mark](a):
        yield from match(right, term, found)
        return
    if a is not None and mark == "-" and a == 0:
        yield from _operands("stablehlo.negate", (right,), term, found)
        return
    yield from _operands(MARKS[mark], (left, right), term, found)
    if mark == "*":  # a factor that is 1 leaves no trace
        for factor, other in ((left, right), (right, left)):
            if not found.scope.is_term(factor) and found.scope.is_term(other):
                yield from match(other, term, found.wait(factor, 1))


def _product(left: l.Expression, right: l.Expression, term: Term, found: Found) -> Terms:
    """`a @ b`: the last dim of a with the last but one of b, and what is before both of those in step, where b has more than two dims."""
    if term.op.name != "stablehlo.dot_general":
        return
    a, b = (operand.tensor.rank for operand in term.operands)
    batch = tuple(range(b - 2))
    wanted = {"lhs_batch": batch, "rhs_batch": batch, "lhs_contract": (a - 1,), "rhs_contract": (b - 2,)}
    if b >= 2 and a >= 1 and (b == 2 or a == b) and all(term.attribute(name) == value for name, value in wanted.items()):
        yield from _all((left, right), term.operands, found)


# ---------------------------------------------------------------- calls


def _call(e: l.Call, term: Term, found: Found) -> Terms:
    special = SPECIAL.get(e.function)
    if special is not None:
        yield from special(e, term, found, match)
        return
    if e.function in REDUCTIONS and found.scope.is_term(e):
        yield from match_reduction(REDUCTIONS[e.function], e, term, found, match)
        return
    if e.function in found.scope.ops:
        bound = found if e.function in found.values else _bound_op(e.function, term.op, found)
        if bound is not None and bound.values[e.function] is term.op:
            yield from _applied(term.op, e, term, bound)
        return
    op = found.scope.op(e.function)
    if op is None:
        raise CannotSay(f"the function `{e.function}` in a term")
    if op.name in LEFT_ALONE and len(e.arguments) == 2:
        for own, other in ((0, 1), (1, 0)):
            given = neutral(e.arguments[own], found)
            if given is not None and LEFT_ALONE[op.name](given):
                yield from match(e.arguments[other], term, found)
                return
    yield from _applied(op, e, term, found)


def _bound_op(name: str, op: Op, found: Found) -> Found | None:
    """The substitution in which an op variable is `op`, where it may be."""
    kind = found.scope.ops[name]
    arity = {"unary": 1, "binary": 2, "ternary": 3, "commutative": 2}.get(kind)
    if arity is None:
        raise CannotSay(f"ops of the kind `{kind}`")
    fits = op.has("elementwise") and len(op.operands) == arity and not op.variadic and not op.optional
    fits = fits and (kind != "commutative" or op.has("commutative")) and op.dialect in {dialect for _, dialect in found.scope.dialects}
    return found.bind(name, op) if fits else None


def _applied(op: Op, e: l.Call, term: Term, found: Found) -> Terms:
    """An op of the pattern is the op of the term: operands first, then attributes."""
    if term.op is not op:
        return
    arguments, named = assigned(op, e, found)
    operands = list(term.operands)
    roles = [role for role, _ in op.functions]
    values = [(name, value) for name, value in named if name not in op.operands]
    for name, pattern in named:
        if name in op.operands:
            place = op.operands.index(name)
            arguments += [l.Name("_absent")] * (place + 1 - len(arguments))
            arguments[place] = pattern
    for inner in _each_operand(op, arguments, operands, found):
        yield from match_attributes(term, values, e.rest, roles, inner)


def assigned(op: Op, e: l.Call, found: Found) -> tuple[list[l.Expression], list[tuple[str, l.Expression]]]:
    """The arguments that are operands, in order, and what is said of attributes and operands by name."""
    named = list(e.named)
    names = [attribute.name for attribute in op.attributes]
    if op.variadic:
        first = len(op.operands) - 1
        count = next(
            (place for place, each in enumerate(e.arguments) if place >= first and not found.scope.is_term(each)), len(e.arguments)
        )
    else:
        count = len(op.operands)
        optional = len(op.operands) - op.optional
        while count > optional and count <= len(e.arguments) and not _operand_like(e.arguments[count - 1], found):
            count -= 1
    operands, more = list(e.arguments[:count]), e.arguments[count:]
    if len(more) > len(names):
        raise CannotSay(f"{len(more)} attributes of {op.name} without names")
    return operands, [*zip(names, more, strict=False), *named]


def _operand_like(e: l.Expression, found: Found) -> bool:
    return found.scope.is_term(e) or isinstance(e, l.Number | l.Unary)


def _each_operand(op: Op, patterns: list[l.Expression], terms: list[Term], found: Found) -> Terms:
    if op.variadic:
        yield from _several(tuple(patterns), tuple(terms), found)
        return
    while len(patterns) < len(terms) and terms[-1].op is ABSENT:
        terms = terms[:-1]
    if len(terms) > len(patterns):
        return
    yield from _given(tuple(patterns), tuple(terms), found)


def _given(patterns: tuple[l.Expression, ...], terms: tuple[Term, ...], found: Found) -> Terms:
    """Operand by operand; one that is not given has no term, or `builtin.absent`."""
    if not patterns:
        if not terms:
            yield found
        return
    first = patterns[0]
    if neutral(first, found) is not None or _missing(first, found):
        if not terms or terms[0].op is ABSENT:
            yield from _given(patterns[1:], terms[1:], found)
        return
    if terms:
        for inner in match(first, terms[0], found):
            yield from _given(patterns[1:], terms[1:], inner)


def _missing(e: l.Expression, found: Found) -> bool:
    return isinstance(e, l.Name) and (e.name == "_absent" or found.values.get(e.name) is MISSING)


def _several(patterns: tuple[l.Expression, ...], terms: tuple[Term, ...], found: Found) -> Terms:
    """Operands that repeat: a pattern with dots is several of them."""
    if not patterns:
        if not terms:
            yield found
        return
    first, rest = patterns[0], patterns[1:]
    if not isinstance(first, l.Splice | l.Each | l.Listed | l.Part):
        if isinstance(first, l.Name) and first.name in found.scope.variables and found.scope.variables[first.name].repeated:
            first = l.Splice(first)
        else:
            if terms:
                for inner in match(first, terms[0], found):
                    yield from _several(rest, terms[1:], inner)
            return
    if rest:
        raise CannotSay("operands behind operands that repeat")
    yield from listed_terms(first.inner if isinstance(first, l.Splice) else first, terms, found)


def listed_terms(e: l.Expression, terms: tuple[Term, ...], found: Found) -> Terms:
    """A list of terms is these terms."""
    match e:
        case l.Name(name) if name in found.scope.variables:
            known = found.values.get(name)
            if known is not None:
                if known == terms:
                    yield found
                return
            typed: Found | None = found
            for term in terms:
                typed = None if typed is None else declared(found.scope.variables[name].kind, term, typed)
            if typed is not None:
                yield typed.bind(name, terms)
        case l.Listed(items):
            yield from _several(items, terms, found)
        case l.Each(inner, _, _, condition):
            try:
                turns = rounds(e, found)
            except Unbound:
                yield from _read_backwards(e, terms, found)
                return
            if condition is not None:
                raise CannotSay("a list of terms with a condition")
            if len(turns) == len(terms):
                yield from _turns(inner, turns, terms, found)
        case _:
            raise CannotSay(f"the list of terms {e}")


def _turns(inner: l.Expression, turns: list[Found], terms: tuple[Term, ...], found: Found) -> Terms:
    if not turns:
        yield found
        return
    own = {**turns[0].values}
    before = replace(found, values={**own, **found.values})
    for after in match(inner, terms[0], before):
        kept = {name: value for name, value in after.values.items() if name in found.values or name not in own}
        yield from _turns(inner, turns[1:], terms[1:], replace(after, values=kept))


def _read_backwards(e: l.Each, terms: tuple[Term, ...], found: Found) -> Terms:
    raise CannotSay("a list of terms over a list that is not known yet")


# ---------------------------------------------------------------- attributes


# ---------------------------------------------------------------- forms that are no ops


def _item(whole: l.Expression, index: l.Expression, term: Term, found: Found) -> Terms:
    values = value_of(whole, found)
    if isinstance(values, tuple) and arithmetic.item(values, value_of(index, found)) is term:
        yield found
