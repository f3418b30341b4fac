"""docs/measurements.md from the figures in benchmarks/results/measurements.toml, grouped by subject.

    python -m benchmarks.measurements [--write]

Prints the page; `--write` puts it into docs/measurements.md.
`tests/docs/test_measurements_page.py` refuses a page that says something else.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
DATA = RESULTS / "measurements.toml"
PAGE = ROOT / "docs" / "measurements.md"
MACHINES = {
    "2cpu": "",  # what the head of the page says
    "h200": "one H200",
    "predicted": "predicted, no GPU",
}
GOALS = {"yes": "met", "no": "not met", "nearly": "nearly met", "partly": "partly met", "mostly": "mostly met"}
KEYS = {"subject", "what", "goal", "figure", "met", "date", "machine", "command", "results", "id"}
HEAD = """\
# Measurements

*Written by `python -m benchmarks.measurements --write` from `benchmarks/results/measurements.toml`; edit that file, not this page.*

Each row says what was measured, the figure, the goal if there was one, and how to measure it again. *result* and *data* are links to what
the command printed then. Run commands from the root of the repository. A row without a date comes from a time when no date was written
down for it.

**The machine.** Unless a row says otherwise: two cores and 24 GiB of memory, an Intel Xeon until 2026-11-22, 11 h, an AMD EPYC since then
(on 2026-11-25 from 17 h on one with AVX2 and no AVX-512); Python 3.11, onnxruntime 1.31.1, from 2026-11-22, 15 h, 1.32.0. The machine is
shared. "Quiet" says that nothing else of ours was running; "beside other work" says that something was.

**GPUs.** An NVIDIA H200 was used for fifteen minutes on 2026-11-26. Every other time of a GPU on this page is a prediction. Predicted
times of matrix products on H100 and H200 are fitted to what that H200 measured. On other GPUs they come from data sheets, which the times
on the H200 exceeded by half. [The status](status.md#gpu) lists what no GPU has run yet.

**Signs.** `a -> b` is before and after a change. "Level `all`" is ONNX Runtime's highest level of graph optimization.
"""


def read(path: Path = DATA) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The measurements and the tables of the data file."""
    data = tomllib.loads(path.read_text())
    return data["measurement"], data["table"]


def page(measurements: Sequence[Mapping[str, Any]], tables: Sequence[Mapping[str, Any]]) -> str:
    """The page in Markdown: a section for each subject, in the order in which the data names them."""
    sections = [HEAD]
    for subject in dict.fromkeys(entry["subject"] for entry in measurements):
        sections.append(f"## {subject}\n\n{_grid(HEADINGS, (_cells(entry) for entry in measurements if entry['subject'] == subject))}")
        for each in tables:
            if each["subject"] == subject:
                sections.append(f"### {each['title']}\n\n{each['note']}\n\n{_grid(each['columns'], each['rows'])}")
    return "\n".join(sections)


HEADINGS = ("what", "figure", "goal", "how")


def _cells(entry: Mapping[str, Any]) -> list[str]:
    """The row of one measurement."""
    met = GOALS.get(entry.get("met", ""), entry.get("met", ""))
    goal = entry.get("goal", "")
    result_files = ", ".join(f"[{_kind(name)}](../benchmarks/results/{name})" for name in entry.get("results", []))
    command = f"`{entry['command']}`" if "command" in entry else ""
    when = ", ".join(filter(None, [entry.get("date", ""), MACHINES[entry["machine"]] if "machine" in entry else ""]))
    how = "<br>".join(filter(None, [when, command, result_files]))
    return [entry["what"], entry["figure"], f"{goal}: {met}" if goal and met else goal or met, how]


def _kind(name: str) -> str:
    """What a link to a file of results says: the text that people read, or the data."""
    return "result" if name.endswith(".txt") else "data"


def _grid(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write docs/measurements.md")
    text = page(*read())
    if parser.parse_args().write:
        PAGE.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
