"""The attack on the prover of rules: false rules that it must refute, and true ones beside them that it must show.

    python -m benchmarks.false_rules [--kind K ..] [--sample N --seed S] [--names N] [--json PATH]
    python -m benchmarks.false_rules --generate 100 --seed 1      # writes benchmarks/attacks/generated_1.rules anew

`benchmarks/attacks/` has the rules by kind. An oracle that knows nothing of the prover (`benchmarks.promise_oracle`) is shown the input
below each false rule first: one that breaks no promise there is a mistake of the corpus. Then each rule is tested and proved as
`coset check` does it, without a lock file. The table has verdicts by kind; after it stands every false rule that is not refuted with its
witness, and every true one that is refuted or not proved. `--names 20` gives each rule so many other names and lists those whose verdict
depends on it.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import coset.dialects
from benchmarks.promise_oracle import BITS, PRECISION, RANGE, VALUES, broken, sides
from coset.ir.errors import CosetError
from coset.ir.registry import all_ops
from coset.prove.check import Effort, check_rules
from coset.rules.elaborate import rules_of
from coset.rules.equation import RuleTypeError
from coset.rules.ground import given, instance
from coset.rules.library import check_files, read_text
from coset.rules.lock import text_hash
from coset.rules.parser import parse
from coset.rules.rule import Rule
from coset.rules.syntax import Ground, RuleEntry, RuleError

assert coset.dialects
FOLDER = Path(__file__).parent / "attacks"
MISSES = FOLDER / "known_misses.txt"
GENERATED = "generated"
TRUE = "true"
PARTS = {"bits": BITS, "A": VALUES, "B": VALUES, "C": RANGE, "D": VALUES, "E": PRECISION, "F": VALUES, "G": VALUES}
VERDICTS = ("refuted", "assumed", "unknown", "tested", "bounded", "proved")
_BREAKS = re.compile(r"# breaks (\w+): ")
_UNSHOWN = re.compile(r"# (by law \w+|found): (.*)")


@dataclass(frozen=True)
class Attack:
    """A rule of the corpus: its kind, and the inputs that show that it is false, each with the part of the promise that it breaks."""

    kind: str
    name: str
    rules: tuple[Rule, ...]
    grounds: tuple[tuple[str, Ground], ...]
    witness: str

    @property
    def false(self) -> bool:
        """Whether it is one of the false ones."""
        return not self.kind.startswith(TRUE)

    @property
    def key(self) -> str:
        """What tells it from all others, its text included."""
        return f"{self.kind}/{self.name} {text_hash(self.rules[0].text)}"


@dataclass(frozen=True)
class Judged:
    """What `coset check` says of one rule of the corpus."""

    key: str
    kind: str
    name: str
    false: bool
    verdict: str
    method: str
    witness: str
    seconds: float


def kinds() -> list[str]:
    """The kinds of rules that there are, by name."""
    return sorted(path.stem for path in FOLDER.glob("*.rules"))


def corpus(kind: str) -> list[Attack]:
    """The rules of one kind, in the order of the file.

    Raises:
        RuleError: a rule that cannot be read.
    """
    path = FOLDER / f"{kind}.rules"
    text = read_text(path)
    file, errors = parse(_BREAKS.sub("test ", text), str(path))
    if errors:
        raise errors[0]
    rules = _with_definitions(path) if file.ops else {}
    dialects = {name: dialect for name, dialect, _ in file.dialects}
    blocks = {block.split(None, 1)[0]: block for block in re.split(r"(?m)^rule ", text)[1:]}
    return [_attack(kind, entry, rules, dialects, blocks[entry.name]) for entry in file.rules]


def _attack(kind: str, entry: RuleEntry, defined: dict[str, list[Rule]], dialects: dict[str, str], block: str) -> Attack:
    rules = defined.get(entry.name) or _elaborated(entry, dialects)
    parts = _BREAKS.findall(block)
    unshown = _UNSHOWN.search(block)
    shown = [line.strip().removeprefix("# ") for line in block.splitlines() if _BREAKS.search(line)]
    witness = unshown.group(0).removeprefix("# ") if unshown else "; ".join(shown)
    return Attack(kind, entry.name, tuple(rules), tuple(zip(parts, entry.tests, strict=True)), witness)


def _elaborated(entry: RuleEntry, dialects: dict[str, str]) -> list[Rule]:
    rules, errors = rules_of(replace(entry, tests=()), dialects)
    if errors:
        raise errors[0]
    return rules


def _with_definitions(path: Path) -> dict[str, list[Rule]]:
    """The rules of a file that defines ops of its own, by entry, read from a copy so that no lock file counts or is written."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        copy.write_text(read_text(path))
        rules, errors = check_files([copy])
        if errors:
            raise errors[0]
        found: dict[str, list[Rule]] = {}
        for rule in rules.rules:
            if rule.place.file == str(copy) and rule.definition is None:
                found.setdefault(rule.family, []).append(rule)
        return found


# ---------------------------------------------------------------- witnesses


def unbroken(attack: Attack) -> list[str]:
    """The witnesses of a false rule on which the oracle sees no broken promise, and why."""
    return [f"{part}: {reason}" for part, ground in attack.grounds if (reason := _kept(attack, part, ground))]


def _kept(attack: Attack, part: str, ground: Ground) -> str:
    """Why a witness does not show that the rule is false; nothing where it does."""
    reasons: list[str] = []
    for rule in attack.rules:
        try:
            known = given(rule, ground)
            found = instance(rule, known) if known is not None else "other operands"
            pair = None if isinstance(found, str) else sides(rule, found)
            if known is None or pair is None:
                reasons.append(found if isinstance(found, str) else "it does not fire")
                continue
            if broken(rule, pair, {name: arrays[0] for name, arrays in known.arrays.items()}, PARTS[part]) is not None:
                return ""
            reasons.append("the promise is kept")
        except RuleTypeError:
            return ""  # the sides have different types
        except CosetError as error:
            reasons.append(error.message)
    return ", ".join(dict.fromkeys(reasons))


# ---------------------------------------------------------------- verdicts


def judged(attack: Attack) -> Judged:
    """The verdict on a rule of the corpus."""
    start = time.perf_counter()
    try:
        (verdict,) = check_rules(attack.rules, effort=Effort(repaired=False))
        assurance, method = verdict.assurance, verdict.method
    except RuleError as error:
        assurance, method = "refuted", error.message
    seconds = round(time.perf_counter() - start, 2)
    return Judged(attack.key, attack.kind, attack.name, attack.false, assurance, method, attack.witness, seconds)


def recorded(path: Path | None) -> dict[str, Judged]:
    """What an earlier run has found."""
    if path is None or not path.exists():
        return {}
    return {each.key: each for each in (Judged(**json.loads(line)) for line in path.read_text().splitlines())}


def renamed(attack: Attack, count: int) -> Counter[str]:
    """How often the tests refute the rule, and do not, when it has `count` other names: what a proof says does not depend on the name, but
    draws may be seeded by it."""
    found: Counter[str] = Counter()
    for number in range(count):
        family = attack.rules[0].family
        rules = [
            replace(rule, name=rule.name.replace(family, f"{family}_{number}", 1), family=f"{family}_{number}") for rule in attack.rules
        ]
        (verdict,) = check_rules(rules, effort=Effort(proofs=False, repaired=False))
        found[verdict.assurance] += 1
    return found


def chosen(names: Sequence[str], sample: int | None, seed: int) -> list[Attack]:
    """The rules of these kinds; of all of them `sample` that are drawn by `seed`, where it is given."""
    found = [attack for kind in names for attack in corpus(kind)]
    return found if sample is None else random.Random(seed).sample(found, min(sample, len(found)))


def misses() -> dict[str, str]:
    """What the prover is known to get wrong: rules that are called proved, with the cause."""
    if not MISSES.exists():
        return {}
    lines = [line.split(None, 1) for line in MISSES.read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {name: cause.strip() for name, cause in lines}


# ---------------------------------------------------------------- the report


def report(found: Sequence[Judged]) -> str:
    """The table by kinds, the shares, what is false and was not refuted, and what is true and was not proved."""
    lines = [f"{'':20}" + "".join(f"{word:>9}" for word in (*VERDICTS, "all"))]
    for kind in (*dict.fromkeys(each.kind for each in found), "false", "true"):
        own = [each for each in found if each.kind == kind or kind == ("false" if each.false else "true")]
        counts = Counter(each.verdict for each in own)
        lines.append(f"{kind:20}" + "".join(f"{counts[word]:>9}" for word in VERDICTS) + f"{len(own):>9}")
    false, true = ([each for each in found if each.false == wanted] for wanted in (True, False))
    for own, words in ((false, ("proved",)), (false, ("bounded", "tested")), (true, ("refuted",)), (true, ("proved",))):
        number = sum(each.verdict in words for each in own)
        lines.append(
            f"{'false' if own is false else 'true'} and {' or '.join(words)}: {number} of {len(own)} ({number / max(1, len(own)):.1%})"
        )
    lines.append(f"{sum(each.seconds for each in found):.0f} s; slowest: {_slowest(found)}")
    for word in reversed(VERDICTS[1:]):
        own = [each for each in false if each.verdict == word]
        lines += ["", f"false, {word}:", *(f"  {each.kind}/{each.name}: {each.witness}" for each in own)] if own else []
    for word in VERDICTS[:-1]:
        own = [each for each in true if each.verdict == word]
        lines += ["", f"true, {word}:", *(f"  {each.kind}/{each.name}: {each.method}" for each in own)] if own else []
    return "\n".join(lines)


def _slowest(found: Sequence[Judged]) -> str:
    return ", ".join(f"{each.name} {each.seconds:.0f} s" for each in sorted(found, key=lambda each: -each.seconds)[:4])


def _named(attacks: Iterable[Attack], count: int) -> None:
    """Print the rules whose verdict depends on their name."""
    print(f"verdicts under {count} names:", flush=True)
    for attack in attacks:
        counts = renamed(attack, count)
        if len(counts) > 1:
            print(f"  {attack.kind}/{attack.name}: {', '.join(f'{word} {number}' for word, number in counts.items())}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", nargs="*", choices=kinds(), help="kinds of rules; all where none is given")
    parser.add_argument("--sample", type=int, help="so many rules, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--names", type=int, default=0, help="look whether verdicts depend on the name, with so many names for each rule")
    parser.add_argument("--generate", type=int, help="write so many false rules anew that are made of the library's")
    parser.add_argument("--record", type=Path, help="a file of verdicts, to which each is added, and from which a run goes on")
    parser.add_argument("--json", type=Path, help="where to write all verdicts")
    arguments = parser.parse_args()
    all_ops()
    if arguments.generate is not None:
        from benchmarks.generated_rules import generate

        name = f"{GENERATED}_{arguments.seed}" if arguments.seed else GENERATED
        generate(FOLDER / f"{name}.rules", arguments.generate, arguments.seed)
        return
    attacks = chosen(arguments.kind or kinds(), arguments.sample, arguments.seed)
    if arguments.names:
        _named(attacks, arguments.names)
        return
    for attack in attacks:
        for reason in unbroken(attack):
            print(f"{attack.kind}/{attack.name} is not shown to be false by its witness: {reason}")
    known = recorded(arguments.record)
    found = []
    for number, attack in enumerate(attacks):
        each = known.get(attack.key) or judged(attack)
        found.append(each)
        if arguments.record is not None and attack.key not in known:
            with arguments.record.open("a") as file:
                print(json.dumps(asdict(each)), file=file)
        print(f"{number + 1}/{len(attacks)} {each.kind}/{each.name}: {each.verdict}, {each.seconds} s", file=sys.stderr, flush=True)
    print(report(found))
    if arguments.json is not None:
        arguments.json.write_text("[\n" + ",\n".join(json.dumps(asdict(each)) for each in found) + "\n]\n")


if __name__ == "__main__":
    main()
