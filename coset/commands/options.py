"""What the commands share: exit codes, how they speak, and options that several take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from coset.commands.values import RULE_FILES, SAMPLE_FILES, promises, rule_names
from coset.ir.errors import CosetError
from coset.job.answer import as_json, versioned

SUCCESS, NEGATIVE, USER_ERROR, UNKNOWN = 0, 1, 2, 3
INTERRUPTED = 130  # as shells have it of what Ctrl-C ends


def ended(report: Mapping[str, Any]) -> int:
    """The exit code of a command that has written its result: `INTERRUPTED` where a search was ended by Ctrl-C, whose best was taken."""
    return INTERRUPTED if report.get("egraph", {}).get("stop") == "interrupt" else SUCCESS


_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def say(text: str) -> None:
    """A message, on stderr."""
    click.echo(text, err=True)


def print_json(value: Mapping[str, Any]) -> None:
    """The one JSON object of a command, on stdout."""
    click.echo(as_json(versioned(value)))


def dims_of(_: click.Context, __: click.Parameter, values: Sequence[str]) -> dict[str, int]:
    """Free dims with their numbers."""
    pairs = {}
    for value in values:
        name, _equals, number = value.partition("=")
        if not name or not number.isdigit():
            raise click.BadParameter(f"`{value}` is not NAME=N")
        pairs[name] = int(number)
    return pairs


def span_of(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, int, int] | None:
    """A dim with its least and its largest size."""
    if value is None:
        return None
    name, _equals, ends = value.partition("=")
    low, _colon, high = ends.partition(":")
    if not name or not low.isdigit() or not high.isdigit() or not 1 <= int(low) <= int(high):
        raise click.BadParameter(f"`{value}` is not NAME=LOW:HIGH with 1 <= LOW <= HIGH")
    return name, int(low), int(high)


def bytes_of(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """A number of bytes, with or without a unit."""
    if value is None:
        return None
    number, unit = (value[:-1], value[-1].upper()) if value[-1:].upper() in _UNITS else (value, "")
    if not number.isascii() or not number.isdigit():
        raise click.BadParameter(f"`{value}` is not a number of bytes, such as 4096, 512K, 64M or 2G")
    return int(number) * _UNITS.get(unit, 1)


def pairs_of(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Names of the second model with those of the first."""
    found: dict[str, str] = {}
    for text in given:
        theirs, equal, ours = text.partition("=")
        if not (theirs and equal and ours) or theirs in found:
            raise CosetError(f"`{text}` pairs no two names", help="--map NAME=NAME: what the second model calls it, and what the first")
        found[theirs] = ours
    return found


def zones_of(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Patterns of names with the numerics of what they name."""
    found: dict[str, str] = {}
    for text in given:
        pattern, equal, numerics = text.rpartition("=")
        if not (pattern and equal and numerics):
            raise CosetError(f"`{text}` gives no numerics to names", help="--numerics-for 'encoder/*=exact'")
        found[pattern] = numerics
    return found


def file_in_folder(path: str | Path | None, what: str) -> Path | None:
    """The path of a file that a command writes besides its result.

    Raises:
        CosetError: there is no folder for it, which is said before the work and not after.
    """
    if path is None:
        return None
    place = followed(path)
    if not place.parent.is_dir():
        raise CosetError(f"there is no folder `{place.parent}` for the {what}", help="name a file in one that is there")
    return place


def followed(path: str | Path) -> Path:
    """Where a file is written that is called `path`: of a symbolic link the file that it points to, so that it stays a link.

    Raises:
        CosetError: links that point to each other.
    """
    place = Path(path)
    try:
        return place.resolve() if place.is_symlink() else place
    except (OSError, RuntimeError):
        raise CosetError(f"{place} is a symbolic link without an end", help="name the file itself") from None


def refuse_overwriting(given: Iterable[str | Path], written: Mapping[str, str | Path | None]) -> None:
    """What a command writes, by what it is, each in a file of its own, none of which was `given` to it.

    Raises:
        CosetError: two are one file, of which only the last would be left.
    """
    taken = {followed(path).resolve(): "what is read" for path in given}
    for what, path in written.items():
        if path is None:
            continue
        other = taken.setdefault(followed(path).resolve(), f"the {what}")
        if other != f"the {what}":
            raise CosetError(f"the {what} would be written over {other}: {path}", help="give each a file of its own")


def imported(context: click.Context, _: click.Parameter, modules: tuple[str, ...]) -> tuple[str, ...]:
    """The names of modules, each of which was imported; none is for a shell that completes a line."""
    for module in () if context.resilient_parsing else modules:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            raise CosetError(f"there is no module `{module}`: {error}", help="name one that Python can import (PYTHONPATH)") from None
        except Exception as error:
            what = f"the module `{module}` cannot be imported: {type(error).__name__}: {error}"
            raise CosetError(what, help="import it in Python to see where it fails") from None
    return modules


def _use_libraries(context: click.Context, _: click.Parameter, libraries: tuple[str, ...]) -> None:
    for library in () if context.resilient_parsing else libraries:
        from coset.backends.onnxruntime import use_library  # and ONNX Runtime: only for those who ask for it

        use_library(library)


NUMERICS = click.option(
    "--numerics", default="reassociates", show_default=True, help="exact, reassociates, real, approx or lossy", shell_complete=promises
)
TIME_LIMIT = click.option("--time-limit", type=float, default=30.0, show_default=True, help="seconds of search")
CHECK_TIME_LIMIT = click.option(
    "--check-time-limit", type=click.FloatRange(min=0, min_open=True), default=600.0, show_default=True, metavar="S",
    help="seconds of the comparison with the original, after which nothing is handed out",
)  # fmt: skip
NODE_LIMIT = click.option("--node-limit", type=int, default=200_000, show_default=True, help="e-nodes")
RULES = click.option("--rules", "rule_files", multiple=True, type=click.Path(), help="a file of further rules", shell_complete=RULE_FILES)
ALLOW_ASSUMED = click.option(
    "--allow-assumed", "allow_assumed", is_flag=True, help="let rules of --rules fire of which nothing is shown; the report names them"
)
DIM = click.option(
    "--dim", "dims", multiple=True, metavar="NAME=N", callback=dims_of, help="a number for a free dim (costs, comparison, timing)"
)
SAMPLES = click.option(
    "--sample-inputs", "samples", multiple=True, type=click.Path(), metavar="PATH", shell_complete=SAMPLE_FILES,
    help="inputs to compare on beside drawn ones: an .npz file by the names of inputs, or a folder with input_0.pb ..",
)  # fmt: skip
NATIVE = click.option(
    "--native", multiple=True, metavar="MODULE", expose_value=False, callback=imported, help="a module that registers native functions"
)
CUSTOM_OPS = click.option(
    "--custom-op-library", multiple=True, type=click.Path(), metavar="FILE", expose_value=False, callback=_use_libraries,
    help="a shared library with kernels for ops of the model's own, which ONNX Runtime loads and runs",
)  # fmt: skip
JSON = click.option("--json", "as_json", is_flag=True, help="print one JSON object on stdout")
DISABLE = click.option(
    "--disable-rule",
    "disabled",
    multiple=True,
    metavar="NAME",
    help="a rule, entry or op left out (`*` as in file names)",
    shell_complete=rule_names,
)
ONLY = click.option(
    "--only-rules", "only", multiple=True, metavar="NAME", help="beside definitions only these rules take part", shell_complete=rule_names
)
