"""Folds (sums, largest elements, ..) over index variables in one normal form.

A sum goes apart over the terms of its body and over groups of variables that no factor joins; factors without a bound variable leave
it; sums inside it become one with it; conditions on one variable become its range. Bound variables are renamed by the
smallest key that any order of theirs gives.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import networkx as nx

from coset.ir import dims
from coset.ir.dims import Dim
from coset.prove import scalar
from coset.prove.deadline import look
from coset.prove.index import IndexFacts
from coset.prove.scalar import Atom, Fold, MonomialSum, Where
from coset.prove.substitution import atom_variables, replaced
from coset.prove.substitution import variables as free

_IDEMPOTENT = ("maximum", "minimum", "and", "or")
MOST_ORDERS = 24  # of bound variables: more are ordered by where they first occur
MOST_VARIABLES = 8  # of one fold, above which none is taken apart
Variables = tuple[tuple[str, Dim], ...]


class Folds:
    """Makes folds where `known` holds; names of bound variables are never used twice before they are canonical."""

    def __init__(self) -> None:
        self._count = itertools.count()

    def fresh(self) -> str:
        """A new bound variable."""
        return f"k:{next(self._count)}"

    def sum(self, variables: Variables, body: MonomialSum, known: IndexFacts) -> MonomialSum:
        """The sum of `body` over `variables`."""
        if any(extent == 0 for _, extent in variables):
            return scalar.ZERO
        total = scalar.ZERO
        for monomial, coefficient in body.terms:
            total = scalar.add(total, scalar.scale(self._product(variables, monomial, known), coefficient))
        return total

    def _product(self, variables: Variables, monomial: scalar.Monomial, known: IndexFacts) -> MonomialSum:
        names = {name for name, _ in variables}
        factors: list[tuple[Atom, Fraction]] = []
        outside = scalar.ONE
        for factor, exponent in monomial:
            if not atom_variables(factor) & names:
                outside = scalar.multiply(outside, scalar.atom(factor, exponent))
            elif isinstance(factor, Fold) and factor.combiner == "add" and exponent.denominator == 1 and exponent > 0:
                for done in range(int(exponent)):
                    own = {name: self.fresh() for name, _ in factor.variables}
                    variables += tuple((own[name], extent) for name, extent in factor.variables)
                    inner = self.renamed(factor.body, {a: dims.symbol(b) for a, b in own.items()}, known)
                    if len(inner.terms) != 1:
                        left = scalar.power(scalar.atom(factor), exponent - done - 1)
                        body = scalar.multiply(self._rebuilt(factors, monomial, factor, inner), left)
                        return scalar.multiply(outside, self.sum(variables, body, known))
                    outside = scalar.scale(outside, inner.terms[0][1])
                    factors += inner.terms[0][0]
            else:
                factors.append((factor, exponent))
        if any(isinstance(factor, Fold) and factor.combiner == "add" and exponent.denominator == 1 for factor, exponent in factors):
            flat = scalar.ONE
            for factor, exponent in factors:
                flat = scalar.multiply(flat, scalar.atom(factor, exponent))
            if any(atom_variables(f) & {n for n, _ in variables} for f, e in factors if isinstance(f, Fold) and f.combiner == "add"):
                return scalar.multiply(outside, self.sum(variables, flat, known))
        return scalar.multiply(outside, self._ranged(variables, factors, known))

    @staticmethod
    def _rebuilt(done: Sequence[tuple[Atom, Fraction]], monomial: scalar.Monomial, at: Atom, inner: MonomialSum) -> MonomialSum:
        """The product `monomial` with the fold `at`, which came last, replaced by its body."""
        body = inner
        for factor, exponent in done:
            body = scalar.multiply(body, scalar.atom(factor, exponent))
        seen = [factor for factor, _ in monomial].index(at)
        for factor, exponent in monomial[seen + 1 :]:
            body = scalar.multiply(body, scalar.atom(factor, exponent))
        return body

    def _ranged(self, variables: Variables, factors: Sequence[tuple[Atom, Fraction]], known: IndexFacts) -> MonomialSum:
        """The sum of a product, with conditions on single variables made ranges."""
        for position, (factor, _) in enumerate(factors):
            if not isinstance(factor, Where):
                continue
            changed = self._narrowed(variables, factor.dim, known)
            if changed is None:
                continue
            narrowed, substitution = changed
            inner = scalar.ONE
            for other, (rest, exponent) in enumerate(factors):
                if other != position:
                    inner = scalar.multiply(inner, scalar.atom(rest, exponent))
            within = known.with_variables(dict(narrowed))
            return self.sum(narrowed, self.renamed(inner, substitution, within), known)
        return self._parts(variables, factors, known)

    def _narrowed(self, variables: Variables, condition: Dim, known: IndexFacts) -> tuple[Variables, dict[str, Dim]] | None:
        """The variables and a substitution with which `condition` >= 0 always holds, where it bounds one of them by a constant."""
        names = [(name, extent) for name, extent in variables if name in dims.symbols(condition)]
        if len(names) != 1 or isinstance(condition, int):
            return None
        ((name, extent),) = names
        slope = _slope(condition, name)
        if slope not in (1, -1):
            return None
        bound = dims.subtract(condition, dims.multiply(slope, dims.symbol(name)))  # slope * name + bound >= 0
        if slope == -1:  # name <= bound
            size = dims.add(bound, 1)
            if not known.nonnegative(size) or not known.nonnegative(dims.subtract(extent, size)):
                return None
            return tuple((n, size if n == name else e) for n, e in variables), {}
        start = dims.multiply(-1, bound)  # name >= start
        size = dims.subtract(extent, start)
        if not known.nonnegative(start) or not known.nonnegative(size):
            return None
        later = tuple((n, size if n == name else e) for n, e in variables)
        return later, {name: dims.add(dims.symbol(name), start)}

    def _parts(self, variables: Variables, factors: Sequence[tuple[Atom, Fraction]], known: IndexFacts) -> MonomialSum:
        """Variables that no factor joins are summed apart; one in no factor counts its range."""
        graph: nx.Graph = nx.Graph()
        extents = dict(variables)
        graph.add_nodes_from(extents)
        used: list[tuple[Atom, Fraction, set[str]]] = []
        outside = scalar.ONE
        for factor, exponent in factors:
            own: set[str] = set(atom_variables(factor) & set(extents))
            if not own:
                outside = scalar.multiply(outside, scalar.atom(factor, exponent))
                continue
            used.append((factor, exponent, own))
            nx.add_path(graph, sorted(own))
        for group in nx.connected_components(graph):
            body = scalar.ONE
            for factor, exponent, own in used:
                if own <= group:
                    body = scalar.multiply(body, scalar.atom(factor, exponent))
            chosen = tuple((name, extents[name]) for name in extents if name in group)
            if body == scalar.ONE:
                for _, extent in chosen:
                    outside = scalar.multiply(outside, scalar.size(extent))
            else:
                outside = scalar.multiply(outside, self._joined("add", chosen, body, known))
        return outside

    def extreme(self, combiner: str, variables: Variables, body: MonomialSum, known: IndexFacts) -> MonomialSum:
        """The largest (or another combiner's result) of `body`: what holds no bound variable is taken out of a largest element."""
        names = {name for name, _ in variables}
        if combiner == "minimum":
            return scalar.negate(self.extreme("maximum", variables, scalar.negate(body), known))
        if combiner != "maximum":
            same = _whole(body, combiner)
            if same is not None:  # a fold of folds of one kind is one
                own = {name: self.fresh() for name, _ in same.variables}
                variables += tuple((own[name], extent) for name, extent in same.variables)
                body = self.renamed(same.body, {a: dims.symbol(b) for a, b in own.items()}, known)
                return self.extreme(combiner, variables, body, known)
            if combiner.split()[0] in _IDEMPOTENT:  # the same again changes nothing
                inside = free(body)
                needless = {name for name, extent in variables if name not in inside and known.nonnegative(dims.subtract(extent, 1))}
                variables = tuple((name, extent) for name, extent in variables if name not in needless)
            return self._joined(combiner, variables, body, known) if variables else body
        moving = [(m, c) for m, c in body.terms if any(atom_variables(a) & names for a, _ in m)]
        fixed = MonomialSum(tuple(term for term in body.terms if term not in moving))
        inner = MonomialSum(tuple(moving))
        if not moving:
            maybe_none = tuple((name, extent) for name, extent in variables if not known.nonnegative(dims.subtract(extent, 1)))
            return scalar.add(body, self._named("maximum", maybe_none, scalar.ZERO, known)) if maybe_none else body  # -inf of nothing
        first = abs(moving[0][1])
        inner = scalar.scale(inner, 1 / first)
        nested = _whole(inner, combiner)
        if nested is not None:
            own = {name: self.fresh() for name, _ in nested.variables}
            variables += tuple((own[name], extent) for name, extent in nested.variables)
            inner = self.renamed(nested.body, {a: dims.symbol(b) for a, b in own.items()}, known)
            again = self.extreme(combiner, variables, inner, known)
            return scalar.add(fixed, scalar.scale(again, first))
        return scalar.add(fixed, scalar.scale(self._joined("maximum", variables, inner, known), first))

    def _joined(self, combiner: str, variables: Variables, body: MonomialSum, known: IndexFacts) -> MonomialSum:
        """The fold with its variables split where they are taken apart, merged where they always go together, and renamed."""
        inside = known.with_variables(dict(variables))
        for name, extent in variables:
            divisor = _divisor(body, name)
            share = dims.divide_exactly(extent, divisor) if divisor is not None else None
            if divisor is None or share is None or share == 1 or len(variables) >= MOST_VARIABLES:  # else the same is split again and again
                continue
            high, low = self.fresh(), self.fresh()
            split = (*(v for v in variables if v[0] != name), (high, share), (low, divisor))
            position = dims.add(dims.multiply(dims.symbol(high), divisor), dims.symbol(low))
            inner = self.renamed(body, {name: position}, known.with_variables(dict(split)))
            return self.sum(split, inner, known) if combiner == "add" else self.extreme(combiner, split, inner, known)
        for (high, share), (low, extent) in itertools.permutations(variables, 2):
            whole = self.fresh()
            merged = (*(v for v in variables if v[0] not in (high, low)), (whole, dims.multiply(share, extent)))
            there = known.with_variables(dict(merged))
            quotient = dims.floordiv(dims.symbol(whole), extent)
            rest = dims.mod(dims.symbol(whole), extent)
            inner = self.renamed(body, {high: quotient, low: rest}, there)
            if _divisor(inner, whole) is None:
                return self._joined(combiner, merged, inner, known)
        return self._named(combiner, variables, body, inside)

    def _named(self, combiner: str, variables: Variables, body: MonomialSum, inside: IndexFacts) -> MonomialSum:
        orders = list(itertools.islice(itertools.permutations(variables), MOST_ORDERS + 1))
        if len(orders) > MOST_ORDERS:
            orders = [tuple(sorted(variables, key=lambda v: body.key.find(v[0])))]
        best: tuple[tuple[int, str], MonomialSum] | None = None
        level = 1 + height(body)  # a fold's names are not those of the folds inside it
        for order in orders:
            for turned in _turns(order, body):
                names: dict[str, Dim] = {old: dims.symbol(f"b:{level}:{i}") for i, (old, _) in enumerate(order)}
                if turned:
                    names = {
                        old: dims.subtract(dims.subtract(extent, 1), names[old]) if old in turned else names[old] for old, extent in order
                    }
                bound = tuple((f"b:{level}:{i}", extent) for i, (_, extent) in enumerate(order))
                found = self._fold(combiner, bound, self.renamed(body, names, inside))
                rank = (len(found.key), found.key)
                if best is None or rank < best[0]:
                    best = rank, found
        assert best is not None
        return best[1]

    @staticmethod
    def _fold(combiner: str, variables: Variables, body: MonomialSum) -> MonomialSum:
        if combiner == "add" and len(body.terms) == 1:
            ((monomial, coefficient),) = body.terms
            return scalar.scale(scalar.atom(Fold(combiner, variables, MonomialSum(((monomial, Fraction(1)),)))), coefficient)
        return scalar.atom(Fold(combiner, variables, body))

    def renamed(self, form: MonomialSum, names: dict[str, Dim], known: IndexFacts) -> MonomialSum:
        """`form` with index variables replaced, and its dims simplified where `known` holds."""
        look()

        def change(dim: Dim) -> Dim:
            return known.simplify(dims.substitute(dim, names))

        def again(fold: Fold, variables: Variables, body: MonomialSum) -> MonomialSum:
            if fold.combiner == "add":
                own = {name: self.fresh() for name, _ in variables}
                inner = self.renamed(body, {a: dims.symbol(b) for a, b in own.items()}, known)
                return self.sum(tuple((own[name], extent) for name, extent in variables), inner, known)
            return scalar.atom(Fold(fold.combiner, variables, body))

        return replaced(form, change, again)


def _whole(form: MonomialSum, combiner: str) -> Fold | None:
    """The fold of `combiner` that the form is, or None."""
    return form.alone if isinstance(form.alone, Fold) and form.alone.combiner == combiner else None


def height(form: MonomialSum) -> int:
    """How deep folds are nested in `form`."""
    found = 0
    for factor in form.atoms():
        if isinstance(factor, Fold):
            found = max(found, 1 + height(factor.body))
        elif isinstance(factor, scalar.Apply):
            found = max([found, *map(height, factor.arguments)])
        elif isinstance(factor, scalar.Base | scalar.Exponential):
            found = max(found, height(factor.form if isinstance(factor, scalar.Base) else factor.exponent))
    return found


def _slope(dim: dims.Poly, name: str) -> int | None:
    """The factor of the variable in a dim that is linear in it."""
    found = 0
    for monomial, coefficient in dim.terms:
        inside = [atom for atom in monomial if name in dims.symbols(dims.Poly((((atom,), 1),)))]
        if not inside:
            continue
        if len(monomial) != 1 or monomial[0].args:
            return None
        found += coefficient
    return found


def _divisor(form: MonomialSum, name: str) -> Dim | None:
    """What the variable is divided by somewhere in `form`, or None."""
    for dim in _dims(form):
        stack = [dim]
        while stack:
            top = stack.pop()
            for monomial, _ in top.terms if isinstance(top, dims.Poly) else ():
                for part in monomial:
                    if part.name in ("floordiv", "mod") and name in dims.symbols(part.args[0]):
                        return part.args[1]
                    stack.extend(part.args)
    return None


def _dims(form: MonomialSum) -> list[Dim]:
    """All dims in `form`, also those inside of atoms."""
    found: list[Dim] = []
    stack = [form]
    while stack:
        for factor in stack.pop().atoms():
            if isinstance(factor, scalar.Read):
                found += factor.index
            elif isinstance(factor, scalar.Size):
                found.append(dims.Poly((((factor.atom,), 1),)))
            elif isinstance(factor, Where):
                found.append(factor.dim)
            elif isinstance(factor, scalar.Apply):
                stack += factor.arguments
            elif isinstance(factor, scalar.Base):
                stack.append(factor.form)
            elif isinstance(factor, scalar.Exponential):
                stack.append(factor.exponent)
            else:
                stack.append(factor.body)
    return found


def _turns(order: Variables, body: MonomialSum) -> list[frozenset[str]]:
    """Sets of variables to count from the other end: those that somewhere stand with a minus."""
    falling = [
        name for name, _ in order
        if any(isinstance(d, dims.Poly) and (s := _slope(d, name)) is not None and s < 0 for d in _dims(body))
    ]  # fmt: skip
    return [frozenset(c) for size in range(len(falling) + 1) for c in itertools.combinations(falling[:3], size)]
