"""`coset explain` and `coset bisect`: why a rule did nothing, and which rule did what it should not."""

from __future__ import annotations

import click

from coset.commands.options import DIM, DISABLE, JSON, NATIVE, NEGATIVE, ONLY, SUCCESS, print_json, say


@click.command()
@click.argument("model", type=click.Path())
@click.option("--rule", required=True, metavar="NAME", help="a rule, an entry of the library, or an op that has a definition")
@click.option("--at", metavar="VALUE", help="the value of the model at which it should match; by default anywhere")
@click.option("--target", help="a name of `coset targets`, or a .toml file; by default the one of the model's format")
@click.option("--numerics", default="reassociates", show_default=True, help="exact, reassociates, real, approx or lossy")
@click.option("--time-limit", type=float, default=30.0, show_default=True, help="seconds of search")
@click.option("--node-limit", type=int, default=200_000, show_default=True, help="e-nodes")
@click.option("--rules", "rule_files", multiple=True, type=click.Path(), help="a file of further rules")
@DISABLE
@ONLY
@DIM
@NATIVE
@JSON
def explain(
    model: str, rule: str, at: str | None, target: str | None, numerics: str, time_limit: float, node_limit: int,
    rule_files: tuple[str, ...], disabled: tuple[str, ...], only: tuple[str, ...], dims: dict[str, int], as_json: bool,
) -> int:  # fmt: skip
    """Say where a rule matches in MODEL (0), or the nearest it comes and the condition that fails there (1)."""
    from coset.admission import Admission
    from coset.egraph.limits import Limits
    from coset.explaining.explain import Question
    from coset.explaining.explain import explain as run
    from coset.explaining.show import show_explained
    from coset.machine import find_target
    from coset.pipeline import default_target
    from coset.task import Job

    limits = Limits(seconds=time_limit, nodes=node_limit)
    found = find_target(target or default_target(model))
    job = Job(model, found, numerics, limits, rule_files, dims, say, admission=Admission(disabled, only))
    result = run(Question(job, rule, at))
    if as_json:
        print_json(result)
    else:
        show_explained(result)
    return SUCCESS if result["matched"] else NEGATIVE


@click.command()
@click.argument("model", type=click.Path())
@click.option("--max-abs", type=click.FloatRange(min=0), help="how far an output may be off, in its unit; else what `optimize` allows")
@click.option("--max-rel", type=click.FloatRange(min=0), help="the same as a share of the output's largest element")
@click.option("--target", help="a name of `coset targets`, or a .toml file; by default the one of the model's format")
@click.option("--numerics", default="reassociates", show_default=True, help="exact, reassociates, real, approx or lossy")
@click.option("--time-limit", type=float, default=30.0, show_default=True, help="seconds of each search")
@click.option("--node-limit", type=int, default=200_000, show_default=True, help="e-nodes")
@click.option("--rules", "rule_files", multiple=True, type=click.Path(), help="a file of further rules")
@DISABLE
@ONLY
@DIM
@NATIVE
@JSON
def bisect(
    model: str, max_abs: float | None, max_rel: float | None, target: str | None, numerics: str, time_limit: float, node_limit: int,
    rule_files: tuple[str, ...], disabled: tuple[str, ...], only: tuple[str, ...], dims: dict[str, int], as_json: bool,
) -> int:  # fmt: skip
    """Optimize MODEL; where its outputs differ too much (1), name the rules, and the values of MODEL, that are to blame."""
    from coset.admission import Admission
    from coset.egraph.limits import Limits
    from coset.explaining.bisect import Bounds
    from coset.explaining.bisect import bisect as run
    from coset.explaining.show import show_bisected
    from coset.machine import find_target
    from coset.pipeline import default_target
    from coset.task import Job

    limits = Limits(seconds=time_limit, nodes=node_limit)
    found = find_target(target or default_target(model))
    result = run(Job(model, found, numerics, limits, rule_files, dims, say, admission=Admission(disabled, only)), Bounds(max_abs, max_rel))
    if as_json:
        print_json(result)
    else:
        show_bisected(result)
    return SUCCESS if result["within"] else NEGATIVE
