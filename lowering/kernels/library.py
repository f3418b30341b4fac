"""Kernels that a library runs."""

from __future__ import annotations

from dataclasses import dataclass

from coset.ir.term import Term


@dataclass(frozen=True)
class Library:
    """One hub term that a library computes (convolution, sort, gather, scatter, fft ..): operands and results are whole buffers, operands
    perhaps in another shape."""

    name: str
    term: Term  # its operands are `builtin.parameter` terms, one for each of `operands`; those not given are absent
    operands: tuple[str | None, ...]  # buffers; None: an operand that is not given
    results: tuple[str, ...]
    terms: tuple[str, ...] = ()
