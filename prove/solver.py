"""Z3 on what is left: real arithmetic with largest elements, conditions and roots, element by element."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from coset.prove import obligations
from coset.prove.scalar import Apply, Atom, Base, Exponential, MonomialSum, Size, truth_valued

STEPS = 10_000_000  # of Z3, about two seconds


class _Translation:
    """Forms as Z3's real terms: atoms are variables, with what is known of them as side conditions."""

    def __init__(self, z3: Any) -> None:
        self.z3 = z3
        self.names: dict[str, Any] = {}
        self.conditions: list[Any] = []

    def form(self, form: MonomialSum) -> Any:
        total = self.z3.RealVal(0)
        for monomial, coefficient in form.terms:
            part = self.z3.RealVal(f"{coefficient.numerator}/{coefficient.denominator}")
            for factor, exponent in monomial:
                part = part * self._power(factor, exponent)
            total = total + part
        return total

    def _power(self, factor: Atom, exponent: Fraction) -> Any:
        base = self._atom(factor)
        if exponent.denominator == 2:
            root = self._fresh(f"root {factor.key}")
            self.conditions += [root >= 0, root * root == base]
            base, exponent = root, exponent * 2
        if exponent.denominator != 1:
            return self._fresh(f"{factor.key}^{exponent}")
        if exponent < 0:
            inverse = self._fresh(f"inverse {base.sexpr()}")
            self.conditions.append(inverse * base == 1)
            base, exponent = inverse, -exponent
        result = base
        for _ in range(int(exponent) - 1):
            result = result * base
        return result

    def _fresh(self, key: str) -> Any:
        return self.names.setdefault(key, self.z3.Real(f"v{len(self.names)}"))

    def _atom(self, factor: Atom) -> Any:
        z3 = self.z3
        if isinstance(factor, Base):
            return self.form(factor.form)
        if isinstance(factor, Apply) and factor.function == "max":
            first, *rest = map(self.form, factor.arguments)
            for other in rest:
                first = z3.If(first >= other, first, other)
            return first
        if isinstance(factor, Apply) and factor.function in (">=0", "=0"):
            inner = self.form(factor.arguments[0])
            return z3.If(inner >= 0 if factor.function == ">=0" else inner == 0, z3.RealVal(1), z3.RealVal(0))
        if isinstance(factor, Apply) and factor.function == "sign":
            inner = self.form(factor.arguments[0])
            return z3.If(inner > 0, z3.RealVal(1), z3.If(inner < 0, z3.RealVal(-1), z3.RealVal(0)))
        value = self._fresh(factor.key)
        if truth_valued(factor):
            self.conditions.append(z3.Or(value == 0, value == 1))
        elif isinstance(factor, Exponential):
            self.conditions.append(value > 0)
        elif isinstance(factor, Size):
            self.conditions.append(value >= 0)
        return value


def solved(a: MonomialSum, b: MonomialSum, *, real: bool) -> bool:
    """True when Z3 shows a = b over the reals within its time; forms of other arithmetic are left alone."""
    if not real:
        return False
    import z3

    translation = _Translation(z3)
    left, right = translation.form(a), translation.form(b)
    solver = z3.Solver()
    solver.add(*translation.conditions, left != right)
    return obligations.unsatisfiable(solver, "the sides differ as real numbers", steps=STEPS)
