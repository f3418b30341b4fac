"""`--torch`: which test files run beside torch. `conftest.py` refuses a run without them into which torch is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torch_files import is_left_out, loads_torch

FOLDER = Path(__file__).parent


@pytest.mark.parametrize(
    ("name", "loads"),
    [
        ("lowering/test_aten.py", True),  # itself
        ("coset/test_torch_kept.py", True),  # by a file beside it
        ("coset/test_library_products.py", True),  # in a test
        ("frontends/test_stablehlo_import.py", False),  # torch_mlir is another package
        ("ir/test_dims.py", False),
    ],
)
def test_what_loads_torch(name: str, loads: bool) -> None:
    assert loads_torch(FOLDER / name) == loads


def test_each_file_is_in_one_of_both_parts() -> None:
    files = list(FOLDER.rglob("test_*.py"))
    parts = {choice: {file for file in files if not is_left_out(file, choice)} for choice in ("all", "none", "only")}
    assert parts["all"] == set(files) == parts["none"] | parts["only"] and not parts["none"] & parts["only"]
    assert len(parts["only"]) > 20


def test_helpers_are_in_both() -> None:
    assert not any(is_left_out(FOLDER / "coset" / "torch_models.py", choice) for choice in ("all", "none", "only"))
