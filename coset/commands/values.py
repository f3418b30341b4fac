"""What a shell may put in the place of a value: targets, rules, promises, files by their suffix. Nothing is loaded before a shell asks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import click

Completing = Callable[[click.Context, click.Parameter, str], list[str]]
MOST_FILES = 2000  # that a folder is asked for
DEEPEST = 8  # folders that hold nothing but the next one


def files_of(*suffixes: str) -> Completing:
    """Files of these suffixes, and folders, that begin as typed. Of a single folder it is what is in it, for a shell ends a word behind a
    single answer."""

    def completing(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
        found = list(islice(_paths(typed, suffixes), MOST_FILES))
        for _turn in range(DEEPEST):
            if len(found) != 1 or not found[0].endswith("/"):
                break
            found = list(islice(_paths(found[0], suffixes), MOST_FILES)) or found
        return sorted(found)

    return completing


def _paths(typed: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    """Paths that begin as typed, as they would be typed; folders end with a slash. Hidden ones only if their dot is typed."""
    folder, _, name = typed.rpartition("/")
    shown = f"{folder}/" if "/" in typed else ""
    try:
        for path in Path(shown or ".").expanduser().iterdir():
            if path.name.startswith(name) and (name or not path.name.startswith(".")):
                if path.is_dir():
                    yield f"{shown}{path.name}/"
                elif path.suffix in suffixes:
                    yield f"{shown}{path.name}"
    except OSError:  # there is no such folder, or it may not be read: nothing to offer
        return


MODELS = files_of(".onnx", ".mlir")
RULE_FILES = files_of(".rules")
SAMPLE_FILES = files_of(".npz")
_TARGET_FILES = files_of(".toml")


def target_names(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """The names of targets, and files of the user's."""
    from coset.targets.document import target_files

    return [*(name for name in sorted(target_files()) if name.startswith(typed)), *_TARGET_FILES(context, parameter, typed)]


def promises(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    """The words of promises, from the strongest to the weakest."""
    from coset.rules.equation import NUMERICS_ORDER

    return [word for word in NUMERICS_ORDER if word.startswith(typed)]


def rule_names(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    """The names of rules and definitions, as the lock files have them: no rule is read."""
    from coset.rules.elaborated import DIALECTS, LIBRARY
    from coset.rules.lock import NAME

    locks = [LIBRARY / NAME, *DIALECTS.glob(f"*/{NAME}")]
    names = {name for lock in locks if lock.exists() for name in json.loads(lock.read_text())["rules"]}
    return sorted(name for name in names if name.startswith(typed))
