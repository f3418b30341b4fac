"""One optimization on stdout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape

from coset.console.comparison import show_check, show_not_shown
from coset.console.tables import CONSOLE, new_table
from coset.console.verdicts import range_words


def show_optimized(report: Mapping[str, Any]) -> None:
    """The summary of one optimization."""
    show_not_shown(report)
    nodes, egraph, cost, check = report["nodes"], report["egraph"], report["cost"], report["check"]
    print_line = CONSOLE.print
    print_line(f"nodes      {nodes['before']} -> {nodes['after']}   (folded at build time: {report['folded']})")
    _show_ops(report["ops"])
    bound = f"at least {cost['lower_bound'] * 1e3:.3f} ms, gap {cost['gap']:.1%}"
    print_line(f"predicted  {cost['input'] * 1e3:.3f} -> {cost['output'] * 1e3:.3f} ms   {bound}")
    print_line(
        f"search     {egraph['enodes']} e-nodes, {egraph['eclasses']} classes, {egraph['iterations']} iterations, stopped: {egraph['stop']}"
    )
    print_line(
        f"seconds    {report['seconds']['total']:.2f}   " + ", ".join(f"{k} {v:.2f}" for k, v in report["seconds"].items() if k != "total")
    )
    show_check(check)
    if report.get("session"):
        print_line(f"run        {session_line(report['session'])}", markup=False)
    if (report["certificate"] or {}).get("ok"):
        proof = report["certificate"]
        rests = f"rests on rules {proof['assurance']} or better, {proof['numerics']} or stronger"
        print_line(f"certificate {proof['steps']} steps, {proof['bytes']} bytes, checked; {rests}")
    _show_rules(report["rules"], whole=report["rules_from"] == "certificate")
    _show_own(report)
    for left in report["left_out"]:
        print_line(f"left out   rule {left['rule']}, which breaks this program: {left['problem']}", markup=False)
    _show_ranges(report.get("ranges", ()))
    _show_measured(report["measured"] or {})
    _show_placement(report)
    _show_functions(report)
    if report["kept"]:
        print_line(f"kept       {', '.join(report['kept'])} (written back as nodes; no rule for others sees into them)", markup=False)
    if report["opaque"]:
        print_line(f"opaque     {', '.join(report['opaque'])}", markup=False)
    _show_files(report)


def _show_files(report: Mapping[str, Any]) -> None:
    """What was written where."""
    print_line = CONSOLE.print
    if "output" in report:
        print_line(f"written    {report['output']}", markup=False)
    if "split" in report:
        devices = ", ".join(part["device"] for part in report["split"]["parts"])
        print_line(f"split      {report['split']['folder']}: {len(report['split']['parts'])} parts, in order on {devices}", markup=False)


def _show_own(report: Mapping[str, Any]) -> None:
    """The user's own rules that made nothing, and what became of nodes of the user's own ops."""
    for own in report["own"]:
        if not own["uses"]:
            matched = f"matched {own['matches']} times, and made nothing that was chosen" if own["matches"] else "matched nowhere"
            CONSOLE.print(f"own rule   {own['rule']} {matched}; `coset explain --rule {own['rule']}` says why", markup=False)
    for own in report["own_ops"]:
        reason = f": {own['reason']}" if own["reason"] else ""
        CONSOLE.print(f"own op     {own['op']}, {own['nodes'][0]} -> {own['nodes'][1]} nodes{reason}", markup=False)


def _show_ops(ops: Mapping[str, Sequence[int]]) -> None:
    """How many nodes of each op there were and are, those of which the number changed."""
    changed = {name: counts for name, counts in ops.items() if counts[0] != counts[1]}
    if changed:
        table = new_table("op", ">before", ">after")
        for name, (before, after) in changed.items():
            table.add_row(escape(name), str(before), str(after))
        CONSOLE.print(table)


def _show_rules(rules: Sequence[Mapping[str, Any]], *, whole: bool) -> None:
    """What was used, and where it keeps the range; `whole`: with the rules that only led to others."""
    print_line = CONSOLE.print
    if rules:
        table = new_table("rule", ">uses", "promise", "assurance")
        for rule in rules:
            table.add_row(escape(rule["name"]), str(rule["count"]), rule["numerics"], rule["assurance"])
        print_line(table)
        if not whole:
            print_line("           rules that made what was chosen; those that only led there are named with --certificate FILE")
        for rule in rules:
            if rule["range"]:
                print_line(f"range      {rule['name']}: {range_words(rule['range'])}", markup=False)
    else:
        print_line("rules      none was needed")


def _show_ranges(ranges: Sequence[Mapping[str, Any]]) -> None:
    """The programs for stretches of sizes."""
    print_line = CONSOLE.print
    for each in ranges:
        ends = " to ".join(f"{seconds * 1e3:.3f}" for seconds in each["seconds"])
        print_line(f"range      {each['low']} to {each['high']}: {each['output']}, {each['nodes']} nodes", markup=False)
        print_line(f"           predicted {ends} ms, saves up to {each['saved']:.0%}", markup=False)


def _show_measured(measured: Mapping[str, Any]) -> None:
    """The programs that were tried against the clock."""
    for row in measured.get("candidates", ()):
        chosen = "  <- taken" if row["index"] == measured["chosen"] else ""
        interval = f"{row['ratio']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
        CONSOLE.print(
            f"measured   {row['nodes']} nodes, predicted {row['predicted_ms']:.3f} ms, took {row['median_ms']:.3f}, {interval}{chosen}",
            markup=False,
        )


def _show_placement(report: Mapping[str, Any]) -> None:
    """What runs where, and what goes from one to the other."""
    print_line = CONSOLE.print
    for each in report["host"]:
        many = f" ({each['count']} times)" if each["count"] > 1 else ""
        print_line(f"host       {each['op']}{many}, {each['seconds'] * 1e3:.3f} ms: {each['reason']}", markup=False)
    if report["on_target"] is not None:
        moved = report["transfers"]
        print_line(f"placement  {report['on_target']} nodes on {report['target']}", markup=False)
        print_line(f"transfers  {moved['count']}, {moved['bytes'] / 1e6:.3f} MB, {moved['seconds'] * 1e3:.3f} ms")


def _show_functions(report: Mapping[str, Any]) -> None:
    """The model's own functions, and bodies of control flow."""
    for what, key in (("function", "functions"), ("body", "bodies")):
        for each in report.get(key, ()):
            CONSOLE.print(f"{what:9s}  {each['name']}: {each['nodes']['before']} nodes -> {each['nodes']['after']}", markup=False)
    for each in report.get("functions_as_they_came", ()):
        CONSOLE.print(f"function   {each['name']} stays as it came: {each['reason']}", markup=False)


def session_line(session: Mapping[str, Any]) -> str:
    """The options that a program carries, in words; then the levels that it may not be run at."""
    parts = [f"ONNX Runtime's level {session['level']}"]
    parts += [f"without {' and '.join(session['disabled'])}"] if session["disabled"] and session["level"] != "off" else []
    parts += [f"{session['threads']} thread{'s' if session['threads'] > 1 else ''}"] if session["threads"] else []
    parts += [f"{key} {value}" for key, value in session["entries"].items()]
    parts += [f"not at level {refusal['level']}: {refusal['problem']}" for refusal in session["refused"]]
    if session["original_apart"]:
        parts.append(f"as the original at that level, which differs from itself at level off: {session['original_apart']}")
    return "; ".join(parts)
