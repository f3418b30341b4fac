"""A file of a target as a `Target`: every number with its unit and its source, every name one that is there."""

from __future__ import annotations

from pathlib import Path

from coset.ir.problems import FileProblem, refusal
from coset.ir.suggestions import likely
from coset.ir.types import DTYPES
from coset.targets.condition import find_condition, known_words
from coset.targets.document import (
    Entry,
    laid_out,
    names_of_numbers,
    other_names,
    own_document,
    own_file,
    read_file,
    target_files,
)
from coset.targets.keys import FORM, FUSED, FUSION, PRODUCTS, SESSIONS, STORING
from coset.targets.ops import misspelt_ops
from coset.targets.read_numbers import BUSY, SECONDS, NumberReader
from coset.targets.running import LEVELS, Sessions
from coset.targets.target import DIALECTS, Form, Fusion, Storing, Target

ASKED = ("host", "convert", "transfer", "matmul", "wanted")  # kernels that no form need name
NAMED = ("dtypes", "launches", "rates", "curves", "kernels")  # sections whose entries say nothing unless something names them


def read_target(path: Path, name: str) -> Target:
    """The target that the file at `path` describes.

    Raises:
        CosetError: there is no file, or it is no TOML.
        WrongFile: the file says something that no target can be; with place and remedy of each mistake.
    """
    problems: list[FileProblem] = []
    document = laid_out(read_file(path), problems)
    reader = _Reader(document, problems)
    found = reader.target(name)
    if problems:
        named_first = [str(file.path) for file in reversed(document.files)]
        raise refusal([*problems, *misspelt_ops(document)], named_first)
    return found


def own_target(name: str) -> Target | None:
    """The target of ours that is called `name`, which may be another name of it."""
    path = own_file(name)
    if path is None or path.parent.name == "bases":
        return None
    document = own_document(name)
    reader = _Reader(document, [])
    found = reader.target(document.file.path.stem)
    assert not reader.problems, reader.problems
    return found


class _Reader(NumberReader):
    """Reads one document."""

    # ------------------------------------------------------------ the whole

    def target(self, name: str) -> Target:
        """The target; anything where `problems` are found."""
        whole = self.document.whole
        dialect = self._dialect()
        for kernel, what in (("host", "numbers of the host"), ("convert", "what `casts` cast")):
            if kernel not in self.document.sections["kernels"] and (kernel == "host" or self.document.sections["casts"]):
                self.missing("kernels", kernel, f"add it to [kernels]: what it costs to compute {what}")
        kernels = {key: self.kernel(entry) for key, entry in self.document.sections["kernels"].items()}
        for section, make in (("launches", self.launch), ("rates", self.rates), ("curves", self.curve), ("dtypes", self.dtypes)):
            for key in self.document.sections[section]:
                self.named(section, key, make)
        for entry in self.document.sections["sources"].values():
            self.text(entry)
        standard = bool("standard" in whole and self.flag(whole["standard"]))
        if standard and dialect not in (None, "onnx"):
            self.wrong(whole["standard"], f"`standard` is said of ONNX, and this target takes {dialect}", "leave it out")
        found = Target(
            name=name,
            title=(self.text(whole["title"]) if "title" in whole else None) or "",
            dialect=dialect or "",
            kernels={key: kernel for key, kernel in kernels.items() if kernel is not None},
            forms=self.forms(),
            default=self.default(),
            casts={key: cast for key, cast in ((key, self.cast(entry)) for key, entry in self.section("casts")) if cast is not None},
            numbers={key: rate for key, rate in ((key, self.fact(key)) for key, _ in self.section("numbers")) if rate is not None},
            folds_constants=bool("folds_constants" in whole and self.flag(whole["folds_constants"])),
            strict=bool("strict" in whole and self.flag(whole["strict"])),
            standard=standard,
            storing=self.storing(whole["storing"]) if "storing" in whole else Storing(),
            merges=self.number(whole["merges"], ("rows",)) if "merges" in whole else None,
            fusion=self.fusion(whole["fusion"]) if "fusion" in whole else None,
            sessions=self.sessions(whole["sessions"]) if "sessions" in whole and not standard else None,
            host=self.host(whole["host"], dialect) if "host" in whole else None,
            notes=(self.text(whole["notes"], empty=True) if "notes" in whole else None) or "",
            bases=self.document.names,
        )
        self._refuse_unused()
        return found

    def _refuse_unused(self) -> None:
        """Enter the file's own entries that nothing names: most are misspelt, and would leave the base's number as it is."""
        for section in NAMED:
            there = self.document.sections[section]
            for name, entry in self._added(section):
                if (section, name) not in self.used and not (section == "kernels" and name in ASKED):
                    others = [each for each in there if each != name]
                    self.unknown(entry, "nothing names this entry", name, others, "name it where it is to count, or leave it out")
        for name, entry in self._added("numbers"):
            known = [] if ("numbers", name) in self.used else names_of_numbers()
            if name not in known and likely(name, known) is not None:  # of another name it may be for who reads the file
                self.unknown(entry, "nothing reads this number", name, known, "")

    def _added(self, section: str) -> list[tuple[str, Entry]]:
        """The file's own entries of a section, without those that take the place of one of its base."""
        if not self.document.whole_base:
            return []
        inherited = self.document.inherited.get(section, ())
        return [(name, entry) for name, entry in self.section(section) if entry.file is self.document.file and name not in inherited]

    def _dialect(self) -> str | None:
        """What the target takes; it and the title must be said."""
        whole = self.document.whole
        for key in ("title", "dialect"):
            if key not in whole:
                self.missing("", key, f'add {key} = ".." at the top')
        dialect = self.text(whole["dialect"]) if "dialect" in whole else None
        if dialect is not None and dialect not in DIALECTS:
            listed = f"what is written is one of: {', '.join(DIALECTS)}"
            self.unknown(whole["dialect"], f"there is no dialect `{dialect}`", dialect, DIALECTS, listed)
        return dialect

    def host(self, entry: Entry, dialect: str | None) -> str | None:
        """The target that computes what this one cannot."""
        name = self.text(entry)
        if name is None:
            return None
        path = own_file(name)
        whole = own_document(name).whole if path is not None and path.parent.name != "bases" else None
        if whole is None:
            known = [each for each in target_files() if each not in other_names()]
            self.unknown(entry, f"there is no target `{name}`", name, known, "the host is one of `coset targets`, as cpu-onnxruntime")
        elif "host" in whole:
            self.wrong(entry, f"`{name}` has a host itself", "take one that runs everything")
        elif whole["dialect"].value != dialect:
            self.wrong(entry, f"`{name}` takes {whole['dialect'].value}, and this target {dialect}", "both must read one program")
        if "transfer" not in self.document.sections["kernels"]:
            self.missing("kernels", "transfer", "add it to [kernels]: what it costs to move a value to the host")
        return own_document(name).file.path.stem if whole is not None else None

    # ------------------------------------------------------------ legality

    def dtypes(self, entry: Entry) -> frozenset[str] | None:
        """Names of dtypes and of sets of `dtypes`, each in turn added or, after a `-`, taken away."""
        text = self.text(entry)
        if text is None:
            return None
        found: frozenset[str] = frozenset()
        sets = self.document.sections["dtypes"]
        for word in text.split():
            name = word.removeprefix("-")
            if name not in DTYPES and name not in sets:
                if self.document.is_known_not(name):
                    help = f"dtypes: {', '.join(DTYPES)}; sets of [dtypes]: {', '.join(sets) or 'none'}"
                    self.unknown(entry, f"there is no dtype `{name}`", name, (*DTYPES, *sets), help)
                self.used |= {("dtypes", meant) for meant in (likely(name, sets),) if meant}
                continue
            self.used.add(("dtypes", name))
            if name in sets and self.known.get(("dtypes", name)) is BUSY:
                self.wrong(entry, f"`{name}` is made from itself", "leave it out of its own set")
                continue
            more = self.named("dtypes", name, self.dtypes) if name in sets else frozenset({name})
            found = found - (more or found) if word != name else found | (more or found)
        return found

    def cast(self, entry: Entry) -> str | None:
        for name in (str(entry.keys[-1]), self.text(entry)):
            if name is not None and name not in DTYPES:
                self.unknown(entry, f"there is no dtype `{name}`", name, tuple(DTYPES), f"there are: {', '.join(DTYPES)}")
                return None
        return self.text(entry)

    def default(self) -> Form:
        """The form of ops of the dialect that have none of their own."""
        given = [legal["default"] for legal in self.document.legal if "default" in legal]
        if not given:
            self.missing("legal", "default", "add it to [legal]: the kernel of ops of the dialect that have no form of their own")
            return Form("")
        return Form(self.kernel_name(given[-1]) or "")

    def forms(self) -> dict[str, tuple[Form, ...]]:
        """Forms by op, first those that are preferred. What a file says of an op takes the place of all that its base says of it."""
        forms: dict[str, tuple[Form, ...]] = {}
        for legal in self.document.legal:
            own: dict[str, tuple[Form, ...]] = {}
            for entry in self.array(legal["forms"], "forms") if "forms" in legal else []:
                ops, form = self.form(entry)
                for op in ops if form is not None else ():
                    own[op] = (*own.get(op, ()), form)  # type: ignore[arg-type]
            for op in self.ops(legal["never"]) if "never" in legal else ():
                if own.get(op):
                    self.wrong(legal["never"], f"`{op}` has a form in this file too", "leave out the form, or the name here")
                own[op] = ()
            forms.update(own)
        return forms

    def ops(self, entry: Entry) -> list[str]:
        """Names of ops; one without a dialect is StableHLO's."""
        words = (self.text(entry) or "").split()
        for word in words:
            if not all(part.isidentifier() for part in word.split(".")):
                self.wrong(entry, f"`{word}` is no name of an op", "names with spaces between them; `coset rules --ops` lists the ops")
        return [word if "." in word else f"stablehlo.{word}" for word in words]

    def kernel_name(self, entry: Entry) -> str | None:
        name = self.text(entry)
        return name if name is not None and self.named_entry(entry, "kernels", name) else None

    def form(self, entry: Entry) -> tuple[list[str], Form | None]:
        found = self.table(entry, FORM)
        if found is None:
            return [], None
        ops, kernel = self.ops(found["ops"]), self.kernel_name(found["kernel"])
        counts = {key: self.count(found[key], least) for key, least in (("nodes", 1), ("kept", 0), ("typed", 0)) if key in found}
        return ops, Form(
            kernel or "",
            self.dtypes(found["dtypes"]) if "dtypes" in found else None,
            self.conditions(found["conditions"]) if "conditions" in found else (),
            counts.get("nodes") or 1,
            frozenset(self.count(each) or 0 for each in self.array(found["views"], "operands")) if "views" in found else frozenset(),
            counts.get("kept") or 0,
            counts.get("typed") or 0,
            self.kernel_name(found["reorder"]) if "reorder" in found else None,
            tuple(self.one_pass(each) for each in self.array(found["passes"], "passes")) if "passes" in found else (),
            bool("joint" in found and self.flag(found["joint"])),
            self.kernel_name(found["guesses"]) if "guesses" in found else None,
            bool("whole" in found and self.flag(found["whole"])),
        )

    def conditions(self, entry: Entry) -> tuple[str, ...]:
        words = tuple((self.text(entry) or "").split())
        for word in words:
            if find_condition(word) is None:
                known = known_words()
                self.unknown(entry, f"there is no condition `{word}`", word, known, f"there are: {', '.join(known)}")
        return words

    def one_pass(self, entry: Entry) -> tuple[str, int]:
        pair = entry.value
        if not isinstance(pair, list) or len(pair) != 2 or type(pair[1]) is not int or pair[1] < -1:
            self.wrong(entry, "is no pass", 'a kernel and the operand that it goes over, -1 for the result: ["summand", -1]')
            return "", -1
        return self.kernel_name(next(entry.listed())) or "", pair[1]

    # ------------------------------------------------------------ constants and sessions

    def storing(self, entry: Entry) -> Storing:
        found = self.table(entry, STORING)
        if found is None:
            return Storing()
        growth, small = self.number(found["growth"], ("times",)), self.number(found["small"], ("B",), zero=True)
        kept = frozenset(self.text(each) or "" for each in self.array(found["kept"], "ops")) if "kept" in found else frozenset()
        return Storing(growth.value if growth else 1.0, int(small.value) if small else 0, kept)

    def fusion(self, entry: Entry) -> Fusion | None:
        found = self.table(entry, FUSION)
        names = {} if found is None else {key: self.kernel_name(each) for key, each in found.items()}
        fused, products = ([key.name for key in keys] for keys in (FUSED, PRODUCTS))
        if found is None or None in names.values():
            return None
        for key in ("product", *products):
            product = self.document.sections["kernels"].get(str(names.get(key)))
            if product is not None and isinstance(product.value, dict) and "rates" not in product.value:
                self.wrong(found[key], f"`{names[key]}` has no rates", "products are priced by their FLOP")
        return Fusion(*(str(names[key]) for key in fused), *(names.get(key) for key in products))

    def sessions(self, entry: Entry) -> Sessions | None:
        found = self.table(entry, SESSIONS)
        if found is None:
            return None
        levels = tuple(self.text(each) or "" for each in self.array(found["levels"], "levels"))
        if not set(levels) <= set(LEVELS) or levels[-1:] != LEVELS[-1:]:
            self.wrong(found["levels"], "is no list of levels that ends with the one that changes nothing", f"of: {', '.join(LEVELS)}")
        disabled = dict(found["disabled"].items()) if self.is_table(found.get("disabled")) else {}
        alone = self.number(found["alone"], SECONDS)
        stacked = frozenset(self.text(each) or "" for each in self.array(found["stacked"], "names")) if "stacked" in found else frozenset()
        if alone is None:
            return None
        return Sessions(levels, {key: self.text(each) or "" for key, each in disabled.items()}, alone, stacked)

    def is_table(self, entry: Entry | None) -> bool:
        if entry is not None and not isinstance(entry.value, dict):
            self.wrong(entry, "is no table", "a name and, in quotes, its measurement")
        return entry is not None and isinstance(entry.value, dict)
