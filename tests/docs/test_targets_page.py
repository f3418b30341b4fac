"""docs/targets.md is what the files of the targets say, docs/target-file.md has every key that they may have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import coset.dialects
from coset.cli import run
from coset.console.machines import FAMILIES, family, machines, quantity
from coset.console.target_file_page import target_file_page
from coset.console.target_page import target_page
from coset.ir.op import find_op
from coset.targets import keys as declarations
from coset.targets.keys import KEY_SETS, KeySet

assert coset.dialects
PAGE = Path(__file__).resolve().parents[2] / "docs" / "targets.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == target_page(), "run `coset targets --docs docs/targets.md`"


def test_the_page_of_keys_is_current() -> None:
    assert (PAGE.parent / "target-file.md").read_text() == target_file_page(), "run `coset targets --docs docs`"


@pytest.mark.parametrize("keys", KEY_SETS, ids=lambda keys: keys.title)
def test_every_key_of_a_file_has_a_row(keys: KeySet) -> None:
    section = target_file_page().split(f"\n## {keys.title}\n")[1].split("\n## ")[0]
    assert not [name for name in keys.names if f"\n| `{name}` | " not in section and name not in keys.names_of_others]


def test_every_set_of_keys_is_on_the_page() -> None:
    declared = [value for value in vars(declarations).values() if isinstance(value, KeySet)]
    assert len(declared) == len(KEY_SETS) and all(keys in KEY_SETS for keys in declared)


def test_the_command_writes_the_pages(tmp_path: Path) -> None:
    assert run(["targets", "--docs", str(tmp_path)]) == 0
    assert (tmp_path / "targets.md").read_text() == target_page()
    assert (tmp_path / "target-file.md").read_text() == target_file_page()


def test_the_command_lists_the_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["targets"]) == 0
    table = capsys.readouterr().out
    assert all(target.name in table and target.title in table for target in machines())
    assert run(["targets", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["targets"]
    assert [entry["name"] for entry in listed] == [target.name for target in machines()]
    assert {"name", "title", "dialect", "numbers", "origins", "aliases"} <= listed[0].keys()
    assert [entry["aliases"] for entry in listed if entry["name"] == "cpu-onnxruntime"] == [["cpu"]]


def test_every_family_is_of_ops_that_exist() -> None:
    assert all(find_op(op) for name in FAMILIES for op in family(name))


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(4.8e12, "B/s", "4.8 TB/s"), (2.5e-7, "s", "250 ns"), (49152, "B a core", "49.2 kB a core"), (132, "SMs", "132 SMs"),
     (5e8, "B, shared", "500 MB, shared"), (989e12, "FLOP/s", "989 TFLOP/s"), (0.0, "s", "0 s")],
)  # fmt: skip
def test_quantities_are_written_as_people_write_them(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text
