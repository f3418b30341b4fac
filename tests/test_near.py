"""`make near`: which tests a change may break."""

from __future__ import annotations

from tests.near import reached

KERNELS, CHECKER = "tests/lowering/test_triton_sort.py", "tests/prove/test_second.py"


def test_a_file_is_reached_by_who_imports_it_at_any_distance() -> None:
    found = reached(["lowering/triton/sort.py"])
    assert KERNELS in found and CHECKER not in found
    assert CHECKER in reached(["prove/second/arithmetic.py"]) and KERNELS not in reached(["prove/second/arithmetic.py"])


def test_what_registers_itself_is_reached_through_its_folder() -> None:
    assert CHECKER in reached(["dialects/onnx/losses.py"])


def test_data_reaches_everything_and_a_page_its_own_tests() -> None:
    assert {KERNELS, CHECKER} <= set(reached(["rules/library/movement.rules"]))
    pages = reached(["docs/proofs.md"])
    assert "tests/docs/test_pages.py" in pages and KERNELS not in pages


def test_what_stands_beside_a_test_is_reached_too() -> None:
    """Helpers are imported by their bare name; goldens and rule files are read by the tests of their folder."""
    assert "tests/coset/test_torch_kept.py" in reached(["tests/coset/torch_models.py"])
    found = reached(["tests/prove/promise_fails.rules"])
    assert "tests/prove/test_promise.py" in found and KERNELS not in found
    assert KERNELS in reached(["tests/lowering/goldens/argmax.txt"])
