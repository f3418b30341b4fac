"""`coset check`, `coset fmt`, `coset rules`, `coset language-server`: rule files and the library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from coset.commands.options import JSON, NATIVE, NEGATIVE, SUCCESS, UNKNOWN, USER_ERROR, imported, print_json, say
from coset.commands.values import RULE_FILES
from coset.job.answer import save


def _seconds(help: str) -> Callable[[Any], Any]:
    """The option that says how long a rule is looked at."""
    kind = click.FloatRange(min=0, min_open=True)
    return click.option("--time-limit", "seconds", type=kind, default=90.0, show_default=True, help=help)


@click.command()
@click.argument("files", nargs=-1, type=click.Path(), shell_complete=RULE_FILES)
@click.option("--all", "anew", is_flag=True, help="verify entries again whose text has not changed since")
@click.option("--accept-weaker", "accept", is_flag=True, help="enter verdicts that are weaker than before into the lock file")
@_seconds("seconds of the processor for each rule, to draw and to prove it; what is not done by then is unknown")
@click.option(
    "--require",
    type=click.Choice(["proved", "bounded", "tested"]),
    help="1 where a rule is shown less well: what continuous integration asks for",
)
@click.option("--smt", type=click.Path(file_okay=False), help="write each question to Z3 as SMT-LIB into this folder; implies --all")
@NATIVE
@JSON
def check(files: tuple[str, ...], anew: bool, accept: bool, seconds: float, require: str | None, smt: str | None, as_json: bool) -> int:
    """Parse, type-check, lint and verify rule FILES (default: the whole library): 1 where one is refuted, 3 where one is unknown."""
    from coset import api
    from coset.console.verdicts import show_verdicts

    found = api.checked(files, anew=anew, accept_weaker=accept, time_limit=seconds, require=require, smt=smt, progress=say)
    if as_json:
        print_json(found.summary())
    else:
        show_verdicts(found.verdicts, found.errors)
    if found.errors:
        return USER_ERROR
    for verdict in found.weaker:
        say(f"`{verdict.name}` is only {verdict.assurance} now: {verdict.method}; `--accept-weaker` enters that into the lock file")
    for verdict in found.below:
        say(f"`{verdict.name}` is {verdict.assurance}, and {require} is required: {verdict.method}")
    if not found.holds:
        return NEGATIVE
    if found.unknown:
        names = ", ".join(f"`{name}`" for name in found.unknown)
        say(f"unknown: {names}; nothing of it is locked: give more --time-limit, or split the rule")
    return UNKNOWN if found.unknown else SUCCESS


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(), shell_complete=RULE_FILES)
@click.option("--check", "only_check", is_flag=True, help="write nothing; exit 1 when a file would change")
def fmt(files: tuple[str, ...], only_check: bool) -> int:
    """Format rule FILES in place."""
    from coset.rules.format import format_text
    from coset.rules.library import read_text

    changed = []
    for name in files:
        path = Path(name)
        before = read_text(path)
        after = format_text(before, path)
        if before == after:
            continue
        changed.append(name)
        if not only_check:
            save(path, after)
    for name in changed:
        say(f"{'would format' if only_check else 'formatted'} {name}")
    return NEGATIVE if only_check and changed else SUCCESS


@click.command()
@click.argument("names", nargs=-1)
@click.option("--ops", is_flag=True, help="list the ops instead; with NAMES (onnx.Conv, 'stablehlo.*') describe these")
@click.option("--docs", type=click.Path(), help="write the library as a page in Markdown: a file, or library.md in a folder")
@click.option("--textmate", type=click.Path(), help="write the TextMate grammar of rule files, for highlighting in editors")
@JSON
def rules(names: tuple[str, ...], ops: bool, docs: str | None, textmate: str | None, as_json: bool) -> int:
    """List the rules of the library with their promises (or the ops, or what is known of the ops NAMES)."""
    if names and not ops:
        raise click.UsageError(f"NAMES are those of ops: write coset rules --ops {' '.join(names)}")
    if textmate is not None:
        from coset.rules.highlight import textmate as grammar

        save(Path(textmate), grammar())
        say(f"wrote {textmate}")
        return SUCCESS
    import coset.dialects
    from coset.console.listings import show_ops, show_rules
    from coset.console.op_listing import show_named_ops
    from coset.ir.registry import all_ops
    from coset.rules.library import DEFAULT, load

    assert coset.dialects

    if docs is not None:
        from coset.rules.reference import reference

        page = Path(docs) / "library.md" if Path(docs).is_dir() else Path(docs)
        save(page, reference(DEFAULT))
        say(f"wrote {page}")
        return SUCCESS
    if names:
        show_named_ops(names, as_json)
        return SUCCESS
    if ops:
        show_ops(as_json)
        return SUCCESS
    all_ops()
    show_rules(load(DEFAULT), as_json)
    return SUCCESS


@click.command("language-server")
@_seconds("seconds of the processor for the proof of a rule")
@click.option("--native", "modules", multiple=True, metavar="MODULE", callback=imported, help="a module that registers native functions")
@click.option("--stdio", is_flag=True, help="speak on stdin and stdout, as it does without this option; editors add it")
def language_server(seconds: float, modules: tuple[str, ...], stdio: bool) -> int:
    """Serve an editor of rule files on stdin and stdout (LSP): mistakes as `check` tells them, completion, meanings, layout, proofs."""
    from coset.editor.server import serve

    serve(seconds, modules)
    return SUCCESS
