"""Forgeries by hand of a certificate's file: each row changes how a true one is written, so that it could be read in two ways."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coset.ir.errors import CosetError
from coset.prove.certificate_file import packed, read_certificate
from coset.prove.kernel import verify
from coset.prove.second import ACCEPTS, REJECTS, answered
from coset.proving.certify import certificate_of
from coset.proving.meanings import DEFINED, meaning
from tests.prove.forged_certificates import RULES, S, X, computed, entries, number, numbers, op, program, said

FOLDED = op("multiply", numbers(1, 2), numbers(3, 7))
TWICE = op("negate", op("negate", op("add", X, FOLDED)))
BEFORE = program(TWICE, op("add", op("add", S, number(1)), number(2)))
AFTER = program(op("add", X, numbers(3, 14)), op("add", S, number(3)))
MADE = certificate_of(BEFORE, AFTER, [
    said("double_negate", TWICE), computed(FOLDED), said("add_assoc_const", op("add", op("add", S, number(1)), number(2))),
    computed(op("add", number(1), number(2))),
])  # fmt: skip
LINES = gzip.decompress(packed(MADE)).decode().splitlines()


def packed(text: str) -> bytes:
    return gzip.compress(text.encode("utf-8", "surrogatepass"), mtime=0)


def answers(data: bytes, folder: Path) -> tuple[bool, str]:
    """Whether the first checker accepts, and what the second one says."""
    path = folder / "proof"
    path.write_bytes(data)
    try:
        verify(read_certificate(path), BEFORE, AFTER, RULES.get, meaning=meaning, fallback=DEFINED)
        first = True
    except CosetError:
        first = False
    return first, answered(data, BEFORE, AFTER, entries()).verdict


def test_the_certificate_is_true(tmp_path: Path) -> None:
    assert answers(packed("".join(line + "\n" for line in LINES)), tmp_path) == (True, ACCEPTS)


def line_of(kind: str) -> int:
    return next(place for place, line in enumerate(LINES) if line.startswith(f'{{"{kind}"'))


def with_line(kind: str, text: str) -> str:
    """The certificate with the first line of a kind written in another way."""
    at = line_of(kind)
    return "".join(f"{text if place == at else line}\n" for place, line in enumerate(LINES))


def changed(kind: str, change: Callable[[Any], Any]) -> str:
    """The certificate with the value of the first line of a kind changed."""
    line = json.loads(LINES[line_of(kind)])
    return with_line(kind, json.dumps({**line, kind: change(line[kind])}))


def head(old: str, new: str) -> str:
    assert old in LINES[0]
    return "".join(line + "\n" for line in (LINES[0].replace(old, new, 1), *LINES[1:]))


def ended(end: str) -> str:
    return "".join(line + "\n" for line in (*LINES[:-1], end))


RULE = json.loads(LINES[line_of("rule")])
COMPUTED = json.loads(LINES[line_of("computed")])["computed"]
COUNT = len(LINES) - 2
TEXTS: dict[str, str] = {
    "a version that is a float": head('"version":3', '"version":3.0'),
    "a version with an exponent": head('"version":3', '"version":3e0'),
    "a version that is a text": head('"version":3', '"version":"3"'),
    "a version twice": head('"version":3', '"version":3,"version":3'),
    "a version of another": head('"version":3', '"version":2,"version":3'),
    "a format twice": head('"format":"coset certificate"', '"format":"x","format":"coset certificate"'),
    "a rule's name twice": head('"name":', '"name":"commute[stablehlo.add]","name":'),
    "a rule with another key": head('"name":', '"also":1,"name":'),
    "a rule's assurance that is a float": head('"assurance":', '"also":1.5,"assurance":'),
    "a hash twice": head('"before":', '"before":"0","before":'),
    "an end that is a float": ended(f'{{"end": {COUNT}.0}}'),
    "an end that is a text": ended(f'{{"end": "{COUNT}"}}'),
    "an end twice": ended(f'{{"end": 0, "end": {COUNT}}}'),
    "an end with more": ended(f'{{"end": {COUNT}, "more": 1}}'),
    "an end of one less": ended(f'{{"end": {COUNT - 1}}}'),
    "no end": "".join(line + "\n" for line in LINES[:-1]),
    "no newline at the end": "\n".join(LINES),
    "an empty line": "".join(line + "\n" for line in (*LINES[:-1], "", LINES[-1])),
    "a line separator for a newline": "\u2028".join(LINES) + "\n",
    "a vertical tab for a newline": "\x0b".join(LINES) + "\n",
    "a carriage return for a newline": "\r".join(LINES) + "\n",
    "a mark of the order of bytes": "\ufeff" + "".join(line + "\n" for line in LINES),
    "a rule's number that is a float": with_line("rule", json.dumps({**RULE, "rule": float(RULE["rule"])})),
    "a rule's number that is a truth": with_line("rule", json.dumps({**RULE, "rule": bool(RULE["rule"])})),
    "a rule's number that is negative": with_line("rule", json.dumps({**RULE, "rule": RULE["rule"] - 2})),
    "a left side by a float": with_line("rule", json.dumps({**RULE, "left": [float(RULE["left"][0])]})),
    "a left side that is no list": with_line("rule", json.dumps({**RULE, "left": RULE["left"][0]})),
    "a left side that is an object": with_line("rule", json.dumps({**RULE, "left": {str(RULE["left"][0]): 1}})),
    "a right side that is negative": with_line("rule", json.dumps({**RULE, "right": [RULE["right"][0] - 99]})),
    "a right side twice": with_line("rule", json.dumps({**RULE, "right": RULE["right"] * 2})),
    "a left side twice": with_line("rule", json.dumps(RULE)[:-1] + f', "left": {RULE["left"]}}}'),
    "a rule with more": with_line("rule", json.dumps({**RULE, "more": []})),
    "a rule without a right side": with_line("rule", json.dumps({key: RULE[key] for key in ("rule", "left")})),
    "a computed term by a float": with_line("computed", f'{{"computed": {COMPUTED}.0}}'),
    "a computed term by a list": with_line("computed", f'{{"computed": [{COMPUTED}]}}'),
    "a computed term by a text": with_line("computed", f'{{"computed": "{COMPUTED}"}}'),
    "a computed term twice": with_line("computed", f'{{"computed": 0, "computed": {COMPUTED}}}'),
    "a computed term that is no number": with_line("computed", '{"computed": NaN}'),
    "a computed term without end": with_line("computed", '{"computed": Infinity}'),
    "a computed term and its value": with_line("computed", f'{{"computed": {COMPUTED}, "value": 3}}'),
    "half of a letter": with_line("computed", f'{{"computed": {COMPUTED}, "\\ud800": 3}}'),
    "a term as an object": changed("term", lambda row: {str(place): each for place, each in enumerate(row)}),
    "a term of two parts": changed("term", lambda row: row[:2]),
    "a term of five parts": changed("term", lambda row: [*row, [], []]),
    "a term with a function": changed("term", lambda row: [*row, [[[], [], []]]]),
    "operands that are a text": changed("term", lambda row: [row[0], "", row[2]]),
    "operands that are floats": changed("term", lambda row: [row[0], [float(each) for each in row[1]], row[2]]),
    "operands that are truths": changed("term", lambda row: [row[0], [True for _ in row[1]], row[2]]),
    "operands from behind": changed("term", lambda row: [row[0], [each - 99 for each in row[1]], row[2]]),
    "attributes as a list": changed("term", lambda row: [row[0], row[1], [["value", 1]]]),
    "attributes as nothing": changed("term", lambda row: [row[0], row[1], None]),
    "attributes of a term by a float": changed("term", lambda row: [row[0], row[1], 1.0]),
    "an attribute more": changed("term", lambda row: [row[0], row[1], {"more": 1}]),
    "an op that is not there": changed("term", lambda row: ["stablehlo.sum", row[1], row[2]]),
    "an op by a number": changed("term", lambda row: [7, row[1], row[2]]),
}


@pytest.mark.parametrize("what", TEXTS)
def test_what_is_written_in_another_way_is_refused(what: str, tmp_path: Path) -> None:
    assert answers(packed(TEXTS[what]), tmp_path) == (False, REJECTS)


WHOLE = "".join(line + "\n" for line in LINES).encode()
BYTES: dict[str, bytes] = {
    "two members": gzip.compress(WHOLE) + gzip.compress(b""),
    "two certificates": gzip.compress(WHOLE) * 2,
    "bytes behind": gzip.compress(WHOLE) + b"\0",
    "zlib for gzip": zlib.compress(WHOLE),
    "not compressed": WHOLE,
    "UTF-16": gzip.compress(WHOLE.decode().encode("utf-16")),
    "UTF-16 without a mark": gzip.compress(WHOLE.decode().encode("utf-16-le")),
    "another sum of bytes": gzip.compress(WHOLE)[:-8] + b"\0\0\0\0" + gzip.compress(WHOLE)[-4:],
    "cut off": gzip.compress(WHOLE)[:-9],
}


@pytest.mark.parametrize("what", BYTES)
def test_what_is_packed_in_another_way_is_refused(what: str, tmp_path: Path) -> None:
    assert answers(BYTES[what], tmp_path) == (False, REJECTS)


# ---------------------------------------------------------------- values of attributes

F32_TYPE = {"dtype": "f32"}
TWO = [{"tensor": [F32_TYPE, [2]]}, "AACAPwAAAEA="]
VALUES: dict[str, Any] = {
    "a float": 1.5, "a constant of another size": {"constant": [{"tensor": [F32_TYPE, [3]]}, TWO[1]]},
    "a size that is open": {"constant": [{"tensor": [F32_TYPE, [-1]]}, TWO[1]]},
    "a size that is a truth": {"constant": [{"tensor": [F32_TYPE, [2, True]]}, TWO[1]]},
    "a size that is a text": {"constant": [{"tensor": [F32_TYPE, ["2"]]}, TWO[1]]},
    "a size that is a dim": {"constant": [{"tensor": [F32_TYPE, [{"dim": "n"}]]}, TWO[1]]},
    "no size": {"constant": [{"tensor": [F32_TYPE, None]}, TWO[1]]},
    "a type by name": {"constant": [{"tensor": ["f32", [2]]}, TWO[1]]},
    "a type that is not there": {"constant": [{"tensor": [{"dtype": "f33"}, [2]]}, TWO[1]]},
    "a type of numbers": {"constant": [{"tensor": [2, [2]]}, TWO[1]]},
    "an element type": {"constant": [F32_TYPE, TWO[1]]}, "a type of three parts": {"constant": [{"tensor": [F32_TYPE, [2], 1]}, TWO[1]]},
    "bytes with a blank": {"constant": [TWO[0], "AACA PwAAAEA="]}, "bytes as a list": {"constant": [TWO[0], [0, 0, 128, 63, 0, 0, 0, 64]]},
    "three parts": {"constant": [*TWO, 1]}, "two forms": {"constant": TWO, "float": "0x1p+0"}, "another form": {"constants": TWO},
    "texts": {"constant": [{"tensor": [{"dtype": "string"}, [2]]}, TWO[1]]}, "a list of it": [{"constant": TWO}], "nothing": None,
}  # fmt: skip


def said_value(value: Any) -> dict[str, Any]:
    return {"term": ["builtin.constant", [], {"value": value}]}


@pytest.mark.parametrize("what", VALUES)
def test_a_constant_is_written_in_one_way(what: str, tmp_path: Path) -> None:
    rows = [LINES[0], *LINES[1:-1], json.dumps(said_value(VALUES[what])), json.dumps({"end": COUNT + 1})]
    assert answers(packed("".join(row + "\n" for row in rows)), tmp_path) == (False, REJECTS)
    true = [LINES[0], *LINES[1:-1], json.dumps(said_value({"constant": TWO})), json.dumps({"end": COUNT + 1})]
    assert answers(packed("".join(row + "\n" for row in true)), tmp_path) == (True, ACCEPTS)


ATTRIBUTES: dict[str, list[Any]] = {
    "an axis that is a truth": ["stablehlo.concatenate", [0, 0], {"dimension": False}],
    "an axis that is a float": ["stablehlo.concatenate", [0, 0], {"dimension": {"float": "0x0.0p+0"}}],
    "axes with a truth": ["stablehlo.reverse", [0], {"dimensions": [False]}],
    "a permutation with a truth": ["stablehlo.transpose", [0], {"permutation": [False]}],
    "strides with a float": ["stablehlo.slice", [0], {"start": [0], "limit": [2], "strides": [{"float": "0x1.0000000000000p+0"}]}],
    "a float in digits": ["onnx.Elu", [0], {"alpha": {"float": "1.5"}}],
    "a float that is not normal": ["onnx.Elu", [0], {"alpha": {"float": "0x3p-1"}}],
    "a float in capitals": ["onnx.Elu", [0], {"alpha": {"float": "INF"}}],
    "a float by a number": ["onnx.Elu", [0], {"alpha": {"float": 1}}],
    "an absent that is false": ["onnx.Elu", [0], {"alpha": {"absent": False}}],
    "types that are none": ["onnx.Elu", [0], {"alpha": {"types": [1, 2]}}],
}


@pytest.mark.parametrize("what", ATTRIBUTES)
def test_an_attribute_is_written_in_one_way(what: str, tmp_path: Path) -> None:
    rows = [LINES[0], *LINES[1:-1], json.dumps({"term": ATTRIBUTES[what]}), json.dumps({"end": COUNT + 1})]
    assert answers(packed("".join(row + "\n" for row in rows)), tmp_path) == (False, REJECTS)


FUNCTIONS: dict[str, Any] = {
    "a place from behind": [[["builtin.parameter", [], {"index": 0, "type": {"tensor": [F32_TYPE, []]}}]], [-1], [0]],
    "a place that is a truth": [[["builtin.parameter", [], {"index": 0, "type": {"tensor": [F32_TYPE, []]}}]], [0], [False]],
    "a place that is a float": [[["builtin.parameter", [], {"index": 0, "type": {"tensor": [F32_TYPE, []]}}]], [0.0], [0]],
    "rows that are an object": [{}, [0], [0]],
    "no list": 7,
    "two parts": [[], []],
}


@pytest.mark.parametrize("what", FUNCTIONS)
def test_a_function_is_written_in_one_way(what: str, tmp_path: Path) -> None:
    attributes = {"dimensions": [0], "dtype": F32_TYPE}
    row: list[Any] = ["stablehlo.map", [0], attributes, [FUNCTIONS[what]]]
    rows = [LINES[0], *LINES[1:-1], json.dumps({"term": row}), json.dumps({"end": COUNT + 1})]
    assert answers(packed("".join(each + "\n" for each in rows)), tmp_path) == (False, REJECTS)
