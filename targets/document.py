"""Files of targets: read as TOML, laid over the file that they are based on, nothing said yet of what the values mean."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from coset.ir.errors import CosetError
from coset.ir.place import Place

HERE = Path(__file__).resolve().parent
Keys = tuple[str | int, ...]
"""The way to a value: keys of tables and numbers of items, from the outermost."""
LONGEST = 400
"""Characters of a line that an error repeats."""
LARGEST = 1 << 20
"""B of a file at most: the largest of ours has 20 kB."""
SECTIONS = ("sources", "dtypes", "casts", "numbers", "launches", "rates", "curves", "kernels")
"""Tables whose entries have names: an entry takes the place of the one that has this name in the base."""
WHOLE = ("title", "dialect", "notes", "folds_constants", "strict", "standard", "storing", "merges", "fusion", "sessions", "host")
"""What takes the place of the base's as a whole."""
UNKNOWN = "unknown"
"""In place of a number of the base that is not this machine's."""
LEGAL = frozenset({"default", "never", "forms"})


@dataclass(frozen=True)
class File:
    """A file that is TOML."""

    path: Path
    text: str = field(repr=False)
    data: Mapping[str, Any] = field(repr=False)

    def entries(self) -> Iterator[Entry]:
        """What stands at the top."""
        return (Entry(value, self, (key,)) for key, value in self.data.items())


@dataclass(frozen=True)
class Entry:
    """A value and where it stands."""

    value: Any
    file: File
    keys: Keys

    def items(self) -> Iterator[tuple[str, Entry]]:
        """The entries of a table."""
        return ((key, Entry(value, self.file, (*self.keys, key))) for key, value in self.value.items())

    def listed(self) -> Iterator[Entry]:
        """The items of an array."""
        return (Entry(value, self.file, (*self.keys, index)) for index, value in enumerate(self.value))

    @property
    def name(self) -> str:
        """The way to it, as one would write it."""
        parts = [f"[{key}]" if isinstance(key, int) else f".{key}" if re.fullmatch(r"[\w-]+", key) else f'."{key}"' for key in self.keys]
        return "".join(parts).removeprefix(".")

    @property
    def place(self) -> Place:
        """Its line. Only who has made a mistake pays for looking for it."""
        from coset.targets.place import place_of

        return place_of(str(self.file.path), self.file.text, self.keys)


@dataclass(frozen=True)
class TargetProblem:
    """Something wrong in a file of a target."""

    message: str
    place: Place
    help: str = ""


def refusal(problems: list[TargetProblem]) -> CosetError:
    """One error of all `problems`: the first with its place, the others a line each."""
    first, *others = sorted(problems, key=lambda problem: problem.place.line)
    lines = [f"also {problem.place.file}:{problem.place.line}: {problem.message}" for problem in others[:9]]
    lines += [f"and {len(others) - 9} more"] if len(others) > 9 else []
    return CosetError(
        first.message, place=first.place, help="\n  ".join([first.help or "docs/targets.md says what a file may hold", *lines])
    )


@dataclass(frozen=True)
class Document:
    """A file laid over those that it is based on. `files`: the base's before its own; `names`: what `base` called them, nearest first."""

    files: tuple[File, ...]
    names: tuple[str, ...]
    sections: Mapping[str, Mapping[str, Entry]]
    whole: Mapping[str, Entry]
    legal: tuple[Mapping[str, Entry], ...]  # of each file, in the order of `files`

    @property
    def file(self) -> File:
        """The file itself."""
        return self.files[-1]


def target_files() -> dict[str, Path]:
    """The files of the targets of this folder, by name; what they are based on beside it."""
    return {path.stem: path for path in sorted(HERE.glob("*.toml"))}


def other_names() -> dict[str, str]:
    """Other names of targets, each with the one that it means."""
    found = {name: read_file(path).data.get("alias") for name, path in target_files().items()}
    return {name: alias for name, alias in found.items() if alias is not None}


def own_file(name: str) -> Path | None:
    """The file of this folder that `name` means: a target or a base."""
    if not name.replace("-", "").isalnum():
        return None
    return next((path for path in (HERE / f"{name}.toml", HERE / "bases" / f"{name}.toml") if path.is_file()), None)


@cache
def own_document(name: str) -> Document:
    """The document of one of our own files, which is read once."""
    path = own_file(name)
    assert path is not None, name
    file = read_file(path)
    return own_document(file.data["alias"]) if "alias" in file.data else laid_out(file)


def laid_out(file: File, *, users: tuple[Path, ...] = ()) -> Document:
    """`file` over its bases; `users`: the files that led here.

    Raises:
        CosetError: a file cannot be read, is no TOML, has unknown keys, or a base is none.
    """
    problems: list[TargetProblem] = []
    base = _base(file, (*users, file.path.resolve()), problems)
    sections = {section: dict(base.sections[section]) if base else {} for section in SECTIONS}
    whole = dict(base.whole) if base else {}
    legal: dict[str, Entry] = {}
    for entry in file.entries():
        (key,) = entry.keys
        if key in SECTIONS and _is_table(entry, problems):
            sections[str(key)].update(entry.items())
            if key == "numbers":  # never a number that is not known: what the base says of another machine is taken back
                sections["numbers"] = {name: each for name, each in sections["numbers"].items() if each.value != UNKNOWN}
        elif key in WHOLE:
            whole[str(key)] = entry
        elif key == "legal" and _is_table(entry, problems):
            legal = dict(entry.items())
            problems += [_unknown(each, LEGAL) for name, each in legal.items() if name not in LEGAL]
        elif key not in (*SECTIONS, "legal", "base"):
            problems.append(_unknown(entry, {*SECTIONS, *WHOLE, "legal", "base"}))
    if problems:
        raise refusal(problems)
    named = (base.file.path.stem, *base.names) if base else ()
    return Document((*(base.files if base else ()), file), named, sections, whole, (*(base.legal if base else ()), legal))


def _is_table(entry: Entry, problems: list[TargetProblem]) -> bool:
    if isinstance(entry.value, dict):
        return True
    problems.append(TargetProblem(f"`{entry.name}` is no table", entry.place, f"write [{entry.name}] and its entries below"))
    return False


def _unknown(entry: Entry, known: set[str] | frozenset[str]) -> TargetProblem:
    return TargetProblem(f"`{entry.name}` is no key of a target", entry.place, f"there are: {', '.join(sorted(known))}")


def _base(file: File, users: tuple[Path, ...], problems: list[TargetProblem]) -> Document | None:
    if "base" not in file.data:
        return None
    entry = Entry(file.data["base"], file, ("base",))
    name = entry.value
    if not isinstance(name, str):
        problems.append(TargetProblem("`base` is no text", entry.place, 'name a target, as in base = "cpu-onnxruntime"'))
        return None
    if not name.endswith(".toml"):
        path = own_file(name)
        if path is None:
            known = ", ".join(sorted([*target_files(), *(path.stem for path in (HERE / "bases").glob("*.toml"))]))
            problems.append(TargetProblem(f"there is no base `{name}`", entry.place, f"a file that ends in .toml, or one of: {known}"))
            return None
        if path.resolve() not in users:
            return own_document(name)
    path = file.path.parent / name if name.endswith(".toml") else file.path
    if path.resolve() in users:
        problems.append(TargetProblem(f"the base `{name}` leads back to itself", entry.place, "a chain of bases must end"))
        return None
    if not path.is_file():
        problems.append(TargetProblem(f"there is no base `{name}` at {path}", entry.place, "a base is named from the folder of the file"))
        return None
    return laid_out(read_file(path), users=users)


def read_file(path: Path) -> File:
    """The TOML at `path`.

    Raises:
        CosetError: there is none, it is too large, or it is no TOML.
    """
    here = Place(str(path))
    try:
        if path.exists() and not path.is_file():
            raise CosetError(f"`{path}` is no file", place=here, help="name the .toml file of a target")
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
    except FileNotFoundError:
        raise CosetError(f"there is no file `{path}`", place=here, help="one of `coset targets`, or the path of a .toml file") from None
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise CosetError(f"`{path}` cannot be read: {what}", place=here, help="check the path and its permissions") from None
    if len(content) > LARGEST:
        raise CosetError(f"`{path}` has more than {LARGEST} bytes", place=here, help="a target takes a few kB: is this another file?")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        where = Place(str(path), line, error.start - content.rfind(b"\n", 0, error.start))
        raise CosetError(f"`{path}` is not UTF-8", place=where, help="save it as UTF-8") from None
    try:
        return File(path, text, tomllib.loads(text))
    except (ValueError, RecursionError) as error:
        raise _no_toml(path, text, error) from None


def _no_toml(path: Path, text: str, error: Exception) -> CosetError:
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", str(error), re.S)
    what = "it nests too deep" if isinstance(error, RecursionError) else found[1] if found else str(error)
    lines = text.splitlines()
    line = int(found[2]) if found and found[2] else max(1, len(lines))
    source = lines[line - 1] if line <= len(lines) else ""
    column = int(found[3]) if found and found[3] else len(source) + 1
    help = "TOML: key = value, texts in quotes, one-line tables in braces, [name] before the entries of a table"
    return CosetError(
        f"`{path.name}` is no TOML: {what}", place=Place(str(path), line, column, source if len(source) <= LONGEST else ""), help=help
    )
