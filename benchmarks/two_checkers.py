"""Corruptions of certificates before both checkers: where they differ, one of them is wrong.

    python -m benchmarks.two_checkers [--count 5000] [--seed 0] [--seconds S] [--every 1] [--made FOLDER] [--only a,b] [--json FILE]

Each model of the spelling corpus (or of FOLDER, which has `NAME.in.onnx`, `NAME.out.onnx` and `NAME.proof`) is optimized with a
certificate. Both checkers look at it as it is, and at corruptions that know the format: of the head, of a line (a rule, operands, an
attribute, a constant by one unit, a number of another type), of the order of lines, and of the claim (AFTER with one weight or attribute
changed, the head with its hash). A corruption of a certificate whose head still has both hashes proves what it proved, if it is accepted; a
changed claim that is accepted is computed on drawn inputs.
"""

from __future__ import annotations

import argparse
import base64
import copy
import gzip
import json
import math
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser

import coset.dialects
from coset.comparing.feeds import cases
from coset.comparing.reference import read_program
from coset.comparing.sizes import bindings
from coset.ir.constants import Constant, constant_of
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate_program
from coset.ir.program import Program
from coset.ir.term import CONSTANT, Term, intern, make
from coset.ir.types import TensorType
from coset.optimizing.pipeline import optimize
from coset.prove import second
from coset.prove.certificate import Rejected
from coset.prove.certificate_file import packed as packed_certificate
from coset.prove.certificate_file import read_certificate
from coset.prove.kernel import verify
from coset.prove.second import programs, reading
from coset.prove.second.classes import Contents, below
from coset.proving.meanings import DEFINED, meaning
from coset.rules.library import load
from coset.second import LIBRARY

assert coset.dialects

CORPUS = Path(__file__).resolve().parents[1] / "tests" / "corpus"
CLAIMS = 0.25  # how many corruptions are of the claim
CLOSE = 1e-5  # of the largest element: what roundings explain where nothing is coarser than f32
CRASHES, ACCEPTS, REJECTS = "crashes", second.ACCEPTS, second.REJECTS
Head = dict[str, Any]
Lines = list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """A model, what was made of it, and the certificate that they are equal."""

    name: str
    before: Program
    after: Program
    data: bytes

    def parts(self) -> tuple[Head, Lines]:
        """The head and the lines of the certificate, to be changed."""
        head, *lines, _ = (json.loads(line) for line in gzip.decompress(self.data).splitlines())
        return head, lines


def packed(head: Any, lines: Sequence[Any]) -> bytes:
    """A certificate of these lines."""
    rows = [head, *lines, {"end": len(lines)}]
    return gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode(), mtime=0)


class Checkers:
    """Both checkers, with the library read once."""

    def __init__(self, folder: Path) -> None:
        self.known = {rule.name: rule for rule in load().rules}
        self.entries = second.read(path.read_text() for path in LIBRARY)
        self.path = folder / "certificate"

    def first(self, data: bytes, before: Program, after: Program) -> tuple[str, str]:
        """What the first one says, and why."""
        self.path.write_bytes(data)
        try:
            verify(read_certificate(self.path), before, after, self.known.get, meaning=meaning, fallback=DEFINED)
        except (Rejected, CosetError) as error:
            return REJECTS, error.message
        except Exception as error:  # whatever it is, the report names it: a checker does not crash
            return CRASHES, f"{type(error).__name__}: {error}"
        return ACCEPTS, ""

    def second(self, data: bytes, before: Program, after: Program) -> tuple[str, str]:
        """What the second one says, and why."""
        try:
            answer = second.answered(data, before, after, self.entries)
        except Exception as error:
            return CRASHES, f"{type(error).__name__}: {error}"
        return answer.verdict, str(answer)


# ---------------------------------------------------------------- corruptions of the certificate

Corruption = Callable[[Head, Lines, random.Random], bool]


def _of_kind(lines: Lines, *kinds: str) -> list[dict[str, Any]]:
    return [line for line in lines if any(kind in line for kind in kinds)]


def other_rule(head: Head, lines: Lines, draw: random.Random) -> bool:
    """A step by another rule of the head."""
    steps = _of_kind(lines, "rule")
    if not steps or len(head["rules"]) < 2:
        return False
    draw.choice(steps)["rule"] = draw.randrange(len(head["rules"]))
    return True


def other_name(head: Head, lines: Lines, draw: random.Random) -> bool:
    """A rule of the head by the name (and text) of another one."""
    if len(head["rules"]) < 2:
        return False
    one, other = draw.sample(head["rules"], 2)
    one.update(name=other["name"], text=other["text"])
    return True


def other_direction(head: Head, lines: Lines, draw: random.Random) -> bool:
    """A rule read the other way round."""
    if not head["rules"]:
        return False
    rule = draw.choice(head["rules"])
    name = rule["name"]
    rule["name"] = name.replace(".reverse", "") if ".reverse" in name else f"{name}.reverse"
    return True


def sides(head: Head, lines: Lines, draw: random.Random) -> bool:
    """The sides of a step exchanged, or one more term on them."""
    steps = _of_kind(lines, "rule")
    if not steps:
        return False
    step = draw.choice(steps)
    if draw.random() < 0.7:
        step["left"], step["right"] = step["right"], step["left"]
    else:
        step[draw.choice(("left", "right"))].append(draw.randrange(50))
    return True


def operands(head: Head, lines: Lines, draw: random.Random) -> bool:
    """Operands of a term changed or exchanged."""
    terms = [line for line in _of_kind(lines, "term") if line["term"][1]]
    if not terms:
        return False
    numbers = draw.choice(terms)["term"][1]
    if len(numbers) > 1 and draw.random() < 0.5:
        one, other = draw.sample(range(len(numbers)), 2)
        numbers[one], numbers[other] = numbers[other], numbers[one]
    else:
        numbers[draw.randrange(len(numbers))] += draw.choice((-3, -2, -1, 1, 2, 3))
    return True


def number(head: Head, lines: Lines, draw: random.Random) -> bool:
    """A number of a term in a step changed."""
    steps = _of_kind(lines, "rule", "computed", "rounded", "meaning", "dims")
    if not steps:
        return False
    step = draw.choice(steps)
    key = draw.choice([key for key in step if key != "rule"])
    step[key] = _moved(step[key], draw)
    return True


def _moved(value: Any, draw: random.Random) -> Any:
    if isinstance(value, list) and value:
        place = draw.randrange(len(value))
        return [_moved(each, draw) if i == place else each for i, each in enumerate(value)]
    return value + draw.choice((-2, -1, 1, 2, 17)) if isinstance(value, int) else value


def attribute(head: Head, lines: Lines, draw: random.Random) -> bool:
    """One value among the attributes of a term changed."""
    terms = [line["term"] for line in _of_kind(lines, "term") if isinstance(line["term"][2], dict) and line["term"][2]]
    if not terms:
        return False
    attributes = draw.choice(terms)[2]
    name = draw.choice(list(attributes))
    attributes[name] = _other_value(attributes[name], draw)
    return True


def _other_value(value: Any, draw: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + draw.choice((-1, 1))
    if isinstance(value, str):
        return draw.choice(("add", "maximum", "GT", "LT", "EQ", "none", value + "x"))
    if isinstance(value, list):
        if len(value) > 1 and draw.random() < 0.5:
            one, other = draw.sample(range(len(value)), 2)
            value = list(value)
            value[one], value[other] = value[other], value[one]
            return value
        if not value:
            return [0]
        place = draw.randrange(len(value))
        return [_other_value(each, draw) if i == place else each for i, each in enumerate(value)]
    if isinstance(value, dict):
        return _other_form(value, draw)
    return 0


def _other_form(value: dict[str, Any], draw: random.Random) -> Any:
    ((form, inner),) = value.items()
    if form == "float" and inner not in ("nan", "inf", "-inf"):
        number = float.fromhex(inner)
        return {"float": draw.choice((float(np.nextafter(number, np.inf)), -number, number * 2, number + 1)).hex()}
    if form == "dim":
        return {"dim": draw.choice((f"{inner} + 1", f"2*({inner})", "n", f"{inner}*{inner}"))}
    if form == "dtype":
        return {"dtype": draw.choice(("f32", "f16", "f64", "i32", "i64", "bool"))}
    if form == "constant":
        return {"constant": [inner[0], _by_one_unit(inner[1], draw)]}
    return value


def _by_one_unit(text: str, draw: random.Random) -> str:
    data = bytearray(base64.b64decode(text))
    if data:
        place = draw.randrange(len(data))
        data[place] ^= 1 << draw.choice((0, 0, 0, draw.randrange(8)))
    return base64.b64encode(bytes(data)).decode()


def constant(head: Head, lines: Lines, draw: random.Random) -> bool:
    """A constant of a line by one unit, or by a bit."""
    terms = [
        line["term"] for line in _of_kind(lines, "term") if line["term"][0] == "builtin.constant" and isinstance(line["term"][2], dict)
    ]
    if not terms:
        return False
    term = draw.choice(terms)
    term[2]["value"] = _other_form(term[2]["value"], draw)
    return True


def attributes_of_another(head: Head, lines: Lines, draw: random.Random) -> bool:
    """Two terms of one op exchange their attributes, or one has those of a term by its number."""
    terms = [line["term"] for line in _of_kind(lines, "term")]
    if len(terms) < 2:
        return False
    one = draw.choice(terms)
    alike = [each for each in terms if each is not one and each[0] == one[0]]
    if alike and draw.random() < 0.7:
        other = draw.choice(alike)
        one[2], other[2] = other[2], one[2]
    else:
        one[2] = draw.randrange(60)
    return True


def op(head: Head, lines: Lines, draw: random.Random) -> bool:
    """Another op over the same operands."""
    terms = [line["term"] for line in _of_kind(lines, "term")]
    if not terms:
        return False
    names = (
        "add",
        "subtract",
        "multiply",
        "divide",
        "maximum",
        "minimum",
        "power",
        "negate",
        "abs",
        "sqrt",
        "rsqrt",
        "exponential",
        "tanh",
    )
    draw.choice(terms)[0] = f"stablehlo.{draw.choice(names)}"
    return True


def order(head: Head, lines: Lines, draw: random.Random) -> bool:
    """Two lines exchanged, or one moved."""
    if len(lines) < 2:
        return False
    one, other = draw.sample(range(len(lines)), 2)
    if draw.random() < 0.5:
        lines[one], lines[other] = lines[other], lines[one]
    else:
        lines.insert(other, lines.pop(one))
    return True


def dropped(head: Head, lines: Lines, draw: random.Random) -> bool:
    """A line left out."""
    if not lines:
        return False
    lines.pop(draw.randrange(len(lines)))
    return True


def doubled(head: Head, lines: Lines, draw: random.Random) -> bool:
    """A line twice."""
    if not lines:
        return False
    place = draw.randrange(len(lines))
    lines.insert(draw.randrange(place, len(lines)) + 1, copy.deepcopy(lines[place]))
    return True


def kind(head: Head, lines: Lines, draw: random.Random) -> bool:
    """A step of another kind: a term that a rule joined is computed, rounded, or means something."""
    steps = _of_kind(lines, "rule", "computed", "meaning")
    if not steps:
        return False
    step = draw.choice(steps)
    numbers = [*step.get("left", []), *step.get("right", []), *(step[key] for key in ("computed", "meaning") if key in step)]
    step.clear()
    form = draw.choice(("computed", "meaning", "rounded", "dims"))
    one, other = draw.choice(numbers), draw.choice([*numbers, draw.randrange(40)])
    step.update({form: [one, other] if form == "rounded" else [[one, other]] if form == "dims" else one})
    return True


def inserted(head: Head, lines: Lines, draw: random.Random) -> bool:
    """A line more: two terms rounded to each other, the meaning or the value of something, nodes of one size, a constant set apart."""
    most = 30 + 2 * len(lines)
    one, other = draw.randrange(most), draw.randrange(most)
    new = draw.choice(({"rounded": [one, other]}, {"meaning": one}, {"computed": one}, {"dims": [[one, other]]}, {"apart": [one, [other]]}))
    lines.insert(draw.randrange(len(lines) + 1), new)
    return True


def form(head: Head, lines: Lines, draw: random.Random) -> bool:
    """A number as a truth, a text or a float; a line or an attribute with another key."""
    if not lines:
        return False
    line = draw.choice(lines)
    which = draw.randrange(4)
    if which == 0:
        line["more"] = 1
    elif which == 1 and "term" in line and isinstance(line["term"][2], dict):
        line["term"][2]["more"] = 1
    else:
        places = [(value, key) for value in _within(line) for key, inner in _items(value) if type(inner) is int]
        if not places:
            return False
        value, key = draw.choice(places)
        value[key] = draw.choice((bool(value[key]), str(value[key]), float(value[key]), None, [value[key]]))
    return True


def _within(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield value
        for _, inner in _items(value):
            yield from _within(inner)


def _items(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items()) if isinstance(value, dict) else list(enumerate(value))


def head_changed(head: Head, lines: Lines, draw: random.Random) -> bool:
    """A hash of the head, its version or its keys."""
    which = draw.randrange(5)
    if which == 0:
        key = draw.choice(("before", "after"))
        place = draw.randrange(64)
        head[key] = head[key][:place] + ("0" if head[key][place] != "0" else "1") + head[key][place + 1 :]
    elif which == 1:
        head["before"], head["after"] = head["after"], head["before"]
    elif which == 2:
        head["version"] = draw.choice((1, 2, 4, "3", True))
    elif which == 3:
        head["names"] = {"inputs": {}, "outputs": {}}
    else:
        del head[draw.choice(list(head))]
    return True


OF_CERTIFICATE: tuple[Corruption, ...] = (
    other_rule, other_name, other_direction, sides, operands, number, attribute, constant, attributes_of_another, op, order, dropped,
    doubled, kind, inserted, form, head_changed,
)  # fmt: skip


# ---------------------------------------------------------------- corruptions of the claim


@dataclass(frozen=True)
class Change:
    """A program in which one term is another one."""

    program: Program
    old: Term
    new: Term

    def __str__(self) -> str:
        if self.old.op is CONSTANT:
            return "a weight"
        was, now = dict(self.old.attributes), dict(self.new.attributes)
        return f"{self.old.op}: " + ", ".join(f"{name} {was[name]} -> {now[name]}" for name in was if was[name] != now[name])[:300]


def change_of(program: Program, draw: random.Random) -> Change | None:
    """The program with one weight by one unit (or more), or one attribute of an op changed; None where nothing changes."""
    terms = below(program.roots)
    weights = [
        term
        for term in terms
        if term.op is CONSTANT and term.tensor.dtype.kind in ("float", "int", "uint") and term.attribute("value").bytes
    ]
    # what a node that was kept says is in its bytes: no attribute beside them changes alone
    nodes = [term for term in terms if term.attributes and term.op.operands and not term.op.has("foreign")]
    chosen = draw.choice(weights) if weights and (not nodes or draw.random() < 0.6) else draw.choice(nodes) if nodes else None
    new = None if chosen is None else (_weight(chosen, draw) if chosen.op is CONSTANT else _node(chosen, draw))
    if chosen is None or new is None:
        return None
    place, changed_term = chosen, new

    def change(term: Term, over: Sequence[Term]) -> Term:
        like = changed_term if term is place else term
        return intern(like.op, tuple(over), like.attributes, like.regions, like.type)

    return Change(programs.changed(program, change), place, changed_term)


def followed(lines: Lines, change: Change) -> None:
    """The same change wherever a line writes down what was changed."""
    for line in lines:
        row = line.get("term")
        if not isinstance(row, list) or row[0] != change.old.op.name or not isinstance(row[2], dict):
            continue
        for name, value in change.old.attributes:
            if name in row[2] and reading.attribute(row[2][name]) == value:
                row[2][name] = _written(dict(change.new.attributes)[name])


def _written(value: Any) -> Any:
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, tuple):
        return [_written(each) for each in value]
    if isinstance(value, Constant):
        kind = {"tensor": [{"dtype": value.type.dtype.name}, list(value.type.static or ())]}
        return {"constant": [kind, base64.b64encode(value.array().tobytes()).decode()]}
    return value


def forged(case: Case, head: Head, lines: Lines, change: Change, texts: Mapping[str, str]) -> None:
    """Steps in front that would make the old weight the new one: twice its negative is it by a rule, and the new one but for roundings."""
    both = [programs.by_content(program, Contents()) for program in (case.before, change.program)]
    terms = list(dict.fromkeys(term for program in both for term in programs.ordered(program)))
    keys = {term.attribute("value").key: place for place, term in enumerate(terms) if term.op is CONSTANT}
    old, new = (keys.get(term.attribute("value").key) for term in (change.old, change.new))
    if old is None or new is None or "double_negate" not in texts:
        return
    rule = next((place for place, each in enumerate(head["rules"]) if each["name"] == "double_negate"), len(head["rules"]))
    if rule == len(head["rules"]):
        head["rules"].append({"name": "double_negate", "text": texts["double_negate"], "numerics": "exact", "assurance": "proved"})
    count = len(terms)
    lines[:0] = [
        {"term": ["stablehlo.negate", [old], {}]}, {"term": ["stablehlo.negate", [count], {}]}, {"rounded": [count + 1, new]},
        {"rule": rule, "left": [count + 1], "right": [old]},
    ]  # fmt: skip


def judged(before: Program, after: Program) -> str:
    """How the values of two programs compare on drawn inputs: `the same bits`, `within roundings`, `different`, or why they do not run."""
    worst = 0.0
    same = True
    floats = {term.tensor.dtype for term in below([*before.roots, *after.roots]) if isinstance(term.type, TensorType)}
    close = max(CLOSE, *(4 * float(ml_dtypes.finfo(dtype.numpy).eps) for dtype in floats if dtype.kind == "float" and dtype.bits < 32), 0.0)
    try:
        binding = next(bindings(before, {}))
        for each in cases(before, binding):
            if each.name not in ("normal", "second", "negative"):
                continue
            values = [evaluate_program(program, each.feed, fallback=DEFINED) for program in (before, after)]
            for one, other in zip(*values, strict=True):
                a, b = (np.asarray(value).astype(np.complex128) for value in (one, other))
                same = same and np.array_equal(a, b, equal_nan=True)
                odd = ~(np.isfinite(a) & np.isfinite(b))
                if not np.array_equal(a[odd], b[odd], equal_nan=True):
                    return "different"
                if (~odd).any():
                    worst = max(worst, float(np.abs(a - b)[~odd].max() / max(np.abs(a[~odd]).max(), 1e-30)))
    except CosetError as error:
        return f"not run: {error.message}"
    return "the same bits" if same else "within roundings" if worst < close else "different"


def _weight(term: Term, draw: random.Random) -> Term | None:
    array = np.array(term.attribute("value").array())
    flat = array.reshape(-1)
    place = draw.randrange(flat.size)
    if draw.random() < 0.5:
        flat.view(np.uint8).reshape(flat.size, -1)[place, 0] ^= 1
    else:
        flat[place] = flat[place] + flat.dtype.type(draw.choice((1, 2, 8)))
    return make(CONSTANT, (), {"value": constant_of(array, term.tensor.dtype)})


def _node(term: Term, draw: random.Random) -> Term | None:
    name, value = draw.choice(term.attributes)
    if isinstance(value, bool) or not isinstance(value, int | float | tuple):
        return None
    other = _bumped(value, draw)
    try:
        made = make(term.op, term.operands, {**dict(term.attributes), name: other}, term.regions)
    except (CosetError, TypeError, ValueError, IndexError, AttributeError, AssertionError):
        return None
    return made if made.type == term.type and made is not term else None


def _bumped(value: Any, draw: random.Random) -> Any:
    if isinstance(value, tuple):
        if not value:
            return value
        if len(value) > 1 and draw.random() < 0.6:
            one, other = draw.sample(range(len(value)), 2)
            items = list(value)
            items[one], items[other] = items[other], items[one]
            return tuple(items)
        place = draw.randrange(len(value))
        return tuple(_bumped(each, draw) if i == place else each for i, each in enumerate(value))
    if isinstance(value, float):  # model files have floats of 32 bits as attributes: one between two of them is no other claim
        near = np.float32(value)
        return float(np.nextafter(near, np.float32(np.inf)) if draw.random() < 0.5 else near * 2 + 1)
    return value + draw.choice((-1, 1)) if isinstance(value, int) and not isinstance(value, bool) else value


# ---------------------------------------------------------------- cases


def made(name: str, path: Path, folder: Path) -> Case | None:
    """The case of a model; None where it cannot be optimized, or has no certificate."""
    if path.suffix == ".onnxtxt":
        model = folder / f"{name}.onnx"
        onnx.save(onnx.parser.parse_model(path.read_text()), model)
        path = model
    try:
        found = optimize(path, certificate=True)
    except CosetError:
        return None
    if found.certificate is None:
        return None
    out = folder / f"{name}.out{path.suffix}"
    found.save(out)
    return Case(name, read_program(path), read_program(out), packed_certificate(found.certificate))


def kept(folder: Path, only: set[str]) -> list[Case]:
    """The cases of a folder of certificates."""
    cases = []
    for proof in sorted(folder.glob("*.proof")):
        ends = [next(folder.glob(f"{proof.stem}.{end}.*"), None) for end in ("in", "out")]
        if None not in ends and (not only or proof.stem in only):
            before, after = (read_program(path) for path in ends if path is not None)
            cases.append(Case(proof.stem, before, after, proof.read_bytes()))
    return cases


def trial(case: Case, checkers: Checkers, draw: random.Random, texts: Mapping[str, str]) -> dict[str, Any] | None:
    """One corruption before both checkers; `texts` are the hashes of rules by their names."""
    head, lines = case.parts()
    before, after, what = case.before, case.after, ""
    if draw.random() < CLAIMS:
        which = draw.choice(("before", "after", "after"))
        change = change_of(getattr(case, which), draw)
        if change is None:
            return None
        before, after = (change.program, after) if which == "before" else (before, change.program)
        head[which] = programs.program_hash(programs.by_content(change.program, Contents()))
        how = draw.choice(("as it was", "followed", "forged"))
        if how == "followed":
            followed(lines, change)
        elif how == "forged" and change.old.op is CONSTANT and which == "after":
            forged(case, head, lines, change, texts)
        what = f"claim, {how}: {which}, {change}"
    else:
        corrupt = draw.choice(OF_CERTIFICATE)
        if not corrupt(head, lines, draw) or packed(head, lines) == packed(*case.parts()):
            return None
        what = corrupt.__name__
    data = packed(head, lines)
    first, second_answer = checkers.first(data, before, after), checkers.second(data, before, after)
    row = {"case": case.name, "kind": what, "first": first[0], "second": second_answer[0]}
    if {first[0], second_answer[0]} != {REJECTS}:
        if row["kind"].startswith("claim") and ACCEPTS in (first[0], second_answer[0]):
            row["judged"] = judged(before, after)
        row |= {"reasons": [first[1], second_answer[1]], "difference": _difference(case, head, lines)}
    return row


def _difference(case: Case, head: Head, lines: Lines) -> list[str]:
    """The lines that are not in the other certificate, as they are and as they were."""
    old_head, old = case.parts()
    texts, others = ([json.dumps(row) for row in rows] for rows in ([head, *lines], [old_head, *old]))
    return [f"+ {text[:400]}" for text in texts if text not in others][:4] + [f"- {text[:400]}" for text in others if text not in texts][:4]


def tally(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """How often the two gave which answers, for each kind of corruption."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        kind = row["kind"].split(":")[0]
        found.setdefault(kind, Counter())[f"{row['first']} / {row['second']}"] += 1
    return {kind: dict(found[kind]) for kind in sorted(found)}


def main() -> int:
    """Make the cases, corrupt them, print what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=math.inf, help="no corruption is begun later than this after the start")
    parser.add_argument("--every", type=int, default=1, help="of the corpus each so many-th model")
    parser.add_argument("--made", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    only = {name for name in given.only.split(",") if name}
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="coset-") as name:
        folder = Path(name)
        checkers = Checkers(folder)
        if given.made:
            kept_cases = kept(given.made, only)
        else:
            paths = sorted(path for path in CORPUS.glob("*/*") if path.suffix in (".onnxtxt", ".mlir"))[:: given.every]
            named = [(f"{path.parent.name}-{path.stem}", path) for path in paths]
            found = [made(name, path, folder) for name, path in named if not only or name in only]
            kept_cases = [case for case in found if case is not None]
        untouched = [
            {
                "case": case.name,
                "answers": [checkers.first(case.data, case.before, case.after), checkers.second(case.data, case.before, case.after)],
            }
            for case in kept_cases
        ]
        whole = Counter(f"{row['answers'][0][0]} / {row['answers'][1][0]}" for row in untouched)
        print(f"certificates as they are, first / second: {dict(whole)}", flush=True)
        for row in untouched:
            if row["answers"][0][0] != row["answers"][1][0]:
                print(f"  {row['case']}: {row['answers']}")
        draw = random.Random(given.seed)
        usable = [case for case in kept_cases if len(case.parts()[1]) > 1]
        texts = {rule["name"]: rule["text"] for case in kept_cases for rule in case.parts()[0]["rules"]}
        rows: list[dict[str, Any]] = []
        while usable and len(rows) < given.count and time.perf_counter() - started < given.seconds:
            row = trial(draw.choice(usable), checkers, draw, texts)
            if row is not None:
                rows.append(row)
    accepted = [row for row in rows if "judged" in row]
    unsound = [row for row in accepted if row["judged"] not in ("the same bits", "within roundings")]
    unsure = [row for row in rows if row["second"] == second.CANNOT_SAY and "reasons" in row]
    differ = [row for row in rows if row["first"] != row["second"] and second.CANNOT_SAY not in (row["first"], row["second"])]
    for kind, counts in tally(rows).items():
        print(f"{kind:24s} {counts}")
    print(
        f"{len(rows)} corruptions of {len(usable)} certificates; {len(differ)} differ, {len(accepted)} changed claims accepted, "
        f"{len(unsound)} of them false; {time.perf_counter() - started:.0f} s"
    )
    for row in [*unsound, *differ][:40]:
        print(json.dumps(row))
    if given.json:
        given.json.write_text(json.dumps({
            "command": " ".join(["python -m benchmarks.two_checkers", *sys.argv[1:]]),
            "certificates": len(kept_cases), "corruptions": len(rows),
            "untouched": dict(whole), "tally": tally(rows), "differ": differ, "accepted_claims": accepted, "unsound": unsound,
            "cannot_say": dict(Counter(row["reasons"][1].split(": ", 1)[-1] for row in unsure).most_common(40)),
        }, indent=1) + "\n")  # fmt: skip
    return 1 if unsound else 0


if __name__ == "__main__":
    sys.exit(main())
