"""The page of an optimization: complete in itself, safe whatever a model is called, its graphs those of the programs, its pairs equal."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from benchmarks.stacks import bert
from coset.cli import cli
from coset.comparing.feeds import cases
from coset.comparing.fold import fallback_for
from coset.egraph.limits import Limits
from coset.extract.select import reprice
from coset.ir.evaluate import evaluate_program
from coset.ir.types import TensorType
from coset.job.job import Job
from coset.job.machine import find_target
from coset.optimizing.pipeline import optimize_file
from coset.reporting import drawing as drawings
from coset.reporting.drawing import drawing, picture
from coset.reporting.layout import HEIGHT, WIDTH, layers_of, layout
from coset.reporting.matching import KEPT, matched
from coset.reporting.page import SCRIPTS, page, report_page
from coset.searching.task import wanted_roots

HOSTILE = "</script><img src=x onerror=\"document.documentElement.dataset.broken='yes'\">@@DATA@@<!--"
CHROMIUM = "/usr/bin/chromium"


def small(path: Path, *, name: str = "y") -> Path:
    """x + 0 times 1, then a ReLU and its negation; the value between is called `name`."""
    weights = [numpy_helper.from_array(np.full(4, value, np.float32), key) for key, value in (("zero", 0), ("one", 1), ("w", 3))]
    nodes = [
        helper.make_node("Mul", ["x", "one"], ["a"]), helper.make_node("Add", ["a", "w"], [name]),
        helper.make_node("Relu", [name], ["r"]), helper.make_node("Neg", ["r"], ["out"]),
    ]  # fmt: skip
    ends = [helper.make_tensor_value_info(end, TensorProto.FLOAT, (4,)) for end in ("x", "out")]
    graph = helper.make_graph(nodes, "small", ends[:1], ends[1:], weights[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def job_of(model: Path, target: str = "cpu-onnxruntime") -> Job:
    return Job(str(model), find_target(target), "reassociates", Limits(), (), {}, lambda _: None, picture=picture)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """An optimized stack of 12 layers, which is searched by regions, with all that went into its page."""
    folder = tmp_path_factory.mktemp("stack")
    model = folder / "stack.onnx"
    onnx.save(bert(12), model)
    seen: dict[str, Any] = {}

    def watched(task: Any, solved: Any, program: Any, *written: Any) -> dict[str, Any]:
        seen.update(task=task, solved=solved, program=program)
        return drawing(task, solved, program, *written)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawings, "drawing", watched)
        seen["report"] = optimize_file(job_of(model), folder / "out.onnx")
    seen["graphs"] = seen["report"].pop("graphs")
    seen["page"] = report_page(seen["report"], seen["graphs"], model)
    return seen


def data_of(text: str) -> Any:
    """What the page holds, as a browser reads it: up to the first end of the element."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found is not None
    return json.loads(found.group(1))


# ---------------------------------------------------------------- what is drawn


def test_the_graphs_have_the_nodes_of_the_programs(tmp_path: Path) -> None:
    graphs = optimize_file(job_of(small(tmp_path / "m.onnx")), tmp_path / "o.onnx")["graphs"]
    before, after = graphs["before"], graphs["after"]
    assert [before["ops"][op] for op in before["nodes"]["op"]] == [
        "builtin.input", "stablehlo.multiply", "stablehlo.add", "onnx.Relu", "stablehlo.negate",
    ]  # fmt: skip
    assert before["edges"] == [[0, 1], [1, 2], [2, 3], [3, 4]]
    assert before["nodes"]["name"] == ["x", "a", "y", "r", "out"]
    assert before["nodes"]["constants"][1] == ["one: 1.0 f32"]
    assert before["nodes"]["outputs"] == [[], [], [], [], ["out"]]
    assert [before["kinds"][kind] for kind in before["nodes"]["kind"]] == ["", "Mul", "Add", "", "Neg"]  # where the file has another word
    written = onnx.load(tmp_path / "o.onnx")
    ops = {name: node.op_type for node in written.graph.node for name in node.output}
    said = [
        after["kinds"][kind] or after["ops"][op].rpartition(".")[2]
        for kind, op in zip(*(after["nodes"][key] for key in ("kind", "op")), strict=True)
    ]
    assert said[1:] == [ops[name] for name in after["nodes"]["name"][1:]]  # behind the input
    assert len(after["nodes"]["op"]) == len(written.graph.node) + 1
    assert before["nodes"]["state"][1] != "kept"  # times one


def test_nodes_that_are_paired_have_equal_values(stack: dict[str, Any]) -> None:
    """For every class that both sides have: the values on a drawn input are those of each other."""
    task, solved, program = stack["task"], stack["solved"], stack["program"]
    assert len(solved.parts) > 1
    found = matched(wanted_roots(task), solved, (*program.roots, *program.sources.values()))
    sides = []
    feed = next(iter(cases(task.program, task.binding))).feed
    for source, classes in ((task.program, found.before), (program, found.after)):
        terms = [term for term in source.terms() if term in classes and isinstance(term.type, TensorType)]
        values = evaluate_program(
            replace(source, outputs=tuple((str(i), term) for i, term in enumerate(terms))), feed, fallback=fallback_for(source.source)
        )
        sides.append([(classes[term], term, value) for term, value in zip(terms, values, strict=True)])
    here = {eclass: value for eclass, _, value in sides[0]}
    shared = [(eclass, term, value) for eclass, term, value in sides[1] if eclass in here]
    assert len(shared) > 100
    for eclass, term, value in shared:
        np.testing.assert_allclose(value, here[eclass], rtol=1e-4, atol=1e-4, err_msg=str(term))


def test_states_say_what_became_of_each_node(stack: dict[str, Any]) -> None:
    sides = [stack["graphs"][side]["nodes"] for side in ("before", "after")]
    kept = [Counter(c for c, state in zip(nodes["class"], nodes["state"], strict=True) if state == KEPT) for nodes in sides]
    assert set(kept[0]) == set(kept[1])
    assert {state for nodes in sides for state in nodes["state"]} <= {"kept", "changed", "new", "removed"}
    rules = {rule["name"] for rule in stack["report"]["rules"]}
    after = sides[1]
    named = [[stack["graphs"]["after"]["rules"][number] for number in numbers] for numbers in after["rules"]]
    for state, names in zip(after["state"], named, strict=True):
        assert bool(names) == (state != KEPT)
        assert not names or names[0] in rules
    assert set(sides[0]["class"]).isdisjoint(c for c, state in zip(after["class"], after["state"], strict=True) if state == "new")


def test_prices_add_up_to_what_the_report_says(stack: dict[str, Any]) -> None:
    costs = stack["graphs"]["costs"]
    task, program = stack["task"], stack["program"]
    for side, roots in enumerate((task.program.roots, program.roots)):
        assert sum(each["seconds"][side] for each in costs) == pytest.approx(reprice(roots, task.job.target, task.binding))
    assert sum(each["seconds"][0] for each in costs) == pytest.approx(stack["report"]["cost"]["input"], rel=0.01)


def test_what_a_host_computes_is_marked(tmp_path: Path) -> None:
    """On an accelerator without functions: Tanh runs on the host, whose ops the report counts too."""
    model = tmp_path / "m.onnx"
    ends = [helper.make_tensor_value_info(end, TensorProto.FLOAT, (256, 512)) for end in ("x", "z")]
    weight = numpy_helper.from_array(np.ones((512, 512), np.float32) / 512, "w")
    nodes = [("Tanh", ["x"], "a"), ("MatMul", ["a", "w"], "b"), ("MatMul", ["b", "w"], "c"), ("Tanh", ["c"], "z")]
    graph = helper.make_graph([helper.make_node(op, read, [made]) for op, read, made in nodes], "m", ends[:1], ends[1:], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), model)
    (tmp_path / "npu.toml").write_text(ACCELERATOR)
    report = optimize_file(job_of(model, str(tmp_path / "npu.toml")), tmp_path / "o.onnx")
    nodes = report["graphs"]["after"]["nodes"]
    assert 0 < sum(nodes["host"]) == sum(each["count"] for each in report["host"]) < len(nodes["host"])
    assert {each["op"] for each in report["graphs"]["costs"]} >= {drawings.MOVED}


ACCELERATOR = """
base = "cpu-onnxruntime"
title = "an accelerator without functions"
host = "cpu-onnxruntime"
strict = true
[rates]
fast = { unit = "FLOP/s", source = "drawn here", "*" = 1e13 }
[kernels]
matmul = { launch = "row", rates = "fast" }
transfer = { launch = { value = 1e-6, unit = "s", source = "drawn here" } }
[legal]
never = "tanh"
"""


# ---------------------------------------------------------------- where it is drawn


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    count = draw(st.integers(0, 40))
    return [draw(st.lists(st.integers(0, node - 1), max_size=3, unique=True)) if node else [] for node in range(count)]


@given(graphs())
def test_no_node_covers_another_and_all_stand_below_what_they_read(operands: list[list[int]]) -> None:
    found = layout(operands)
    corners = sorted(zip(found.x, found.y, strict=True))
    for place, (x, y) in enumerate(corners):
        for other_x, other_y in corners[place + 1 :]:
            if other_x >= x + WIDTH:
                break
            assert abs(other_y - y) >= HEIGHT
    assert all(found.layers[node] > found.layers[operand] for node, read in enumerate(operands) for operand in read)
    assert all(0 <= x <= found.width - WIDTH and 0 <= y <= found.height - HEIGHT for x, y in corners)
    assert {(edge.source, edge.target) for edge in found.edges} == {
        (operand, node) for node, read in enumerate(operands) for operand in read
    }


def test_a_deep_chain_is_folded_into_columns() -> None:
    found = layout([[], *([node] for node in range(20_000))])
    assert len(found.breaks) > 10
    assert found.width < 3 * found.height
    assert found.height < 3 * found.width


def test_what_all_layers_read_stands_by_its_first_user() -> None:
    """And its edges to the others are drawn as their ends: lanes for all of them would be as many as the layers squared."""
    chain = [[], [], *([node, 1] if node > 50 else [node] for node in range(2, 400))]
    chain[2] = [0]
    assert layers_of(chain)[1] == min(layers_of(chain)[node] for node, read in enumerate(chain) if 1 in read) - 1
    lanes = sum(len(edge.lanes or ()) for edge in layout(chain).edges)
    assert lanes < 20 * len(chain)


# ---------------------------------------------------------------- the file


def test_nothing_is_fetched(stack: dict[str, Any]) -> None:
    text = stack["page"]
    outside = re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.S).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(|\bsrc=|\bhref=|<link|fetch\(|XMLHttpRequest|WebSocket|import\(", outside)
    assert "default-src 'none'" in text


def test_scripts_make_no_markup_of_text() -> None:
    folder = Path(drawings.__file__).parent / "page"
    assert {path.name for path in folder.glob("*.js")} == set(SCRIPTS)
    for path in folder.glob("*.js"):
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|</script", path.read_text()), (
            path
        )


def test_hostile_names_are_data(tmp_path: Path) -> None:
    model = small(tmp_path / "m.onnx", name=HOSTILE)
    report = optimize_file(job_of(model), tmp_path / "o.onnx")
    text = report_page(report, report.pop("graphs"), Path(f"{HOSTILE}.onnx".replace("/", "")))
    assert text.count("</script>") == 2
    assert text.count("<img") == 0
    data = data_of(text)
    assert HOSTILE in data["graphs"]["before"]["nodes"]["name"]
    assert "\\u003c/script" in text


def test_numbers_that_json_has_not_are_null() -> None:
    assert data_of(page({"kind": "optimize", "title": "t", "report": {"cost": {"input": float("inf")}}}))["report"]["cost"]["input"] is None


def test_the_command_writes_a_page_and_its_answer_has_no_graphs(tmp_path: Path) -> None:
    model = small(tmp_path / "m.onnx")
    names = [str(tmp_path / name) for name in ("o.onnx", "r.html", "p.onnx")]
    given = CliRunner().invoke(cli, ["optimize", str(model), "-o", names[0], "--report", names[1], "--json"], standalone_mode=False)
    assert given.return_value == 0, given.output
    assert "graphs" not in json.loads(given.stdout)
    assert data_of(Path(names[1]).read_text())["report"]["nodes"]["before"] == 4
    refused = CliRunner().invoke(cli, ["optimize", str(model), "-o", names[2], "--report", "r.txt"], standalone_mode=False)
    assert "no .json and no .html" in str(refused.exception)
    assert not Path(names[2]).exists()


def test_near_misses_are_shown_where_there_are_some() -> None:
    miss = {"rule": "r", "node": "n", "condition": "even(K)", "values": {"K": 3}}
    assert data_of(page({"kind": "optimize", "title": "t", "report": {"near_misses": [miss]}}))["report"]["near_misses"] == [miss]


# ---------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def browser() -> Any:
    pytest.importorskip("playwright", reason="the page is looked at in a browser: pip install playwright")
    from playwright.sync_api import sync_playwright

    from benchmarks.report_page import QUIET

    if shutil.which(CHROMIUM) is None:
        pytest.skip(f"there is no {CHROMIUM}: apt-get install chromium")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield running
        running.close()


def shown(browser: Any, path: Path, **options: Any) -> tuple[Any, list[str]]:
    """The page opened with the network off, and what went wrong or left the machine."""
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 800}, **options)
    tab, wrong = context.new_page(), []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    tab.on("request", lambda request: None if request.url.startswith("file:") else wrong.append(request.url))
    tab.goto(path.as_uri())
    tab.wait_for_selector("html[data-ready]", state="attached")
    return tab, wrong


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_draws_both_graphs_and_finds_in_them(browser: Any, stack: dict[str, Any], tmp_path: Path, scheme: str) -> None:
    from benchmarks.report_page import used

    path = tmp_path / "r.html"
    path.write_text(stack["page"])
    tab, wrong = shown(browser, path, color_scheme=scheme)
    found = used(tab, None)
    sides = [stack["graphs"][side] for side in ("before", "after")]
    assert found["shown"] == [len(side["nodes"]["op"]) for side in sides]
    adds = [sum("add" in text.lower() for text in searched(side)) for side in sides]
    assert found["search_hits"] == adds
    assert found["selected"][0] >= 0
    assert found["zoom"][1] > found["zoom"][0]
    assert found["zoom"][2] == found["zoom"][1]  # they move together
    assert found["details"][0]
    assert wrong == []


def searched(side: dict[str, Any]) -> list[str]:
    """What a search looks at, by node."""
    nodes = side["nodes"]
    return [
        "\n".join([side["ops"][op], name, *outputs, *(side["rules"][rule] for rule in rules)])
        for op, name, outputs, rules in zip(nodes["op"], nodes["name"], nodes["outputs"], nodes["rules"], strict=True)
    ]


def test_a_click_shows_the_equal_on_the_other_side(browser: Any, stack: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    path.write_text(stack["page"])
    tab, wrong = shown(browser, path)
    nodes = [stack["graphs"][side]["nodes"] for side in ("before", "after")]
    node = next(n for n, state in enumerate(nodes[0]["state"]) if state == "kept" and nodes[0]["name"][n] and n > 5)
    tab.fill("#search", nodes[0]["name"][node])
    tab.press("#search", "Enter")
    tab.wait_for_timeout(100)
    selected = [int(tab.locator(f"#graph-{side}").get_attribute("data-selected")) for side in ("before", "after")]
    assert nodes[0]["class"][selected[0]] == nodes[1]["class"][selected[1]]
    assert wrong == []


def test_a_browser_runs_nothing_that_a_model_says(browser: Any, tmp_path: Path) -> None:
    model = small(tmp_path / "m.onnx", name=HOSTILE)
    report = optimize_file(job_of(model), tmp_path / "o.onnx")
    report["near_misses"] = [dict.fromkeys(("rule", "node", "condition", "values"), HOSTILE)]
    path = tmp_path / "r.html"
    path.write_text(report_page(report, report.pop("graphs"), Path("m.onnx")))
    tab, wrong = shown(browser, path)
    tab.fill("#search", "img")
    tab.press("#search", "Enter")
    tab.wait_for_timeout(100)
    assert HOSTILE in tab.locator(".card").first.inner_text()
    assert HOSTILE in tab.locator("section[aria-label='Near misses']").inner_text()
    assert tab.locator("img").count() == 0
    assert tab.locator("html").get_attribute("data-broken") is None
    assert wrong == []
