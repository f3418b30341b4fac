"""What a person reads of an explanation on stdout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from coset.console.comparison import show_not_shown


def show_explained(result: Mapping[str, Any]) -> None:
    """Where a rule matched, or the nearest places with what is missing there."""
    show_not_shown(result)
    click.echo(f"rule       {', '.join(result['rules'])}   ({result['source']})")
    for place in result["matched"]:
        click.echo(f"matched    {place['text']}   by {place['rule']}")
    if result["matched"]:
        click.echo(f"used       {result['used']} e-nodes of the chosen program rest on it")
    else:
        click.echo("matched    nowhere")
    for reason in result["reasons"]:
        click.echo(f"because    {reason}")
    if not result["matched"] and not result["nearest"]:
        click.echo("nearest    no value of the model is computed much like its left side")
    for place in result["nearest"]:
        click.echo(f"nearest    {place['text']}   {place['share']:.0%} of {place['rule']}")
        for miss in place["missing"]:
            values = f"   with {', '.join(f'{name} = {value}' for name, value in miss['values'].items())}" if miss["values"] else ""
            inside = f"   (of {miss['rule']})" if miss["rule"] != place["rule"] else ""
            click.echo(f"  needs    {miss['condition']}{values}{inside}")
            where = f"   at {miss['at']}" if miss["at"].startswith("`") and miss["at"] not in miss["found"] else ""
            click.echo(f"  has      {miss['found']}{where}")


def show_bisected(result: Mapping[str, Any]) -> None:
    """Whether outputs are within the bounds, and what is to blame where they are not."""
    show_not_shown(result)
    click.echo(f"outputs    at most {result['max_abs']:.3g} off, {result['max_rel']:.3g} relative; {result['trials']} programs tried")
    if result["within"]:
        click.echo("within     the bounds; no rule is to blame")
        return
    click.echo(f"beyond     {result['worst']}")
    for rule in result["rules"]:
        click.echo(f"rule       {rule['name']}   promises {rule['numerics']}, {rule['assurance']}   ({rule['place']})")
    for value in result["values"]:
        click.echo(f"value      {value['value']} = {value['model']}")
        click.echo(f"  became   {value['optimized']}   by {', '.join(value['rules']) or 'equalities of other rules'}")
    if not result["values"]:
        click.echo("value      it shows only with other rules: no value is told apart")
