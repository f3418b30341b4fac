"""`coset prove`, `coset verify`, `coset diff`: whether two programs are one."""

from __future__ import annotations

import click

from coset.commands.options import (
    ALLOW_ASSUMED,
    CHECK_TIME_LIMIT,
    CUSTOM_OPS,
    DIM,
    JSON,
    NATIVE,
    NEGATIVE,
    RULES,
    SAMPLES,
    SUCCESS,
    UNKNOWN,
    file_in_folder,
    pairs_of,
    print_json,
    refuse_overwriting,
    say,
)
from coset.commands.values import MODELS, promises


@click.command()
@click.argument("before", type=click.Path(), shell_complete=MODELS)
@click.argument("after", type=click.Path(), shell_complete=MODELS)
@click.option(
    "--numerics",
    shell_complete=promises,
    default="reassociates",
    show_default=True,
    help="what the steps may promise: exact, reassociates, real, approx or lossy",
)
@RULES
@ALLOW_ASSUMED
@click.option(
    "--map", "pairs", multiple=True, metavar="NAME=NAME", callback=pairs_of, help="an input or output of AFTER, and what BEFORE calls it"
)
@click.option("--time-limit", type=float, default=20.0, show_default=True, help="seconds of each search")
@CHECK_TIME_LIMIT
@click.option("--certificate", type=click.Path(), help="write the steps, where they are proved equal")
@click.option("--counterexample", type=click.Path(), help="write inputs on which they differ, and both outputs (.npz)")
@DIM
@SAMPLES
@NATIVE
@CUSTOM_OPS
@JSON
def prove(
    before: str, after: str, numerics: str, rule_files: tuple[str, ...], pairs: dict[str, str], time_limit: float,
    check_time_limit: float, certificate: str | None, counterexample: str | None, allow_assumed: bool, dims: dict[str, int],
    samples: tuple[str, ...], as_json: bool,
) -> int:  # fmt: skip
    """Prove that BEFORE and AFTER are the same program (0), refute it by inputs (1), or say how far it got (3)."""
    from coset import api
    from coset.console.proofs import show_proved

    proof, inputs = file_in_folder(certificate, "certificate"), file_in_folder(counterexample, "counterexample")
    refuse_overwriting((before, after), {"certificate": proof, "counterexample": inputs})
    result = api.prove(
        before, after, numerics=numerics, rules=rule_files, names=pairs, time_limit=time_limit, check_seconds=check_time_limit,
        certificate=proof, counterexample=inputs, allow_assumed=allow_assumed, dims=dims, sample_inputs=samples, progress=say,
    )  # fmt: skip
    if as_json:
        print_json(result)
    else:
        show_proved(result)
    return {"proved": SUCCESS, "refuted": NEGATIVE}.get(result["answer"], UNKNOWN)


@click.command()
@click.argument("certificate", type=click.Path())
@click.argument("before", type=click.Path(), shell_complete=MODELS)
@click.argument("after", type=click.Path(), shell_complete=MODELS)
@click.option("--rules", "rule_files", multiple=True, type=click.Path(), help="a file of further rules that the certificate was made with")
@ALLOW_ASSUMED
@click.option(
    "--map", "pairs", multiple=True, metavar="NAME=NAME", callback=pairs_of, help="an input or output of AFTER, and what BEFORE calls it"
)
@click.option("--prove", "prove_rules", is_flag=True, help="do not believe the lock files: test and prove the rules that are used anew")
@NATIVE
@JSON
def verify(
    certificate: str,
    before: str,
    after: str,
    rule_files: tuple[str, ...],
    allow_assumed: bool,
    pairs: dict[str, str],
    prove_rules: bool,
    as_json: bool,
) -> int:
    """Check that CERTIFICATE shows the programs BEFORE and AFTER to be equal; 1 where it does not."""
    from coset import api
    from coset.console.proofs import show_verified

    result = api.verify(
        certificate, before, after, rules=rule_files, names=pairs, prove_rules=prove_rules, allow_assumed=allow_assumed, progress=say
    )
    if as_json:
        print_json(result)
    else:
        show_verified(result)
    return SUCCESS if result["ok"] else NEGATIVE


@click.command()
@click.argument("first", type=click.Path(), shell_complete=MODELS)
@click.argument("second", type=click.Path(), shell_complete=MODELS)
@click.option("--html", type=click.Path(), help="write a page with both graphs side by side")
@click.option(
    "--numerics",
    shell_complete=promises,
    default="reassociates",
    show_default=True,
    help="what rules that pair nodes may promise; with exact every bit of the outputs counts",
)
@RULES
@ALLOW_ASSUMED
@click.option("--time-limit", type=click.FloatRange(min=0), default=5.0, show_default=True, help="seconds of search; 0: equal terms only")
@CHECK_TIME_LIMIT
@DIM
@SAMPLES
@CUSTOM_OPS
@JSON
def diff(
    first: str,
    second: str,
    html: str | None,
    numerics: str,
    rule_files: tuple[str, ...],
    allow_assumed: bool,
    time_limit: float,
    check_time_limit: float,
    dims: dict[str, int],
    samples: tuple[str, ...],
    as_json: bool,
) -> int:
    """Compare the outputs of two models (ONNX or StableHLO) on drawn and adversarial inputs, and their graphs node by node. Exit code 1
    when the outputs differ."""
    from coset import api
    from coset.console.comparison import show_differing

    page = file_in_folder(html, "page")
    refuse_overwriting((first, second), {"page": page})
    result = api.diff(
        first, second, html=page, numerics=numerics, rules=rule_files, allow_assumed=allow_assumed, time_limit=time_limit,
        check_seconds=check_time_limit, dims=dims, sample_inputs=samples,
    )  # fmt: skip
    if as_json:
        print_json(result)
    else:
        show_differing(result)
    return SUCCESS if result["ok"] else NEGATIVE
