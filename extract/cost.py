"""Predicted seconds of one op on a target: its work and bytes against the target's measured rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from coset.extract.work import WorkSizes, flops_of, pieces_of
from coset.ir.builtin import HINTED
from coset.ir.op import Attributes, Op, get_op
from coset.ir.term import AttributeItems
from coset.ir.types import DTYPES, TensorType, Type
from coset.targets.condition import holds, says
from coset.targets.target import EVERY, Form, Kernel, Target

GATHERING = frozenset({"Gather", "GatherND", "GatherElements", "Slice"})
Printable = Callable[[str, Attributes, Sequence[Type]], str | None]


class Pricer:
    """Forms and seconds of ops on one target under one binding of the dim symbols; answers are remembered."""

    def __init__(self, target: Target, binding: Mapping[str, int], *, printable: Printable | None = None) -> None:
        self.target = target
        self.printable = printable
        self.sizes = WorkSizes(binding)
        self._forms: dict[tuple[object, ...], Form | None] = {}
        self._seconds: dict[tuple[object, ...], float] = {}

    def form(self, op: Op, attributes: AttributeItems, result: Type, operands: tuple[Type, ...], *, original: bool = False) -> Form | None:
        """The first form of the target that fits; None when the op is not legal there.

        An `original` op (one that the user's program has) may have any dtype, unless the target is strict: whether the runtime takes it was
        the user's choice.
        """
        key = (op, attributes, result, operands, original)
        if key not in self._forms:
            self._forms[key] = self._find_form(op, dict(attributes), result, operands, original)
        return self._forms[key]

    def _find_form(self, op: Op, attributes: Attributes, result: Type, operands: tuple[Type, ...], original: bool) -> Form | None:
        if self.printable is not None and self.printable(op.name, attributes, operands) is not None:
            return None
        op, attributes = _priced(op, attributes)
        default = (self.target.default,) if self.target.dialect in (op.dialect, EVERY) else ()
        fitting = [
            form for form in self.target.forms.get(op.name, default) if all(holds(word, attributes, operands) for word in form.conditions)
        ]
        for form in fitting:
            if form.dtypes is None or self._computed_in(form, result, operands) in form.dtypes:
                return form
        return fitting[0] if original and fitting and not self.target.strict else None

    def _computed_in(self, form: Form, result: Type, operands: tuple[Type, ...]) -> str:
        """The dtype that the kernel works in, after the runtime's own casts."""
        typed = operands[form.typed] if form.typed < len(operands) else result
        name = typed.dtype.name if isinstance(typed, TensorType) else ""
        return name if form.dtypes is not None and name in form.dtypes else self.target.casts.get(name, name)

    def why_illegal(self, op: Op, attributes: AttributeItems, operands: tuple[Type, ...]) -> str:
        """For an error: what keeps the op from being printed for the target."""
        unprinted = self.printable(op.name, dict(attributes), operands) if self.printable is not None else None
        if unprinted is not None:
            return unprinted
        op, given = _priced(op, dict(attributes))
        forms = self.target.forms.get(op.name)
        if not forms:
            return "the target has no kernel for it"
        missing = {form: [word for word in form.conditions if not holds(word, given, operands)] for form in forms}
        fitting = [form for form in forms if not missing[form]]
        if fitting:
            dtypes = sorted({t.dtype.name for t in operands if isinstance(t, TensorType)})
            taken = sorted({name for form in fitting for name in form.dtypes or ()})
            return f"no kernel for {', '.join(dtypes)}, only for {', '.join(taken)}"
        nearest = min(forms, key=lambda form: len(missing[form]))
        return f"only with {' and '.join(f'`{word}` ({says(word)})' for word in missing[nearest])}"

    def seconds(
        self,
        form: Form,
        op: Op,
        attributes: AttributeItems,
        result: Type,
        operands: tuple[Type, ...],
        *,
        read: tuple[float, ...],
        fixed: tuple[bool, ...],
    ) -> float:
        """Seconds of one execution. `read`: bytes read of each operand; `fixed`: operands known at build time."""
        key = (form, op, attributes, result, operands, read, fixed)
        found = self._seconds.get(key)
        if found is None:
            found = self._seconds[key] = self._estimate(form, *_priced(op, dict(attributes)), result, operands, read, fixed)
        return found

    def launch(self, kernel: str) -> float:
        """Seconds that a node of this kernel costs when it moves nothing."""
        return self.target.kernels[kernel].launch.value

    def _estimate(
        self,
        form: Form,
        op: Op,
        attributes: Attributes,
        result: Type,
        operands: tuple[Type, ...],
        read: tuple[float, ...],
        fixed: tuple[bool, ...],
    ) -> float:
        kernel = self.target.kernels[form.kernel]
        written = self.sizes.bytes(result)
        moved = written + (min(sum(read), written) if _gathers(op, attributes) else sum(read))
        dtype = self._computed_in(form, result, operands)
        total = form.nodes * kernel.launch.value + (form.nodes - 1) * kernel.moving(2 * written)
        total += max(self._working(kernel, dtype, op, attributes, result, operands), kernel.moving(moved))
        if kernel.piece is not None:
            total += kernel.piece.value * pieces_of(op, attributes, result, operands, self.sizes)
        if form.reorder is not None:
            loose = [size for size, known in zip(read, fixed, strict=True) if not known]
            total += sum(self._move(form.reorder, 2 * size) for size in (*loose, written))
        total += sum(self._move(name, written if place < 0 else read[place]) for name, place in form.passes)
        if form.guesses is not None and not any(fixed) and sum(read) >= sum(self.sizes.bytes(t) for t in operands):
            total += self._move(form.guesses, read[0])
        cast = [t for t in (*operands, result) if isinstance(t, TensorType) and t.dtype.name in self.target.casts]
        if cast and form.dtypes is not None and dtype == self.target.casts[cast[0].dtype.name]:
            width = DTYPES[dtype].bytes
            total += sum(self._move("convert", self.sizes.bytes(t) + self.sizes.elements(t) * width) for t in cast)
        return total

    def _working(self, kernel: Kernel, dtype: str, op: Op, attributes: Attributes, result: Type, operands: Sequence[Type]) -> float:
        rate = kernel.rate(dtype)
        if rate is None:
            return 0.0
        if rate.unit == "element/s":
            return max(self.sizes.elements(t) for t in (result, *operands)) / rate.value
        return kernel.multiplying(dtype, *flops_of(op, attributes, result, operands, self.sizes, kernel.tiles))

    def _move(self, name: str, moved: float) -> float:
        kernel = self.target.kernels[name]
        return kernel.launch.value + kernel.moving(moved)


def _priced(op: Op, attributes: Attributes) -> tuple[Op, Attributes]:
    """What an op is priced as: a hinted one as its op in any precision."""
    return (get_op(attributes["op"]), dict(attributes["given"])) if op is HINTED else (op, attributes)


def _gathers(op: Op, attributes: Attributes) -> bool:
    """True for an op that reads of its operands only what it returns, like a row of an embedding table."""
    return op.has("foreign") and attributes["name"] in GATHERING
