"""`coset targets`, `coset calibrate`, `coset bench`: machines, their numbers, and the clock."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from coset.commands.options import CUSTOM_OPS, DIM, JSON, SAMPLES, SUCCESS, file_in_folder, print_json, refuse_overwriting, say
from coset.commands.values import MODELS, RULE_FILES, files_of, target_names
from coset.ir.errors import CosetError
from coset.job.answer import save

if TYPE_CHECKING:
    from coset.targets.target import Target


@click.command()
@click.argument("files", nargs=-1, type=click.Path(), shell_complete=files_of(".toml"))
@click.option(
    "--docs", type=click.Path(), help="write the targets as a page in Markdown: a file, or, in a folder, targets.md and target-file.md"
)
@click.option(
    "--rules",
    "rule_files",
    multiple=True,
    type=click.Path(),
    shell_complete=RULE_FILES,
    help="a file of rules with ops that FILES speak of",
)
@JSON
def targets(files: tuple[str, ...], rule_files: tuple[str, ...], docs: str | None, as_json: bool) -> int:
    """List the targets: machines with their runtimes, how fast they are, and what is behind the numbers. With FILES, check those of your
    own and list them."""
    if docs is not None and files:
        raise CosetError("--docs writes the targets of coset, and not those of files", help="leave one of the two out")
    if docs is not None:
        from coset.console.target_file_page import target_file_page
        from coset.console.target_page import target_page

        folder = Path(docs)
        pages = {folder / "targets.md": target_page, folder / "target-file.md": target_file_page}
        for page, written in pages.items() if folder.is_dir() else [(folder, target_page)]:
            save(page, written())
            say(f"wrote {page}")
        return SUCCESS
    from coset.console.listings import show_targets

    show_targets(as_json, _checked(files, rule_files) if files else ())
    return SUCCESS


def _checked(files: tuple[str, ...], rule_files: tuple[str, ...]) -> list[Target]:
    """The targets in files, which may speak of ops that rule files define.

    Raises:
        WrongFile: all mistakes of the first file that has some, its ops among them.
    """
    import coset.dialects
    from coset.rules.library import DEFAULT, load
    from coset.targets.ops import check_ops
    from coset.targets.target import get_target

    assert coset.dialects  # imported so that every op is registered
    if rule_files:
        load([*DEFAULT, *map(Path, rule_files)])
    found = [get_target(Path(file)) for file in files]
    for target in found:
        check_ops(target)
    return found


@click.command()
@click.option(
    "-o", "--output", "output", type=click.Path(), help="the target file to write; by default where `--target cpu` or `gpu` finds it"
)
@click.option(
    "--target",
    "target",
    shell_complete=target_names,
    help="whose numbers are fitted: that of this machine's CPU, or that of a GPU like the one here",
)
@click.option("--profile", "profile", type=click.Path(), help="the SQLite file that keeps measurements; by default in the cache folder")
@click.option(
    "--from",
    "measurements",
    type=click.Path(),
    metavar="FILE.csv",
    help="fit to your own measurements instead: a CSV file with columns op, shapes, dtype, microseconds",
)
@click.option("--seconds", type=float, default=600.0, show_default=True, help="of measuring, at most; another run goes on")
@click.option("--each", type=float, default=0.4, show_default=True, help="seconds for each case")
@JSON
def calibrate(
    output: str | None, target: str | None, profile: str | None, measurements: str | None, seconds: float, each: float, as_json: bool
) -> int:  # fmt: skip
    """Time ops on this machine's CPU under ONNX Runtime (or kernels on its GPU, with the target of one) and fit the target's numbers to
    that. The result is the target `cpu` (or `gpu`). With --from nothing is timed: any target is fitted to measurements of your own."""
    if measurements is not None:
        return _fit_to(Path(measurements), target, output, profile, as_json)
    from coset.backends.profile import opened
    from coset.calibration.calibrate import as_file, bench_of
    from coset.calibration.calibrate import calibrate as run
    from coset.console.measured import show_calibrated
    from coset.job.machine import GPU, HERE, calibrated_file, profile_file
    from coset.optimizing.pipeline import DEFAULT_TARGET
    from coset.targets.target import get_target

    base = get_target(target or DEFAULT_TARGET)
    bench, name = bench_of(base), GPU if base.dialect == "torch" else HERE
    file, kept = Path(output) if output else calibrated_file(name), Path(profile) if profile else profile_file()
    if file is None or kept is None:
        raise CosetError("COSET_CACHE is empty: there is no folder to keep this in", help="give --output and --profile")
    with opened(kept) as store:
        found = run(base, store, bench, seconds=seconds, each=each, progress=say)
    file.parent.mkdir(parents=True, exist_ok=True)
    save(file, as_file(found, base))
    result = {**found.summary(), "output": str(file), "profile": str(kept)}
    if as_json:
        print_json(result)
    else:
        show_calibrated(result)
    return SUCCESS


def _fit_to(measurements: Path, target: str | None, output: str | None, profile: str | None, as_json: bool) -> int:
    """Fit a target to the file of somebody's own measurements."""
    from coset.calibration.from_rows import as_target_file, fit_rows
    from coset.console.measured import show_fitted
    from coset.job.machine import find_target
    from coset.targets.ops import check_ops

    if target is None or output is None:
        raise CosetError("with --from, the target and the result are named", help="--target NAME -o MINE.toml")
    if profile is not None:
        raise CosetError("--profile keeps what is timed here, and --from times nothing", help="leave one of the two out")
    written = file_in_folder(output, "target file")
    assert written is not None
    refuse_overwriting((measurements, *([target] if target.endswith(".toml") else [])), {"target file": written})
    base = find_target(target)
    check_ops(base)
    found = fit_rows(measurements, base, progress=say)
    save(written, as_target_file(found, measurements.name))
    result = {**found.summary(), "target": base.name, "output": output}
    if as_json:
        print_json(result)
    else:
        show_fitted(result)
    return SUCCESS


@click.command()
@click.argument("model", type=click.Path(), shell_complete=MODELS)
@click.option("--against", multiple=True, type=click.Path(), shell_complete=MODELS, help="further models, timed side by side")
@click.option("--rounds", default=10, show_default=True, help="blocks of each variant")
@DIM
@SAMPLES
@CUSTOM_OPS
@JSON
def bench(
    model: str, against: tuple[str, ...], rounds: int, dims: dict[str, int], samples: tuple[str, ...], as_json: bool
) -> int:  # fmt: skip
    """Time MODEL in ONNX Runtime, without and with its own optimizer, in blocks side by side."""
    from coset.bench import bench as run
    from coset.console.measured import show_timings

    result = run([model, *against], rounds=rounds, dims=dims, samples=samples, progress=say)
    if as_json:
        print_json(result)
    else:
        show_timings(result)
    return SUCCESS
