"""The command line. Results go to stdout (one JSON object with --json), messages to stderr; exit codes 0 to 3, and 130 after Ctrl-C."""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import click

from coset.commands import completion, explanations, machines, optimize, proofs, rules, tuning
from coset.commands.failures import answer, failed
from coset.commands.options import INTERRUPTED, NEGATIVE, SUCCESS, UNKNOWN, USER_ERROR, say
from coset.deferred_methods import defer
from coset.ir.errors import CosetError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="coset")
def cli() -> None:
    """coset: all equal forms of a tensor program at once, and the one that runs fastest, with the reasons."""


CODES = {"Refused": NEGATIVE, "Unknown": UNKNOWN, "Unending": UNKNOWN}  # of errors, by the names of classes that a start does not load
COLLECTED = (50_000, 20, 20)  # objects, and younger collections, between collections: modules that are loaded are no garbage
# Threads of NumPy's products wait for work in a loop, at the start for 0.06 s, and who gives it to them waits for them in one: beside other
# work a constant of 3 GFLOP took 1.5 s of the processor with two of them, and takes 0.05 with one. And which bits a sum has does not depend
# on the number of processors then. Read when NumPy is loaded, which no module does before a command runs.
ALONE = "OPENBLAS_NUM_THREADS"
COMMANDS = (
    optimize.optimize, optimize.lower, proofs.prove, proofs.verify, proofs.diff, rules.check, rules.fmt, rules.rules, rules.language_server,
    machines.targets, machines.calibrate, machines.bench, tuning.tune, explanations.explain, explanations.bisect,
    completion.completion,
)  # fmt: skip

for command in COMMANDS:
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point: runs a command and turns our errors into exit codes. Without `arguments` it is the process's own command."""
    gc.set_threshold(*COLLECTED)
    os.environ.setdefault(ALONE, "1")
    defer()
    open_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = run(given)
    except Exception:  # no answer of no, which Python's own exit code would be
        traceback.print_exc()
        help = "please report the lines above, with the command and, if you can, the model"
        code = failed(given, CosetError("this is a mistake of coset, and nothing was answered", help=help), UNKNOWN, kind="InternalError")
    if arguments is None:
        leave(code)
    sys.exit(code)


def leave(code: int) -> None:
    """End the process without freeing its modules and terms one by one, which takes 0.04 s. Returns where the last words cannot be written,
    of which Python speaks as it ends."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        gc.freeze()  # else Python looks through all that there is
        return
    atexit._run_exitfuncs()
    os._exit(code)


def open_streams() -> None:
    """Open those of stdin, stdout and stderr that are closed, so that no file that is written gets their place, and a library's messages;
    stdout takes every name."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 it is never closed
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr has it: a name that its encoding has not is no mistake


def run(arguments: list[str]) -> int:
    """Run one command line; returns its exit code."""
    command: Callable[..., Any] = cli.main
    try:
        result = command(args=arguments, prog_name="coset", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        answer(arguments, CosetError(error.format_message()), USER_ERROR, kind="UsageError")
        return USER_ERROR
    except CosetError as error:
        return failed(arguments, error, CODES.get(type(error).__name__, USER_ERROR))
    except MemoryError:
        help = "nothing was written; check the dims that the model declares, give smaller numbers to free ones (--dim), or make room"
        return failed(arguments, CosetError("there is not enough memory for this job", help=help), USER_ERROR, kind="MemoryError")
    except OSError as error:
        message = f"{error.strerror or error}: {error.filename or 'where the output goes'}"
        return failed(arguments, CosetError(message, help="check the path, its permissions and the disk"), USER_ERROR, kind="OSError")
    except BaseException as error:
        if not isinstance(error, click.Abort) and not _is_interrupt(error):
            raise
        kept = "; what was measured until then is in the profile" if arguments[:1] in (["tune"], ["calibrate"]) else ""
        said = "interrupted" if isinstance(error, click.Abort) else f"interrupted; no result was written{kept}"
        say(said)
        answer(arguments, CosetError(said), INTERRUPTED, kind="Interrupted")
        return INTERRUPTED
    return result if isinstance(result, int) else SUCCESS


def _is_interrupt(error: BaseException | None) -> bool:
    """True for Ctrl-C, also where what was being imported made another exception of it."""
    while error is not None:
        panicked = not isinstance(error, Exception) and "KeyboardInterrupt" in str(error)  # in Rust
        if panicked or isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


if __name__ == "__main__":
    main()
