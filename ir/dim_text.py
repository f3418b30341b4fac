"""Symbolic dims read from text: from the one text that `str` gives them, so that no dim is written in two ways."""

from __future__ import annotations

import re

from coset.ir.dims import FUNCTIONS, Dim, Poly, add, multiply, symbol
from coset.ir.errors import CosetError

_TOKEN = re.compile(r"\d+|[A-Za-z_][\w.:/@]*|[-+*(),]")


def parse(text: str) -> Poly:
    """The dim, no number, that `str` writes as `text`.

    Raises:
        CosetError: no dim is written so.
    """
    tokens = _TOKEN.findall(text)[::-1]
    try:
        found = _read_sum(tokens)
    except (IndexError, KeyError, ZeroDivisionError):
        found = 0
    if tokens or not isinstance(found, Poly) or str(found) != text:
        raise CosetError(f"`{text}` is no dim as it is written")
    return found


def _read_sum(tokens: list[str]) -> Dim:
    """What the last tokens say, which are taken away."""
    total: Dim = 0
    while True:
        sign = {"-": -1, "+": 1}.get(tokens[-1])
        if sign is not None:
            tokens.pop()
        total = add(total, multiply(sign or 1, _read_product(tokens)))
        if not tokens or tokens[-1] in "),":
            return total


def _read_product(tokens: list[str]) -> Dim:
    total: Dim = 1
    while True:
        head = tokens.pop()
        factor: Dim
        if head.isdigit():
            factor = int(head)
        elif tokens and tokens[-1] == "(":
            arguments = [(tokens.pop(), _read_sum(tokens))[1] for _ in range(2)]
            tokens.pop()
            if arguments[1] == 0 and head not in ("max", "min"):
                raise ZeroDivisionError
            factor = FUNCTIONS[head](*arguments)
        else:
            factor = symbol(head)
        if isinstance(factor, Poly) and len(factor.terms) > 1:  # a product of sums may be as long as their numbers of terms multiply to
            raise CosetError(f"`{factor}` is written as a factor")
        total = multiply(total, factor)
        if not tokens or tokens[-1] != "*":
            return total
        tokens.pop()
