"""A package that differs from its model is refused with the kernel at fault: a planted wrong kernel of every family is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import coset.dialects  # noqa: F401  (fills the registry)
from coset import cli
from coset.comparing import fault
from coset.comparing.fault import Made, first_fault
from coset.comparing.feeds import Case, cases
from coset.comparing.refused import Refused
from coset.dialects.hub.terms import broadcast, dot
from coset.egraph.limits import Limits
from coset.ir.op import get_op
from coset.ir.program import Program
from coset.ir.types import F32
from coset.job.admission import Admission
from coset.job.machine import get_target
from coset.lowering.arranging.recomputing import fewest_bytes, recomputed
from coset.lowering.kernels.kernel import (
    Computed,
    Grouped,
    Library,
    Plan,
    Product,
    Rows,
    ScalarConstant,
    ScalarOp,
    Scatter,
    Store,
    reads,
    stores_of,
    with_stores,
)
from coset.lowering.package.plan import planned_package
from coset.lowering.package.program import write_package
from coset.lowering.planning.plan import plan
from coset.lowering.torch.kernel_writer import KernelWriter
from coset.lowering.triton.kinds import TRITON_KINDS
from coset.lowering.triton.launch import EmittedKernel
from coset.lowering.triton.source import can_emit
from coset.packaging import lower
from coset.packaging.asked import Check, Lowering
from coset.rules.library import load
from coset.rules.lock import NAME, Locked, save_lock, text_hash
from tests.coset.test_planted_rule import PLANTED
from tests.lowering import drawn_parts, plan_numpy
from tests.lowering.plan_cases import CASES, op, x_
from tests.lowering.test_recomputing import one, size_of, wide

pytest.importorskip("torch")
from coset.backends.torch_loaded import LoadedPackage

SIZES = {"n": 5, "s": 7}


class InNumpy:
    """A plan that is executed kernel by kernel."""

    def __init__(self, made: Plan) -> None:
        self.plan = made

    def run(self, feed: Any) -> Any:
        """The outputs by name."""
        with np.errstate(all="ignore"):
            return {name: np.asarray(value) for name, value in plan_numpy.run(self.plan, feed).items()}


def made_by(kernel: str | None = None) -> Made:
    """Plans run in NumPy, where one kernel stores more than it should."""

    @contextmanager
    def made(_: Program, shown: Plan) -> Iterator[InNumpy]:
        yield InNumpy(shown if kernel is None else replace(shown, kernels=tuple(map(changed, shown.kernels))))

    def changed(each: Any) -> Any:
        return with_stores(each, more) if each.name == kernel else each

    return made


def more(stores: tuple[Store, ...]) -> tuple[Store, ...]:
    """Stores of other values: integers are larger by one, floats twice what they are and larger by more than what 32 roundings make of a
    product of f16."""
    found = []
    for store in stores:
        value, dtype, add = store.value, store.value.dtype, get_op("stablehlo.add")
        if can_be_more(store):
            value = ScalarOp(add, (value, ScalarConstant(1000.0 if dtype.kind == "float" else 1, dtype)), dtype)
            value = ScalarOp(add, (value, store.value), dtype) if dtype.kind == "float" else value
        found.append(replace(store, value=value))
    return tuple(found)


def can_be_more(store: Store) -> bool:
    return store.value.dtype.kind in ("float", "int")


def numbers(program: Program, sizes: dict[str, int]) -> dict[str, int]:
    return {name: sizes.get(name, 4) for name in program.symbols()}


@pytest.mark.parametrize("name", CASES)
def test_kernels_that_are_right_are_not_at_fault(name: str) -> None:
    """On ordinary inputs, and on those that are compared with: large ones, zeros, NaN."""
    program, feeds = CASES[name]()
    made, sizes = plan(program, computes=can_emit), numbers(program, SIZES)
    for case in (Case("own", feeds), *cases(program, sizes)):
        assert first_fault(program, made, case, sizes, made_by()) is None


@pytest.mark.parametrize("name", CASES)
def test_every_kernel_that_is_wrong_is_named(name: str) -> None:
    """Also where later ones, which read what it stored, are off by more."""
    program, feeds = CASES[name]()
    made, sizes = plan(program, computes=can_emit), numbers(program, SIZES)
    ordered = {name for kernel in made.kernels if isinstance(kernel, Grouped | Scatter) for name in reads(kernel)}
    for kernel in made.kernels:
        promised = {store.buffer for store in stores_of(kernel) if store.value.dtype.kind == "int"} & ordered  # that keys ascend
        if not isinstance(kernel, Library) and any(map(can_be_more, stores_of(kernel))) and not promised:
            found = first_fault(program, made, Case("own", feeds), sizes, made_by(kernel.name))
            assert found is not None and found.kernel == kernel.name, (kernel.name, found)
            assert found.difference.max_abs > found.difference.tolerance and found.buffer in {each.buffer for each in stores_of(kernel)}


def test_who_stores_a_part_is_told_from_those_who_store_the_others() -> None:
    told = 0
    for seed in range(120):
        program, feeds = drawn_parts.program(seed, symbolic=seed % 3 == 1)
        made, sizes = plan(program, computes=can_emit), numbers(program, drawn_parts.SIZES)
        assert first_fault(program, made, Case("own", feeds), sizes, made_by()) is None
        stores = [store.buffer for kernel in made.kernels for store in stores_of(kernel)]
        for kernel in made.kernels:
            if any(stores.count(store.buffer) > 1 and can_be_more(store) for store in stores_of(kernel)):
                found = first_fault(program, made, Case("own", feeds), sizes, made_by(kernel.name))
                assert found is not None and found.kernel == kernel.name, (seed, kernel.name, found)
                told += 1
    assert told > 60


def test_kernels_that_are_launched_again_are_judged_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a limit of memory, and where not all values are compared at once."""
    program, feeds = CASES["training_step"]()
    whole = plan(program, computes=can_emit)
    limit = fewest_bytes(whole, one, size_of)
    made = recomputed(whole, limit, one, size_of)
    assert made is not None
    monkeypatch.setattr(fault, "BATCH_BYTES", 1 << 8)
    assert len(list(fault._batches(made, SIZES))) > 2
    assert first_fault(program, made, Case("own", feeds), SIZES, made_by()) is None
    for kernel in made.kernels:
        if not isinstance(kernel, Library):
            found = first_fault(program, made, Case("own", feeds), SIZES, made_by(kernel.name))
            assert found is not None and found.kernel == kernel.name


@pytest.mark.parametrize("again", [False, True])
def test_what_is_shown_is_not_overwritten(again: bool, tmp_path: Path) -> None:
    """A package shares memory between its temporaries, and results take that of operands: what is compared has its own."""
    program, feeds = wide(1)
    whole = plan(program, computes=can_emit)
    shared = recomputed(whole, fewest_bytes(whole, one, size_of), one, size_of) if again else whole
    assert shared is not None and (shared.over if again else shared.offsets)

    @contextmanager
    def made(asked: Program, shown: Plan) -> Iterator[LoadedPackage]:
        assert not shown.offsets and not shown.over
        write_package(planned_package(asked, shown, title="shown", triton=False), tmp_path / "package")
        yield LoadedPackage(tmp_path / "package", "cpu")

    assert first_fault(program, shared, Case("own", feeds), SIZES, made) is None


@pytest.mark.parametrize("both", [False, True])
def test_a_function_is_at_fault_alone_where_the_other_one_is_right(both: bool) -> None:
    program, feeds = CASES["softmax"]()
    made, sizes = plan(program, computes=can_emit), numbers(program, SIZES)
    kernel = made.kernels[0].name
    found = first_fault(program, made, Case("own", feeds), sizes, made_by(kernel), plain=made_by(kernel if both else None))
    assert found is not None and found.function is not both


# ---------------------------------------------------------------- the command


def layers() -> Program:
    """A product, a normalization of its rows, another product."""
    x, w, v = x_("x", F32, 6, 16), x_("w", F32, 16, 16), x_("v", F32, 16, 8)
    value = op("tanh", dot(x, w, lhs_contract=(1,), rhs_contract=(0,)))
    value = op("subtract", value, broadcast(op("reduce", value, dimensions=(1,), combiner="maximum"), (6, 16), (0,)))
    return Program((x, w, v), (("y", dot(value, v, lhs_contract=(1,), rhs_contract=(0,))),))


@contextmanager
def loaded(folder: Path, _: bool) -> Iterator[LoadedPackage]:
    """The package in this process."""
    yield LoadedPackage(folder, "cpu")


def asked(model: Any, check: Check, **given: Any) -> Lowering:
    return Lowering(model, get_target("nvidia-h200"), limits=Limits(seconds=20, nodes=2000), check=check, dims={}, **given)


def test_a_wrong_triton_function_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By itself: the torch function of the same kernel is right."""
    pytest.importorskip("triton")
    names: list[str] = []
    right = TRITON_KINDS[Product].emit

    def wrong(kernel: Computed, *rest: Any) -> EmittedKernel:
        found = right(kernel, *rest)
        names.extend([kernel.name] * (kernel.name not in names))
        return replace(found, source=planted(found.source)) if names.index(kernel.name) == 1 else found

    monkeypatch.setitem(TRITON_KINDS, Product, replace(TRITON_KINDS[Product], emit=wrong))
    with pytest.raises(Refused) as caught:
        lower.lower(asked(layers(), Check.INTERPRETED), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    found = caught.value.fault
    assert found is not None and found["kernel"] == names[1] and found["function"]
    assert 0.9 < found["max_abs"] < 1.1 and found["tolerance"] < 0.01
    text = str(caught.value)
    assert f"kernel `{names[1]}` (" in text and f"it stores `{found['buffer']}`" in text and f"on {found['inputs']} inputs" in text
    assert "it is its Triton function" in text and "--disable-rule" in text


def planted(source: str) -> str:
    """A Triton function that stores one more."""
    head, _, tail = source.partition("tl.store(")
    pointer, _, rest = tail.partition(", ")
    return f"{head}tl.store({pointer}, 1.0 + {rest}"


@pytest.mark.parametrize("kind", [Product, Rows], ids=lambda kind: kind.__name__)
def test_a_wrong_torch_function_is_named(kind: type[Computed], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    """Where kernels are compared as torch functions; in the text and in the data that are printed."""
    names: list[str] = []
    right = KernelWriter.store

    def wrong(self: Any, store: Any, own: Any) -> None:
        right(self, store, own)
        if isinstance(self.kernel, kind) and (not names or names[0] == self.kernel.name):
            names[:] = [self.kernel.name]
            self.lines.append(f"{store.buffer}.mul_(2).add_(1)")  # a constant alone is lost where the mean is taken off

    monkeypatch.setattr(KernelWriter, "store", wrong)
    monkeypatch.setattr(lower, "read_program", lambda _, **__: layers())
    monkeypatch.setattr(Lowering, "opened", staticmethod(loaded))
    monkeypatch.setattr(lower, "within", lambda work, _, say: work(SimpleNamespace(say=say)))  # what is wrong is seen in one process only
    out = tmp_path / "out"
    assert cli.run(["lower", "model.onnx", "-o", str(out), "--json"]) == 1 and not out.exists()
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert told["fault"]["kernel"] == names[0] and not told["fault"]["function"] and not told["check"]["ok"]
    assert told["refused"] in printed.err and f"kernel `{names[0]}`" in told["refused"] and "Triton function" not in told["refused"]


def test_a_wrong_rule_is_no_kernel_s_fault(tmp_path: Path) -> None:
    """The program that was found means something else, and its kernels do what it says."""
    path = tmp_path / "planted.rules"
    path.write_text(PLANTED)
    (rule,) = (rule for rule in load([path]).rules if rule.name == "planted")
    save_lock(tmp_path / NAME, {"planted": Locked(text_hash(rule.text), "proved", "forged")})
    x, w = x_("x", F32, 6, 16), x_("w", F32, 16, 16)
    program = Program((x, w), (("y", op("tanh", op("tanh", dot(x, w, lhs_contract=(1,), rhs_contract=(0,))))),))
    with pytest.raises(Refused) as caught:
        lower.lower(asked(program, Check.TORCH, rules=(path,), opened=loaded), tmp_path / "out")
    assert caught.value.fault is None and caught.value.rule == "planted"
    assert "rule `planted` breaks the program" in str(caught.value) and "--disable-rule planted" in str(caught.value)
    without = asked(program, Check.TORCH, rules=(path,), opened=loaded, admission=Admission(("planted",)))
    assert lower.lower(without, tmp_path / "out")["check"]["ok"]
