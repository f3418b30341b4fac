"""A plan as text: buffers, then each kernel with its loops, loads, steps and stores, then why neighbours are apart."""

from __future__ import annotations

from collections import Counter

from coset.ir.dims import Dim
from coset.lowering.kernels.kernel import (
    Attention,
    Buffer,
    Chain,
    Choose,
    ColumnFold,
    Grouped,
    IndexValue,
    Kernel,
    Library,
    Load,
    Loop,
    Plan,
    Pointwise,
    Product,
    Recurrence,
    Rows,
    Scalar,
    ScalarConstant,
    ScalarOp,
    Scan,
    Scatter,
    Sort,
    Statistics,
    Store,
    operands_of,
    scalars,
    values_of,
)

INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "and": "&", "or": "|", "xor": "^"}
COMPARED = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}


def show(plan: Plan) -> str:
    """The plan as text for people; equal plans give equal text."""
    lines = [_buffer(buffer, plan.offsets.get(buffer.name)) for buffer in plan.buffers.values()]
    lines += [f"arena {plan.arena} bytes"] if plan.arena else []
    lines += [f"output {name} = {buffer}" for name, buffer in plan.outputs if name != buffer]
    for place, kernel in enumerate(plan.kernels):
        lines += ["", *show_kernel(kernel), *_beside(plan, place)]
    lines += ["", *(f"apart {a} | {b}: {why}" for a, b, why in plan.apart)] if plan.apart else []
    lines += ["", *(f"note {note}" for note in plan.notes)] if plan.notes else []
    return "\n".join(lines) + "\n"


def _beside(plan: Plan, place: int) -> list[str]:
    if plan.streams is None:
        return []
    waits = ", ".join(plan.kernels[other].name for other in plan.streams.waits[place])
    return [f"  on stream {plan.streams.of[place]}{f' after {waits}' if waits else ''}"]


def _buffer(buffer: Buffer, offset: int | None) -> str:
    place = "" if offset is None else f" at {offset}"
    steps = "" if buffer.strides is None else f" strides ({_dims(buffer.strides)})"
    steps += "" if buffer.order is None else f" in the order ({', '.join(map(str, buffer.order))})"
    shared = "" if buffer.packed is None else f" packed along {buffer.packed}"
    return f"{buffer.role} {buffer.name}: {buffer.dtype}[{_dims(buffer.shape)}]{steps}{shared}{place}"


def _dims(dims: tuple[Dim, ...]) -> str:
    return ", ".join(map(_dim, dims))


def _dim(dim: Dim) -> str:
    return str(dim).replace("loop:", "")


def _loops(loops: tuple[Loop, ...]) -> str:
    return ", ".join(f"{_dim(loop.index)} < {_dim(loop.extent)}" for loop in loops) or "once"


def show_kernel(kernel: Kernel) -> list[str]:
    """The lines of one kernel. A value that is used twice is given a name first."""
    if isinstance(kernel, Library):
        attributes = ", ".join(f"{key}={value}" for key, value in kernel.term.attributes if key not in ("payload", "given"))
        operands = ", ".join("-" if name is None else name for name in kernel.operands)
        return [f"library {kernel.name}:", f"  {', '.join(kernel.results)} = {kernel.term.op.name}({operands}){{{attributes}}}"]
    text = _Text(kernel)
    picks: list[str] = []
    for pick in kernel.picks:
        value = text.named(pick.value)
        picks += [*text.flush(), f"  {pick.name} < {_dim(pick.count)} = {value}"]
    if isinstance(kernel, Pointwise):
        return [f"pointwise {kernel.name} for {_loops(kernel.loops)}:", *picks, *text.stores(kernel.stores)]
    if isinstance(kernel, Rows):
        return _rows(kernel, text, picks)
    if isinstance(kernel, Scan):
        return _scan(kernel, text, picks)
    if isinstance(kernel, Sort):
        return _sort(kernel, text, picks)
    if isinstance(kernel, Scatter):
        return _scatter(kernel, text, picks)
    if isinstance(kernel, Recurrence):
        return _recurrence(kernel, text, picks)
    if isinstance(kernel, Statistics | Chain):
        return _retraced(kernel, text, picks)
    return _multiplied(kernel, text, picks)


def _rows(kernel: Rows, text: _Text, picks: list[str]) -> list[str]:
    lines = [f"rows {kernel.name} for {_loops(kernel.rows)} along {_loops(kernel.columns)}:", *picks]
    for fold in kernel.folds:
        value = text.named(fold.value)
        lines += [*text.flush(), f"  {fold.name}: {fold.dtype} = fold {fold.combiner} of {value}"]
    lines += text.stores(kernel.row_stores)
    return lines + text.stores(kernel.element_stores)


def _scan(kernel: Scan, text: _Text, picks: list[str]) -> list[str]:
    value = text.named(kernel.value)
    whole = f"  scan: {kernel.dtype} = {kernel.combiner} of {value} up to here"
    head = f"scan {kernel.name} for {_loops(kernel.rows)} along {_loops((kernel.column,))}:"
    return [head, *picks, *text.flush(), whole, *text.stores(kernel.stores)]


def _sort(kernel: Sort, text: _Text, picks: list[str]) -> list[str]:
    named = [text.named(value) for value in (kernel.key, *kernel.values)]
    order = f"{kernel.direction} of {named[0]}{', total' if kernel.total else ''}"
    results = [f"  sorted{place} = {value} in the order {order}" for place, value in enumerate(named[1:])]
    head = f"sort {kernel.name} for {_loops((*kernel.rows, *kernel.front))} along {_loops((kernel.column,))}:"
    return [head, *picks, *text.flush(), *results, *text.stores(kernel.stores)]


def _scatter(kernel: Scatter, text: _Text, picks: list[str]) -> list[str]:
    base, key, value = map(text.named, (kernel.base, kernel.key, kernel.value))
    loops = _loops((*kernel.rows, *kernel.columns))
    row = f"{_bracketed(value)} where {_bracketed(key)} is the row"
    found = f"  sum: {kernel.dtype} = {kernel.combiner} of {_bracketed(base)} and {row}"
    head = f"scatter {kernel.name} for {loops} along {_loops(kernel.updates)}, {kernel.form}:"
    return [head, *picks, *text.flush(), found, *text.stores(kernel.stores)]


def _multiplied(kernel: Product | Grouped | Attention, text: _Text, picks: list[str]) -> list[str]:
    head = f"{type(kernel).__name__.lower()} {kernel.name}"
    parts = (
        (f"{role} " if role else "") + _loops(loops) for role, loops in (("batch", kernel.batch), ("", kernel.m), ("", kernel.n)) if loops
    )
    if isinstance(kernel, Attention):
        return [f"{head} for {'; '.join(parts)} along {_loops(kernel.keys)}:", *picks, *_attention(kernel, text)]
    lines = [f"{head} for {'; '.join(parts)} along {_loops(kernel.k)}:", *picks]
    if isinstance(kernel, Grouped):
        lines.append(f"  {_dims(tuple(loop.index for loop in kernel.batch)) or '0'} = {text.named(kernel.key)}")
    lhs, rhs = text.named(kernel.lhs), text.named(kernel.rhs)
    product = f"  sum: {kernel.accumulator} = sum of {_bracketed(lhs)} * {_bracketed(rhs)}"
    return [*lines, *text.flush(), product, *text.stores(kernel.stores)]


def _attention(kernel: Attention, text: _Text) -> list[str]:
    query, key = text.named(kernel.query), text.named(kernel.key)
    total = f"sum of {_bracketed(query)} * {_bracketed(key)} along {_loops(kernel.k)}"
    lines = [*text.flush(), f"  dot: {kernel.dtype} = {total}"]
    score = text.named(kernel.score)
    seen = "" if kernel.seen is None else f" below {_dim(kernel.seen)}"
    lines += [*text.flush(), f"  weight: {kernel.accumulator} = {'safe ' if kernel.safe else ''}softmax of {score} over the keys{seen}"]
    value = text.named(kernel.value)
    lines += [*text.flush(), f"  sum: {kernel.accumulator} = sum of weight * {_bracketed(value)}"]
    return [*lines, *text.stores(kernel.stores)]


def _recurrence(kernel: Recurrence, text: _Text, picks: list[str]) -> list[str]:
    """What a state is before the first round, then the lines of a round, then what is stored behind the last."""
    lines = [f"recurrence {kernel.name} for {_loops((*kernel.rows, *kernel.columns))} in rounds {_loops((kernel.round,))}:", *picks]
    for state in kernel.states:
        value = text.named(state.start)
        lines += [*text.flush(), f"  {state.name}: {state.dtype} = {value} before"]
    for step in kernel.steps:
        if isinstance(step, ColumnFold):
            value = text.named(step.value)
            found = f"  {step.name}: {step.dtype} = fold {step.combiner} of {value} along {_loops(kernel.columns)}"
        else:
            left, right = text.named(step.lhs), text.named(step.rhs)
            columns = ", ".join(_dim(loop.index) for loop in kernel.columns)
            found = f"  {step.name}: {step.dtype} = sum of {_bracketed(left)}, {_loops(step.k)} for {columns}, * {_bracketed(right)}"
        lines += [*text.flush(), found]
    lines += text.stores(kernel.round_stores)
    for state in kernel.states:
        value = text.named(state.next)
        lines += [*text.flush(), f"  next {state.name} = {value}"]
    return lines + [f"  behind{line[1:]}" for line in text.stores(kernel.last_stores)]


def _retraced(kernel: Statistics | Chain, text: _Text, picks: list[str]) -> list[str]:
    """A kernel that makes scores anew."""
    parts = [(f"{role} " if role else "") + _loops(loops) for role, loops in (("batch", kernel.batch), ("", kernel.rows)) if loops]
    ends = [f" {word} {_dim(end)}" for word, end in (("from", kernel.low), ("below", kernel.high)) if end is not None]
    lines = [f"{type(kernel).__name__.lower()} {kernel.name} for {'; '.join(parts)} along {_loops(kernel.summed)}{''.join(ends)}:", *picks]
    for dot in kernel.dots:
        left, right = text.named(dot.lhs), text.named(dot.rhs)
        lines += [*text.flush(), f"  {dot.name}: {dot.dtype} = sum of {_bracketed(left)} * {_bracketed(right)} along {_loops(dot.k)}"]
    if isinstance(kernel, Statistics):
        score = text.named(kernel.score)
        lines += [*text.flush(), f"  top, share: {kernel.accumulator} = of the {'safe ' if kernel.safe else ''}softmax of {score}"]
        for slope in kernel.slopes:
            value = text.named(slope.value)
            lines += [*text.flush(), f"  {slope.name}: {kernel.accumulator} = sum of the softmax * {_bracketed(value)}"]
        return [*lines, *text.stores(kernel.stores)]
    for each in kernel.sums:
        weight, value = text.named(each.weight), text.named(each.value)
        total = f"sum of {_bracketed(weight)} * {_bracketed(value)} for {_loops(each.n)}"
        lines += [*text.flush(), f"  {each.name}: {kernel.accumulator} = {total}"]
    return [*lines, *text.stores(kernel.stores)]


def _bracketed(text: str) -> str:
    return f"({text})" if " " in text.split("[", 1)[0] or " * " in text else text


class _Text:
    """Names for values of one kernel, and the lines that define them."""

    def __init__(self, kernel: Kernel) -> None:
        self.names: dict[int, str] = {}
        self.uses = Counter(id(value) for value in values_of(kernel))
        for item in scalars(*values_of(kernel)):
            self.uses.update(map(id, operands_of(item)))
        self.lines: list[str] = []
        self.count = 0

    def flush(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines

    def stores(self, stores: tuple[Store, ...]) -> list[str]:
        lines: list[str] = []
        for store in stores:
            value = self.named(store.value)
            lines += [*self.flush(), f"  {store.buffer}[{_dims(store.index)}] = {value}"]
        return lines

    def named(self, value: Scalar) -> str:
        """The text of `value`: its last step, whose operands have lines of their own where they are computed or loaded for several."""
        for item in scalars(value):
            if id(item) in self.names:
                continue
            text = self._text(item)
            computed, again = isinstance(item, (ScalarOp, Choose)), self.uses[id(item)] > 1
            if (computed and (again or item is not value)) or (again and isinstance(item, Load)):
                name = f"v{self.count}"
                self.count += 1
                self.lines.append(f"  {name}: {item.dtype} = {text}")
                text = name
            self.names[id(item)] = text
        return self.names[id(value)]

    def _text(self, item: Scalar) -> str:
        if isinstance(item, Load):
            return f"{item.buffer}[{_dims(item.index)}]"
        if isinstance(item, ScalarConstant):
            return repr(item.value)
        if isinstance(item, IndexValue):
            return f"{item.dtype}({_dim(item.index)})"
        if isinstance(item, Choose):
            bounds = " and ".join(f"{_dim(b.low)} <= {_dim(b.index)} < {_dim(b.high)}" for b in item.bounds)
            return f"{self.names[id(item.inside)]} if {bounds} else {self.names[id(item.outside)]}"
        if not isinstance(item, ScalarOp):
            return item.name
        operands = [self.names[id(operand)] for operand in item.operands]
        name = item.op.name.split(".", 1)[1]
        attributes = dict(item.attributes)
        if name == "compare":
            return f"{operands[0]} {COMPARED[attributes['direction']]} {operands[1]}"
        if name == "convert":
            return f"{item.dtype}({operands[0]})"
        if name in INFIX:
            return f"{operands[0]} {INFIX[name]} {operands[1]}"
        more = [f"{key}={given}" for key, given in attributes.items()]
        return f"{name}({', '.join([*operands, *more])})"
