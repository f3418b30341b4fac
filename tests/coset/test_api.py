"""The public functions: what they say is what the commands say; in threads, in workers of pools, and on the way between processes."""

from __future__ import annotations

import inspect
import json
import multiprocessing
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import coset
from coset.cli import run
from coset.job.answer import VERSION

TEXT = '<ir_version: 9, opset_import: ["": 18]> g (float[n,8] x) => (float[n,8] y) { a = Floor(x) b = Floor(a) y = Relu(b) }'
OTHER = '<ir_version: 9, opset_import: ["": 18]> g (float[n,8] x) => (float[n,8] y) { a = Floor(x) y = Relu(a) }'
WRONG = '<ir_version: 9, opset_import: ["": 18]> g (float[n,8] x) => (float[n,8] y) { a = Ceil(x) y = Relu(a) }'
FALSE = 'use stablehlo as hlo\nrule wrong\n  "False."\n  for x: F[S..]\n  floor(x) => x\n  numerics exact\n'


@pytest.fixture
def models(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{name}.onnx" for name in ("one", "other", "wrong")]
    for path, text in zip(paths, (TEXT, OTHER, WRONG), strict=True):
        onnx.save(onnx.parser.parse_model(text), path)
    return paths


def answered(args: list[Any], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    run([*map(str, args), "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def without_seconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_seconds(each) for key, each in value.items() if "seconds" not in key}
    return [without_seconds(each) for each in value] if isinstance(value, list | tuple) else value


def test_functions_say_what_the_commands_print(models: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other, wrong = models
    proof = tmp_path / "c"
    pairs = [
        (coset.prove(one, other, certificate=proof), ["prove", one, other]),
        (coset.prove(one, wrong), ["prove", one, wrong]),
        (coset.verify(proof, one, other), ["verify", proof, one, other]),
        (coset.diff(one, wrong), ["diff", one, wrong]),
        (coset.explain(one, "floor_of_floor"), ["explain", one, "--rule", "floor_of_floor"]),
        (coset.bisect(one), ["bisect", one]),
    ]
    for found, command in pairs:
        told = without_seconds(answered(command, capsys))
        assert told.pop("report_version") == VERSION
        given = json.loads(json.dumps(without_seconds(found), default=str))
        for each in (told, given):
            each.pop("certificate", None)
        assert given.keys() == told.keys() and {k: given[k] for k in ("answer", "ok", "matched", "within") if k in given} == {
            k: told[k] for k in ("answer", "ok", "matched", "within") if k in told
        }, command
    assert [found["answer"] for found, _ in pairs[:2]] == ["proved", "refuted"] and pairs[2][0]["ok"] and not pairs[3][0]["ok"]


def test_models_in_memory_are_models(models: list[Path]) -> None:
    one, other, wrong = map(onnx.load, models)
    assert coset.prove(one, other)["answer"] == "proved" and not coset.diff(one, wrong)["ok"]


def test_check_is_a_function_and_still_a_module(tmp_path: Path) -> None:
    from coset.check import difference

    rules = tmp_path / "own.rules"
    rules.write_text(FALSE)
    found = coset.check(rules)
    assert not found["ok"] and found["rules"][0]["assurance"] == "refuted" and not (tmp_path / "rules.lock").exists()
    rules.write_text(FALSE.replace("floor(x) => x", "floor(floor(x)) => floor(x)"))
    assert coset.check(rules)["ok"] and (tmp_path / "rules.lock").exists()
    assert callable(difference) and callable(coset.check) and coset.check.difference is difference  # type: ignore[attr-defined]


def test_a_package_is_lowered(models: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    assert coset.lower(models[0], tmp_path / "package", code="torch")["check"]["ok"]
    with pytest.raises(coset.CosetError, match="there is no check `rough`"):
        coset.lower(models[0], tmp_path / "other", check="rough")


def test_the_public_names_are_shown() -> None:
    assert {"optimize", "prove", "verify", "check", "diff", "explain", "lower", "CosetError", "__version__"} <= set(dir(coset))
    assert all(getattr(coset, name) is not None for name in dir(coset)) and coset.__version__[0].isdigit()


WRONG_ARGUMENTS = [
    (lambda one: coset.optimize(3), "`model` must be"),
    (lambda one: coset.optimize(one, limits=5), "`limits` must be Limits, not int"),
    (lambda one: coset.optimize(one, numerics=1), "`numerics` must be str, not int"),
    (lambda one: coset.optimize(one, rules="own.rules"), "`rules` must be a list"),
    (lambda one: coset.optimize(one, dims=[("n", 1)]), "`dims` must be"),
    (lambda one: coset.optimize(one, measure=True), "`measure` must be int, not bool"),
    (lambda one: coset.prove(one, 5), "must be the path of a model or an onnx.ModelProto, not int"),
    (lambda one: coset.explain(one, 5), "`rule` must be str, not int"),
    (lambda one: coset.optimize(one, nodes=5), "nodes"),
    (lambda one: coset.optimize(one, dims={"n": True}), r"`dims\['n'\]` must be a whole number, not bool"),
    (lambda one: coset.optimize(one, dims={"n": 2.0}), r"`dims\['n'\]` must be a whole number, not float"),
    (lambda one: coset.optimize(one, certificate="c"), "`certificate` must be bool, not str"),
    (lambda one: coset.optimize(one, disable_rules="floor_of_floor"), "`disable_rules` must be a list, not str"),
    (lambda one: coset.optimize(one, numerics_for=["a"]), "`numerics_for` must be Mapping, not list"),
    (lambda one: coset.prove(one, one, rules="own.rules"), "`rules` must be a list, not str"),
]


@pytest.mark.parametrize("number", range(len(WRONG_ARGUMENTS)))
def test_an_argument_of_another_type_is_named(number: int, models: list[Path]) -> None:
    call, says = WRONG_ARGUMENTS[number]
    with pytest.raises(TypeError, match=says):
        call(models[0])


def test_a_result_is_pickled_with_its_file(models: list[Path]) -> None:
    made = coset.optimize(models[0], certificate=True)
    sent = pickle.loads(pickle.dumps(made))
    x = np.float32([[-1.5, 0.5, 1.5, 2.5, np.nan, np.inf, -0.0, 7]])
    assert sent.report == made.report and sent.certificate == made.certificate
    assert np.array_equal(sent.run({"x": x})["y"], made.run({"x": x})["y"], equal_nan=True)
    assert [name for name, _ in sent.program.outputs] == ["y"] and len(list(sent.program.terms())) == len(list(made.program.terms()))


def test_a_result_is_shown_in_a_line_and_as_html(models: list[Path]) -> None:
    made = coset.optimize(models[0])
    assert repr(made).startswith("<coset.Optimized: nodes 3 -> 2, ") and "\n" not in repr(made) and len(repr(made)) < 250
    assert "floor_of_floor" in made._repr_html_() and "3 -&gt; 2" in made._repr_html_()


def test_sizes_may_be_whole_numbers_of_any_type(models: list[Path]) -> None:
    assert coset.optimize(models[0], dims={"n": np.int64(3)}).report["check"]["dims"] == {"n": 3}  # type: ignore[dict-item]


def test_a_mapping_of_what_is_not_there_is_a_mistake(models: list[Path]) -> None:
    with pytest.raises(coset.CosetError, match="the second program has no input or output `zz`"):
        coset.prove(models[0], models[1], names={"zz": "x"})
    with pytest.raises(coset.CosetError, match="the first program has no input or output `zz`"):
        coset.prove(models[0], models[1], names={"x": "zz"})


def refused(folder: Path) -> None:
    rules, path = folder / "own.rules", folder / "one.onnx"
    rules.write_text(FALSE)
    coset.optimize(path, rules=[rules])


def test_errors_and_jobs_travel_between_processes(models: list[Path], tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        with pytest.raises(coset.CosetError, match="rule `wrong` is refuted") as found:
            pool.apply_async(refused, (tmp_path,)).get(timeout=100)
        assert type(found.value).__name__ == "RefutedRule" and found.value.verdicts[0].name == "wrong"  # type: ignore[attr-defined]
        assert pool.apply_async(coset.prove, (models[0], models[1])).get(timeout=100)["answer"] == "proved"
    assert "before" in inspect.signature(coset.prove).parameters and "require" in inspect.signature(coset.check).parameters


def saved(path: Path) -> bytes:
    """The bytes of the optimized model; a worker of a pool runs it."""
    place = path.with_suffix(f".{threading.get_ident()}.out.onnx")
    coset.optimize(path).save(place)
    return place.read_bytes()


def test_threads_get_what_one_gets(models: list[Path]) -> None:
    """In a fresh process: there what is loaded at first use is loaded by several at once."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        alone = [saved(path) for path in models]
        assert pool.apply(in_threads, (models, 9)) == alone * 3


def in_threads(models: list[Path], count: int) -> list[Any]:
    found: dict[int, Any] = {}

    def work(number: int) -> None:
        try:
            found[number] = saved(models[number % len(models)])
        except BaseException as error:
            found[number] = repr(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[number] for number in range(count)]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_pool_get_what_one_gets(method: str, models: list[Path]) -> None:
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(saved, models * 2) == [saved(path) for path in models] * 2


def test_a_fork_while_a_thread_is_in_a_job_waits_for_nobody(models: list[Path]) -> None:
    from coset.job.alone import alone

    entered, leave = threading.Event(), threading.Event()

    @alone
    def job() -> None:
        entered.set()
        leave.wait(60)

    thread = threading.Thread(target=job)
    thread.start()
    entered.wait(60)
    try:
        with multiprocessing.get_context("fork").Pool(1) as pool:
            assert pool.apply_async(saved, (models[0],)).get(timeout=100)
    finally:
        leave.set()
        thread.join()
