"""Payload functions that a certificate writes down: terms over each other by place."""

from __future__ import annotations

from typing import Any

from coset.ir.errors import CosetError
from coset.ir.op import find_op
from coset.ir.term import INPUT, Region, Term, make
from coset.prove.second import reading
from coset.prove.second.answer import Refused


def functions(value: Any) -> tuple[Region, ...]:
    """The functions that a line has behind its attributes.

    Raises:
        Refused: they are none.
    """
    if not isinstance(value, list):
        raise Refused("functions are a list")
    return tuple(_function(each) for each in value)


def _function(value: Any) -> Region:
    if not isinstance(value, list) or len(value) != 3 or not all(isinstance(each, list) for each in value):
        raise Refused("a function is terms, parameters and results")
    rows, parameters, results = value
    terms: list[Term] = []
    for row in rows:
        terms.append(_row(row, terms))
    return Region(_places(parameters, terms), _places(results, terms))


def _places(numbers: Any, terms: list[Term]) -> tuple[Term, ...]:
    if not isinstance(numbers, list) or not all(type(number) is int and 0 <= number < len(terms) for number in numbers):
        raise Refused("places in a function")
    return tuple(terms[number] for number in numbers)


def _row(row: Any, terms: list[Term]) -> Term:
    if not isinstance(row, list) or len(row) not in (3, 4) or not isinstance(row[0], str):
        raise Refused("a term of a function is an op, operands and attributes")
    op = find_op(row[0])
    if op is None or op is INPUT:
        raise Refused(f"there is no op `{row[0]}`")
    attributes = reading.attributes(op, row[2])
    inner = functions(row[3]) if len(row) == 4 else ()
    try:
        return make(op, _places(row[1], terms), attributes, inner)
    except (CosetError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, AssertionError) as error:
        raise Refused(f"no such term: {error}") from None
