"""Whether a pattern stands for a term under some substitution. Both sides of a rule are looked at in this way: nothing is built."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from coset.ir.op import Op
from coset.ir.term import ABSENT, CONSTANT, DIMS, GET, TUPLE, Term
from coset.ir.types import CLASSES, DTYPES, DType, TensorType
from coset.prove.second import algebra
from coset.prove.second import language as l
from coset.prove.second.answer import CannotSay, Unknown
from coset.prove.second.scope import MARKS, MISSING, REDUCTIONS, Found, Unbound, rounds, value_of
from coset.prove.second.unify import unify

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
            yield from _scalar(e, term, found)
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


def core(term: Term) -> Term | None:
    """The term of rank 0 that `term` has in every element, or None."""
    if isinstance(term.type, TensorType) and term.type.shape == ():
        return term
    return term.operands[0] if term.op.name == "stablehlo.broadcast_in_dim" and term.operands[0].tensor.shape == () else None


def _scalar(e: l.Expression, term: Term, found: Found) -> Terms:
    """A value in every element: a constant that stores it, or a number of the host."""
    inner = core(term)
    if inner is None:
        return
    if inner.op is CONSTANT:
        dtype = inner.tensor.dtype
        element_of = inner.attribute("value").array().reshape(-1)[0]
        yield from unify(e, element_of, found, dtype)
    elif inner.op is DIMS:
        raise CannotSay("a number of the host in a sum or product")


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


def neutral(e: l.Expression, found: Found) -> Any:
    """The number that stands for an operand which is not given, moved about or multiplied as it may be; None where nothing does."""
    scope = found.scope
    match e:
        case l.Name(name):
            if name in scope.locals and name not in found.values:
                return neutral(scope.locals[name], found)
            variable = scope.variables.get(name)
            if variable is None or found.values.get(name) is not MISSING or variable.default is None:
                return None
            return value_of(variable.default, found)
        case l.Call(function, arguments, _, _) if arguments and function in (
            "bcast",
            "splat",
            "reshape",
            "transpose",
            "convert",
            "slice",
            "swap_last",
        ):
            return neutral(arguments[0], found)
        case l.Binary("*", left, right):
            a, b = neutral(left, found), neutral(right, found)
            if a is None or b is None:
                one = a if b is None else b
                return 0 if one == 0 else None
            return algebra.times(a, b)
        case l.Unary("-", inner):
            inner_value = neutral(inner, found)
            return 0 if inner_value == 0 else None
    return None


LEFT_ALONE: dict[str, Callable[[Any], bool]] = {
    "+": lambda n: bool(n == 0),
    "-": lambda n: bool(n == 0),
    "*": lambda n: bool(n == 1),
    "/": lambda n: bool(n == 1),
    "stablehlo.maximum": lambda n: bool(n == float("-inf")),
    "stablehlo.minimum": lambda n: bool(n == float("inf")),
}
"""Whether a second operand that is not given leaves the first one alone."""


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
        yield from special(e, term, found)
        return
    if e.function in REDUCTIONS and found.scope.is_term(e):
        yield from _reduction(REDUCTIONS[e.function], e, term, found)
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
    yield from _without_trace(op, e, term, found)


def _without_trace(op: Op, e: l.Call, term: Term, found: Found) -> Terms:
    """Movement and conversions that do nothing are not there: the operand itself is the term."""
    if op.name == "stablehlo.convert" and len(e.arguments) == 2:
        kept = (l.Name("_dtype_of_operand"), e.arguments[1])
        for inner in match(e.arguments[0], term, found):
            yield from unify(kept[1], term.tensor.dtype, inner, None)
    elif op.name == "stablehlo.reshape" and len(e.arguments) == 2:
        for inner in match(e.arguments[0], term, found):
            yield from unify(e.arguments[1], tuple(term.tensor.dims), inner, None)
    elif op.name == "stablehlo.transpose" and len(e.arguments) == 2:
        for inner in match(e.arguments[0], term, found):
            yield from unify(e.arguments[1], tuple(range(term.tensor.rank)), inner, None)


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
        yield from _attributes(term, values, e.rest, roles, inner)


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


def _attributes(term: Term, named: list[tuple[str, l.Expression]], rest: str | None, roles: list[str], found: Found) -> Terms:
    attributes = dict(term.attributes)
    plain = [(name, pattern) for name, pattern in named if name in attributes]
    functions = [(name, pattern) for name, pattern in named if name not in attributes]
    for name, pattern in functions:
        if name not in roles or not isinstance(pattern, l.Name):
            raise CannotSay(f"`{name}` of {term.op.name}")
        region = term.regions[roles.index(name)] if roles.index(name) < len(term.regions) else None
        if region is None:
            return
        if pattern.name != "_":
            bound = found.values.get(pattern.name, region)
            if bound != region:
                return
            found = found.bind(pattern.name, region)
    mentioned = {name for name, _ in named}
    remaining = {name: value for name, value in attributes.items() if name not in mentioned}
    others = tuple(term.regions) if not functions else ()
    if rest is None:
        if others and "_" not in [pattern.name for _, pattern in functions if isinstance(pattern, l.Name)]:
            raise CannotSay(f"functions of {term.op.name} that the rule does not name")
        if not all(_is_default(term.op, name, value) for name, value in remaining.items()):
            return
    elif f"..{rest}" in found.values:
        bound_rest, bound_regions = found.values[f"..{rest}"]
        if not _same_rest(term.op, remaining, dict(bound_rest)) or bound_regions != others:
            return
    else:
        found = found.bind(f"..{rest}", (tuple(remaining.items()), others))
    yield from _values(plain, attributes, found)


def _values(named: list[tuple[str, l.Expression]], attributes: dict[str, Any], found: Found) -> Terms:
    if not named:
        yield found
        return
    (name, pattern), *others = named
    for inner in unify(pattern, attributes[name], found, None):
        yield from _values(others, attributes, inner)


def _is_default(op: Op, name: str, value: Any) -> bool:
    for attribute in op.attributes:
        if attribute.name == name:
            return not attribute.required and _same(value, attribute.default)
    return False


def _same(a: Any, b: Any) -> bool:
    """Whether two attributes are one value: floats by their bits, all NaNs alike."""
    if isinstance(a, float) and isinstance(b, float):
        return (a != a and b != b) or np.float64(a).tobytes() == np.float64(b).tobytes()
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and bool(a == b)


def _same_rest(op: Op, remaining: dict[str, Any], bound: dict[str, Any]) -> bool:
    """Whether what one op left over is what another one has: what the first did not say is the default."""
    known = {attribute.name for attribute in op.attributes}
    if any(name not in known for name in bound):
        return False
    return all(_same(value, bound[name]) if name in bound else _is_default(op, name, value) for name, value in remaining.items())


# ---------------------------------------------------------------- forms that are no ops


def _splat(e: l.Call, term: Term, found: Found) -> Terms:
    inner = core(term)
    if not found.scope.is_term(e.arguments[0]):
        yield from _scalar(e.arguments[0], term, found)
    elif inner is not None:
        yield from match(e.arguments[0], inner, found)


def _bcast(e: l.Call, term: Term, found: Found) -> Terms:
    """A broadcast, or the operand itself where it has the shape already."""
    inner, named = e.arguments[0], dict(e.named)
    wanted = e.arguments[1] if len(e.arguments) > 1 else None
    if not found.scope.is_term(inner):
        yield from _scalar(inner, term, found)
        return
    if term.op.name == "stablehlo.broadcast_in_dim":
        operand, axes = term.operands[0], term.attribute("broadcast_dimensions")
        rank = term.tensor.rank
        for after in match(inner, operand, found):
            fits = after if wanted is None else after.wait(wanted, tuple(term.tensor.dims))
            if "axes" in named:
                yield from unify(named["axes"], axes, fits, None)
            elif axes == tuple(range(rank - operand.tensor.rank, rank)):
                yield fits
        yield from _bcast_without_ones(e, term, found)
    elif term.op.name == "stablehlo.reshape":
        yield from _bcast_of_ones(e, term, found)
    for after in match(inner, term, found):
        fits = after if wanted is None else after.wait(wanted, tuple(term.tensor.dims))
        yield from unify(named["axes"], tuple(range(term.tensor.rank)), fits, None) if "axes" in named else iter([fits])


def _bcast_of_ones(e: l.Call, term: Term, found: Found) -> Terms:
    """A broadcast that only adds dims of 1 is a reshape: the axes say where the dims of the operand are."""
    inner, named = e.arguments[0], dict(e.named)
    operand, shape = term.operands[0], term.tensor.dims
    rank = operand.tensor.rank
    for after in match(inner, operand, found):
        fits = after if len(e.arguments) < 2 else after.wait(e.arguments[1], tuple(shape))
        choices = [tuple(range(len(shape) - rank, len(shape)))] if "axes" not in named else _rising(operand.tensor.dims, shape)
        for axes in choices:
            others = [dim for axis, dim in enumerate(shape) if axis not in axes]
            if (
                len(axes) == rank
                and tuple(shape[axis] for axis in axes if axis >= 0) == operand.tensor.dims
                and all(dim == 1 for dim in others)
            ):
                yield from unify(named["axes"], axes, fits, None) if "axes" in named else iter([fits])


def _rising(few: tuple[Any, ...], many: tuple[Any, ...]) -> list[tuple[int, ...]]:
    """All ways to find the dims of `few` in `many` in order, where all others are 1."""
    if not few:
        return [()] if all(dim == 1 for dim in many) else []
    found = []
    for place, dim in enumerate(many):
        if dim == few[0]:
            found += [(place, *(place + 1 + axis for axis in rest)) for rest in _rising(few[1:], many[place + 1 :])]
        if dim != 1:
            break
    return found


def _bcast_without_ones(e: l.Call, term: Term, found: Found) -> Terms:
    """A broadcast of dims of 1 is written as one of what is left when a reshape has taken them away."""
    operand, axes = term.operands[0], term.attribute("broadcast_dimensions")
    if operand.op.name != "stablehlo.reshape":
        return
    before = operand.operands[0]
    shape, named = term.tensor.dims, dict(e.named)
    rank = before.tensor.rank
    if "axes" in named or rank > len(shape):
        return
    own = tuple(range(len(shape) - rank, len(shape)))
    kept = tuple(axis for axis, dim in zip(own, before.tensor.dims, strict=True) if dim == shape[axis] and axis in axes)
    ones = [dim for axis, dim in zip(own, before.tensor.dims, strict=True) if axis not in kept]
    if kept == axes and all(dim == 1 for dim in ones):
        for after in match(e.arguments[0], before, found):
            yield after if len(e.arguments) < 2 else after.wait(e.arguments[1], tuple(shape))


def _full(e: l.Call, term: Term, found: Found) -> Terms:
    value, shape, dtype = e.arguments
    if isinstance(term.type, TensorType):
        for inner in unify(dtype, term.tensor.dtype, found.wait(shape, tuple(term.tensor.dims)), None):
            yield from _scalar(value, term, inner)


def _number(e: l.Call, term: Term, found: Found) -> Terms:
    value, dtype = e.arguments
    if isinstance(term.type, TensorType) and term.type.shape == ():
        for inner in unify(dtype, term.tensor.dtype, found, None):
            yield from _scalar(value, term, inner)


def _host(e: l.Call, term: Term, found: Found) -> Terms:
    if not isinstance(term.type, TensorType) or term.type.shape != () or term.tensor.dtype.name != "i64":
        return
    if term.op is DIMS:
        yield from unify(e.arguments[0], term.attribute("dims")[0], found, None)
    elif term.op is CONSTANT:
        yield from unify(e.arguments[0], int(term.attribute("value").array()), found, None)


def _swap_last(e: l.Call, term: Term, found: Found) -> Terms:
    rank = term.tensor.rank if isinstance(term.type, TensorType) else 0
    if term.op.name == "stablehlo.transpose" and term.attribute("permutation") == (*range(rank - 2), rank - 1, rank - 2):
        yield from match(e.arguments[0], term.operands[0], found)


def _get(e: l.Call, term: Term, found: Found) -> Terms:
    if term.op is GET:
        for inner in match(e.arguments[0], term.operands[0], found):
            yield from unify(e.arguments[1], term.attribute("index"), inner, None)


def _fold(e: l.Call, term: Term, found: Found) -> Terms:
    """`fold(f, xs..)`: f(f(a, b), c) .. of terms that are known."""
    name, *items = e.arguments
    if not isinstance(name, l.Name) or len(items) != 1 or not isinstance(items[0], l.Splice) or not isinstance(items[0].inner, l.Name):
        raise CannotSay("this fold")
    known = found.values.get(items[0].inner.name)
    if known is None:
        raise CannotSay("a fold over operands that are not known yet")
    op = found.scope.op(name.name)
    parts: list[Term] = []
    current = term
    for _ in range(len(known) - 1):
        if current.op is not op:
            return
        parts.insert(0, current.operands[1])
        current = current.operands[0]
    if (current, *parts) == known:
        yield found


def _item(whole: l.Expression, index: l.Expression, term: Term, found: Found) -> Terms:
    values = value_of(whole, found)
    if isinstance(values, tuple) and algebra.item(values, value_of(index, found)) is term:
        yield found


def _reduction(word: str, e: l.Call, term: Term, found: Found) -> Terms:
    if term.op.name == "stablehlo.reduce" and term.attribute("combiner") == word and not term.regions:
        for inner in match(e.arguments[0], term.operands[0], found):
            yield from unify(e.arguments[1], term.attribute("dimensions"), inner, None)


SPECIAL: dict[str, Callable[[l.Call, Term, Found], Terms]] = {
    "splat": _splat,
    "bcast": _bcast,
    "full": _full,
    "scalar": _number,
    "host": _host,
    "swap_last": _swap_last,
    "get": _get,
    "fold": _fold,
}
