"""`coset explain` and `coset bisect`: why a rule did nothing, and which rule did what it should not."""

from __future__ import annotations

import click

from coset.commands.options import (
    ALLOW_ASSUMED,
    CUSTOM_OPS,
    DIM,
    DISABLE,
    JSON,
    NATIVE,
    NEGATIVE,
    NODE_LIMIT,
    NUMERICS,
    ONLY,
    RULES,
    SAMPLES,
    SUCCESS,
    TIME_LIMIT,
    print_json,
    say,
)
from coset.commands.values import MODELS, rule_names, target_names

TARGET = click.option(
    "--target", shell_complete=target_names, help="a name of `coset targets`, or a .toml file; by default the one of the model's format"
)


@click.command()
@click.argument("model", type=click.Path(), shell_complete=MODELS)
@click.option(
    "--rule",
    required=True,
    metavar="NAME",
    shell_complete=rule_names,
    help="a rule, an entry of the library, or an op that has a definition",
)
@click.option("--at", metavar="VALUE", help="the value of the model at which it should match; by default anywhere")
@TARGET
@NUMERICS
@TIME_LIMIT
@NODE_LIMIT
@RULES
@ALLOW_ASSUMED
@DISABLE
@ONLY
@DIM
@NATIVE
@JSON
def explain(
    model: str, rule: str, at: str | None, target: str | None, numerics: str, time_limit: float, node_limit: int,
    rule_files: tuple[str, ...], allow_assumed: bool, disabled: tuple[str, ...], only: tuple[str, ...], dims: dict[str, int],
    as_json: bool,
) -> int:  # fmt: skip
    """Say where a rule matches in MODEL (0), or the nearest it comes and the condition that fails there (1)."""
    from coset import api
    from coset.egraph.limits import Limits
    from coset.explaining.show import show_explained

    result = api.explain(
        model, rule, at=at, target=target, numerics=numerics, limits=Limits(time_limit, node_limit), rules=rule_files,
        allow_assumed=allow_assumed, disable_rules=disabled, only_rules=only, dims=dims, progress=say,
    )  # fmt: skip
    if as_json:
        print_json(result)
    else:
        show_explained(result)
    return SUCCESS if result["matched"] else NEGATIVE


@click.command()
@click.argument("model", type=click.Path(), shell_complete=MODELS)
@click.option("--max-abs", type=click.FloatRange(min=0), help="how far an output may be off, in its unit; else what `optimize` allows")
@click.option("--max-rel", type=click.FloatRange(min=0), help="the same as a share of the output's largest element")
@TARGET
@NUMERICS
@TIME_LIMIT
@NODE_LIMIT
@RULES
@ALLOW_ASSUMED
@DISABLE
@ONLY
@DIM
@SAMPLES
@NATIVE
@CUSTOM_OPS
@JSON
def bisect(
    model: str, max_abs: float | None, max_rel: float | None, target: str | None, numerics: str, time_limit: float, node_limit: int,
    rule_files: tuple[str, ...], allow_assumed: bool, disabled: tuple[str, ...], only: tuple[str, ...], dims: dict[str, int],
    samples: tuple[str, ...], as_json: bool,
) -> int:  # fmt: skip
    """Optimize MODEL; where its outputs differ too much (1), name the rules, and the values of MODEL, that are to blame."""
    from coset import api
    from coset.egraph.limits import Limits
    from coset.explaining.show import show_bisected

    result = api.bisect(
        model, max_abs=max_abs, max_rel=max_rel, sample_inputs=samples, target=target, numerics=numerics,
        limits=Limits(time_limit, node_limit), rules=rule_files, allow_assumed=allow_assumed, disable_rules=disabled, only_rules=only,
        dims=dims, progress=say,
    )  # fmt: skip
    if as_json:
        print_json(result)
    else:
        show_bisected(result)
    return SUCCESS if result["within"] else NEGATIVE
