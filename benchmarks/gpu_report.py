"""The results of `gpu` for people."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def text_of(document: Row) -> str:
    """The whole document as text."""
    gpu = ", ".join(f"{name} {value}" for name, value in document.get("gpu", {}).items())
    lines = [f"{document['name']}, {document['date']}, commit {document['commit']}, {document['cores']} cores", f"$ {document['command']}"]
    lines += [gpu] * bool(gpu)
    lines.append(", ".join(f"{name} {version}" for name, version in document["versions"].items()))
    if document["device"] == "cpu":
        lines.append("A dry run in Triton's interpreter: it says that the paths run, and no time means anything.")
    for name, part in document["parts"].items():
        lines += ["", f"{name} ({part['seconds']} s)", *_HEADS.get(name, [])]
        for row in part["rows"]:
            lines += [f"  {row['error']}"] if _is_error(row) else _LINES[name](row)
    return "\n".join(lines)


def _is_error(row: Row) -> bool:
    return isinstance(row.get("error"), str) and not {"tests", "block", "case"} & row.keys()


def _ratio(one: Row) -> str:
    return f"{one['value']:.2f} [{one['low']:.2f}, {one['high']:.2f}]"


def _tests(row: Row) -> list[str]:
    said = [f"  {row.get('error')}"] if "error" in row else []
    if "tests" not in row:
        return said
    said.append(f"  {row['passed']} of {row['tests']} passed, {row['skipped']} skipped, {len(row['failures'])} failed")
    return said + [f"    {name}: {' '.join(first)[:160]}" for name, first in list(row["failures"].items())[:40]]


def _sanitizer(row: Row) -> list[str]:
    checked = f"  {row['tool']}; {row['processes_checked']} processes checked, {len(row['found'])} with errors"
    return [checked, *_tests(row), *(f"    {line}" for line in [*row["found"], *row["details"]])]


def _bandwidth(row: Row) -> list[str]:
    reached = "" if row["share_of_copy"]["value"] >= row["goal"] else "  below the goal"
    wrong = "" if row["right"] else f"  WRONG: error {row['error']:.1e}"
    times = f"{row['median_s']['ours'] * 1e6:10.1f} {row['bytes_per_s'] / 1e9:8.0f} {row['copy_bytes_per_s'] / 1e9:8.0f}"
    return [f"  {row['case']:34s} {row['kernels']:7d} {row['bytes'] / 1e6:8.0f} {times}  {_ratio(row['share_of_copy'])}{reached}{wrong}"]


def _calibrate(row: Row) -> list[str]:
    left = f", {row['left']} left for another run" if row["left"] else ""
    lines = [f"  {row['cases']} cases, measured now: {row['measured']}{left}; {row['file']}, {row['profile']}"]
    for name, found in row["held_back"].items():
        error = found["median_relative_error"]
        lines.append(f"  {name}: {found['cases']} cases held back, median error {'too few' if error is None else f'{error:.0%}'}")
    return lines + [f"    does not run: {name}: {why[:120]}" for name, why in row["refused"].items()]


def _matmul(row: Row) -> list[str]:
    reached = "" if row["share_of_cublas"]["value"] >= row["goal"] else "  below the goal"
    wrong = "" if row["right"] else f"  WRONG: error {row['error']:.1e}"
    rates = f"{row['flop_per_s'] / 1e12:8.1f} {row['cublas_flop_per_s'] / 1e12:8.1f}"
    lines = [f"  {row['case']:34s} {row['median_s']['ours'] * 1e6:10.1f} {rates}  {_ratio(row['share_of_cublas'])}{reached}{wrong}"]
    if "pointers_share_of_cublas" in row:
        lines.append(f"    by pointers instead of bulk copies: {_ratio(row['pointers_share_of_cublas'])}")
    if "own_share_of_cublas" in row:
        lines.append(f"    by our own kernel instead of a library's: {_ratio(row['own_share_of_cublas'])}")
    if "f16_share_of_cublas" in row:
        lines.append(f"    multiplied as f16: {_ratio(row['f16_share_of_cublas'])}")
    if "best_tiling" in row:
        lines.append(f"    best tiling tried: {row['best_tiling']['tiling']}: {_ratio(row['best_tiling']['share_of_cublas'])}")
    return lines + [f"    does not run: {name}: {why[:120]}" for name, why in row.get("tilings_that_do_not_run", {}).items()]


def _attention(row: Row) -> list[str]:
    goal = "share_of_copy" if "share_of_copy" in row else "share_of_torch"
    reached = "" if row[goal]["value"] >= row["goal"] else f"  below the goal of {row['goal']}"
    wrong = "" if row["right"] else f"  WRONG: error {row['error']:.1e}"
    copied = f", of the copy's rate {_ratio(row['share_of_copy'])}" if "share_of_copy" in row else ""
    times = f"{row['median_s']['ours'] * 1e6:10.1f} {row['flop_per_s'] / 1e12:8.1f}"
    lines = [f"  {row['case']:40s} {times}  {_ratio(row['share_of_torch'])}{copied}{reached}{wrong}"]
    if "other_form" in row:
        lines.append(f"    by {row['other_form']['form']} instead: {_ratio(row['other_form']['share_of_torch'])}")
    if "best_tiling" in row:
        lines.append(f"    best tiling tried: {row['best_tiling']['tiling']}: {_ratio(row['best_tiling']['share_of_torch'])}")
    return lines + [f"    does not run: {name}: {why[:120]}" for name, why in row.get("tilings_that_do_not_run", {}).items()]


def _irregular(row: Row) -> list[str]:
    reached = "" if row["share_of_torch"]["value"] >= row["goal"] else f"  below the goal of {row['goal']}"
    wrong = "" if row["right"] else f"  WRONG: error {row['error']:.1e}"
    times = f"{row['median_s']['ours'] * 1e6:10.1f} {row['median_s']['torch'] * 1e6:10.1f}"
    return [f"  {row['case']:40s} {row['kernels']:7d} {times}  {_ratio(row['share_of_torch'])} of {row['beside']}{reached}{wrong}"]


def _tuning(row: Row) -> list[str]:
    wrong = "" if row["right"] else f"  WRONG: error {row['error']:.1e}"
    times = " ".join(f"{row['median_s'][name] * 1e6:10.1f}" for name in ("default", "tuned", row["beside"]))
    tried = f"{row['measured']} measured of {row['alternatives']}"
    lines = [f"  {row['case']:34s} {times}  {_ratio(row['faster'])}, {tried}{wrong}"]
    return lines + [f"    {name}: {text}" for name, text in row["chosen"].items()]


def _block(row: Row) -> list[str]:
    if "geometric_mean" in row:
        under = ", ".join(f"{name} {share:.2f}" for name, share in row["under"].items()) or "none"
        untuned = f"; without its tuning, for which time ran out: {', '.join(row['untuned'])}" if row["untuned"] else ""
        return [f"  geometric mean over max-autotune: {row['geometric_mean']:.2f} of {row['of']}, goal 1.1; under 0.95: {under}{untuned}"]
    if "median_s" not in row:
        return [f"  {row.get('block', '')}: {row.get('problem') or row.get('error')}"]
    times = "  ".join(f"{name} {value * 1e3:.3f}" for name, value in row["median_s"].items())
    lines = [f"  {row['block']:12s} ms: {times}"]
    if "ours_over" in row:
        against = ", ".join(f"{name} {_ratio(one)}" for name, one in row["ours_over"].items())
        lines.append(f"    {row['ours_is']} is faster by: {against} ({row['rounds']} rounds)")
    kernels = ", ".join(f"{count} {code}" for code, count in row.get("prepared", {}).get("kernels", {}).items())
    lines.append(f"    kernels: {kernels}; error beside f32: {', '.join(f'{name} {value:.1e}' for name, value in row['error'].items())}")
    lines += [f"    WRONG: {', '.join(row['wrong'])}"] if row["wrong"] else []
    lines += [f"    not all was measured: {row['problem']}"] if "problem" in row else []
    return lines + [f"    failed: {name}: {why[:160]}" for name, why in row["failed"].items()]


_WHOLE = "  medians; graph: a CUDA graph is replayed; the ratios are paired by round, with a 95 % interval"
_LINES = {
    "tests": _tests, "sanitizer": _sanitizer, "bandwidth": _bandwidth, "matmul": _matmul, "attention": _attention, "irregular": _irregular,
    "tuning": _tuning, "blocks": _block, "calibrate": _calibrate, "models": _block,
}  # fmt: skip
_HEADS = {
    "bandwidth": [
        f"  {'group':34s} {'kernels':>7s} {'MB':>8s} {'us':>10s} {'GB/s':>8s} {'copy':>8s}  share of the copy's rate [95 %], goal 0.85"
    ],
    "matmul": [f"  {'product with epilogue':34s} {'us':>10s} {'TFLOP/s':>8s} {'cuBLAS':>8s}  share of cuBLAS without epilogue, goal 0.95"],
    "attention": [f"  {'attention':40s} {'us':>10s} {'TFLOP/s':>8s}  torch's time over ours, goal 0.9; of a token a copy's rate, 0.8"],
    "irregular": [f"  {'reads or order by data':40s} {'kernels':>7s} {'us':>10s} {'torch us':>10s}  torch's time over ours, goal 1"],
    "tuning": [f"  {'kernel':34s} {'default us':>10s} {'tuned us':>10s} {'cuBLAS/copy':>10s}  default's time over the tuned one's"],
    "blocks": [_WHOLE],
    "models": [_WHOLE],
}
