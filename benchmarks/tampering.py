"""Corruptions of certificates of real models: none that changes the claim is accepted.

    python -m benchmarks.tampering [--count 1000] [--seed 0] [--only a,b] [--json]

Each model is optimized with a certificate. A corruption is of the certificate (a step or a line dropped, two swapped, a number, a dim, a
constant, a hash, a rule or the head altered), checked against the two programs that it was made for; or of the claim: the optimized model
with one wrong edit (`benchmarks/edits.py`: a weight, an attribute, an axis, swapped operands), the certificate as it was, or with the hash
of the edited model in its head, or damaged beside that. What is still accepted of the first kind proves what it proved, for its head has
the hashes of both programs: `the same claim`. What is accepted of the second kind is compared on numbers: `equal` or `UNSOUND`. A tenth
are damaged bytes, which must be answered by our errors. `benchmarks/forgeries.py` forges certificates of small programs, by design.
"""

from __future__ import annotations

import argparse
import base64
import copy
import gzip
import json
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from benchmarks import headroom, models
from benchmarks.edits import Sites
from coset.comparing.reference import read_program
from coset.ir.dims import add, multiply, symbol
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.optimizing.pipeline import optimize
from coset.prove.certificate import Certificate, Rejected
from coset.prove.certificate_file import packed, read_certificate
from coset.prove.contents import by_content, digest
from coset.prove.kernel import verify
from coset.proving.meanings import DEFINED, meaning
from coset.proving.prove import REFUTED, Proving, prove
from coset.rules.library import load
from coset.rules.rule import Rule

MODELS = (
    "bert_2l_d128_dyn",
    "llama_2l_dyn",
    "vit_ti16_2l_sdpa",
    "unet_gn",
    "squeezenet1_1",
    "train_mlp",
    "rapidocr/ch_ppocr_mobile_v2.0_cls_infer",
)
KINDS = ("step dropped", "line dropped", "swapped", "step", "substitution", "dim", "constant", "hash", "rule", "head", "dims")
BYTES = ("cut off", "bits", "not UTF-8", "deep", "huge number", "bomb", "half a letter")


@dataclass(frozen=True)
class Case:
    """A model, what was made of it, and the certificate that they are equal."""

    name: str
    path: Path
    out: Path
    before: Program
    after: Program
    certificate: Certificate
    rules: Mapping[str, Rule]

    @staticmethod
    def of(name: str, path: Path, folder: Path) -> Case:
        """Optimize the model at `path`."""
        made = optimize(path, certificate=True)
        assert made.certificate is not None, f"{name}: {made.report['certificate']}"
        out = folder / f"{Path(name).name}.onnx"
        made.save(out)
        rules = {rule.name: rule for rule in load().rules}
        return Case(name, path, out, by_content(read_program(path)), by_content(read_program(out)), made.certificate, rules)

    def accepted(self, certificate: Certificate, after: Program | None = None) -> bool:
        """Whether the checker takes it."""
        try:
            verify(certificate, self.before, after or self.after, self.rules.get, meaning=meaning, fallback=DEFINED)
        except Rejected:
            return False
        return True


# ---------------------------------------------------------------- corruptions of the certificate


def corrupted(certificate: Certificate, kind: str, draw: random.Random) -> Certificate | None:
    """The certificate with one thing damaged; None where it has no such thing, or the damage changed nothing."""
    head, lines = copy.deepcopy(certificate.head), copy.deepcopy(list(certificate.lines))
    steps = [place for place, line in enumerate(lines) if "term" not in line]
    terms = [place for place, line in enumerate(lines) if "term" in line]
    if kind == "step dropped" and steps:
        del lines[draw.choice(steps)]
    elif kind == "line dropped" and lines:
        del lines[draw.randrange(len(lines))]
    elif kind == "swapped" and len(lines) > 1:
        one, other = draw.sample(range(len(lines)), 2)
        lines[one], lines[other] = lines[other], lines[one]
    elif kind == "step" and steps:
        _altered(lines[draw.choice(steps)], draw)
    elif kind == "substitution" and terms:
        _altered(lines[draw.choice(terms)], draw)
    elif kind in ("dim", "constant"):
        found = [value for line in lines for value in _within(line) if isinstance(value, dict) and _kind(value) == kind]
        if found:
            _damaged(draw.choice(found), draw)
    elif kind == "hash":
        key = draw.choice(["before", "after"])
        head[key] = _other_hash(head[key], draw)
    elif kind == "rule" and head["rules"]:
        rule = draw.choice(head["rules"])
        other = draw.choice(head["rules"])
        key = draw.choice(["name", "text"])
        rule[key] = other[key] if other is not rule else _other_hash(rule["text"], draw)
    elif kind == "head":
        head[draw.choice(("names", "map", "version", "rules", "numerics"))] = draw.choice([{"inputs": {"x": "y"}, "outputs": {}}, 2, None])
    elif kind == "dims":
        given = [line for line in lines if "dims" in line]
        if given and draw.random() < 0.5:
            _altered(draw.choice(given), draw)
        else:
            lines.insert(draw.randrange(len(lines) + 1), {"dims": [[draw.randrange(400), draw.randrange(400)]]})
    damaged = Certificate(head, lines)
    return None if (head, lines) == (certificate.head, list(certificate.lines)) else damaged


def _altered(line: dict[str, Any], draw: random.Random) -> None:
    """Another number somewhere in a line."""
    places = [(value, key) for value in _within(line) for key, inner in _items(value) if type(inner) is int]
    if places:
        value, key = draw.choice(places)
        value[key] += draw.choice((-2, -1, 1, 2, 17))


def _damaged(value: dict[str, Any], draw: random.Random) -> None:
    if "dim" in value:
        squared = multiply(symbol("batch"), symbol("batch"))
        value["dim"] = draw.choice([add(value["dim"], 1), multiply(2, value["dim"]), symbol("n"), squared])
    elif "float" in value:
        value["float"] = draw.choice(["0x1.8p+1", "nan", "-" + value["float"]])
    else:
        data = bytearray(base64.b64decode(value["constant"][1]))
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        value["constant"][1] = base64.b64encode(bytes(data)).decode()


def _kind(value: dict[str, Any]) -> str:
    return {("dim",): "dim", ("float",): "constant", ("constant",): "constant"}.get(tuple(value), "")


def _within(value: Any) -> Iterator[Any]:
    """All objects and lists below, this one first."""
    if isinstance(value, dict | list):
        yield value
        for _, inner in _items(value):
            yield from _within(inner)


def _items(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items()) if isinstance(value, dict) else list(enumerate(value))


def _other_hash(text: str, draw: random.Random) -> str:
    place = draw.randrange(len(text))
    return text[:place] + ("0" if text[place] != "0" else "1") + text[place + 1 :]


def tampered(case: Case, kind: str, draw: random.Random) -> dict[str, Any] | None:
    """One corruption of the certificate."""
    certificate = corrupted(case.certificate, kind, draw)
    if certificate is None:
        return None
    if not case.accepted(certificate):
        return {"kind": kind, "answer": "refused"}
    same = all(certificate.head[key] == digest(program) for key, program in (("before", case.before), ("after", case.after)))
    return {"kind": kind, "answer": "the same claim" if same else "UNSOUND"}


# ---------------------------------------------------------------- of the claim


def claimed(case: Case, sites: Sites, draw: random.Random, folder: Path) -> dict[str, Any] | None:
    """The certificate for an edited model, with the edited model's hash or not, and damaged or not."""
    kinds = [kind for kind, edits in sites.by_kind.items() if edits]
    found = sites.draw(draw.choice(kinds), draw) if kinds else None
    if found is None:
        return None
    path = folder / "edited.onnx"
    onnx.save(found[1], path)
    try:
        edited = by_content(read_program(path))
    except CosetError:
        return None
    if digest(edited) == digest(case.after):
        return None
    certificate, how = case.certificate, draw.choice(["as it was", "hash forged", "hash forged, damaged"])
    if how != "as it was":
        certificate = Certificate({**certificate.head, "after": digest(edited)}, certificate.lines)
    if how.endswith("damaged"):
        certificate = corrupted(certificate, draw.choice([kind for kind in KINDS if kind != "hash"]), draw) or certificate
    row = {"kind": f"claim, {how}", "edit": f"{found[0].kind}: {found[0].place}"}
    if not case.accepted(certificate, edited):
        return {**row, "answer": "refused"}
    differ = prove(Proving(case.out, path, seconds=5.0))["answer"] == REFUTED
    return {**row, "answer": "UNSOUND" if differ else "equal"}


# ---------------------------------------------------------------- of the bytes


def damaged_bytes(certificate: Certificate, kind: str, draw: random.Random) -> bytes:
    """The file of a certificate with damaged bytes."""
    data = bytearray(packed(certificate))
    text = gzip.decompress(bytes(data))
    place = draw.randrange(len(text))
    if kind == "cut off":
        return bytes(data[: draw.randrange(len(data))])
    if kind == "bits":
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        return bytes(data)
    if kind == "not UTF-8":
        return gzip.compress(text[:place] + bytes([0xC3, 0x28, 0xFF]) + text[place:], 1)
    if kind == "bomb":
        return gzip.compress(text.splitlines(True)[0] + draw.choice([b"{}\n", b"0", b"\n", b"[]"]) * (24 << 20), 1)
    line = {
        "deep": b'{"term":["stablehlo.add",[0,0],{"a":' + b"[" * draw.choice([900, 10**5]) + b"]" * 900 + b"}]}",
        "huge number": b'{"rule":' + b"9" * draw.choice([30, 4000, 5000]) + b',"left":[1e999],"right":[0]}',
        "half a letter": b'{"term":["\\ud800",[0,0],{}]}',
    }[kind]
    lines = text.splitlines()
    return gzip.compress(b"\n".join([lines[0], line, *lines[1:-1], b'{"end":%d}' % (len(lines) - 1)]) + b"\n", 1)


def read_damaged(case: Case, kind: str, draw: random.Random, folder: Path) -> dict[str, Any]:
    """What reading and checking damaged bytes gives: anything but an answer or our error is a crash, and is raised."""
    path = folder / "damaged"
    path.write_bytes(damaged_bytes(case.certificate, kind, draw))
    try:
        certificate = read_certificate(path)
    except CosetError:
        return {"kind": f"bytes, {kind}", "answer": "no certificate"}
    return {"kind": f"bytes, {kind}", "answer": "the same claim" if case.accepted(certificate) else "refused"}


def drawn(cases: list[Case], count: int, seed: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Rows of `count` corruptions: half of them of the certificate, four tenths of the claim, a tenth of the bytes; models in turn."""
    draw = random.Random(seed)
    sites = {case.name: Sites(case.out) for case in cases}
    done = turn = 0
    while done < count:
        case = cases[turn % len(cases)]
        turn += 1
        what = (done * 7) % 10
        if not any(sites[case.name].by_kind.values()):
            sites[case.name] = Sites(case.out)
        if what < 5:
            row = tampered(case, draw.choice(KINDS), draw)
        elif what < 9:
            row = claimed(case, sites[case.name], draw, folder)
        else:
            row = read_damaged(case, draw.choice(BYTES), draw, folder)
        if row is not None:
            done += 1
            yield {"model": case.name, **row}


def main() -> None:
    """Draw the corruptions and print what became of them; 1 where one that changes the claim was accepted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(MODELS), help="models, separated by commas")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    out = sys.stderr if given.json else sys.stdout
    machine = headroom.machine()
    where = f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']:.2f}"
    print(f"{where}; {time.strftime('%Y-%m-%d')}; python -m benchmarks.tampering {' '.join(sys.argv[1:])}", file=out)
    wanted = given.only.split(",")
    with tempfile.TemporaryDirectory(prefix="coset-") as name:
        folder = Path(name)
        cases = [Case.of(model.name, model.path, folder) for model in models.available() if model.name in wanted]
        for case in cases:
            print(f"{case.name}: a certificate of {len(case.certificate.lines)} lines", file=out, flush=True)
        started = time.perf_counter()
        rows = list(drawn(cases, given.count, given.seed, folder))
        seconds = time.perf_counter() - started
    table: dict[str, Counter[str]] = {}
    for row in rows:
        table.setdefault(row["kind"], Counter())[row["answer"]] += 1
    for kind, answers in sorted(table.items()):
        print(f"{kind:30s} {sum(answers.values()):5d}  {', '.join(f'{n} {answer}' for answer, n in sorted(answers.items()))}", file=out)
    total = Counter(row["answer"] for row in rows)
    print(f"{len(rows)} corruptions in {seconds:.0f} s: {', '.join(f'{n} {answer}' for answer, n in sorted(total.items()))}", file=out)
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB; crashes: none", file=out)
    if given.json:
        print(json.dumps({"machine": machine, "command": " ".join(sys.argv), "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "rows": rows}))
    sys.exit(total["UNSOUND"] > 0)


if __name__ == "__main__":
    main()
