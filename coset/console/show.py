"""What a person reads on stdout: short tables, one fact a line."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from coset.console.shares import WORDS, by_use, families, median_seconds, recorded_usage, shares
from coset.job.own_rules import not_shown_lines

if TYPE_CHECKING:
    from coset.ir.errors import CosetError
    from coset.ir.op import Op
    from coset.prove.check import Verdict
    from coset.rules.library import RuleSet
    from coset.targets.target import Target

CONSOLE = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 200)


def new_table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=True, justify="right" if column.startswith(">") else "left")
        table.columns[-1].header = column.lstrip(">")
    return table


def show_not_shown(result: Mapping[str, Any]) -> None:
    """Which rules of the user's may have fired although nothing is shown of them."""
    for line in not_shown_lines(result):
        CONSOLE.print(f"not shown  {line}", markup=False)


def show_proved(result: Mapping[str, Any]) -> None:
    """What comparing two programs gave."""
    show_not_shown(result)
    print_line = CONSOLE.print
    print_line(f"{result['answer']:10s} {sum(result['seconds'].values()):.2f} s, by {result['method']}", markup=False)
    if result["method"] == "finite fields":
        print_line(
            f"rests on   values at {result['points']} random points of finite fields; no certificate: {result['reason']}", markup=False
        )
        print_line(
            f"error      at most {result['error']:.1e}: how probable it is that other polynomials agree there; no rounding is looked at"
        )
    elif result["answer"] == "proved":
        print_line(f"rests on   {result['steps']} steps, rules that are {result['assurance']} or better; numerics {_promise(result)}")
        _show_conditions(result)
    else:
        print_line(f"           {result.get('difference') or result.get('reason')}", markup=False)
    if "first_difference" in result:
        place = result["first_difference"]
        print_line(f"first      {place.get('words') or 'no node is named: ' + place['unknown']}", markup=False)
    for key in ("certificate", "counterexample"):
        if result[key] is not None:
            print_line(f"{key:14s} {result[key]}", markup=False)


def _promise(result: Mapping[str, Any]) -> str:
    """The weakest word of what was used, with all exceptions."""
    exceptions = result["exceptions"]
    return f"{result['numerics']}" + (f" except {', '.join(exceptions)}" if exceptions else " or stronger")


def _show_conditions(result: Mapping[str, Any]) -> None:
    """Under what the answer holds: names in pairs, other orders, inputs that nothing reads, rules of the user's own."""

    def line(head: str, text: str) -> None:
        CONSOLE.print(f"{head:10s} {text}", markup=False)

    if result["names"]:
        pairs = " ".join(f"--map {after}={before}" for after, before in sorted(result["names"].items()))
        line("under", f"{pairs}: names of AFTER and of BEFORE, which the certificate does not say: give them to `coset verify` too")
    if result["reordered"]:
        line("order", f"the {' and '.join(result['reordered'])} stand in another order in the two files: they are paired by name")
    if result["unread"]:
        line("unread", f"inputs that only one program has, and that nothing reads: {', '.join(result['unread'])}")
    if result["own"]:
        line("own", f"rules of yours: {', '.join(f'{name} ({shown})' for name, shown in sorted(result['own'].items()))}")
    rounding = result["largest_rounding"]
    if rounding["absolute"]:
        text = f"constants are rounded, by at most {rounding['absolute']:.1e} an element, {rounding['relative']:.1e} of it"
        line("rounded", f"{text}; {result['rounded']} of them by somebody else")


def show_verified(result: Mapping[str, Any]) -> None:
    """What checking a certificate gave."""
    show_not_shown(result)
    if not result["ok"]:
        CONSOLE.print(f"rejected   {result['reason']}", markup=False)
        if result["help"]:
            CONSOLE.print(f"           {result['help']}", markup=False)
        return
    print_line = CONSOLE.print
    print_line(f"holds      {result['steps']} steps, {result['computed']} constants computed, {result['seconds']['verify']:.2f} s")
    print_line(f"rests on   rules that are {result['assurance']} or better; numerics {_promise(result)}")
    _show_conditions(result)
    if "proved_anew" in result:
        print_line(
            f"anew       {result['proved_anew']} rules were shown again to be what they are locked as, {result['seconds']['prove']:.2f} s"
        )
    for promise, names in result["promises"].items():
        print_line(f"promise    {promise}: {', '.join(names)}", markup=False)


def show_optimized(report: Mapping[str, Any]) -> None:
    """The summary of one optimization."""
    show_not_shown(report)
    nodes, egraph, cost, check = report["nodes"], report["egraph"], report["cost"], report["check"]
    print_line = CONSOLE.print
    print_line(f"nodes      {nodes['before']} -> {nodes['after']}   (folded at build time: {report['folded']})")
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
    if report["rules"]:
        table = new_table("rule", ">uses", "promise", "assurance")
        for rule in report["rules"]:
            table.add_row(escape(rule["name"]), str(rule["count"]), rule["numerics"], rule["assurance"])
        print_line(table)
        for rule in report["rules"]:
            if rule["range"]:
                print_line(f"range      {rule['name']}: {range_words(rule['range'])}", markup=False)
    else:
        print_line("rules      none was needed")
    for left in report["left_out"]:
        print_line(f"left out   rule {left['rule']}, which breaks this program: {left['problem']}", markup=False)
    for each in report.get("ranges", ()):
        ends = " to ".join(f"{seconds * 1e3:.3f}" for seconds in each["seconds"])
        print_line(f"range      {each['low']} to {each['high']}: {each['output']}, {each['nodes']} nodes", markup=False)
        print_line(f"           predicted {ends} ms, saves up to {each['saved']:.0%}", markup=False)
    for row in (report["measured"] or {}).get("candidates", ()):
        chosen = "  <- taken" if row["index"] == report["measured"]["chosen"] else ""
        interval = f"{row['ratio']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
        print_line(
            f"measured   {row['nodes']} nodes, predicted {row['predicted_ms']:.3f} ms, took {row['median_ms']:.3f}, {interval}{chosen}",
            markup=False,
        )
    for each in report["host"]:
        many = f" ({each['count']} times)" if each["count"] > 1 else ""
        print_line(f"host       {each['op']}{many}, {each['seconds'] * 1e3:.3f} ms: {each['reason']}", markup=False)
    if report["on_target"] is not None:
        moved = report["transfers"]
        print_line(f"placement  {report['on_target']} nodes on {report['target']}", markup=False)
        print_line(f"transfers  {moved['count']}, {moved['bytes'] / 1e6:.3f} MB, {moved['seconds'] * 1e3:.3f} ms")
    for each in report.get("functions", ()):
        print_line(f"function   {each['name']}: {each['nodes']['before']} nodes -> {each['nodes']['after']}", markup=False)
    for each in report.get("functions_as_they_came", ()):
        print_line(f"function   {each['name']} stays as it came: {each['reason']}", markup=False)
    if report["kept"]:
        print_line(f"kept       {', '.join(report['kept'])} (written back as they came; no rule sees into them)", markup=False)
    if report["opaque"]:
        print_line(f"opaque     {', '.join(report['opaque'])}", markup=False)
    if "output" in report:
        print_line(f"written    {report['output']}", markup=False)


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


def show_lowered(result: Mapping[str, Any]) -> None:
    """Where the package is, what it rests on, and how it compared."""
    show_not_shown(result)
    CONSOLE.print(f"wrote      {result['output']}: {', '.join(result['files'])}", markup=False)
    cost = result["cost"]
    CONSOLE.print(f"predicted  {cost['input'] * 1e6:.1f} us as given, {cost['output'] * 1e6:.1f} us as lowered ({cost['method']})")
    if result["memory"] is not None:
        CONSOLE.print(f"memory     {_temporaries(result['memory'])}", markup=False)
    if result["streams"] is not None:
        CONSOLE.print(f"streams    {_streams(result['streams'])}", markup=False)
    CONSOLE.print(f"rules      {', '.join(rule['name'] for rule in result['rules']) or 'none'}", markup=False)
    for kernel in result["kernels"]:
        tuned = f", tuned {kernel['tuned']['factor']:.2f} times as fast" if "tuned" in kernel else ""
        noted = f" ({kernel['note']})" if "note" in kernel else ""
        CONSOLE.print(f"kernel     {kernel['name']} ({kernel['code']}{tuned}): {', '.join(kernel['ops'])}{noted}", markup=False)
    profile = result["profile"]
    if profile is not None and profile["device"] is not None:
        CONSOLE.print(
            f"profile    {len(profile['tuned'])} of {len(result['kernels'])} kernels as tuned on {profile['device']['name']}", markup=False
        )
        if profile["program"]["strayed"]:
            CONSOLE.print(f"program    another one, {profile['program']['factor']:.2f} times as fast as the first", markup=False)
    if result["check"]["ok"] is None:
        CONSOLE.print(f"check      none: {result['check']['why']}")
    else:
        show_check(result["check"])


def _temporaries(memory: Mapping[str, Any]) -> str:
    """Bytes of temporaries, and what a limit costs."""
    default = f"{memory['default']['bytes']} bytes of temporaries"
    if "chosen" not in memory:
        return default
    chosen = memory["chosen"]
    return (
        f"{chosen['bytes']} bytes of temporaries (limit {memory['limit']}; {default} without), {chosen['again']} kernels launched again, "
        f"predicted {memory['slowdown']:.2f} times as long"
    )


def _streams(streams: Mapping[str, Any]) -> str:
    """What branches of a captured graph are predicted to bring, and what they cost."""
    seconds = (
        f"{streams['seconds'] * 1e6:.1f} us predicted on {streams['count']} streams once captured, {streams['in_turn'] * 1e6:.1f} on one"
    )
    return f"{seconds}; an arena of {streams['arena']} bytes, {streams['arena_in_turn']} on one"


def show_check(check: Mapping[str, Any]) -> None:
    """The comparison with the original."""
    verdict = "equal within tolerance" if check["ok"] else f"DIFFERENT: {check['problem'] or 'beyond the tolerance'}"
    skipped = f", not run by the original: {', '.join(check['skipped'])}" if check["skipped"] else ""
    largest = f"largest difference {check['max_abs']:.3g} ({check['max_rel']:.3g} relative)"
    CONSOLE.print(f"check      {verdict} on {', '.join(check['inputs'])} inputs{skipped}; {largest}")
    if check.get("loose"):
        CONSOLE.print(f"           not bit by bit: {check['loose']}")
    if check.get("blind"):
        CONSOLE.print(f"           little is seen: {check['blind']}; inputs that matter are given with --sample-inputs FILE")


def show_differing(result: Mapping[str, Any]) -> None:
    """How two programs compared: their outputs, then their nodes."""
    show_check(result)
    nodes = result["nodes"]
    one, other = nodes["both"]
    both = f"{one} in both" if one == other else f"{one} and {other} in both"
    print_line = CONSOLE.print
    print_line(f"nodes      {both}, {nodes['only_first']} only in the first, {nodes['only_second']} only in the second")
    print_line(f"paired by  {result['matched_by']}", markup=False)
    if result["first_difference"] is not None:
        place = result["first_difference"]
        print_line(f"first      {place.get('words') or 'no node is named: ' + place['unknown']}", markup=False)
    elif result["first_unmatched"] is not None:
        print_line(f"first      {result['first_unmatched']} has no equal in the second", markup=False)
    if "html" in result:
        print_line(f"written    {result['html']}", markup=False)


def range_words(grades: Mapping[str, str]) -> str:
    """Grades of a rule's range on one line: the classes of float types that have the same words together."""
    together: dict[str, list[str]] = {}
    for name, words in grades.items():
        together.setdefault(words, []).append(name)
    return "; ".join(f"{', '.join(names)} {words}" for words, names in together.items())


def show_verdicts(verdicts: Sequence[Verdict], errors: Sequence[CosetError]) -> None:
    """One line a rule, the counterexamples of the refuted ones, the mistakes, the ratios."""
    table = new_table("rule", "promise", "assurance", ">s", "how")
    for verdict in verdicts:
        table.add_row(escape(verdict.name), verdict.numerics, verdict.assurance, f"{verdict.seconds:.2f}", verdict.method)
    CONSOLE.print(table)
    for verdict in verdicts:
        for direction, grades in verdict.range.items():
            if grades:
                CONSOLE.print(f"range      {verdict.name} {direction} {range_words(grades)}", markup=False)
    for verdict in verdicts:
        if verdict.counterexample:
            CONSOLE.print(f"\nrefuted: {verdict.name}\n{verdict.counterexample}", markup=False)
            for repair in verdict.repairs:
                CONSOLE.print(f"  true with: {repair}", markup=False)
    for error in errors:
        print(str(error), file=sys.stderr)
    summary = verdict_summary(verdicts, errors)
    _show_shares(summary)
    ratios = ", ".join(f"{summary['ratios'][word]:.0%} {word}" for word in WORDS if summary["ratios"][word])
    CONSOLE.print(f"{len(verdicts)} rules: {ratios}; {summary['ratios']['native']:.0%} with native functions; {len(errors)} mistakes")


def _show_shares(summary: Mapping[str, Any]) -> None:
    """What was shown, file by file and by use, and how long it took."""
    table = new_table("family", ">rules", *(f">{word}" for word in WORDS))
    for name, family in summary["families"].items():
        table.add_row(escape(name), str(family["rules"]), *(f"{family[word]:.0%}" for word in WORDS))
    used = summary["used"]
    if used is not None and used["uses"]:
        table.add_row("as used", str(used["rules"]), *(f"{used[word]:.0%}" for word in WORDS))
    CONSOLE.print()
    CONSOLE.print(table)
    if used is not None and used["uses"]:
        elsewhere = f"; {used['elsewhere']} uses are of definitions and rules elsewhere" if used["elsewhere"] else ""
        CONSOLE.print(f"as used: weighed by {used['uses']} uses in {used['models']} models (benchmarks/rule_usage.py){elsewhere}")
    seconds = summary["median_seconds"]
    CONSOLE.print("every verdict is from the lock file" if seconds is None else f"median time of what was verified now: {seconds:.2f} s")


def verdict_summary(verdicts: Sequence[Verdict], errors: Sequence[CosetError]) -> dict[str, Any]:
    """What `check --json` prints."""
    keys = ("name", "file", "line", "numerics", "assurance", "seconds", "method", "counterexample", "repairs", "native", "range")
    usage = recorded_usage()
    return {
        "rules": [{key: getattr(verdict, key) for key in keys} for verdict in verdicts],
        "ratios": shares((verdict.assurance, 1) for verdict in verdicts)
        | {"native": sum(verdict.native for verdict in verdicts) / max(1, len(verdicts))},
        "families": families(verdicts),
        "used": None if usage is None else by_use(verdicts, usage),
        "median_seconds": median_seconds(verdicts),
        "errors": [
            {
                "file": e.place.file if e.place else "", "line": e.place.line if e.place else 0, "column": e.place.column if e.place else 0,
                "message": e.message, "help": e.help,
            }
            for e in errors
        ],
    }  # fmt: skip


def show_rules(rules: RuleSet, as_json: bool) -> None:
    """The library, phase by phase."""
    rows = [(phase.name, rule) for phase in rules.phases for rule in phase.rules]
    if as_json:
        listed = [
            {"name": r.name, "phase": p, "numerics": r.numerics.word, "assurance": r.assurance, "file": r.place.file, "line": r.place.line}
            for p, r in rows
        ]
        print(json.dumps({"rules": listed}))
        return
    table = new_table("rule", "phase", "promise", "assurance", "what it says")
    for phase, rule in rows:
        table.add_row(escape(rule.name), phase, rule.numerics.word, rule.assurance, rule.document)
    CONSOLE.print(table)


def show_ops(as_json: bool) -> None:
    """Every registered op with what gives it its meaning, and which of ONNX's ops have none yet."""
    import coset.dialects
    from coset.dialects.onnx.node import DEFINITIONS
    from coset.dialects.ort.nodes import DOMAIN
    from coset.dialects.ort.undefined import UNDEFINED
    from coset.ir.registry import all_ops

    assert coset.dialects
    ops = all_ops()
    standard = _standard()
    missing = [name for name, kind in standard.items() if kind == "none"]
    if as_json:
        entries = [
            {"name": op.name, "operands": list(op.operands), "attributes": [a.name for a in op.attributes], "meaning": _meaning(op)}
            for op in ops
        ]
        print(json.dumps({"ops": entries, "onnx": standard, "without": [op.name for op in ops if _meaning(op) == "none"]}))
        return
    table = new_table("op", "meaning", "operands", "attributes")
    table.columns[2].max_width, table.columns[3].max_width = 40, 90
    for op in ops:
        table.add_row(op.name, _meaning(op), ", ".join(op.operands), ", ".join(a.name for a in op.attributes))
    CONSOLE.print(table)
    counts = Counter(standard.values())
    CONSOLE.print(
        f"ONNX: {counts['rules']} ops defined in the rule language, {counts['term']} by the term that a node of them is, "
        f"{counts['no tensors']} on strings, sequences or optionals, {counts['none']} without a definition: {', '.join(missing) or 'none'}"
    )
    defined = sum(name.startswith(DOMAIN) for name in DEFINITIONS)
    CONSOLE.print(
        f"com.microsoft on CPU: {defined} of {defined + len(UNDEFINED)} ops defined, without a definition: {', '.join(sorted(UNDEFINED))}"
    )


def _standard() -> dict[str, str]:
    """Each op of the ONNX standard with what says what it means: `rules` (a definition in the rule language), `term` (the hub term that a
    node of it is), `none`, or `no tensors` where it works on something else."""
    from coset.dialects.onnx.node import BUILDERS, DEFINITIONS
    from coset.frontends.onnx.coverage import standard_ops
    from coset.ir.op import find_op
    from coset.rules.definition import is_defined

    found = {}
    for name, on_tensors in standard_ops().items():
        op = find_op(f"onnx.{name}")
        if op is not None and is_defined(op):
            found[name] = "rules"
        elif name in DEFINITIONS or name in BUILDERS:
            found[name] = "term"
        else:
            found[name] = "none" if on_tensors else "no tensors"
    return found


def _meaning(op: Op) -> str:
    """What says what an op means: NumPy code, a definition in the rule language, or nothing (it is typed only)."""
    from coset.rules.definition import is_defined

    return "definition" if is_defined(op) else "numpy" if op.meaning is not None else "leaf" if op.has("leaf") else "none"


def show_targets(as_json: bool) -> None:
    """Every machine with its rates, and what is behind its numbers."""
    from coset.console.machines import machines, memory, origins, peak, quantity
    from coset.targets.document import other_names

    found, also = machines(), other_names()
    if as_json:
        print(
            json.dumps({"targets": [{**_target_summary(t), "aliases": [a for a, name in also.items() if name == t.name]} for t in found]})
        )
        return
    table = new_table("target", "machine", "takes", ">f32", ">bf16", ">i8", ">memory", ">measured", ">published", ">assumed")
    for target in found:
        rates = (peak(target, dtype) for dtype in ("f32", "bf16", "i8"))
        counts = origins(target)
        table.add_row(
            target.name, target.title, target.dialect, *(quantity(rate.value, rate.unit) if rate else "" for rate in rates), memory(target),
            *(str(counts[word]) for word in ("measured", "published", "assumed")),
        )  # fmt: skip
    CONSOLE.print(table)
    CONSOLE.print("products and memory at their fastest; how many numbers are measured, published and assumed: docs/targets.md has each")
    CONSOLE.print("; ".join(f"{other} is another name of {name}" for other, name in also.items()))


def _target_summary(target: Target) -> dict[str, Any]:
    from coset.console.machines import origins, peak

    rates = {dtype: rate.value for dtype in ("f32", "f16", "bf16", "i8") if (rate := peak(target, dtype)) is not None}
    numbers = {name: {"value": n.value, "unit": n.unit, "source": n.source} for name, n in target.numbers.items()}
    return {"name": target.name, "title": target.title, "dialect": target.dialect, "bases": list(target.bases), "products": rates,
            "numbers": numbers, "origins": dict(origins(target)), "notes": target.notes}  # fmt: skip


def show_calibrated(result: Mapping[str, Any]) -> None:
    """How well the numbers predict what they were not fitted to, before and after."""
    left = f", {result['left']} left for another run" if result["left"] else ""
    CONSOLE.print(f"cases      {result['cases']}, measured now: {result['measured']}{left}")
    table = new_table("cases held back", ">Spearman", ">median error")
    for name, label in (("before", "as shipped"), ("after", "calibrated")):
        found = result["held_back"][name]
        numbers = [found["spearman"], found["median_relative_error"]]
        shown = ["too few" if number is None else form.format(number) for number, form in zip(numbers, ("{:.3f}", "{:.0%}"), strict=True)]
        table.add_row(f"{label} ({found['cases']})", *shown)
    CONSOLE.print(table)
    CONSOLE.print(f"target     {result['output']}", markup=False)
    CONSOLE.print(f"profile    {result['profile']}", markup=False)


def show_timings(timings: Sequence[Mapping[str, Any]]) -> None:
    """Medians and minima, with the ratio to the first line."""
    table = new_table("variant", ">median ms", ">min ms", ">ratio", ">runs")
    first = timings[0]["median_ms"]
    for row in timings:
        table.add_row(row["name"], f"{row['median_ms']:.3f}", f"{row['min_ms']:.3f}", f"{row['median_ms'] / first:.3f}", str(row["runs"]))
    CONSOLE.print(table)
