"""Attributes that a rule writes: names that an op has not, values of another kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coset.ir.suggestions import like
from coset.ir.types import DTYPES
from coset.rules import syntax
from coset.rules.syntax import RuleError

WRONG_WORDS = {"True": "true or 1", "False": "false or 0", "None": "nothing: leave the attribute out"}  # of other languages
LISTS = ("ints", "floats", "dims", "padding", "permutation", "axes")
_EXAMPLES = {
    "int": "1",
    "float": "0.5",
    "string": '"text"',
    "dtype": "f32",
    "bool": "true",
    "padding": "[[1, 1], [1, 1]]",
    "dims": "[M, N]",
}


def check_kind(op: str, name: str, kind: str, value: syntax.Expression) -> None:
    """Refuse a value that is written as another kind of thing than the attribute is."""
    if isinstance(value, syntax.Name) and value.value in WRONG_WORDS:
        raise RuleError(f"`{value.value}` is no word of the rule language", place=value.place, help=f"write {WRONG_WORDS[value.value]}")
    is_list, is_text = isinstance(value, syntax.Brackets), isinstance(value, syntax.Text)
    is_tuple = isinstance(value, syntax.Operation) and value.operator == "tuple"
    whole = not isinstance(value, syntax.Number) or value.integral
    wrong = {
        "int": is_list or is_text or is_tuple or not whole, "float": is_list or is_text or is_tuple, "bool": is_list or is_text or is_tuple,
        "string": is_list or is_tuple or isinstance(value, syntax.Number), "dtype": is_list or is_text or isinstance(value, syntax.Number),
        **dict.fromkeys(LISTS, is_text or is_tuple or isinstance(value, syntax.Number)),
    }  # fmt: skip
    if wrong.get(kind, False):
        what = "a list in round brackets" if is_tuple else "a list" if is_list else "a text" if is_text else "a number"
        help = (
            "write its items in square brackets, as `[1, 0]`"
            if is_tuple
            else f"it is of kind {kind}: write `{name}: {_meant(kind, value)}`"
        )
        raise RuleError(f"`{name}` of `{op}` is not {what}", place=value.place, help=help)


def _meant(kind: str, value: syntax.Expression) -> str:
    """A value of that kind: the element type that a text names, else an example."""
    named = value.value if isinstance(value, syntax.Text) else ""
    return named if kind == "dtype" and named in DTYPES else _EXAMPLES.get(kind, "[1, 1]")


_COUNTS = {"strides": 1, "dilations": 1, "kernel_shape": 1, "output_padding": 1, "pads": 2}  # numbers for each dim that a window runs over


def check_count(op: str, name: str, value: syntax.Expression, dims: Mapping[str, syntax.Expression]) -> None:
    """Refuse a list of too few or too many numbers, and axes that are none, where the rule declares how many dims there are. `dims`: what
    the names of the op's entry stand for, H for the dims of windows and S for all of the first operand."""
    spatial, whole = (_length(dims.get(pack)) for pack in ("H", "S"))
    given = _length(value)
    wanted = _COUNTS[name] * spatial if name in _COUNTS and spatial is not None else whole if name == "perm" else None
    if wanted is not None and given is not None and given != wanted:
        about = "one for each dim" if name == "perm" else "first those before each dim of the windows, then those behind"
        about = about if name in ("perm", "pads") else "one for each dim of the windows"
        raise RuleError(f"`{name}` of `{op}` has {given} items, not {wanted}", place=value.place, help=f"write {wanted}: {about}")
    if name not in ("axis", "axes") or whole is None or op.endswith("Unsqueeze"):
        return
    for each in value.items if isinstance(value, syntax.Brackets) else (value,):
        number = _number(each)
        if number is not None and not -whole <= number < whole:
            help = f"write 0 to {whole - 1}, or -{whole} to -1 from the end"
            raise RuleError(f"`{op}` has no axis {number}: its operand has {whole} dims", place=value.place, help=help)


def _length(value: syntax.Expression | None) -> int | None:
    """The number of items of a list that is written out."""
    if not isinstance(value, syntax.Brackets) or any(isinstance(each, syntax.Spread) for each in value.items):
        return None
    return len(value.items)


def _number(value: object) -> int | None:
    if isinstance(value, syntax.Operation) and value.operator == "negate":
        inner = _number(value.operands[0])
        return None if inner is None else -inner
    return int(value.value) if isinstance(value, syntax.Number) else None


def no_attribute(op: str, name: str, known: Sequence[str], value: syntax.Expression) -> RuleError:
    """The error of an attribute that an op has not."""
    help = " ".join(part for part in (like(name, known), f"it has: {', '.join(known) or 'none'}") if part)
    return RuleError(f"`{op}` has no attribute `{name}`", place=value.place, help=help)
