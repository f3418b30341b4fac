"""What a proof must know of the definitions of the ops in a rule.

What is shown of few ranks, element types and numbers is shown of a defined op as long as its definition does not tell others apart.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from functools import lru_cache
from typing import Any

from coset.ir.op import Op, find_op
from coset.ir.types import DTYPES, DType
from coset.prove.axis_counts import refuse_counts
from coset.prove.frame_sorts import Unnatural
from coset.rules import syntax
from coset.rules.algebra import Call, Literal, MappedList, Ref, Scalar, Scope, Splice, TypeOf, Unbound, Wild, evaluate
from coset.rules.definition import Definition, definition_of, is_defined
from coset.rules.parts import parts, within
from coset.rules.pattern import applications
from coset.rules.rule import Rule
from coset.rules.scalar import Undefined
from coset.rules.syntax import RuleError
from coset.rules.uses import expressions

SCALES = "f8e8m0fnu"  # its name
_MAKE_NUMBERS = frozenset({"stablehlo.convert", "stablehlo.iota", "builtin.constant"})
_COMPARED = frozenset({"==", "!=", "<", "<=", ">", ">=", "in"})
_OF_WIDTHS = frozenset({"bits", "lowest", "highest"})  # functions that tell the widths of element types apart


def ops_of(rule: Rule) -> set[Op]:
    """The ops of both sides."""
    return {node.op for pair in rule.pairs for side in pair for node in applications(side)}


def reached(ops: Iterable[Op]) -> list[Definition]:
    """The definitions of `ops`, and of the ops that these are made of."""
    found: dict[str, Definition] = {}
    pending = [op.name for op in ops]
    while pending:
        name = pending.pop()
        op = None if name in found else find_op(name)
        if op is not None and is_defined(op):
            found[name] = definition_of(op)
            pending += sorted(found[name].mentioned)
    return [found[name] for name in sorted(found)]


def ranks_told(rule: Rule, ranks: int) -> set[str]:
    """A gap for each definition that names a rank, or an axis by its number, beyond the `ranks` looked at, or computes with ranks."""
    return {f"ranks that {own.op.name} tells apart" for own in reached(ops_of(rule)) if _tells_ranks(own.op.name, ranks)}


@lru_cache(maxsize=1024)
def _tells_ranks(name: str, ranks: int) -> bool:
    op = find_op(name)
    assert op is not None
    own = definition_of(op)
    try:
        forms = own.forms
    except RuleError:  # a list of terms, say, is read only where types are known
        whole = [part for clause in own.entry.clauses for part in clause.parts()]
        return any(isinstance(part, syntax.Number) and part.integral and abs(part.value) > ranks for part in whole)
    return any(_names(whole, ranks + _beside(form)) for form in forms if _open(form) for whole in expressions(form))


def _open(form: Rule) -> bool:
    """Whether an operand may have any rank."""
    return any(isinstance(item, Splice) for pattern in form.compiled.types for item in pattern.dims.items)


def _beside(form: Rule) -> int:
    """How many dims are written down beside a pack."""
    return max((len(pattern.dims.items) - 1 for pattern in form.compiled.types), default=0)


def _names(whole: Any, most: int) -> bool:
    """Whether an expression has a number beyond `most`, but for the numbers that elements are made of, or bends the number of axes."""
    try:
        refuse_counts(whole)
    except Unnatural:
        return True
    return any(_largest(part) > most for part in _numbers(whole))


def _numbers(whole: Any) -> Iterator[Any]:
    """The whole numbers in an expression and lists of them, computed ones too where no name is in them. What an element is made of, and
    what the bits of an element type are compared with, is none."""
    if isinstance(whole, Scalar) or (
        isinstance(whole, Call) and any(isinstance(a, Call) and a.function == "bits" for a in whole.arguments)
    ):
        return
    if isinstance(whole, Call) and not any(isinstance(part, Ref | TypeOf | Wild | MappedList) for part in parts(whole)):
        with suppress(Undefined, Unbound):
            yield evaluate(whole, Scope({}))
        return
    yield whole.value if isinstance(whole, Literal) else None
    for inner in within(whole):
        yield from _numbers(inner)


def _largest(value: Any) -> int:
    numbers = value if isinstance(value, tuple) else (value,)
    return max((abs(n) for n in numbers if isinstance(n, int) and not isinstance(n, bool)), default=0)


def types_told(rule: Rule, usual: Sequence[str]) -> tuple[str, ...]:
    """The element types that a rule, or a definition of an op in it, tells apart from the `usual` ones: those that it names, those of
    another width where it asks for widths, and that of scales where numbers of any type are made."""
    spoken = [part for whole in (*expressions(rule), *_of_definitions(rule)) for part in parts(whole)]
    named = [each for part in spoken if isinstance(part, Call) and part.function in _COMPARED for each in _types_in(part)]
    widths = [part for part in spoken if isinstance(part, Call) and part.function in _OF_WIDTHS]
    asked = {n for part in spoken for n in _widths_in(part)}
    others = [name for name in DTYPES if name not in usual and widths and _is_apart(DTYPES[name], asked, usual)]
    scales = [SCALES] if computes_scales(rule) and any(op.name in _MAKE_NUMBERS for op in ops_of(rule)) else []
    return tuple(name for name in dict.fromkeys([*named, *others, *scales]) if name not in usual)


def types_drawn(rule: Rule) -> tuple[str, ...]:
    """The element types that are drawn beside the common ones: those that are told apart, and that of scales wherever one computes."""
    return tuple(dict.fromkeys((*types_told(rule, ()), *([SCALES] if computes_scales(rule) else []))))


def computes_scales(rule: Rule) -> bool:
    """Whether a rule for any element type computes, with that of scales too: it has no zero and no sign, so that 0 and -x are NaN."""
    every = any(kind.word == "dtype" and DTYPES[SCALES] in kind.classes for kind in rule.compiled.kinds.values())
    return every and rule.definition is None and any(not op.has("movement") and not op.name.startswith("builtin.") for op in ops_of(rule))


def _of_definitions(rule: Rule) -> list[Any]:
    found: list[Any] = []
    for own in reached(ops_of(rule)):
        try:
            found += [whole for form in own.forms for whole in expressions(form)]
        except RuleError:
            told = {part.name for clause in own.entry.clauses for part in clause.parts() if isinstance(part, syntax.Invocation)}
            found += [Call(name, ()) for name in sorted(told & _OF_WIDTHS)]  # the numbers are read only where types are known
    return found


def _types_in(comparison: Call) -> list[str]:
    values = [part.value for part in parts(comparison) if isinstance(part, Literal)]
    return [value.name for value in values if isinstance(value, DType)]


def _widths_in(part: Any) -> list[int]:
    """The numbers that bits are compared with."""
    if not isinstance(part, Call) or part.function not in _COMPARED or not any(_is_width(each) for each in part.arguments):
        return []
    return [each.value for each in parts(part) if isinstance(each, Literal) and isinstance(each.value, int)]


def _is_width(part: Any) -> bool:
    return isinstance(part, Call) and part.function == "bits"


def _is_apart(dtype: DType, asked: Set[int], usual: Sequence[str]) -> bool:
    """Whether no usual type of this kind has the same place among the numbers that widths are compared with, or where none is told the same
    width. Floats of fewer bits than 8 are drawn only."""
    if dtype.kind not in ("int", "uint") and dtype.name != "f8e5m2":
        return False

    def place(each: DType) -> Hashable:
        return tuple((each.bits > n) - (each.bits < n) for n in sorted(asked)) or each.bits

    return all(place(DTYPES[name]) != place(dtype) for name in usual if DTYPES[name].kind == dtype.kind)


@lru_cache(maxsize=1024)
def tells(op: Op, attribute: str) -> bool:
    """Whether a definition looks at the number that an attribute is: it may mean one thing with some numbers and another with others."""
    if not is_defined(op):
        return False
    own = definition_of(op)
    if any(each.name == attribute and not each.required and each.default in (0, 1) for each in op.attributes):
        return True  # a default that changes nothing leaves no trace
    return any(_looks_at(clause, attribute, own) for clause in own.entry.clauses)


def _looks_at(clause: syntax.Clause, attribute: str, own: Definition) -> bool:
    names = {attribute}  # and what is made of it
    while more := {x.name for x in clause.locals if x.name not in names and not names.isdisjoint(_named(x.value))}:
        names |= more
    if clause.condition is not None and not names.isdisjoint(_named(clause.condition)):
        return True
    for part in clause.parts():
        asked = part.operands[0] if isinstance(part, syntax.Operation) and part.operator == "if" else None
        if isinstance(part, syntax.Comprehension | syntax.Lambda) or (asked is not None and not names.isdisjoint(_named(asked))):
            if not names.isdisjoint(_named(part)):
                return True
        elif isinstance(part, syntax.Invocation) and _passes_on(part, names, own):
            return True
    return False


def _passes_on(call: syntax.Invocation, names: Set[str], own: Definition) -> bool:
    """Whether an op that has one of the names as an attribute looks at it."""
    op = own.meant(call)
    if op is None or not is_defined(op):
        return False
    attributes = [attribute.name for attribute in op.attributes]
    given = [*zip(attributes, call.plain[len(op.operands) :], strict=False), *call.keywords]
    return any(tells(op, name) for name, value in given if not names.isdisjoint(_named(value)))


def _named(expression: Any) -> set[str]:
    return {part.value for part in syntax.walk(expression) if isinstance(part, syntax.Name)}
