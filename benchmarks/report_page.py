"""How fast the page that explains an optimization opens, what it asks of the network, and what can be done with it.

    python -m benchmarks.report_page [--layers 44] [--model M.onnx] [--repeat N] [--screenshots FOLDER] [--keep R.html] [--json]

A model (by default a stack of encoder layers of about 1,500 nodes) is optimized with `--report R.html`, and the page is opened in headless
Chromium with the network off. `ready` is the time from the request for the file until both graphs are drawn, as the page's own clock has
it; `wall` is what the whole took from outside. Then a name is searched, a node clicked, the graph zoomed. Medians of `--repeat` openings.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import onnx

from benchmarks.stacks import bert
from coset.egraph.growth import Watch
from coset.egraph.limits import Limits
from coset.job.answer import save
from coset.job.job import Job
from coset.job.machine import find_target
from coset.optimizing.pipeline import optimize_file
from coset.reporting.page import report_page

CHROMIUM = "/usr/bin/chromium"
QUIET = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
]
WINDOW = {"width": 1280, "height": 800}
READY = "html[data-ready]"


def made(model: Path, folder: Path) -> tuple[Path, dict[str, Any]]:
    """The page of the model's optimization, and how long it took: with the graphs, and the page's text alone."""
    job = Job(
        str(model), find_target("cpu-onnxruntime"), "reassociates", Limits(), (), {}, lambda _: None, drawn=True, watch=Watch(counted=True)
    )
    started = time.perf_counter()
    report = optimize_file(job, folder / "optimized.onnx")
    optimized = time.perf_counter()
    path = folder / "report.html"
    graphs = report.pop("graphs")
    save(path, report_page({**report, "output": "optimized.onnx"}, graphs, model))
    seconds = {"optimize": optimized - started, "write": time.perf_counter() - optimized}
    drawn = {side: len(graphs[side]["nodes"]["op"]) for side in ("before", "after")}
    return path, {"model": model.name, "nodes": report["nodes"], "drawn": drawn, "bytes": path.stat().st_size, "seconds": seconds}


def opened(path: Path, repeat: int, screenshots: Path | None) -> dict[str, Any]:
    """What a browser makes of the page."""
    from playwright.sync_api import sync_playwright

    ready, wall, asked, errors = [], [], [], []
    found: dict[str, Any] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        for number in range(repeat):
            context = browser.new_context(viewport=WINDOW, offline=True, color_scheme="light")
            page = context.new_page()
            page.on("request", lambda request: asked.append(request.url))
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
            begun = time.perf_counter()
            page.goto(path.as_uri())
            page.wait_for_selector(READY, state="attached")
            wall.append((time.perf_counter() - begun) * 1e3)
            ready.append(float(page.evaluate("document.documentElement.dataset.milliseconds")))
            if number == repeat - 1:
                found = used(page, screenshots)
            context.close()
        if screenshots is not None:
            _dark(browser, path, screenshots)
        version = browser.version
        browser.close()
    network = [url for url in asked if not url.startswith("file:")]
    middle = {"ready_ms": statistics.median(ready), "ready_worst_ms": max(ready), "wall_ms": statistics.median(wall)}
    return {**middle, "network_requests": len(network), "errors": errors, "chromium": version, **found}


def used(page: Any, screenshots: Path | None) -> dict[str, Any]:
    """A search, a click and a zoom, and what they gave; screenshots are taken on the way."""
    before, after = page.locator("#graph-before"), page.locator("#graph-after")
    if screenshots is not None:
        page.screenshot(path=screenshots / "whole.png")
        page.screenshot(path=screenshots / "page.png", full_page=True)
    shown = [int(canvas.get_attribute("data-nodes")) for canvas in (before, after)]
    page.fill("#search", "add")
    hits = [int(canvas.get_attribute("data-lit")) for canvas in (before, after)]
    page.press("#search", "Enter")
    page.wait_for_timeout(100)
    selected = [int(canvas.get_attribute("data-selected")) for canvas in (before, after)]
    page.fill("#search", "")
    scale = float(before.get_attribute("data-scale"))
    box = (before if selected[0] >= 0 else after).bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.click(*middle)  # what was found stands there
    page.wait_for_timeout(100)
    details = page.locator(".card .op").all_inner_texts()
    if screenshots is not None:
        page.screenshot(path=screenshots / "zoomed.png")
    page.mouse.move(*middle)
    page.mouse.wheel(0, -200)
    page.wait_for_timeout(100)
    zoomed = [float(canvas.get_attribute("data-scale")) for canvas in (before, after)]
    frames = page.evaluate(FRAMES)
    return {"shown": shown, "search_hits": hits, "selected": selected, "zoom": [scale, *zoomed], "details": details, "frame_ms": frames}


FRAMES = """() => { const canvas = document.getElementById("graph-before"), times = [];
  document.getElementById("fit").click();
  return new Promise((done) => { const step = () => { const from = performance.now();
    canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -20, clientX: 300, clientY: 300, cancelable: true }));
    requestAnimationFrame(() => { times.push(performance.now() - from);
      times.length < 30 ? step() : done(times.sort((a, b) => a - b)[15]); }); }; step(); }); }"""
"""The median time from a turn of the wheel to its frame, both graphs moving, ms."""


def _dark(browser: Any, path: Path, screenshots: Path) -> None:
    page = browser.new_context(viewport=WINDOW, offline=True, color_scheme="dark").new_page()
    page.goto(path.as_uri())
    page.wait_for_selector(READY, state="attached")
    page.screenshot(path=screenshots / "dark.png")


def main() -> int:
    """Print the table; exit code 1 where the page took 3 s or more, or asked for something."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=44)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--screenshots", type=Path)
    parser.add_argument("--keep", type=Path, help="where to keep the page")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="coset-") as name:
        folder = Path(name)
        model = options.model or folder / f"bert_{options.layers}_layers.onnx"
        if options.model is None:
            onnx.save(bert(options.layers), model)
        path, row = made(model, folder)
        if options.screenshots is not None:
            options.screenshots.mkdir(parents=True, exist_ok=True)
        row |= opened(path, options.repeat, options.screenshots)
        if options.keep is not None:
            save(options.keep, path.read_text())
    if options.json:
        print(json.dumps(row))
    else:
        for key, value in row.items():
            print(f"{key:18s} {value}")
    good = row["ready_worst_ms"] < 3000 and not row["network_requests"] and not row["errors"]
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
