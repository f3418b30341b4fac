"""Files of targets: read as TOML, laid over the file that they are based on, nothing said yet of what the values mean."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from coset.ir.errors import CosetError
from coset.ir.place import Place, lines_of
from coset.ir.problems import FileProblem
from coset.ir.suggestions import like, likely
from coset.targets.keys import LEGAL, SECTIONS, TOP, WHOLE

HERE = Path(__file__).resolve().parent
Keys = tuple[str | int, ...]
"""The way to a value: keys of tables and numbers of items, from the outermost."""
LONGEST = 400
"""Characters of a line that an error repeats."""
LARGEST = 1 << 20
"""B of a file at most: the largest of ours has 20 kB."""
UNKNOWN = "unknown"
"""In place of a number of the base that is not this machine's."""


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
class Document:
    """A file laid over those that it is based on. `files`: the base's before its own; `names`: what `base` called them, nearest first.
    `inherited`: the names in the base's sections. `doubtful`: names of entries of tables that there are not. `whole_base`: False
    where there are names that could not be read, since a base or a section is not what it should be."""

    files: tuple[File, ...]
    names: tuple[str, ...]
    sections: Mapping[str, Mapping[str, Entry]]
    whole: Mapping[str, Entry]
    legal: tuple[Mapping[str, Entry], ...]  # of each file, in the order of `files`
    inherited: Mapping[str, frozenset[str]] = field(default_factory=dict)
    doubtful: frozenset[str] = frozenset()
    whole_base: bool = True

    @property
    def file(self) -> File:
        """The file itself."""
        return self.files[-1]

    def is_known_not(self, name: str) -> bool:
        """Whether an entry that is not there would be there if it were: it stands in no table that could not be read."""
        return self.whole_base and name not in self.doubtful


def target_files() -> dict[str, Path]:
    """The files of the targets of this folder, by name; what they are based on beside it."""
    return {path.stem: path for path in sorted(HERE.glob("*.toml"))}


def other_names() -> dict[str, str]:
    """Other names of targets, each with the one that it means."""
    found = {name: read_file(path).data.get("alias") for name, path in target_files().items()}
    return {name: alias for name, alias in found.items() if alias is not None}


def names_of_numbers() -> list[str]:
    """What the numbers of our own targets are called: only such are read."""
    names = target_files().keys() - other_names().keys()
    return sorted({number for name in names for number in own_document(name).sections["numbers"]})


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
    if "alias" in file.data:
        return own_document(file.data["alias"])
    problems: list[FileProblem] = []
    document = laid_out(file, problems)
    assert not problems, problems
    return document


def laid_out(file: File, problems: list[FileProblem], *, users: tuple[Path, ...] = ()) -> Document:
    """`file` over its bases; `users`: the files that led here. What is wrong is added to `problems`, and what was meant is read on.

    Raises:
        CosetError: a file cannot be read, or is no TOML.
    """
    base, found = _base(file, (*users, file.path.resolve()), problems)
    sections = {section: dict(base.sections[section]) if base else {} for section in SECTIONS}
    inherited = {section: frozenset(entries) for section, entries in sections.items()}
    whole = dict(base.whole) if base else {}
    legal: dict[str, Entry] = {}
    doubtful = set(base.doubtful if base else ())
    entries = {str(entry.keys[0]): entry for entry in file.entries()}
    for key, entry in known_entries(entries, TOP.names, "is no key of a target", problems).items():
        if key in WHOLE:
            whole[key] = entry
        elif key in (*SECTIONS, "legal") and not isinstance(entry.value, dict):
            problems.append(FileProblem(f"`{entry.name}` is no table", entry.place, f"write [{entry.name}] and its entries below"))
            found = False
        elif key in SECTIONS:
            sections[key].update(entry.items())
            if key == "numbers":
                sections[key] = _taken_back(sections[key], inherited[key], problems)
        elif key == "legal":
            legal = known_entries(dict(entry.items()), LEGAL.names, "is no key of [legal]", problems)
    for key, entry in entries.items():
        if key not in TOP.names and isinstance(entry.value, dict):
            doubtful |= entry.value.keys()
    named = (base.file.path.stem, *base.names) if base else ()
    return Document(
        (*(base.files if base else ()), file), named, sections, whole, (*(base.legal if base else ()), legal), inherited,
        frozenset(doubtful), found and (base is None or base.whole_base),
    )  # fmt: skip


def _taken_back(numbers: Mapping[str, Entry], inherited: AbstractSet[str], problems: list[FileProblem]) -> dict[str, Entry]:
    """The `numbers` without those of the base that the file says are not known: never a number of another machine."""
    for name, each in numbers.items():
        if each.value == UNKNOWN and name not in inherited:
            help = like(name, inherited) or "leave out a number that is not known"
            problems.append(FileProblem(f"`{each.name}`: the base has no such number", each.place, help))
    return {name: each for name, each in numbers.items() if each.value != UNKNOWN}


def known_entries(given: Mapping[str, Entry], known: Sequence[str], what: str, problems: list[FileProblem]) -> dict[str, Entry]:
    """The entries of `given` under keys that are `known`. Each other key is a problem, which says `what`; its entry is found under the key
    that it is most like, if that is not there, so that what stands in it is read too and nothing is said to be missing."""
    found = {key: entry for key, entry in given.items() if key in known}
    for key, entry in given.items():
        if key not in known:
            help = like(key, known) or f"there are: {', '.join(sorted(known))}"
            problems.append(FileProblem(f"`{entry.name}` {what}", entry.place, help))
            meant = likely(key, [each for each in known if each not in given])
            if meant is not None:
                found.setdefault(meant, entry)
    return found


def _base(file: File, users: tuple[Path, ...], problems: list[FileProblem]) -> tuple[Document | None, bool]:
    """The document that `file` is based on; and whether one is there, or none was asked for."""
    if "base" not in file.data:
        return None, True
    entry = Entry(file.data["base"], file, ("base",))
    name = entry.value
    if not isinstance(name, str):
        problems.append(FileProblem("`base` is no text", entry.place, 'name a target, as in base = "cpu-onnxruntime"'))
        return None, False
    is_path = name.endswith(".toml") or "/" in name or "\\" in name
    if not is_path:
        path = own_file(name)
        if path is None:
            known = sorted([*target_files(), *(path.stem for path in (HERE / "bases").glob("*.toml"))])
            help = like(name, known) or f"a file that ends in .toml, or one of: {', '.join(known)}"
            problems.append(FileProblem(f"there is no base `{name}`", entry.place, help))
            meant = likely(name, known)
            return (None if meant is None else own_document(meant)), meant is not None
        if path.resolve() not in users:
            return own_document(name), True
    path = file.path.parent / name if is_path else file.path
    if path.resolve() in users:
        problems.append(FileProblem(f"the base `{name}` leads back to itself", entry.place, "a chain of bases must end"))
        return None, False
    if not path.is_file():
        own = own_file(Path(name).stem)
        meant = f'for the one that comes with coset write base = "{Path(name).stem}"; ' if own is not None else ""
        help = f"{meant}a file is looked for from the folder of this one"
        problems.append(FileProblem(f"there is no base `{name}` at {path}", entry.place, help))
        return None, False
    return laid_out(read_file(path), problems, users=users), True


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
    lines = lines_of(text)
    line = int(found[2]) if found and found[2] else max(1, len(lines))
    source = lines[line - 1] if line <= len(lines) else ""
    column = int(found[3]) if found and found[3] else len(source) + 1
    help = "TOML: key = value, texts in quotes, one-line tables in braces, [name] before the entries of a table"
    return CosetError(
        f"`{path.name}` is no TOML: {what}", place=Place(str(path), line, column, source if len(source) <= LONGEST else ""), help=help
    )
