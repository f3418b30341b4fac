"""Targets in files of users: what is read, and how each mistake is said."""

from __future__ import annotations

import json
import pickle
import random
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

import coset
import coset.dialects
from coset.cli import run
from coset.extract.select import reprice
from coset.ir.errors import CosetError
from coset.ir.problems import WrongFile
from coset.ir.term import input_term, make
from coset.ir.types import F32, tensor
from coset.targets import target as registry
from coset.targets.document import HERE
from coset.targets.ops import check_ops
from coset.targets.place import place_of
from coset.targets.target import EVERY, Form, Fusion, Rate, get_target

assert coset.dialects
MINE = """\
base = "hub"
title = "a machine of mine"
dialect = "stablehlo"

[sources]
told = "told by nobody, 2026"

[numbers]
bandwidth = { value = 1e9, unit = "B/s", source = "told" }

[launches]
each = { value = 1e-6, unit = "s", source = "told", note = "a guess" }

[rates]
all = { unit = "FLOP/s", source = "told", "*" = 1e9, f32 = 4e9 }
some = { unit = "element/s", source = "as slow as it gets", "*" = 1e8 }

[curves]
stream = { x = "B", unit = "B/s", source = "told", of = "bandwidth", times = 0.5, points = [[1e3, 0.1], [1e6, 1.0]] }
twice = { like = "stream", times = 2, source = "told" }
rows = { x = "rows", unit = "share", source = "told", points = [[1, 0.25], [4, 1]] }

[dtypes]
few = "f32 f64 -f64"

[kernels]
nothing = { launch = "each" }
host = { launch = "each" }
pointwise = { launch = "each", bandwidth = "twice" }
function = { launch = "each", rates = "some", bandwidth = "twice" }
movement = { launch = "each", bandwidth = "stream" }
reduce = { launch = "each", bandwidth = "stream" }
matmul = { launch = "each", rates = "all", bandwidth = "stream", rows = "rows" }
conv = "cpu-onnxruntime:conv"
gather = { launch = "each", bandwidth = "stream" }
library = { launch = "each", bandwidth = "stream" }
loop = { launch = "each" }

[legal]
never = "stablehlo.sort"
forms = [
  { ops = "abs negate", kernel = "pointwise", dtypes = "few" },
  { ops = "dot_general", kernel = "matmul", conditions = "matmul rank<=3" },
]
"""


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test reads is known to no other."""
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))


def written(folder: Path, text: str, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_file_is_a_target(tmp_path: Path) -> None:
    target = get_target(written(tmp_path, MINE))
    assert (target.name, target.title, target.dialect, target.bases) == ("mine", "a machine of mine", "stablehlo", ("hub",))
    assert target.default == Form("library") and target.forms["stablehlo.sort"] == ()
    assert target.forms["stablehlo.abs"] == (Form("pointwise", frozenset({"f32"})),)
    assert target.forms["stablehlo.dot_general"] == (Form("matmul", conditions=("matmul", "rank<=3")),)
    assert target.forms["stablehlo.tanh"] == get_target("stablehlo").forms["stablehlo.tanh"]
    stream, twice = target.kernels["movement"].bandwidth, target.kernels["pointwise"].bandwidth
    assert stream and twice and stream.points == ((1e3, 0.5e8), (1e6, 5e8)) and twice.points == ((1e3, 1e8), (1e6, 1e9))
    assert target.kernels["conv"] == get_target("cpu-onnxruntime").kernels["conv"]
    assert target.kernels["matmul"].rates[EVERY].value == 1e9 and target.kernels["matmul"].rates["f32"].source == "told by nobody, 2026"
    assert target.kernels["host"].launch.source == "told by nobody, 2026; a guess"
    check_ops(target)


def test_kernels_that_ops_share_are_priced_by_those_that_it_names(tmp_path: Path) -> None:
    assert get_target(written(tmp_path, MINE)).fusion is None
    assert get_target(written(tmp_path, instead("\n[sources]", FUSION + "\n[sources]"))).fusion == Fusion("function", "reduce", "matmul")
    more = FUSION.replace("}", ', full = "matmul", library = "matmul" }')
    assert get_target(written(tmp_path, instead("\n[sources]", more + "\n[sources]"))).fusion == Fusion(
        "function", "reduce", "matmul", "matmul", "matmul"
    )


def test_a_rate_is_a_share_of_another(tmp_path: Path) -> None:
    text = (HERE / "nvidia-h200.toml").read_text()
    half = '[rates]\nfull = { like = "products", dtype = "f32", times = 0.5, source = "as told" }\n'
    found = get_target(written(tmp_path, f"{text}\n{half}")).kernels["full"].rates
    assert found == dict.fromkeys(("*", "f32"), Rate(33.5e12, "FLOP/s", "as told"))
    with pytest.raises(CosetError, match="no rate of `i4`"):
        get_target(written(tmp_path, f"{text}\n{half.replace('f32', 'i4')}"))


def test_another_name_of_a_target() -> None:
    assert get_target("cpu") is get_target("cpu-onnxruntime")


def test_a_file_of_ours_under_a_new_name_is_the_same_machine(tmp_path: Path) -> None:
    for name in ("cpu-onnxruntime", "nvidia-h200", "stablehlo"):
        ours, copied = get_target(name), get_target(written(tmp_path, (HERE / f"{name}.toml").read_text(), "copied.toml"))
        assert (copied.kernels, copied.forms, copied.sessions) == (ours.kernels, ours.forms, ours.sessions)


def test_a_base_may_be_a_file_of_the_users(tmp_path: Path) -> None:
    written(tmp_path, MINE, "first.toml")
    second = get_target(written(tmp_path, 'base = "first.toml"\ntitle = "faster"\n[kernels]\nhost = { launch = "none" }\n'
                                '[launches]\nnone = { value = 0, unit = "s", source = "not at all" }\n', "second.toml"))  # fmt: skip
    assert second.bases == ("first", "hub") and second.kernels["host"].launch.value == 0
    assert second.kernels["matmul"] == get_target(tmp_path / "first.toml").kernels["matmul"]


def without(text: str) -> str:
    assert text in MINE
    return MINE.replace(text, "")


def instead(old: str, new: str) -> str:
    assert old in MINE
    return MINE.replace(old, new, 1)


FUSION = 'fusion = { pointwise = "function", rows = "reduce", product = "matmul" }\n'
MISTAKES = {  # name -> text, line, what the message says
    "syntax": (instead("[rates]", "[rates"), 14, "is no TOML"),
    "cut": (MINE[:300], 15, "is no TOML"),
    "unknown_key": (instead("title", "titel"), 2, "`titel` is no key"),
    "unknown_section": (instead("[rates]", "[speeds]"), 14, "`speeds` is no key"),
    "unknown_field": (instead('launch = "each", bandwidth = "twice"', 'lunch = 1, launch = "each"'), 29, "`kernels.pointwise.lunch`"),
    "no_title": (without('title = "a machine of mine"\n'), 1, "`title` is missing"),
    "no_source": (without(', source = "told", note = "a guess"'), 12, "`launches.each`: `source` is missing"),
    "no_unit": (without(' unit = "FLOP/s",'), 15, "`rates.all`: `unit` is missing"),
    "unknown_source": (instead('source = "told", note', 'source = "hearsay", note'), 12, "there is no source `hearsay`"),
    "wrong_unit": (instead('unit = "s"', 'unit = "ms"'), 12, "`ms` is no unit"),
    "negative": (instead("f32 = 4e9", "f32 = -4e9"), 15, "-4000000000.0 is not above 0"),
    "zero": (instead("f32 = 4e9", "f32 = 0"), 15, "0 is not above 0"),
    "nan": (instead("f32 = 4e9", "f32 = nan"), 15, "NaN is nothing that can be measured"),
    "infinite": (instead("f32 = 4e9", "f32 = inf"), 15, "so large a number"),
    "huge": (instead("f32 = 4e9", f"f32 = 1{'0' * 400}"), 15, "so large a number"),
    "no_number": (instead("f32 = 4e9", 'f32 = "4e9"'), 15, "is no number"),
    "truth": (instead("f32 = 4e9", "f32 = true"), 15, "is no number"),
    "not_rising": (instead("[1e6, 1.0]", "[1e3, 1.0]"), 19, "x does not rise"),
    "no_points": (instead("[[1, 0.25], [4, 1]]", "[]"), 21, "has no points"),
    "no_point": (instead("[4, 1]", "[4]"), 21, "is no point"),
    "share": (instead("[4, 1]", "[4, 1.5]"), 21, "a share is above 1"),
    "wrong_curve": (instead('bandwidth = "twice" }', 'bandwidth = "rows" }'), 29, "a curve in share over rows is no bandwidth"),
    "unknown_curve": (instead('like = "stream"', 'like = "strom"'), 20, "there is no curve `strom`"),
    "own_curve": (instead('like = "stream"', 'like = "twice"'), 20, "`twice` is made from itself"),
    "unknown_number": (instead('of = "bandwidth"', 'of = "width"'), 19, "there is no number `width`"),
    "unknown_dtype": (instead("-f64", "-f63"), 24, "there is no dtype `f63`"),
    "unknown_rate_dtype": (instead("f32 = 4e9", "f31 = 4e9"), 15, "`rates.all.f31` is no key"),
    "unknown_condition": (instead("rank<=3", "rank<3"), 43, "there is no condition `rank<3`"),
    "unknown_kernel": (instead('kernel = "matmul"', 'kernel = "matmol"'), 43, "there is no kernel `matmol`"),
    "unknown_other_file": (instead("cpu-onnxruntime:conv", "cpu-tensorrt:conv"), 34, "there is no target `cpu-tensorrt`"),
    "unknown_other_entry": (instead("cpu-onnxruntime:conv", "cpu-onnxruntime:cow"), 34, "there is no `cow` in [kernels]"),
    "no_host": (without('host = { launch = "each" }\n'), 26, "`kernels.host` is missing"),
    "unknown_base": (instead('base = "hub"', 'base = "hubb"'), 1, "there is no base `hubb`"),
    "absent_base": (instead('base = "hub"', 'base = "hub.toml"'), 1, "there is no base `hub.toml`"),
    "own_base": (instead('base = "hub"', 'base = "mine.toml"'), 1, "leads back to itself"),
    "unknown_dialect": (instead('"stablehlo"', '"stablehol"'), 3, "there is no dialect `stablehol`"),
    "no_op": (instead('"abs negate"', '"abs, negate"'), 42, "`abs,` is no name of an op"),
    "unknown_fused": (instead("\n[sources]", FUSION.replace('"matmul"', '"matmol"') + "\n[sources]"), 4, "there is no kernel `matmol`"),
    "half_fused": (instead("\n[sources]", FUSION.replace(', product = "matmul"', "") + "\n[sources]"), 4, "`product` is missing"),
    "fused_slow": (instead("\n[sources]", FUSION.replace('"matmul"', '"reduce"') + "\n[sources]"), 4, "`reduce` has no rates"),
    "deep": (MINE + "x = " + "[" * 5000, 45, "it nests too deep"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_said_with_its_place(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, line, message = MISTAKES[name]
    path = written(tmp_path, text)
    with pytest.raises(CosetError) as caught:
        get_target(path)
    assert message in caught.value.message and caught.value.help
    assert caught.value.place and caught.value.place.file == str(path) and caught.value.place.line == line, caught.value
    assert run(["optimize", "absent.onnx", "--target", str(path), "-o", str(tmp_path / "out.onnx")]) == 2
    assert message in capsys.readouterr().err


def test_what_a_base_of_ours_names_is_missing_once(tmp_path: Path) -> None:
    """The base `hub` names the kernel `host`; that the user's file has none is the only mistake."""
    with pytest.raises(WrongFile) as caught:
        get_target(written(tmp_path, MISTAKES["no_host"][0]))
    assert not caught.value.others


def test_a_place_is_not_found_in_a_text() -> None:
    """Lines of a text that look like keys are none, items of a list are counted; what is not there has the line of what is around it."""
    text = 'notes = """\nkernels = 1\n[kernels]\n"""\n[kernels]\nadd = 1\n'
    text += '[legal]\nforms = [\n  # {}\n  { ops = "a" },\n  { ops = "b" },\n]\n'
    lines = {("kernels",): 5, ("kernels", "add"): 6, ("legal", "forms", 1, "ops"): 11, ("kernels", "add", "launch"): 6, ("curves",): 0}
    assert {keys: place_of("f", text, keys).line for keys in lines} == lines


def test_mistakes_of_a_base_of_the_users_are_said_with_those_of_the_file(tmp_path: Path) -> None:
    first = written(tmp_path, instead("f32 = 4e9", "f32 = -4e9").replace("[dtypes]", "[dtypse]"), "first.toml")
    second = written(tmp_path, 'base = "first.toml"\ntitel = "faster"\n', "second.toml")
    with pytest.raises(WrongFile) as caught:
        get_target(second)
    error = caught.value
    places = [error.place, *(each.place for each in error.others)]
    assert [(place.file, place.line) for place in places if place] == [(str(second), 2), (str(first), 15), (str(first), 23)]
    assert str(error).count("help: ") == 3 and str(error).endswith("3 mistakes") and str(pickle.loads(pickle.dumps(error))) == str(error)


def test_what_stands_in_a_table_that_cannot_be_read_is_no_second_mistake(tmp_path: Path) -> None:
    """Nothing is said of what a table would have given that has another name, or is none."""
    no_kernels = "kernels = 3\n" + MINE.partition("[kernels]")[0] + "[legal]" + MINE.partition("[legal]")[2]
    for text in (instead("[rates]", "[speeds]"), instead('base = "hub"', 'base = "nothing-like-it"'), no_kernels):
        with pytest.raises(WrongFile) as caught:
            get_target(written(tmp_path, text))
        assert not caught.value.others, caught.value


def test_two_files_that_are_based_on_each_other(tmp_path: Path) -> None:
    one = written(tmp_path, 'base = "two.toml"\ntitle = "one"\n', "one.toml")
    written(tmp_path, 'base = "one.toml"\ntitle = "two"\n', "two.toml")
    with pytest.raises(CosetError, match=r"the base `one\.toml` leads back to itself"):
        get_target(one)


def test_what_is_no_file_of_a_target(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "latin.toml").write_bytes('title = "Zürich"'.encode("latin-1"))
    (tmp_path / "large.toml").write_bytes(b"#" * (2 << 20))
    written(tmp_path, MINE, "nvidia-h200.toml")
    for name, message in (
        ("folder.toml", "is no file"), ("latin.toml", "is not UTF-8"), ("large.toml", "has more than"), ("absent.toml", "there is no file"),
        ("nvidia-h200.toml", "has the name of the target `nvidia-h200`"), ("a" * 300 + ".toml", "cannot be read"),
        ("\0.toml", "cannot be read"),
    ):  # fmt: skip
        with pytest.raises(CosetError, match=message):
            get_target(tmp_path / name)
    (tmp_path / "marked.toml").write_text(MINE, encoding="utf-8-sig")
    assert get_target(tmp_path / "marked.toml").title == "a machine of mine"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"abs negate"', '"abs nagate"', "there is no op `stablehlo.nagate`"),
        ('"abs negate"', '"abs negate", views = [0, 1]', "`stablehlo.abs` has no operand 1, only 0 operand"),
        ('"abs negate"', '"abs negate", passes = [["host", 3]]', "`stablehlo.abs` has no operand 3"),
        ('"abs negate"', '"abs negate", conditions = "matmul"', "`matmul` cannot be said of `stablehlo.abs`"),
        ('"abs negate"', '"abs negate", joint = true', "`stablehlo.abs` takes no slices"),
    ],
)
def test_ops_are_checked_when_all_are_known(old: str, new: str, message: str, tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n")
    pytest.importorskip("torch_mlir")
    with pytest.raises(CosetError) as caught:
        coset.optimize(model, target=written(tmp_path, instead(old, new)))
    assert message in caught.value.message and caught.value.place and caught.value.place.line == 42


def test_a_model_is_optimized_for_a_users_target(tmp_path: Path) -> None:
    """The user's machine is this one, but a hyperbolic tangent takes a second: what it is predicted to take says so."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, 8]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Tanh", ["x"], ["y"])], "test", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "model.onnx")
    slow = 'base = "cpu"\ntitle = "slow"\n[kernels.tanh]\nlaunch = { value = 1.0, unit = "s", source = "by definition" }\n'
    path = written(tmp_path, slow, "slow_tanh.toml")
    report = coset.optimize(tmp_path / "model.onnx", target=str(path), limits=coset.Limits(seconds=5)).report
    assert report["target"] == "slow-tanh" and report["cost"]["input"] == pytest.approx(1.0)
    arguments = ["optimize", str(tmp_path / "model.onnx"), "--target", str(path), "-o", str(tmp_path / "out.onnx"), "--time-limit", "5"]
    assert run(arguments) == 0


def test_a_model_is_lowered_for_a_users_target(tmp_path: Path) -> None:
    """A GPU of the user's, which is an H200 with half the memory bandwidth."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, 8]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Tanh", ["x"], ["y"])], "test", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "model.onnx")
    text = 'base = "nvidia-h200"\ntitle = "half an H200"\n[numbers]\nbandwidth = { value = 2.4e12, unit = "B/s", source = "half of it" }\n'
    path, out = written(tmp_path, text, "half.toml"), tmp_path / "out"
    assert run(["lower", str(tmp_path / "model.onnx"), "--target", str(path), "-o", str(out), "--check", "none"]) == 0
    assert json.loads((out / "manifest.json").read_text())["target"] == "half"
    ours, theirs = (get_target(name).kernels["reduce"].bandwidth for name in ("nvidia-h200", path))
    assert ours and theirs and theirs.at(1e9) == pytest.approx(ours.at(1e9) / 2)


# ---------------------------------------------------------------- damage


def as_toml(value: Any) -> str:
    """A value in TOML; JSON's texts, lists and numbers are TOML's."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {as_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(as_toml(each) for each in value) + "]"
    return repr(value) if isinstance(value, float) else json.dumps(value)


def inner(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every table and list inside `value`, with each of its keys."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from inner(value[key])


def damaged(text: str, chance: random.Random) -> str:
    """`text` cut, or with a key gone or of another type or value."""
    kind = chance.choice(["cut", "gone", "type", "type", "value"])
    if kind == "cut":
        start = chance.randrange(len(text))
        return text[:start] + text[min(len(text), start + chance.choice([1, 7, 10_000])) :]
    data = tomllib.loads(text)
    table, key = chance.choice(list(inner(data)))
    if kind == "gone":
        del table[key]
    elif kind == "type":
        table[key] = chance.choice([True, 3, -1, 0, 1e300, float("nan"), "", "x", "f32", "a:b", [], [[]], {}, {"value": 1}, [{}], "*"])
    else:
        words = [each[place] for each, place in inner(data) if isinstance(each[place], str)]
        table[key] = chance.choice(words)
    return "".join(f"{json.dumps(name)} = {as_toml(value)}\n" for name, value in data.items())


@pytest.mark.parametrize("name", ["mine", "cpu-onnxruntime"])
def test_a_damaged_file_is_refused_or_can_be_used(name: str, tmp_path: Path) -> None:
    text = MINE if name == "mine" else (HERE / f"{name}.toml").read_text()
    chance = random.Random(7)
    x, w = input_term("x", tensor(F32, 4, 8)), input_term("w", tensor(F32, 8, 8))
    batch, contract = (("lhs_batch", ()), ("rhs_batch", ())), (("lhs_contract", (1,)), ("rhs_contract", (0,)))
    program = [make("stablehlo.tanh", (make("stablehlo.dot_general", (x, w), dict((*batch, *contract))),))]
    outcomes = {"refused": 0, "used": 0}
    for _ in range(400 if name == "mine" else 120):
        path = written(tmp_path, damaged(text, chance), "damaged.toml")
        try:
            target = get_target(path)
            check_ops(target)
            reprice(program, target, {})
            outcomes["used"] += 1
        except CosetError as error:
            assert error.message and error.place and error.help
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 10, outcomes
