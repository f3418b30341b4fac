"""`coset tune`: other numbers for a model's kernels, into a profile that `coset lower --profile` takes them from."""

from __future__ import annotations

from pathlib import Path

import click

from coset.commands.options import (
    ALLOW_ASSUMED,
    DIM,
    INTERRUPTED,
    JSON,
    NATIVE,
    NODE_LIMIT,
    NUMERICS,
    RULES,
    SUCCESS,
    TIME_LIMIT,
    print_json,
    say,
)
from coset.commands.values import MODELS, target_names
from coset.ir.errors import CosetError


@click.command()
@click.argument("model", type=click.Path(), shell_complete=MODELS)
@click.option(
    "--target", shell_complete=target_names, default="nvidia-h200", show_default=True, help="a name of `coset targets`, or a .toml file"
)
@click.option("--profile", type=click.Path(), help="the SQLite file that keeps what is found; by default in the cache folder")
@click.option("--seconds", type=click.FloatRange(min=0), default=600.0, show_default=True, help="at most; another run goes on")
@click.option("--jobs", type=click.IntRange(1, 256), help="compilers at once; by default one for each core")
@click.option("--programs", type=click.IntRange(0, 64), default=0, show_default=True, help="so many other programs of the e-graph too")
@click.option(
    "--prune-only", "--no-measure", "prune_only", is_flag=True, help="predict and compile, which needs no GPU, and do not measure"
)
@NUMERICS
@TIME_LIMIT
@NODE_LIMIT
@RULES
@ALLOW_ASSUMED
@DIM
@NATIVE
@JSON
def tune(
    model: str, target: str, profile: str | None, seconds: float, jobs: int | None, programs: int, prune_only: bool, numerics: str,
    time_limit: float, node_limit: int, rule_files: tuple[str, ...], allow_assumed: bool, dims: dict[str, int],
    as_json: bool,
) -> int:  # fmt: skip
    """Try other tiles, warps and stages for the kernels of MODEL (and, with --programs, other programs) on this machine's GPU. What is
    found goes into the profile at once: another run goes on where this one was."""
    from coset.backends.tuning_profile import opened
    from coset.egraph.limits import Limits
    from coset.job.machine import cores, find_target, profile_file
    from coset.tuning.shown import show_tuned
    from coset.tuning.tune import Tuning, tune_model

    kept = Path(profile) if profile else profile_file()
    if kept is None:
        raise CosetError("COSET_CACHE is empty: there is no folder for the profile", help="give --profile")
    limits = Limits(seconds=time_limit, nodes=node_limit)
    asked = Tuning(model, find_target(target), numerics, limits, rule_files, dims, seconds, jobs or cores(), programs, say, allow_assumed)
    with opened(kept) as store:
        found = tune_model(asked, store, measured=not prune_only)
    result = {**found, "profile": str(kept)}
    if as_json:
        print_json(result)
    else:
        show_tuned(result)
    if result["stop"] == "interrupt":
        say("interrupted; what was found is in the profile, and another run goes on")
    return INTERRUPTED if result["stop"] == "interrupt" else SUCCESS
