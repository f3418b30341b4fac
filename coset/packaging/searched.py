"""What is searched of a program that is lowered to torch: its primitive ops, with loops as kernels where that pays."""

from __future__ import annotations

from collections.abc import Iterable

import coset.dialects
from coset.comparing.reference import KNOWN, UNDEFINED
from coset.comparing.sizes import bindings
from coset.dialects.hub.hints import full_precision, honoured
from coset.ir.builtin import OPAQUE
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe
from coset.ir.program import Program
from coset.ir.term import Term, rewritten
from coset.job.job import Job
from coset.job.left_out import warn_of_left_out
from coset.job.phases import phases_for
from coset.lowering.planning.chosen_matrix import chosen_matrix
from coset.lowering.planning.contraction import of_matrices
from coset.lowering.planning.convolution_gradients import gradient_of_convolution
from coset.lowering.planning.grouped import is_grouped
from coset.lowering.planning.kinds import is_convolution_gradient
from coset.lowering.planning.primitive import Opener, primitive
from coset.pricing.kernel_options import APPROXIMATE
from coset.pricing.looping import Loops
from coset.pricing.plan_price import PlanPrices
from coset.searching.task import Task

assert coset.dialects  # imported so that every op and definition is registered

EVERY_OPSET = 1 << 30


def searched(job: Job, original: Program, *, recurrences: bool = True) -> Task:
    """What is searched of a program for a target that is lowered to: its primitive ops, with the rules that the job allows. `recurrences`:
    loops may be kernels.

    Raises:
        CosetError: as `phases_for`; or an op is asked for in another way than the target computes it.
    """
    warn_of_left_out(job, original)
    original = honoured(original, _rounded if job.numerics in APPROXIMATE else full_precision)
    prices = None
    if recurrences and job.target.fusion is not None:
        prices = PlanPrices(job.target, next(bindings(original, job.dims)), numerics=job.numerics)
    program = with_gradients(original, _opened(original, prices, sums=job.numerics != "exact"))
    return Task(job, program, dict(next(bindings(program, job.dims))), phases_for(job, EVERY_OPSET))


def _rounded(term: Term) -> str:
    """As `full_precision` for numerics under which products are of fewer bits than their operands have."""
    return full_precision(term) or f"products of {term.tensor.dtype} may be rounded under these numerics"


def _opened(program: Program, prices: PlanPrices | None, *, sums: bool) -> tuple[Term, ...]:
    """The roots over primitive ops; what is in the rounds of a loop is opened when these stand one after the other, where products of
    all rounds become one (`sums`: also where that makes a sum in another order)."""

    def primitives(roots: tuple[Term, ...], product: Opener) -> tuple[Term, ...]:
        return primitive(program.with_roots(roots), _is_kept, product=product)

    def opened(roots: tuple[Term, ...]) -> tuple[Term, ...]:
        return primitives(roots, lambda term: chosen_matrix(term) or of_matrices(term))

    return Loops(prices, opened, lambda roots: primitives(roots, lambda _: None), sums).gone(opened(program.roots))


def with_gradients(program: Program, roots: Iterable[Term]) -> Program:
    """The program with these roots, in which gradients of convolutions are calls of what they are."""
    return program.with_roots(rewritten(roots, lambda term: gradient_of_convolution(term) or term))


def _is_kept(term: Term) -> bool:
    """True for a call that came as what it is: it need not be found."""
    return is_grouped(term) or is_convolution_gradient(term)


def refuse_foreign_ops(program: Program) -> None:
    """Nothing for a program of ops that have a meaning.

    Raises:
        CosetError: one was kept as it came: no rule changes that, and no torch code is known for it.
    """
    for term in program.terms():
        if term.op.has("foreign"):
            if term.op is OPAQUE and term.attribute("domain") not in KNOWN:
                raise CosetError(f"`{describe(term)}` has no torch expression: nobody has said what it means", help=UNDEFINED)
            what = f"`{describe(term)}` has no torch expression: what it means for these types is not known"
            raise CosetError(what, help="give the model static shapes where they are free, or lower it for another target")
