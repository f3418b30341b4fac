"""What extraction asks of the prices of plans: the seconds of the program of some roots, which it does not have yet."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from coset.comparing.fold import computed, fallback_of_constants, fold
from coset.ir import dims
from coset.ir.errors import CosetError
from coset.ir.program import Program, tensors_in
from coset.ir.program_source import ProgramSource
from coset.ir.term import INPUT, Term, make, rebuild, topological
from coset.ir.types import I64, TensorType, TokenType
from coset.lowering.triton.scalars import EIGHTS
from coset.pricing.plan_price import PlanPrices

INLINED = 64  # elements of a stored value that a kernel may have as numbers: whether they are equal decides what is computed


class Judge:
    """Predicted seconds of the programs that extraction tries. What they would store is not computed: it is taken as an input of its type,
    unless it is so small that its numbers decide what a kernel computes."""

    def __init__(self, prices: PlanPrices, source: ProgramSource | None) -> None:
        self.prices, self.source = prices, source
        self.fallback = fallback_of_constants(source)
        self.values: dict[Term, Term] = {}
        self.known: dict[tuple[Term, ...], float] = {}

    def __call__(self, roots: Sequence[Term], storable: AbstractSet[Term]) -> float:
        """Of the program of these roots.

        Raises:
            CosetError: kernels cannot be planned for it.
        """
        drafted, _ = fold(roots, storable, self.source, value_of=self._value)
        if drafted not in self.known:
            self.known[drafted] = self.prices.seconds(draft(drafted))
        return self.known[drafted]

    def _value(self, term: Term) -> Term:
        found = self.values.get(term)
        if found is None:
            found = self.values[term] = self._made(term)
        return found

    def _made(self, term: Term) -> Term:
        if term.op.name in ("builtin.constant", "builtin.absent"):
            return term
        if term.op.name == "stablehlo.broadcast_in_dim":
            return rebuild(term, [self._value(term.operands[0])])
        if self.prices.sizes.elements(term.type) <= INLINED:
            return computed(term, self.fallback)
        return make(INPUT, (), {"name": f"stored {len(self.values)}", "type": term.type})


def has_eights(program: Program) -> bool:
    """True where a value of the program is of 8-bit floats."""
    return any(type.dtype.name in EIGHTS for term in program.terms() for type in tensors_in(term.type))


def draft(roots: Sequence[Term]) -> Program:
    """A program of these roots with every input that they have, and one more for each dim symbol that none of them has alone.

    Raises:
        CosetError: a root is neither a tensor nor a token.
    """
    terms = list(topological(roots))
    inputs = [term for term in terms if term.op is INPUT and isinstance(term.type, TensorType)]
    tensors = [type for term in terms for type in tensors_in(term.type)]
    alone = {name for term in inputs for dim in term.tensor.dims if (name := dims.alone(dim)) is not None}
    spoken = {name for type in tensors if type.shape is not None for dim in type.dims for name in dims.symbols(dim)}
    inputs += [make(INPUT, (), {"name": f"dim {name}", "type": TensorType(I64, (dims.symbol(name),))}) for name in sorted(spoken - alone)]
    tokens = [root for root in roots if isinstance(root.type, TokenType)]
    if any(not isinstance(root.type, TensorType | TokenType) for root in roots):
        raise CosetError("no kernels are planned for a program whose result is no tensor")
    outputs = tuple((f"{place}", root) for place, root in enumerate(roots) if isinstance(root.type, TensorType))
    return Program(tuple(inputs), outputs, tokens[-1] if tokens else None)
