"""Up to which ranks instances are looked at, and which ops keep them from speaking for all (the theorem in `docs/proofs.md`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from coset.dialects.expansion import expanded
from coset.ir import dims
from coset.ir.term import Term, topological
from coset.prove.frame_sorts import Unnatural
from coset.prove.frames import Frames, frames_of
from coset.prove.opened import ranks_told
from coset.rules.algebra import Call, Listing, Literal, MappedList, Ref, Splice, TypeOf, Wild
from coset.rules.candidates import names_axes
from coset.rules.expression_text import text
from coset.rules.parts import parts
from coset.rules.pattern import Application, applications
from coset.rules.rule import Rule
from coset.rules.uses import expressions

RANKS = 2  # of each pack; see the theorem
MOST = 4  # of which all permutations can be looked at
# ops that take each coordinate of the result to a coordinate of an operand, or fold over it: a mistake shows with two axes
COORDINATES = frozenset(f"stablehlo.{name}" for name in (
    "transpose", "broadcast_in_dim", "reduce", "dot_general", "reverse", "iota", "compare", "select", "slice", "concatenate",
    "convolution", "reduce_window", "pad", "map", "reduce_region", "if", "while",
))  # fmt: skip


def open_ranks(rule: Rule) -> bool:
    """Whether some rank is not written down: else the instances have all ranks that there are."""
    items = [item for pattern in rule.compiled.types for item in pattern.dims.items]
    return any(kind.word in ("pack", "dims") for kind in rule.compiled.kinds.values()) or any(getattr(i, "value", i) is None for i in items)


def most_rank(rule: Rule) -> int:
    """Up to which rank of each pack instances are made.

    Where axes are told apart (`prove/frames.py`) two of them show a difference, beside those that are named. Else words in permutations
    count: of two dims all permutations commute and are their own inverses, and of three each has a sixth power that is nothing.
    """
    frames = _frames(rule)
    if not isinstance(frames, Frames):
        return _of_words(rule) + _designated(rule)
    return min(MOST, RANKS + _designated(rule) + _further(rule, frames))


def _further(rule: Rule, frames: Frames) -> int:
    """How many more axes of a pack must stay: those before one that has a number, and those that a condition asks for."""
    written = max((len(pattern.dims.items) - 1 for pattern in rule.compiled.types), default=0)  # dims that are written down beside a pack
    wanted = [(part, count) for condition in rule.compiled.conditions for part, count in _counted(condition)]
    some = [count for part, count in wanted if not _whole(rule, part)]  # of a list of axes: they stay beside the two
    all_ = [count - written - RANKS for part, count in wanted if _whole(rule, part)]
    return max([0, frames.before - written, *all_]) + max([0, *some])


def _counted(condition: Any) -> Iterator[tuple[Call, int]]:
    """The ranks and lengths of which a condition says that they are at least a number."""
    for part in parts(condition):
        if isinstance(part, Call) and part.function in _AT_LEAST:
            count, number = part.arguments
            if isinstance(count, Call) and count.function in ("rank", "len") and isinstance(number, Literal):
                yield count, int(number.value) + _AT_LEAST[part.function]


def _whole(rule: Rule, count: Call) -> bool:
    """Whether all axes of a tensor or a pack are counted: any two of them are among as many."""
    (of,) = count.arguments
    return isinstance(of, TypeOf | Listing) or (
        isinstance(of, Ref) and of.name in rule.compiled.kinds and rule.compiled.kinds[of.name].word == "pack"
    )


_AT_LEAST = {">": 1, ">=": 0, "==": 0, "!=": 1}


@lru_cache(maxsize=64)
def _frames(rule: Rule) -> Frames | str:
    """The frames of a rule, or why there are none."""
    try:
        return frames_of(rule)
    except Unnatural as unnatural:
        return str(unnatural)


def rank_gaps(rule: Rule) -> set[str]:
    """What keeps small ranks from speaking for all: axes that are used as the theorem does not allow."""
    found = ranks_named(rule)
    why = _frames(rule)
    if not open_ranks(rule):
        return found
    found |= ranks_told(rule, RANKS)
    if isinstance(why, str) and not _only_words(rule):
        found.add(f"ranks over {most_rank(rule)}: {why}")
    if isinstance(why, Frames) and RANKS + _designated(rule) + _further(rule, why) > MOST:
        found.add(f"ranks over {MOST}")
    return found


def _of_words(rule: Rule) -> int:
    """Dims of which there are permutations that tell any two words apart as long as those of the rule: none of up to five letters is the
    identity for all permutations of three dims, none of up to eleven for those of four."""
    if not any(kind.word == "permutation" for kind in rule.compiled.kinds.values()) and not any(
        _turns(rule, node) for node in applications(rule.left)
    ):
        return RANKS
    return 3 if _letters(rule) <= 5 or not _only_words(rule) else 4


def _letters(rule: Rule) -> int:
    """How often both sides speak of permutations."""
    names = _permutations(rule)
    return sum(isinstance(part, Ref) and part.name in names for whole in expressions(rule) for part in parts(whole))


def _permutations(rule: Rule) -> set[str]:
    return {name for name, kind in rule.compiled.kinds.items() if kind.word == "permutation"}


def _only_words(rule: Rule) -> bool:
    """Whether a rule only permutes axes, by words of up to eleven letters that are permutations, their products and inverses; of more than
    two permutations by words of up to five."""
    names = _permutations(rule)
    for node in (node for pair in rule.pairs for side in pair for node in applications(side)):
        if not (node.op.has("elementwise") or node.op.name == "stablehlo.transpose"):
            return False
    speaking = [whole for whole in expressions(rule) if any(isinstance(part, Ref) and part.name in names for part in parts(whole))]
    plain = all(
        (isinstance(part, Ref) and part.name in names) or (isinstance(part, Call) and part.function in ("compose", "inverse", "permute"))
        for whole in speaking for part in parts(whole)
    )  # fmt: skip
    written = all(isinstance(item, Splice) for pattern in rule.compiled.types for item in pattern.dims.items)
    return bool(names) and plain and written and not rule.compiled.conditions and _letters(rule) <= (11 if len(names) <= 2 else 5)


def _turns(rule: Rule, node: Application) -> bool:
    """Whether a broadcast or a transpose of the left side may put axes in any order, which the right side knows by a name."""
    items = dict(rule.compiled.left[node.index].items)
    return any(isinstance(items.get(name), Ref) for name in ("broadcast_dimensions", "permutation"))


def _designated(rule: Rule) -> int:
    """How many axes of one operand the left side names one by one (`axis: a`, `[c]`, `[rank(x) - 1]`): they must stay when others go."""
    if not open_ranks(rule):
        return 0
    found: dict[bool, set[str]] = {False: set(), True: set()}  # those of right operands apart
    for node in applications(rule.left):
        for name, value in rule.compiled.left[node.index].items:
            if names_axes(name):
                items = value.items if isinstance(value, Listing) else (value,)
                found[name.startswith("rhs")].update(text(item) for item in items if _one_axis(rule, item))
    return max(map(len, found.values()))


def _one_axis(rule: Rule, item: Any) -> bool:
    """Whether an item of an attribute is the number of one axis of a pack, not a list of some or what is left open."""
    if isinstance(item, Ref):
        return rule.compiled.kinds[item.name].word in ("int", "any")
    if isinstance(item, Literal) and isinstance(item.value, tuple):
        return False
    if any(len(pattern.dims.items) > 1 for pattern in rule.compiled.types):
        return False  # what is counted from an end is a dim that is written down beside the pack
    return not isinstance(item, Splice | Wild | Listing | MappedList) and not (isinstance(item, Call) and item.function in _LISTS)


_LISTS = frozenset(("range", "without", "join", "permute", "drop", "insert", "regrouped", "relocated", "placement", "+", "sort", "repeat"))


def _keeps_coordinates(term: Term, packs: re.Pattern[str]) -> bool:
    """Whether a reshape only adds and drops dims of 1, and beside these changes no dim of a pack."""
    if term.op.name != "stablehlo.reshape":
        return False
    before, after = ([dim for dim in type.tensor.dims if dim != 1] for type in (term.operands[0], term))
    for end in (0, -1):
        while before and after and before[end] == after[end]:
            before.pop(end), after.pop(end)
    return not any(packs.fullmatch(name) for dim in (*before, *after) for name in dims.symbols(dim))


def positional(rule: Rule, pair: tuple[Term, Term]) -> set[str]:
    """The ops of an instance for which small ranks do not speak for all."""
    names = "|".join(re.escape(name) for name, kind in rule.compiled.kinds.items() if kind.word in ("pack", "dims", "ints"))
    packs = re.compile(
        rf"(?:(?:{names}|any|shape\d+)_.*|(?:at[.:]|before:).*[.]\d+(?:[.]low|[.]high)?)"
    )  # what is made for an axis, not for a dim with a name
    primitives = {term.op for term in topological(expanded(pair, keep=lambda _: False)) if not _keeps_coordinates(term, packs)}
    ordinary = {op for op in primitives if op.name.startswith("builtin.") or op.has("elementwise") or op.name in COORDINATES}
    return {f"ranks over {RANKS} of {op.name}" for op in primitives - ordinary}


def ranks_named(rule: Rule) -> set[str]:
    """A gap where a comparison of a rank or a length names a number beyond the ranks that are looked at, or computes one."""
    for whole in expressions(rule):
        for part in parts(whole):
            if isinstance(part, Call) and part.function in ("==", "!=", "<", "<=", ">", ">=", "in") and _names_rank(part):
                return {"ranks that a condition names"}
    return set()


def _names_rank(comparison: Call) -> bool:
    inside = list(parts(comparison))
    if not any(isinstance(p, Call) and p.function in ("rank", "len") for p in inside):
        return False
    compared = list(_summands(comparison))
    numbers = [p.value for p in inside if isinstance(p, Literal) and isinstance(p.value, int)]
    return max(numbers, default=0) > RANKS or sum(map(_size, compared)) > RANKS or any(map(_computed, compared))


def _summands(number: Call) -> Iterator[Any]:
    """The numbers that are compared, added and subtracted in a comparison."""
    for argument in number.arguments:
        if isinstance(argument, Call) and argument.function in ("+", "-", "negate"):
            yield from _summands(argument)
        else:
            yield argument


def _size(number: Any) -> int:
    """How large a number is that is written down, or how many items a list has that are."""
    if isinstance(number, Call) and number.function == "len":
        (listed,) = number.arguments
        items = listed.items if isinstance(listed, Listing) else listed.value if isinstance(listed, Literal) else ()
        return sum(not isinstance(item, Splice) for item in items)
    return abs(number.value) if isinstance(number, Literal) and isinstance(number.value, int) else 0


def _computed(number: Any) -> bool:
    """Whether a number is made of others in such a way that it may be beyond the ranks that are looked at. An axis by a rank is an axis."""
    if not isinstance(number, Call) or number.function not in _MADE:
        return False
    return number.function != "%" or not (isinstance(number.arguments[1], Call) and number.arguments[1].function == "rank")


_MADE = frozenset(("*", "/", "//", "%", "min", "max", "ceildiv", "floor", "ceil", "product", "sum", "bits", "lowest", "highest", "cut"))
