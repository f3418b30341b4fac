"""What is unmet, of every situation that searches come upon: something where `Rule.decide` refuses, nothing where it fires."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import onnx
import pytest

from coset.egraph.limits import Limits
from coset.egraph.request import Request
from coset.egraph.search import Search
from coset.frontends.onnx.model import import_model
from coset.ir.program import Program
from coset.ir.types import TupleType
from coset.job.own_rules import NO_RULES
from coset.job.phases import permitted_phases
from coset.rules import payloads
from coset.rules.refusal import unmet

CORPUS = Path(__file__).resolve().parent.parent / "corpus"


def _read(path: Path) -> Program:
    return import_model(onnx.parser.parse_model(path.read_text()))


PROGRAMS: dict[str, Callable[[], Program]] = {
    name: partial(_read, CORPUS / f"{name}.onnxtxt")
    for name in (
        "layer_norm/torch-script14-inputs",
        "near_misses/attention-wrong-axis",
        "conv_bn/torch-script14-inputs",
        "near_misses/gn-unbiased",
    )
}


def situations(search: Search) -> Iterator[tuple[Any, list[Any], list[Any], list[Any], bool]]:
    """Each key that was decided: the rule, what `decide` is given, and whether it fired."""
    for number, plans in search.plans.items():
        encoded = search.rules[number]
        for key, plan in plans.items():
            count, first = len(encoded.left), encoded.frame.nodes
            types = [search.tables.types.values[i] for i in key[first : first + encoded.binds]]
            given = [payloads.described(n.op, *search.tables.payloads.values[i]) for n, i in zip(encoded.left, key, strict=False)]
            if None in given:
                continue
            typed = dict(zip(encoded.rule.typed, types, strict=False))
            left = [typed.get(index) for index in range(count)]
            if encoded.rule.roots > 1:
                left[0] = TupleType(tuple(typed[root.index] for root, _ in encoded.rule.pairs))
            yield encoded.rule, given, left, types[len(typed) :], plan is not None


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_unmet_is_what_decide_refuses(name: str) -> None:
    phases = permitted_phases(NO_RULES, "lossy", lambda _: True)
    search = Search(Request(PROGRAMS[name]().roots, (), tuple(phases), Limits(nodes=3_000)))
    for _ in search.run():
        pass
    seen = [0, 0]
    for rule, given, left, variables, fired in situations(search):
        found = unmet(rule, given, left, variables)
        assert bool(found) is not fired, f"{rule.name}: {[str(each) for each in found]}"
        assert all(each.condition and each.found for each in found)
        seen[fired] += 1
    assert min(seen) > 20


def test_refused_matches_are_dropped_where_matches_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them and no others: what is found is the same either way."""
    roots, phases = PROGRAMS["layer_norm/torch-script14-inputs"]().roots, tuple(permitted_phases(NO_RULES, "exact", lambda _: True))

    def searched(most: int) -> tuple[int, int]:
        monkeypatch.setattr("coset.egraph.search.WAITING", most)
        search = Search(Request(roots, (), phases, Limits()))
        for _ in search.run():
            pass
        assert search.refused
        tables, read = search.engine.frozen()
        keys = search.situations(tables)
        waiting = [tuple(map(read, keys[row.inputs[-1]])) for frame in search.frames for row in tables[frame.match].rows]
        refused = [key for key in waiting if search.plans[key[0]][key[1 : 1 + search.rules[key[0]].frame.width]] is None]
        return len(refused), search.enodes()

    (dropped, found), (kept, found_too) = searched(0), searched(1 << 40)
    assert (dropped, found) == (0, found_too)
    assert kept > 0
