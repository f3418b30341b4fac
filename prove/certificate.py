"""What the lines of a certificate say: which instances of rules join two programs (docs/certificates.md).

Terms are numbered: those of the program before, in topological order of its roots, then those of the program after, then those that a
certificate's `term` lines add. Large constants are named by a hash of their bytes, so that the numbering does not depend on where they are.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from coset.ir.constants import INLINE_ELEMENTS, Constant, constant_of
from coset.ir.dims import Poly
from coset.ir.errors import CosetError
from coset.ir.op import Op, get_op
from coset.ir.program import Program
from coset.ir.term import INPUT, PARAMETER, Region, Term, check_regions, intern, make, topological
from coset.ir.types import DTYPES, AbsentType, DType, TensorType, TupleType, Type
from coset.prove.contents import all_terms

FORMAT, VERSION = "coset certificate", 3
INTEGERS = ("int", "ints", "permutation")  # kinds of attributes

Line = dict[str, Any]


class Rejected(CosetError):
    """The certificate does not show what it claims."""


# ---------------------------------------------------------------- values of attributes


def decode(value: Any) -> Any:
    """The value that `encode` gave as JSON.

    Raises:
        CosetError, ValueError, TypeError, KeyError: it is none.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list):
        return tuple(decode(item) for item in value)
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError("no value of an attribute")
    ((kind, inner),) = value.items()
    if kind == "float":
        found = float("nan") if inner == "nan" else float.fromhex(inner)
        if inner not in (found.hex(), "nan"):
            raise ValueError(f"a float is written as {found.hex()}")
        return found
    if kind == "dim":
        return _is_a(Poly, inner)
    if kind == "dtype":
        return DTYPES[inner]
    if kind == "tensor":
        dtype, shape = _several(inner, 2)
        return TensorType(_is_a(DType, decode(dtype)), None if shape is None else tuple(map(_size, _several(shape))))
    if kind == "types":
        return TupleType(tuple(_is_a(Type, decode(each)) for each in _several(inner)))
    if kind == "absent" and inner is True:
        return AbsentType()
    if kind == "constant":
        type_, text = _several(inner, 2)
        return _constant(_is_a(TensorType, decode(type_)), text)
    raise ValueError(f"no value of an attribute is a `{kind}`")


def _constant(type: TensorType, text: str) -> Constant:
    flat = np.frombuffer(base64.b64decode(text, validate=True), type.dtype.numpy)
    if flat.size > INLINE_ELEMENTS or type.static is None or flat.size != prod(type.static):
        raise ValueError(f"a constant has more than {INLINE_ELEMENTS} elements, or other bytes than its type takes")
    if type.dtype.kind in ("bool", "int", "uint") and np.array(flat.tolist(), flat.dtype).tobytes() != flat.tobytes():
        raise ValueError("a constant has a byte that no element of its type is stored as")
    return constant_of(flat.reshape(type.static), type.dtype)


def _several(value: Any, count: int | None = None) -> list[Any]:
    """`value`, which is a list, of so many items."""
    if not isinstance(value, list) or len(value) != (len(value) if count is None else count):
        raise ValueError("no list of that many items")
    return value


def _is_a(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError("a value is of another kind")
    return value


def _size(value: Any) -> Any:
    found = decode(value)
    if isinstance(found, bool) or not isinstance(found, int | Poly) or (isinstance(found, int) and found < 0):
        raise ValueError("no dim")
    return found


# ---------------------------------------------------------------- numbered terms


class Numbered:
    """The terms of two programs, and those that are added, by number."""

    def __init__(self, before: Program, after: Program) -> None:
        self.terms: list[Term] = []
        self.number: dict[Term, int] = {}
        self.program(before)
        self.program(after)

    def add(self, term: Term) -> int:
        """The number of the term, new if it is."""
        if term not in self.number:
            self.number[term] = len(self.terms)
            self.terms.append(term)
        return self.number[term]

    def program(self, program: Program) -> None:
        """Add the terms of a program."""
        for term in all_terms(program):
            self.add(term)

    def enter(self, root: Term) -> None:
        """Add the term with all below it, operands first."""
        for term in topological([root], known=self.number):
            self.add(term)

    def __getitem__(self, number: object) -> Term:
        return place(number, self.terms)

    def several(self, numbers: object, count: int | None = None) -> tuple[Term, ...]:
        """The terms of a list of numbers, of so many.

        Raises:
            ValueError: it is no such list, or a number is none.
        """
        return tuple(self[number] for number in _several(numbers, count))


def place(number: object, terms: Sequence[Term]) -> Term:
    """The term at a place that is an integer, and no truth, float or negative number.

    Raises:
        ValueError: there is none.
    """
    if type(number) is not int or not 0 <= number < len(terms):
        raise ValueError(f"there is no term {number!r}")
    return terms[number]


def decode_function(value: Any) -> Region:
    """The function that `encode_function` gave as JSON.

    Raises:
        CosetError, ValueError, TypeError, KeyError, IndexError: it is none.
    """
    rows, *ends = _several(value, 3)
    terms: list[Term] = []
    for row in _several(rows):
        name, operands, payload, *functions = _several(row)
        op = get_op(name)
        given = [place(number, terms) for number in _several(operands)]
        terms.append(make(op, given, _attributes(op, payload), _functions(functions)))
    parameters, results = (tuple(place(number, terms) for number in _several(numbers)) for numbers in ends)
    return Region(parameters, results)


def _functions(written: list[Any]) -> tuple[Region, ...]:
    """The functions of a row: its last part, if it has that many."""
    return tuple(map(decode_function, _several(_several(written, 1)[0]))) if written else ()


def _attributes(op: Op, payload: Any) -> dict[str, Any]:
    """The attributes of a row: all that the op has and no other, and no truth where it has an integer."""
    found = {key: decode(value) for key, value in _is_a(dict, payload).items()}
    if found.keys() != {each.name for each in op.attributes}:
        raise ValueError(f"`{op.name}` has other attributes")
    for each in op.attributes:
        value = found[each.name]
        if each.kind in INTEGERS and any(isinstance(item, bool | float) for item in (value if isinstance(value, tuple) else (value,))):
            raise ValueError(f"`{each.name}` of `{op.name}` is an integer")
    return found


def read_term(line: Any, numbered: Numbered) -> Term:
    """The term that a `term` line adds, its type inferred.

    Raises:
        CosetError, ValueError, TypeError, KeyError: there is no such term.
    """
    name, operands, payload, *functions = _several(line)
    op = get_op(name)
    if op in (INPUT, PARAMETER):
        raise ValueError("a certificate adds no inputs")
    given = numbered.several(operands)
    if isinstance(payload, dict):
        attributes, regions = _attributes(op, payload), _functions(functions)
    else:
        like = numbered[payload]
        if like.op is not op:
            raise ValueError(f"term {payload} is no `{name}`")
        if functions:
            raise ValueError("a term has functions of its own or those of another")
        attributes, regions = dict(like.attributes), like.regions
    types = [operand.type for operand in given]
    type = op.infer(types, attributes)
    if not op.has("foreign"):
        check_regions(op, types, attributes, regions)
    return intern(op, given, tuple(sorted(attributes.items())), regions, type)


# ---------------------------------------------------------------- the whole


@dataclass(frozen=True)
class Certificate:
    """A certificate as it is written: `head` says what is claimed, `lines` why."""

    head: Line
    lines: Sequence[Line]


def is_number(value: object, wanted: int) -> bool:
    """Whether a value is an integer, and that one: 3.0 and true are none."""
    return type(value) is int and value == wanted
