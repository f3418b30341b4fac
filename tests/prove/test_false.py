"""Rules that were shipped somewhere, or nearly: each is refuted with a counterexample, and beside it stands what holds.

A file of `tests/prove/false/` has the false rule first and the true one after `# Holds:`. Most are from the table of the design page.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import coset.dialects
from coset.prove.check import check_rules
from coset.prove.verdict import RuleVerdict
from coset.rules.library import check_files
from coset.rules.syntax import RuleError
from tests.sampled import sampled

assert coset.dialects
FILES = sorted((Path(__file__).parent / "false").glob("*.rules"))
TRIVIAL = {"same_term": "both sides are the same term"}  # refused when they are read
# what `coset check` must find by itself
REPAIRS = {
    "add_zero": ["numerics exact except signed_zero (proved)"],
    "assoc_exact": ["numerics reassociates (proved)", "F: int (proved)"],
    "exponential_of_log": ["numerics real (proved)"],
    "minus_itself": ["numerics real"],
    "product_by_quotient": ["I: float and numerics reassociates (proved)"],
    "quotient_by_itself_reassociates": ["numerics real (proved)"],
    "quotient_of_quotient": ["N: float and numerics reassociates (tested)"],
    "remainder_of_fraction": ["N: int (proved)"],
    "softmax_without_shift": ["numerics real (proved)"],
    "sum_by_quotient": ["I: float and numerics reassociates except nonfinite (proved)"],
}


def _checked(path: Path) -> tuple[list[RuleVerdict], list[RuleError]]:
    """The verdicts of the file in the order in which its rules stand there, and its mistakes."""
    rules, errors = check_files([path])
    verdicts = check_rules(rules.rules, lambda rule: rule.place.file == str(path))
    return sorted(verdicts, key=lambda verdict: verdict.line), errors


@pytest.mark.parametrize("path", sampled(FILES, 2), ids=lambda path: path.stem)
def test_the_false_one_is_refuted_and_the_true_one_is_shown(path: Path) -> None:
    assert path.read_text().startswith("# Breaks `"), "the promise that it breaks is said first"
    start = time.process_time()
    verdicts, errors = _checked(path)
    print(f"{path.stem}: {time.process_time() - start:.2f} s of CPU for both")
    *false, true = verdicts
    if path.stem in TRIVIAL:
        assert [error.message for error in errors] == [TRIVIAL[path.stem]] and not false
    else:
        (refuted,) = false
        assert errors == []
        assert refuted.assurance == "refuted", refuted.method
        print("true with:", refuted.repairs)
        for repair in REPAIRS.get(path.stem, ()):
            assert any(offer.startswith(repair) for offer in refuted.repairs), refuted.repairs
        assert "left" in refuted.counterexample and "right" in refuted.counterexample and " = " in refuted.counterexample
        print(refuted.counterexample)
    assert true.assurance in ("proved", "bounded"), f"{true.assurance}: {true.method}{true.counterexample}"
