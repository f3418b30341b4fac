"""`coset optimize` and `coset lower`: a model in, a checked program out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coset.commands.options import (
    ALLOW_ASSUMED,
    CHECK_TIME_LIMIT,
    CUSTOM_OPS,
    DIM,
    DISABLE,
    JSON,
    NATIVE,
    NODE_LIMIT,
    NUMERICS,
    ONLY,
    RULES,
    SAMPLES,
    TIME_LIMIT,
    UNKNOWN,
    bytes_of,
    ended,
    file_in_folder,
    followed,
    print_json,
    refuse_overwriting,
    say,
    span_of,
    zones_of,
)
from coset.commands.values import MODELS, target_names
from coset.ir.collector import no_collection
from coset.ir.errors import CosetError
from coset.job.answer import save

if TYPE_CHECKING:
    from coset.targets.target import Target


@click.command()
@click.argument("model", type=click.Path(), shell_complete=MODELS)
@click.option("-o", "--output", "output", required=True, type=click.Path(), help="where the result goes: ONNX, or StableHLO (.mlir)")
@click.option(
    "--target",
    shell_complete=target_names,
    help="a name of `coset targets`, or a .toml file; by default cpu-onnxruntime, or stablehlo where OUT is .mlir",
)
@NUMERICS
@click.option(
    "--numerics-for",
    "zones",
    multiple=True,
    metavar="NAMES=NUMERICS",
    callback=zones_of,
    help="other numerics for values, by name",
)
@TIME_LIMIT
@CHECK_TIME_LIMIT
@NODE_LIMIT
@click.option(
    "--memory-limit", metavar="BYTES", callback=bytes_of, default="1G", show_default=True, help="memory of the search (1024s: K, M, G)"
)
@RULES
@ALLOW_ASSUMED
@click.option("--report", type=click.Path(), help="write the report: .json, or .html for a page")
@click.option("--measure", type=click.IntRange(0, 64), default=0, help="try so many other programs too, and let the clock decide")
@click.option("--range", "span", metavar="NAME=LOW:HIGH", callback=span_of, help="write a program for each stretch of sizes of a free dim")
@click.option("--verbose", is_flag=True, help="say on stderr what each iteration of the search and each rule did")
@click.option("--extraction-problem", type=click.Path(), help="write what extraction chose from (JSON, as extraction-gym has it)")
@click.option("--certificate", type=click.Path(), help="write the steps that show the result equal to MODEL; `coset verify` checks them")
@click.option(
    "--max-memory", metavar="BYTES", callback=bytes_of, help="live bytes of activations that the result may take (1024s: K, M, G)"
)
@click.option("--keep-value", "keep", multiple=True, metavar="NAME", help="a value inside MODEL that the result computes under its name")
@click.option(
    "--split", type=click.Path(), metavar="DIR", help="for a target with a host: also write a model for each part that runs on one device"
)
@click.option("--keep-functions", is_flag=True, help="functions of an ONNX model's own stay functions; else they become their nodes")
@DISABLE
@ONLY
@DIM
@SAMPLES
@NATIVE
@CUSTOM_OPS
@JSON
@no_collection()  # the process ends soon: to look through its modules and terms takes 0.04 s
def optimize(
    model: str, output: str, target: str | None, numerics: str, time_limit: float, check_time_limit: float, node_limit: int,
    memory_limit: int, rule_files: tuple[str, ...], report: str | None, measure: int, span: tuple[str, int, int] | None,
    extraction_problem: str | None, certificate: str | None, max_memory: int | None, verbose: bool, allow_assumed: bool,
    keep_functions: bool, zones: dict[str, str], keep: tuple[str, ...], disabled: tuple[str, ...], only: tuple[str, ...],
    dims: dict[str, int], samples: tuple[str, ...], split: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Optimize MODEL (ONNX or StableHLO) for a target; the result takes its name when it was compared with MODEL."""
    from coset.console.telling import Telling
    from coset.egraph.limits import Limits
    from coset.job.admission import Admission
    from coset.job.job import Job
    from coset.job.machine import find_target
    from coset.job.zone import Zone
    from coset.optimizing.pipeline import default_target, optimize_file, optimize_range
    from coset.optimizing.ranges import Span

    told = _report_file(report)
    drawn = told is not None and told.suffix == ".html"
    problem, proof = file_in_folder(extraction_problem, "extraction problem"), file_in_folder(certificate, "certificate")
    beside = {"report": told, "extraction problem": problem, "certificate": proof}
    refuse_overwriting((model, *rule_files), beside)
    refuse_overwriting(rule_files, {"result": output, **beside})  # which may take the place of the model
    resolved, written = find_target(target or default_target(output)), followed(output)
    _refuse_several(proof, problem, keep=bool(keep), zones=bool(zones), span=span is not None)
    folder = _folder_for_parts(split, resolved, span=span is not None)
    picture = _picture() if drawn else None
    with Telling(time_limit, verbose=verbose, counted=drawn) as telling:
        limits = Limits(seconds=time_limit, nodes=node_limit, bytes=memory_limit)
        job = Job(
            model, resolved, numerics, limits, rule_files, dims, telling.say, problem, max_memory, measure, proof is not None,
            admission=Admission(disabled, only), keep=keep, zones=tuple(Zone(*each) for each in zones.items()), picture=picture,
            watch=telling.watch, allow_assumed=allow_assumed, keep_functions=keep_functions, check_seconds=check_time_limit,
            samples=samples,
        )  # fmt: skip
        _warn_of_replacing(model, written, telling.say)
        found = optimize_file(job, written, proof) if span is None else optimize_range(job, written, Span(*span))
        found |= _parts(written, folder)
        telling.finish()
    return _hand_out(found, model, output, told, proof, as_json)


def _report_file(report: str | None) -> Path | None:
    """Where the report goes.

    Raises:
        CosetError: it has no name of a report, or its folder is not there.
    """
    if report is not None and not report.endswith((".json", ".html")):
        raise CosetError(f"the report `{report}` is no .json and no .html file", help="name it R.html for a page, R.json for data")
    return file_in_folder(report, "report")


def _refuse_several(proof: Path | None, problem: Path | None, *, keep: bool, zones: bool, span: bool) -> None:
    """Nothing for one search with one result, of which a certificate and an extraction problem speak.

    Raises:
        CosetError: there are several.
    """
    if proof is not None and (keep or zones):
        what = "of the outputs, not of kept values" if keep else "of one search"
        raise CosetError(f"a certificate speaks {what}", help="leave out --certificate, or --keep-value and --numerics-for")
    if problem is not None and zones:
        raise CosetError("with --numerics-for there are several extraction problems", help="leave one of the two out")
    if proof is not None and span:
        raise CosetError("a range has several programs, and a certificate speaks of one", help="leave out --range or --certificate")


def _folder_for_parts(split: str | None, target: Target, *, span: bool) -> Path | None:
    """Where the parts go, if they are asked for.

    Raises:
        CosetError: as `folder_for_parts`, or a range has several programs.
    """
    if split is None:
        return None
    from coset.optimizing.parts import folder_for_parts

    if span:
        raise CosetError("a range has several programs, and --split parts one", help="leave out --range or --split")
    return folder_for_parts(split, target)


def _parts(written: Path, folder: Path | None) -> dict[str, Any]:
    """Write the parts of the model at `written`, if they are asked for, and what the report says of them."""
    if folder is None:
        return {}
    from coset.optimizing.parts import split_model

    return {"split": {"folder": str(folder), **split_model(written, folder)}}


def _picture() -> Callable[..., Any]:
    """What draws both programs, which is imported for the page only."""
    from coset.reporting import drawing

    return drawing.picture


def _warn_of_replacing(model: str, written: Path, say: Callable[[str], None]) -> None:
    if written.exists() and Path(model).exists() and written.samefile(model):
        say(f"warning: the result takes the place of {model}, which is read")


def _hand_out(found: dict[str, Any], model: str, output: str, told: Path | None, proof: Path | None, as_json: bool) -> int:
    """Write the report and print it; the exit status."""
    graphs = found.pop("graphs", None)
    result = {**found, "output": output}
    if told is not None and told.suffix == ".html":
        from coset.reporting.page import report_page

        save(told, report_page(result, graphs, model))
    elif told is not None:
        from coset.optimizing.report import save_report

        save_report(result, told)
    if as_json:
        print_json(result)
    else:
        from coset.console.optimized import show_optimized  # and the library that draws tables with it

        show_optimized(result)
    if proof is not None and not found["certificate"]["ok"]:
        say(f"no certificate was written: {found['certificate']['reason']}")
        return UNKNOWN
    return ended(result)


@click.command()
@click.argument("model", type=click.Path(), shell_complete=MODELS)
@click.option("-o", "--output", "output", required=True, type=click.Path(), help="the folder that becomes an importable Python package")
@click.option("--max-memory", metavar="BYTES", callback=bytes_of, help="what temporaries may take at once (1024s: K, M, G)")
@click.option(
    "--target", shell_complete=target_names, default="nvidia-h200", show_default=True, help="a name of `coset targets`, or a .toml file"
)
@NUMERICS
@TIME_LIMIT
@CHECK_TIME_LIMIT
@NODE_LIMIT
@RULES
@ALLOW_ASSUMED
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
@click.option("--profile", type=click.Path(), help="take what `coset tune` found for the target's device from this file")
@click.option(
    "--streams", type=click.IntRange(min=1), help="kernels beside each other in a captured CUDA graph, at most  [default: the target's]"
)
@click.option("--atomics", is_flag=True, help="scattered sums of floats in any order: no sort, and two runs differ in their last bits")
@DISABLE
@ONLY
@DIM
@SAMPLES
@NATIVE
@JSON
def lower(
    model: str, output: str, max_memory: int | None, target: str, numerics: str, time_limit: float, check_time_limit: float,
    node_limit: int, rule_files: tuple[str, ...], code: str, checked: str, profile: str | None, streams: int | None, atomics: bool,
    allow_assumed: bool, disabled: tuple[str, ...], only: tuple[str, ...], dims: dict[str, int], samples: tuple[str, ...],
    as_json: bool,
) -> int:  # fmt: skip
    """Lower MODEL (ONNX or StableHLO) to a Python package that needs torch and not coset."""
    from coset import api
    from coset.console.lowered import show_lowered
    from coset.egraph.limits import Limits

    result = api.lower(
        model, output, target=target, numerics=numerics, limits=Limits(seconds=time_limit, nodes=node_limit), rules=rule_files,
        dims=dims, code=code, check=checked, max_memory=max_memory, profile=profile, streams=streams, atomics=atomics,
        allow_assumed=allow_assumed, disable_rules=disabled, only_rules=only, sample_inputs=samples, check_seconds=check_time_limit,
        progress=say,
    )  # fmt: skip
    if as_json:
        print_json(result)
    else:
        show_lowered(result)
    return ended(result)
