"""Write rows of `headroom` for people."""

from __future__ import annotations

from typing import Any

COLUMNS = ("off", "all", "onnxsim", "onnxscript", "openvino", "hand")


def heading(document: dict[str, Any]) -> str:
    """Return what a reader must know before the numbers, and the names of the columns."""
    host, releases = document["machine"], document["versions"]
    names = "  ".join(f"{name:>10s}" for name in COLUMNS)
    return "\n".join(
        [
            f"{host['cpu']}, {host['cores']} cores, load {host['load']:.2f}, {document['date']}",
            f"$ {document['command']}",
            ", ".join(f"{name} {release or 'missing'}" for name, release in releases.items()),
            "Times: median ms of a call, two threads. off, all: ONNX Runtime's optimizer off and on; onnxsim, onnxscript: before it;",
            "openvino: in f32; hand: the best form by hand, under the session options in [...], ONNX Runtime's own where none are named.",
            "headroom: the fastest of off, all, onnxsim, onnxscript over hand, with its 95 % interval. options: the same rival over the",
            "unchanged graph under its best options. !: differs from the oracle, which is the unoptimized program.",
            "",
            f"{'model':38s} {'nodes':>6s}  {names}  {'headroom':>19s}  {'options':>8s}  hand form",
        ]
    )


def lines(row: dict[str, Any]) -> list[str]:
    """Return the lines of one row: the numbers, then what was wrong or failed."""
    if "error" in row:
        return [f"{row['name']:38s} {row.get('nodes', ''):>6}  failed: {row['error']}", *_problems(row)]
    cells = "  ".join(f"{_cell(row, name):>10s}" for name in COLUMNS)
    hand, alone = row.get("hand"), row.get("options_alone")
    headroom = _ratio(row["headroom"]) if "headroom" in row else "no form"
    form = f"({row['rounds']} rounds) " if row["rounds"] < 5 else ""
    form += "" if hand is None else hand["form"] + ("" if hand["options"] == "all" else f" [{hand['options']}]")
    options = f"{alone['value']:.2f}x" if alone else ""
    return [f"{row['name']:38s} {row['nodes']:6d}  {cells}  {headroom:>19s}  {options:>8s}  {form}", *_problems(row)]


def _cell(row: dict[str, Any], name: str) -> str:
    if name in row["wrong"]:
        return "!"
    return f"{row['variants'][name]['median_ms']:.3f}" if name in row["variants"] else "-"


def _ratio(ratio: dict[str, float]) -> str:
    return f"{ratio['value']:.2f}x [{ratio['low']:.2f}, {ratio['high']:.2f}]"


def _problems(row: dict[str, Any]) -> list[str]:
    said = [f"    {row['remark']}"] if "remark" in row else []
    said += [f"    wrong: {name}, error {size:.1e} over {row['tolerance']:.0e}" for name, size in row.get("wrong", {}).items()]
    said += [f"    failed: {name}: {why}" for name, why in row.get("failed", {}).items() if name in COLUMNS]
    others = [name for name in row.get("failed", {}) if name not in COLUMNS]
    said += [f"    failed by hand: {'; '.join(others)} (why: --json)"] if others else []
    late = row.get("not_screened")
    said += [f"    time ran out before {late} trials: a larger --budget-seconds looks further"] if late else []
    return said


def summary(rows: list[dict[str, Any]]) -> str:
    """Return how many rows have a win that the interval does not explain away."""
    measured = [row for row in rows if "headroom" in row]
    won = [row for row in measured if row["headroom"]["low"] > 1.0]
    beyond = [row for row in won if row.get("beyond_options", row["headroom"])["low"] > 1.0]
    lost = [row for row in measured if row["headroom"]["high"] < 1.0]
    return (
        f"\n{len(rows)} rows, {len(measured)} with a form by hand: {len(won)} win over every ONNX Runtime rival (interval above 1), "
        f"{len(beyond)} also over the best options of the unchanged graph, {len(lost)} lose."
    )
