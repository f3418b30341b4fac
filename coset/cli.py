"""The command line. Results go to stdout (one JSON object with --json), progress and messages to stderr; exit codes 0, 1, 2, 3."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from coset.answer import as_json, save
from coset.ir.errors import CosetError

SUCCESS, NEGATIVE, USER_ERROR, UNKNOWN = 0, 1, 2, 3


def _say(text: str) -> None:
    click.echo(text, err=True)


def _print_json(value: Any) -> None:
    click.echo(as_json(value))


def _dims(_: click.Context, __: click.Parameter, values: Sequence[str]) -> dict[str, int]:
    pairs = {}
    for value in values:
        name, _equals, number = value.partition("=")
        if not name or not number.isdigit():
            raise click.BadParameter(f"`{value}` is not NAME=N")
        pairs[name] = int(number)
    return pairs


def _span(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, int, int] | None:
    if value is None:
        return None
    name, _equals, ends = value.partition("=")
    low, _colon, high = ends.partition(":")
    if not name or not low.isdigit() or not high.isdigit() or not 1 <= int(low) <= int(high):
        raise click.BadParameter(f"`{value}` is not NAME=LOW:HIGH with 1 <= LOW <= HIGH")
    return name, int(low), int(high)


def _bytes(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    number, unit = (value[:-1], value[-1].upper()) if value[-1:].upper() in _UNITS else (value, "")
    if not number.isascii() or not number.isdigit():
        raise click.BadParameter(f"`{value}` is not a number of bytes, such as 4096, 512K, 64M or 2G")
    return int(number) * _UNITS.get(unit, 1)


_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_DIM = click.option(
    "--dim", "dims", multiple=True, metavar="NAME=N", callback=_dims, help="a number for a free dim (costs, comparison, timing)"
)


def _pairs(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        theirs, equal, ours = text.partition("=")
        if not (theirs and equal and ours) or theirs in found:
            raise CosetError(f"`{text}` pairs no two names", help="--map NAME=NAME: what the second model calls it, and what the first")
        found[theirs] = ours
    return found


def _import(_: click.Context, __: click.Parameter, modules: tuple[str, ...]) -> None:
    for module in modules:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            raise CosetError(f"there is no module `{module}`: {error}", help="name one that Python can import (PYTHONPATH)") from None
        except Exception as error:
            what = f"the module `{module}` cannot be imported: {type(error).__name__}: {error}"
            raise CosetError(what, help="import it in Python to see where it fails") from None


_NATIVE = click.option(
    "--native", multiple=True, metavar="MODULE", expose_value=False, callback=_import, help="a module that registers native functions"
)


_JSON = click.option("--json", "as_json", is_flag=True, help="print one JSON object on stdout")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="coset")
def cli() -> None:
    """coset: all equal forms of a tensor program at once, and the one that runs fastest, with the reasons."""


@cli.command()
@click.argument("model", type=click.Path())
@click.option("-o", "--output", "output", required=True, type=click.Path(), help="where the result goes: ONNX, or StableHLO (.mlir)")
@click.option("--target", help="a name of `coset targets`, or a .toml file; by default cpu-onnxruntime, or stablehlo where OUT is .mlir")
@click.option("--numerics", default="reassociates", show_default=True, help="exact, reassociates, real, approx or lossy")
@click.option("--time-limit", type=float, default=30.0, show_default=True, help="seconds of search")
@click.option("--node-limit", type=int, default=200_000, show_default=True, help="e-nodes")
@click.option("--rules", "rule_files", multiple=True, type=click.Path(), help="a file of further rules")
@click.option("--report", type=click.Path(), help="write the report (JSON)")
@click.option("--measure", type=click.IntRange(0, 64), default=0, help="try so many other programs too, and let the clock decide")
@click.option("--range", "span", metavar="NAME=LOW:HIGH", callback=_span, help="write a program for each stretch of sizes of a free dim")
@click.option("--extraction-problem", type=click.Path(), help="write what extraction chose from (JSON, as extraction-gym has it)")
@click.option("--certificate", type=click.Path(), help="write the steps that show the result equal to MODEL; `coset verify` checks them")
@click.option("--max-memory", metavar="BYTES", callback=_bytes, help="live bytes of activations that the result may take (1024s: K, M, G)")
@_DIM
@_NATIVE
@_JSON
def optimize(
    model: str, output: str, target: str | None, numerics: str, time_limit: float, node_limit: int,
    rule_files: tuple[str, ...], report: str | None, measure: int, span: tuple[str, int, int] | None, extraction_problem: str | None,
    certificate: str | None, max_memory: int | None, dims: dict[str, int], as_json: bool,
) -> int:  # fmt: skip
    """Optimize MODEL (ONNX or StableHLO) for a target; the result takes its name when it was compared with MODEL."""
    from coset.egraph.limits import Limits
    from coset.machine import find_target
    from coset.pipeline import default_target, optimize_file, optimize_range
    from coset.ranges import Span
    from coset.report import save_report
    from coset.show import show_optimized
    from coset.task import Job

    if report is not None and not report.endswith(".json"):
        raise CosetError(f"the report `{report}` is no .json file", help="HTML reports are not built yet: docs/status.md")
    limits = Limits(seconds=time_limit, nodes=node_limit)
    problem = None if extraction_problem is None else Path(extraction_problem)
    if problem is not None and not problem.parent.is_dir():
        raise CosetError(f"there is no folder `{problem.parent}` for the extraction problem", help="name a file in one that is there")
    resolved = find_target(target or default_target(output))
    if certificate is not None and span is not None:
        raise CosetError("a range has several programs, and a certificate speaks of one", help="leave out --range or --certificate")
    if certificate is not None and not Path(certificate).parent.is_dir():
        raise CosetError(f"there is no folder `{Path(certificate).parent}` for the certificate", help="name a file in one that is there")
    job = Job(model, resolved, numerics, limits, rule_files, dims, _say, problem, max_memory, measure, certificate is not None)
    proof = None if certificate is None else Path(certificate)
    found = optimize_file(job, Path(output), proof) if span is None else optimize_range(job, Path(output), Span(*span))
    result = {**found, "output": output}
    if report is not None:
        save_report(result, Path(report))
    if as_json:
        _print_json(result)
    else:
        show_optimized(result)
    if proof is not None and not found["certificate"]["ok"]:
        _say(f"no certificate was written: {found['certificate']['reason']}")
        return UNKNOWN
    return SUCCESS


@cli.command()
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@click.option(
    "--numerics", default="reassociates", show_default=True, help="what the steps may promise: exact, reassociates, real, approx or lossy"
)
@click.option("--rules", "rule_files", multiple=True, type=click.Path(), help="a file of further rules")
@click.option(
    "--map", "pairs", multiple=True, metavar="NAME=NAME", callback=_pairs, help="an input or output of AFTER, and what BEFORE calls it"
)
@click.option("--time-limit", type=float, default=20.0, show_default=True, help="seconds of each search")
@click.option("--certificate", type=click.Path(), help="write the steps, where they are proved equal")
@click.option("--counterexample", type=click.Path(), help="write inputs on which they differ, and both outputs (.npz)")
@_DIM
@_NATIVE
@_JSON
def prove(
    before: str, after: str, numerics: str, rule_files: tuple[str, ...], pairs: dict[str, str], time_limit: float,
    certificate: str | None, counterexample: str | None, dims: dict[str, int], as_json: bool,
) -> int:  # fmt: skip
    """Prove that BEFORE and AFTER are the same program (0), refute it by inputs (1), or say how far it got (3)."""
    from coset.proving.prove import PROVED, REFUTED, Proving
    from coset.proving.prove import prove as run
    from coset.show import show_proved

    places = [None if each is None else Path(each) for each in (certificate, counterexample)]
    for place in places:
        if place is not None and not place.parent.is_dir():
            raise CosetError(f"there is no folder `{place.parent}`", help="name a file in one that is there")
    result = run(Proving(Path(before), Path(after), numerics, rule_files, dims, pairs, time_limit, places[0], places[1], _say))
    if as_json:
        _print_json(result)
    else:
        show_proved(result)
    return {PROVED: SUCCESS, REFUTED: NEGATIVE}.get(result["answer"], UNKNOWN)


@cli.command()
@click.argument("certificate", type=click.Path())
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@click.option("--rules", "rule_files", multiple=True, type=click.Path(), help="a file of further rules that the certificate was made with")
@click.option("--prove", "prove_rules", is_flag=True, help="do not believe the lock files: test and prove the rules that are used anew")
@_NATIVE
@_JSON
def verify(certificate: str, before: str, after: str, rule_files: tuple[str, ...], prove_rules: bool, as_json: bool) -> int:
    """Check that CERTIFICATE shows the programs BEFORE and AFTER to be equal; 1 where it does not."""
    from coset.proving.verify import verify_files
    from coset.show import show_verified

    result = verify_files(Path(certificate), Path(before), Path(after), rule_files, prove_rules=prove_rules)
    if as_json:
        _print_json(result)
    else:
        show_verified(result)
    return SUCCESS if result["ok"] else NEGATIVE


@cli.command()
@click.argument("model", type=click.Path())
@click.option("-o", "--output", "output", required=True, type=click.Path(), help="the folder that becomes an importable Python package")
@click.option("--target", default="nvidia-h200", show_default=True, help="a name of `coset targets`, or a .toml file")
@click.option("--numerics", default="reassociates", show_default=True, help="exact, reassociates, real, approx or lossy")
@click.option("--time-limit", type=float, default=30.0, show_default=True, help="seconds of search")
@click.option("--node-limit", type=int, default=200_000, show_default=True, help="e-nodes")
@click.option("--rules", "rule_files", multiple=True, type=click.Path(), help="a file of further rules")
@click.option(
    "--code",
    type=click.Choice(["triton", "torch", "aten"]),
    default="triton",
    show_default=True,
    help="fused kernels in Triton, the same as torch functions, or one torch call for each op",
)
@click.option(
    "--check",
    "checked",
    type=click.Choice(["torch", "interpreted", "none"]),
    default="torch",
    show_default=True,
    help="compare with the reference: kernels as torch functions, or in Triton's interpreter",
)
@_DIM
@_NATIVE
@_JSON
def lower(
    model: str, output: str, target: str, numerics: str, time_limit: float, node_limit: int,
    rule_files: tuple[str, ...], code: str, checked: str, dims: dict[str, int], as_json: bool,
) -> int:  # fmt: skip
    """Lower MODEL (ONNX or StableHLO) to a Python package that needs torch and not coset."""
    from coset.egraph.limits import Limits
    from coset.lower import Check, Lowering
    from coset.lower import lower as run
    from coset.machine import find_target
    from coset.show import show_lowered

    limits = Limits(seconds=time_limit, nodes=node_limit)
    result = run(Lowering(model, find_target(target), numerics, limits, rule_files, dims, code, Check(checked), _say), Path(output))
    if as_json:
        _print_json(result)
    else:
        show_lowered(result)
    return SUCCESS


@cli.command()
@click.argument("files", nargs=-1, type=click.Path())
@click.option("--all", "anew", is_flag=True, help="verify entries again whose text has not changed since")
@click.option("--accept-weaker", "accept", is_flag=True, help="enter verdicts that are weaker than before into the lock file")
@_NATIVE
@_JSON
def check(files: tuple[str, ...], anew: bool, accept: bool, as_json: bool) -> int:
    """Parse, type-check, lint and verify rule FILES (default: the whole library)."""
    import coset.dialects
    from coset.kernels import kernel_errors
    from coset.prove.check import prune_locks, verify, weaker, write_lock
    from coset.show import show_verdicts, verdict_summary

    assert coset.dialects
    paths = [Path(file) for file in files]
    verdicts, errors = verify(paths, anew=anew) if paths else verify(anew=anew)
    errors += kernel_errors(paths)
    if as_json:
        _print_json(verdict_summary(verdicts, errors))
    else:
        show_verdicts(verdicts, errors)
    if errors:
        return USER_ERROR
    less = [] if accept else weaker(verdicts)
    for verdict in less:
        _say(f"`{verdict.name}` is only {verdict.assurance} now: {verdict.method}; `--accept-weaker` enters that into the lock file")
    if less or not all(verdict.ok for verdict in verdicts):
        return NEGATIVE
    write_lock(verdicts)
    for name in prune_locks(paths) if paths else prune_locks():
        _say(f"the lock file forgets `{name}`: no rule file beside it has an entry of this name")
    return SUCCESS


@cli.command()
@click.argument("files", nargs=-1, required=True, type=click.Path())
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
        _say(f"{'would format' if only_check else 'formatted'} {name}")
    return NEGATIVE if only_check and changed else SUCCESS


@cli.command()
@click.option("--ops", is_flag=True, help="list the ops instead")
@click.option("--docs", type=click.Path(), help="write the library as a page in Markdown: a file, or library.md in a folder")
@click.option("--textmate", type=click.Path(), help="write the TextMate grammar of rule files, for highlighting in editors")
@_JSON
def rules(ops: bool, docs: str | None, textmate: str | None, as_json: bool) -> int:
    """List the rules of the library with their promises (or the ops)."""
    if textmate is not None:
        from coset.rules.highlight import textmate as grammar

        save(Path(textmate), grammar())
        _say(f"wrote {textmate}")
        return SUCCESS
    import coset.dialects
    from coset.ir.op import all_ops
    from coset.rules.library import DEFAULT, load
    from coset.show import show_ops, show_rules

    assert coset.dialects

    if docs is not None:
        from coset.rules.reference import reference

        page = Path(docs) / "library.md" if Path(docs).is_dir() else Path(docs)
        save(page, reference(DEFAULT))
        _say(f"wrote {page}")
        return SUCCESS
    if ops:
        show_ops(as_json)
        return SUCCESS
    all_ops()
    show_rules(load(DEFAULT), as_json)
    return SUCCESS


@cli.command()
@click.option("--docs", type=click.Path(), help="write the targets as a page in Markdown: a file, or targets.md in a folder")
@_JSON
def targets(docs: str | None, as_json: bool) -> int:
    """List the targets: machines with their runtimes, how fast they are, and what is behind the numbers."""
    if docs is not None:
        from coset.target_page import target_page

        page = Path(docs) / "targets.md" if Path(docs).is_dir() else Path(docs)
        save(page, target_page())
        _say(f"wrote {page}")
        return SUCCESS
    from coset.show import show_targets

    show_targets(as_json)
    return SUCCESS


@cli.command()
@click.option(
    "-o", "--output", "output", type=click.Path(), help="the target file to write; by default where `--target cpu` or `gpu` finds it"
)
@click.option("--target", "target", help="whose numbers are fitted: that of this machine's CPU, or that of a GPU like the one here")
@click.option("--profile", "profile", type=click.Path(), help="the SQLite file that keeps measurements; by default in the cache folder")
@click.option("--seconds", type=float, default=600.0, show_default=True, help="of measuring, at most; another run goes on")
@click.option("--each", type=float, default=0.4, show_default=True, help="seconds for each case")
@_JSON
def calibrate(output: str | None, target: str | None, profile: str | None, seconds: float, each: float, as_json: bool) -> int:
    """Time ops on this machine's CPU under ONNX Runtime (or kernels on its GPU, with the target of one) and fit the target's numbers to
    that. The result is the target `cpu` (or `gpu`)."""
    from coset.backends.profile import opened
    from coset.calibration.calibrate import as_file, bench_of
    from coset.calibration.calibrate import calibrate as run
    from coset.machine import GPU, HERE, calibrated_file, profile_file
    from coset.pipeline import DEFAULT_TARGET
    from coset.show import show_calibrated
    from coset.targets.target import get_target

    base = get_target(target or DEFAULT_TARGET)
    bench, name = bench_of(base), GPU if base.dialect == "torch" else HERE
    file, kept = Path(output) if output else calibrated_file(name), Path(profile) if profile else profile_file()
    if file is None or kept is None:
        raise CosetError("COSET_CACHE is empty: there is no folder to keep this in", help="give --output and --profile")
    with opened(kept) as store:
        found = run(base, store, bench, seconds=seconds, each=each, progress=_say)
    file.parent.mkdir(parents=True, exist_ok=True)
    save(file, as_file(found, base))
    result = {**found.summary(), "output": str(file), "profile": str(kept)}
    if as_json:
        _print_json(result)
    else:
        show_calibrated(result)
    return SUCCESS


@cli.command()
@click.argument("model", type=click.Path())
@click.option("--against", multiple=True, type=click.Path(), help="further models, timed side by side")
@click.option("--rounds", default=10, show_default=True, help="blocks of each variant")
@_DIM
@_JSON
def bench(model: str, against: tuple[str, ...], rounds: int, dims: dict[str, int], as_json: bool) -> int:
    """Time MODEL in ONNX Runtime, without and with its own optimizer, in blocks side by side."""
    from coset.bench import bench as run
    from coset.show import show_timings

    timings = run([model, *against], rounds=rounds, dims=dims, progress=_say)
    if as_json:
        _print_json({"variants": timings})
    else:
        show_timings(timings)
    return SUCCESS


@cli.command()
@click.argument("first", type=click.Path())
@click.argument("second", type=click.Path())
@_DIM
@_JSON
def diff(first: str, second: str, dims: dict[str, int], as_json: bool) -> int:
    """Compare the outputs of two models (ONNX or StableHLO) on drawn and adversarial inputs. Exit code 1 when they differ."""
    from coset.check import Oracle
    from coset.frontends.onnx import import_model
    from coset.reference import is_stablehlo
    from coset.show import show_check

    if is_stablehlo(first) or is_stablehlo(second):
        from coset.hub_pipeline import compare_files

        report = compare_files(first, second, dims)
    else:
        report = Oracle(first, import_model(first), dims).compare(second, exact=False)
    if as_json:
        _print_json(report.summary())
    else:
        show_check(report.summary())
    return SUCCESS if report.ok else NEGATIVE


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point: runs a command and turns our errors into exit codes."""
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Run one command line; returns its exit code."""
    command: Callable[..., Any] = cli.main
    try:
        result = command(args=arguments, prog_name="coset", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return USER_ERROR
    except click.Abort:
        _say("interrupted")
        return USER_ERROR
    except CosetError as error:
        _say(str(error))
        return NEGATIVE if type(error).__name__ == "Refused" else USER_ERROR
    except KeyboardInterrupt:
        _say("interrupted; nothing was written")
        return USER_ERROR
    except OSError as error:
        _say(f"error: {error.strerror or error}: {error.filename or ''}")
        _say("  help: nothing was written; check the path, its permissions and the disk")
        return USER_ERROR
    return result if isinstance(result, int) else SUCCESS


if __name__ == "__main__":
    main()
