"""Smaller counterexamples: of the commonest element type, with few elements, and numbers that a person would have tried."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.prove.counterexample import Counterexample
from coset.prove.deadline import Late, Time, until
from coset.prove.precision import long_integers
from coset.prove.sample import Situation, kinds_of, sides
from coset.prove.values import KINDS, fitted
from coset.rules.definition import evaluate_defined
from coset.rules.equation import RuleTypeError
from coset.rules.instance import InstanceSearch
from coset.rules.instances import instances
from coset.rules.rule import Rule

DRAWS = 64  # inputs on which a difference in digits is looked for
SECONDS = 1.5  # of the processor for one counterexample
POOLS = ((1, 2), (2, 1), (2, 3), (3, 2, 1), (3, 4, 2))  # dims, the small ones first
EACH = 4  # instances of each search
FEW = 64  # elements whose numbers are made simple one after the other
SIMPLE = (0.0, 1.0, -1.0, 2.0, 3.0, 0.5, -2.0)


def smallest(rule: Rule, found: Counterexample) -> Counterexample:
    """A counterexample of `rule` that is no larger than the one that was `found`; what is looked at does not depend on names."""
    best = found
    try:
        with until(Time.of(SECONDS)):
            for other in _others(rule, found):
                best = min(best, other, key=_size)
            best = _plain(rule, best if _shows(best) else _showing(rule, best))
    except Late:
        pass
    return best


def _shows(found: Counterexample) -> bool:
    """Whether the results differ, too: digits that are lost are so on any input, and seen on some."""
    if found.left.shape != found.right.shape or not found.left.size:
        return True
    return bool(found.left[found.index].tobytes() != found.right[found.index].tobytes())


def _showing(rule: Rule, found: Counterexample) -> Counterexample:
    """The counterexample with other inputs, on which the results differ; as it is where none are found."""
    pair = None if found.instance is None or found.index else sides(rule, found.instance)
    if pair is None or found.instance is None:
        return found
    situation, generator = Situation.of(rule, found.instance, pair), np.random.default_rng(0)
    for _ in range(DRAWS):
        inputs = long_integers(situation.drawn(KINDS[0], generator), generator)
        for each in situation.pairs:
            with np.errstate(all="ignore"):
                left, right = (np.asarray(value) for value in evaluate(each, inputs, fallback=evaluate_defined))
            where = np.argwhere(left != right) if left.shape == right.shape else np.empty((0, 0))
            if len(where):
                return replace(found, inputs=inputs, left=left, right=right, index=tuple(int(i) for i in where[0]))
    return found


def _size(found: Counterexample) -> tuple[bool, int, int]:
    """Whether it shows nothing; its elements, then those of its numbers that nobody would have tried."""
    values = [value for array in found.inputs.values() for value in array.reshape(-1).astype(np.complex128).tolist()]
    strange = sum(value not in SIMPLE for value in values)
    return (not _shows(found), len(values), strange) if found.inputs else (True, sys.maxsize, 0)


def _others(rule: Rule, found: Counterexample) -> Iterator[Counterexample]:
    """Counterexamples among small instances of the first element type of each class that fails."""
    generator = np.random.default_rng(0)
    for rank in range(4):
        for number, pool in enumerate(POOLS):
            search = InstanceSearch(random.Random(number), dtypes=1, most_rank=rank, firing=True, sizes=pool)
            tried = 0
            for instance in instances(rule, search):
                try:
                    pair = sides(rule, instance)
                except (RuleTypeError, CosetError):
                    continue
                if pair is None:
                    continue
                tried += 1
                situation = Situation.of(rule, instance, pair)
                for kind in dict.fromkeys((found.kind, *kinds_of(rule.numerics))):
                    other = situation.compared(kind, generator) if kind else None
                    if other is not None:
                        yield other
                        break
                if tried >= EACH:
                    break


def _plain(rule: Rule, found: Counterexample) -> Counterexample:
    """The counterexample with one simple number after the other in place of what was drawn, as long as the sides differ."""
    if found.instance is None or sum(array.size for array in found.inputs.values()) > FEW:
        return found
    pair = sides(rule, found.instance)
    assert pair is not None
    situation = Situation.of(rule, found.instance, pair)
    facts = {name: fact for fact, name in rule.facts}
    best = found
    for name, array in found.inputs.items():
        for place in np.ndindex(array.shape):
            for simple in SIMPLE:
                value = np.asarray(simple).astype(array.dtype)
                if best.inputs[name][place] == value:
                    break
                changed = np.array(best.inputs[name])  # of rank 0 it is no array
                changed[place] = value
                inputs = {**best.inputs, name: fitted(changed, facts.get(name, ""))}
                other = situation.judged(inputs, found.kind)
                if other is not None and np.array_equal(inputs[name], changed) and (_shows(other) or not _shows(best)):
                    best = other
                    break
    return replace(best, rule=found.rule)
