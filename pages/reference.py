"""Pages of reference in Markdown: the Python interface, the command line, the rules of the library."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any

import click

import coset
import coset.api
import coset.dialects
from coset.cli import cli
from coset.rules.library import DEFAULT
from coset.rules.reference import reference

EXIT_CODES = (
    ("0", "the command did what was asked; `check`, `prove`, `verify`, `diff`: it holds"),
    ("1", "the answer is no: a rule is refuted, programs differ, a certificate is refused, a rule matches nowhere"),
    ("2", "a mistake in what was given: the message says what is wrong, where, and what to do"),
    ("3", "not found out: the time was over, or a process died"),
    ("130", "Ctrl-C; the best result so far was written, if there was one"),
)
API_HEAD = """\
# Python interface

*Generated from the docstrings of `coset.__all__`.* These are the public names. Everything else below `coset.` may change.

- **Threads.** Any thread may call these functions. Jobs of one process run one after the other.
- **Several at once.** Use processes, such as `multiprocessing.Pool`: a worker may call everything here.
- **Between processes.** An `Optimized` can be pickled. Its file, its report and its certificate travel with it.
- **Errors.** A mistake in a model, a file or an option is a `coset.CosetError`. It says what is wrong, where, and what to do. An argument
  of another type is a `TypeError`.
"""
DEFAULTS = r"<function (<lambda>|\w+) at 0x[0-9a-f]+>"  # of an argument that is a function
CLI_HEAD = """\
# Command line

*Generated from the commands.* Results go to standard output, messages to standard error. With `--json` a command prints one JSON object.
If it ends without an answer, the object has the key `error`: `kind`, `exit_code`, `message`, `place` (`file`, `line`, `column`, or null),
`help`, and `more`, the other mistakes of the same file. An option that names several things may be given several times.

| exit code | meaning |
|---|---|
"""


def api_page() -> str:
    """Every public name with its signature and docstring."""
    return API_HEAD + "".join(_described(name, _value(name)) for name in sorted(coset.__all__, key=str.lower))


def _value(name: str) -> Any:
    """A public name; of a module that may be called the function that it calls."""
    found = getattr(coset, name)
    return getattr(coset.api, name) if inspect.ismodule(found) else found


def _described(name: str, value: Any) -> str:
    """The section of one public name."""
    text = f"\n## coset.{name}\n\n{_signed(f'coset.{name}', value)}\n{_doc(value)}\n"
    if not inspect.isclass(value):
        return text
    methods = [(key, each) for key, each in vars(value).items() if inspect.isfunction(each) and not key.startswith("_")]
    return text + "".join(f"\n### {name}.{key}\n\n{_signed(key, each)}\n{_doc(each)}\n" for key, each in methods)


def _signed(name: str, value: Any) -> str:
    """A block with the signature, an argument a line if it is long; a value that nobody calls has its name alone."""
    if not callable(value):
        return f"```python\n{name}\n```\n"
    signature = inspect.signature(value)
    kept = [each for key, each in signature.parameters.items() if key != "self" and not key.startswith("_")]
    arguments = re.sub(DEFAULTS, "...", str(signature.replace(parameters=kept))).replace("'", "")
    if len(name + arguments) > 100:
        shown = [re.sub(DEFAULTS, "...", str(each)).replace("'", "") for each in kept]
        first = next((at for at, each in enumerate(kept) if each.kind is each.KEYWORD_ONLY), len(kept))
        shown = [*shown[:first], *(["*"] if first < len(kept) else []), *shown[first:]]
        returned = arguments.rpartition("->")[2].strip()
        arguments = "(\n" + "".join(f"    {each},\n" for each in shown) + f") -> {returned}"
    return f"```python\n{name}{arguments}\n```\n"


def _doc(value: Any) -> str:
    """The docstring, with the errors of `Raises:` as a list."""
    text, _, raised = (inspect.getdoc(value) or "").partition("Raises:\n")
    errors = re.split(r"^(\w+): ", textwrap.dedent(raised), flags=re.M)[1:]
    listed = "".join(f"- `{name}`: {' '.join(what.split())}\n" for name, what in zip(errors[::2], errors[1::2], strict=True))
    return text.rstrip() + (f"\n\n**Raises**\n\n{listed}" if listed else "")


def cli_page() -> str:
    """Every command with its options."""
    codes = "".join(f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES)
    return CLI_HEAD + codes + "".join(_command(name, command) for name, command in sorted(cli.commands.items()))


def _command(name: str, command: click.Command) -> str:
    """The section of one command."""
    context = click.Context(command, info_name=f"coset {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    text = f"\n## coset {name}\n\n{inspect.cleandoc(command.help or '')}\n\n```sh\ncoset {name} {usage}\n```\n"
    options = [
        each for each in command.get_params(context) if isinstance(each, click.Option) and not each.hidden and "--help" not in each.opts
    ]
    if not options:
        return text
    return text + "\n| option | meaning | default |\n|---|---|---|\n" + "".join(_option(each, context) for each in options)


def _option(option: click.Option, context: click.Context) -> str:
    """The row of one option."""
    names = ", ".join(f"`{each}`" for each in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f" `{option.make_metavar(context)}`"
    default = option.get_default(context)
    known = not option.is_flag and default is not None and isinstance(default, (int, float, str)) and not isinstance(default, bool)
    shown = "required" if option.required else f"`{default}`" if known else ""
    return f"| {names}{value} | {(option.help or '').replace('|', chr(92) + '|')} | {shown} |\n"


def library_pages() -> dict[str, str]:
    """Pages of the rules of the library, a theme a page, by path; `rules/index.md` lists them."""
    head, *themes = re.split(r"^## ", reference(DEFAULT), flags=re.M)
    index = re.sub(r"\(#([\w-]+)\)", r"(\1.md)", head).replace(
        "Written by `coset rules --docs`; do not edit.", "*Generated from the library.*"
    )
    pages = {"index": index}
    for theme in themes:
        title, _, body = theme.partition("\n")
        text = re.sub(r"^Promise: .*$", lambda line: line[0].replace("[", "\\[").replace("*", "\\*"), body, flags=re.M)
        pages[title.lower().replace(" ", "-")] = f"# {title}\n{text}".replace("\n### ", "\n## ").replace("```\nrule", "```coset\nrule")
    return {f"rules/{name}.md": text for name, text in pages.items()}
