"""Every spelling of the corpus is recognised as its op, but for the known misses; no near-miss is. `-s` prints the share of each op."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from spellings import Entry, entries, forbidden, known_misses, missing, near_misses, resembled, searched, taken, unknown

from coset.comparing.difference import difference
from coset.comparing.feeds import cases
from coset.comparing.fold import fallback_for
from coset.comparing.sizes import bindings
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate_program
from tests.sampled import sampled

ENTRIES = entries()
NEAR = near_misses()
KNOWN = known_misses()
SEEN: dict[str, list[bool]] = {}


@pytest.fixture(scope="module", autouse=True)
def summary() -> Iterator[None]:
    """The share of each op, and of all, at the end."""
    yield
    every = [found for each in SEEN.values() for found in each]
    shares = [f"{op} {sum(found)}/{len(found)}" for op, found in sorted(SEEN.items())]
    if every:
        print(f"\nspellings recognised: {sum(every)} of {len(every)} ({sum(every) / len(every):.1%}): {', '.join(shares)}")


# Near-misses whose refused form names an operand as it is written; the op is found in the true program with that operand reshaped,
# or with its mask made of another value, so that the refused form would not be seen there. They need other words for what is refused.
BEHIND_MOVEMENT = frozenset(
    {
        "gqa-tiled", "mask-before-scale", "mask-on-values", "mask-subtracted", "mask-transposed", "rope-angles-swapped", "rope-signs",
        "where-inverted",
    }
)  # fmt: skip


def needs(entry: Entry) -> None:
    if entry.path.suffix == ".mlir":
        pytest.importorskip("torch_mlir", reason="the `mlir` extra is not installed")


@pytest.mark.parametrize("entry", sampled(ENTRIES), ids=lambda entry: entry.name)
def test_a_spelling_is_recognised(entry: Entry) -> None:
    needs(entry)
    try:
        problem = missing(entry)
    except CosetError as error:
        problem = f"error: {error.message}"
    SEEN.setdefault(entry.folder, []).append(not problem)
    if entry.name in KNOWN:
        assert problem, f"{entry.name} is recognised now: run tests/corpus/update.py, which takes it off the list of misses"
    else:
        assert not problem, problem


def test_every_known_miss_is_an_entry_with_a_reason() -> None:
    assert not KNOWN.keys() - {entry.name for entry in ENTRIES}
    assert all(KNOWN.values())


@pytest.mark.parametrize("entry", sampled(NEAR, 2), ids=lambda entry: entry.path.stem)
def test_a_near_miss_is_not_recognised(entry: Entry) -> None:
    needs(entry)
    if unknown(entry):
        pytest.skip(f"there is no op {unknown(entry)}")
    assert not forbidden(entry)


@pytest.mark.parametrize("entry", NEAR, ids=lambda entry: entry.path.stem)
def test_what_a_near_miss_resembles_would_be_refused_in_its_place(entry: Entry) -> None:
    near = resembled(entry)
    needs(near)
    if unknown(entry) or near.name in KNOWN:
        pytest.skip(f"{near.name} is not recognised yet")
    if entry.path.stem in BEHIND_MOVEMENT:
        pytest.skip("the true op is found with this operand behind a movement: this near-miss shows less than it should")
    assert taken(searched(near), entry.refused), "what must not be found is not found in the true op either"


@pytest.mark.parametrize("entry", NEAR, ids=lambda entry: entry.path.stem)
def test_a_near_miss_has_other_values_than_what_it_resembles(entry: Entry) -> None:
    needs(entry)
    program, near = entry.program(), resembled(entry).program()
    assert [term.type for term in program.inputs] == [term.type for term in near.inputs]
    binding = next(bindings(program, {}))
    case = next(iter(cases(program, binding)))
    renamed = {str(b.attribute("name")): case.feed[str(a.attribute("name"))] for a, b in zip(program.inputs, near.inputs, strict=True)}
    with np.errstate(all="ignore"):
        got = evaluate_program(program, case.feed, fallback=fallback_for(program.source))[0]
        wanted = evaluate_program(near, renamed, fallback=fallback_for(near.source))[0]
    far = difference(case.name, "", np.asarray(wanted), np.asarray(got), None, exact=False)
    assert not far.ok, f"{entry.name} has the values of {entry.near}"
