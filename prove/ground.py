"""`test` lines: each is evaluated where it stands, and what does not come out as promised is a mistake there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from coset.ir.builtin import absent
from coset.ir.errors import CosetError
from coset.ir.evaluate import evaluate
from coset.ir.op import Array
from coset.ir.term import Term, input_term, make
from coset.ir.types import TensorType, TupleType, dtype_of
from coset.prove.promise import Difference, difference_of
from coset.prove.sample import promised_difference, results, sides
from coset.prove.values import NONFINITE, fits
from coset.rules import syntax
from coset.rules.compile import type_pattern
from coset.rules.definition import Definition, evaluate_defined, expand
from coset.rules.elaborate import numerics_of
from coset.rules.equation import NUMERICS_ORDER, Numerics
from coset.rules.ground import given, instance
from coset.rules.literals import array, bindings, type_of
from coset.rules.names import collect
from coset.rules.rule import Rule
from coset.rules.syntax import RuleError


def broken_tests(rules: Sequence[Rule]) -> list[RuleError]:
    """The test lines that fail among those of one entry: at each, some form of the rule must fire, and every form that fires must give two
    equal sides, as promised, and the values that are written down."""
    return [error for ground in rules[0].tests for error in [_broken(rules, ground)] if error is not None]


def broken_definition_tests(definition: Definition) -> list[RuleError]:
    """The test lines of a definition that fail: the op must give the values that are written down."""
    return [error for ground in definition.entry.tests for error in [_broken_definition(definition, ground)] if error is not None]


def _broken(rules: Sequence[Rule], ground: syntax.Ground) -> RuleError | None:
    fired = False
    reasons: list[str] = []
    for rule in rules:
        known = given(rule, ground)
        if known is None:
            continue
        wrong = next((f"`{name}` is not {fact}" for fact, name in rule.facts if not fits(known.arrays[name][0], fact)), "")
        found = wrong or instance(rule, known)
        try:
            pair = None if isinstance(found, str) else sides(rule, found)
        except CosetError as mistake:
            return RuleError(f"`{rule.family}` fails its test: {mistake.message}", place=ground.place, help=mistake.help)
        if pair is None:
            reasons.append(found if isinstance(found, str) else "a condition or a type does not hold")
            continue
        fired = True
        if ground.never:
            return RuleError(f"`{rule.family}` fires here, where its test says that it does not", place=ground.place, help=str(rule))
        inputs = {name: arrays[0] for name, arrays in known.arrays.items()}
        error = _compared(rule.family, rule.numerics, pair, inputs, ground)
        if error is not None:
            return error
    if fired or ground.never:
        return None
    why = f"no form of it has these operands, {', '.join(dict.fromkeys(map(str, rules[0].variables)))}" if not reasons else reasons[0]
    return RuleError(f"`{rules[0].family}` does not fire at its test", place=ground.place, help=why)


def _compared(name: str, numerics: Numerics, pair: tuple[Term, Term], inputs: dict[str, Array], ground: syntax.Ground) -> RuleError | None:
    """What is wrong with the values of two sides: with each other, or with what is written down."""
    written = ground.results or (None,) * (len(pair[0].type.items) if isinstance(pair[0].type, TupleType) else 1)
    parts = results(pair)
    if len(parts) != len(written):
        return RuleError(f"`{name}` has {len(parts)} results", place=ground.place, help="write one value for each")
    try:
        for part, expected in zip(parts, written, strict=True):
            with np.errstate(all="ignore"):
                left, right = (np.asarray(value) for value in evaluate(part, inputs, fallback=evaluate_defined))
                difference = difference_of(numerics, left, right, part, inputs)
                difference = difference or promised_difference(numerics, part, inputs, (left, right), NONFINITE)
                if difference is not None:
                    message = f"`{name}` fails its test: the left side is {_text(left)}, the right side {_text(right)}"
                    return RuleError(message, place=ground.place, help=_where(difference))
                error = None if expected is None else _expected(name, numerics, right, expected, part, inputs)
            if error is not None:
                return error
    except CosetError as error_:
        if isinstance(error_, RuleError):
            raise
        return RuleError(f"the test of `{name}` cannot be evaluated: {error_.message}", place=ground.place, help=error_.help)
    return None


def _expected(
    name: str, numerics: Numerics, found: Array, written: syntax.Written, part: tuple[Term, Term], inputs: dict[str, Array]
) -> RuleError | None:
    type = part[1].type
    assert isinstance(type, TensorType)
    wanted = array(written, type.dtype)
    binding = replace(numerics, word="reassociates") if numerics.word == "lossy" else numerics  # whose sides may differ, not its result
    difference = difference_of(binding, wanted, found, part, inputs) or _not_finite_alike(wanted, found)
    if difference is None:
        return None
    return RuleError(f"`{name}` gives {_text(found)}, its test says {_text(wanted)}", place=written.place, help=_where(difference))


def _not_finite_alike(wanted: Array, found: Array) -> Difference | None:
    """Where one of two floats is infinite or no number and the other is not just that."""
    if dtype_of(wanted.dtype).kind != "float":
        return None
    a, b = (each.astype(np.float64) for each in (wanted, found))
    apart = ~(np.isfinite(a) & np.isfinite(b)) & ~((a == b) | (np.isnan(a) & np.isnan(b)))
    where = np.argwhere(apart)
    return (tuple(int(i) for i in where[0]), "one of them is not finite") if len(where) else None


def _broken_definition(definition: Definition, ground: syntax.Ground) -> RuleError | None:
    op, entry = definition.op, definition.entry
    names = collect(entry.parameters, (), definition.dialects)
    types = {name: type_pattern(each.kind, names) for name, each in names.terms.items() if isinstance(each.kind, syntax.TensorKind)}
    known = bindings(ground, types, names.kinds)
    attributes = {attribute.name: known.values[attribute.name] for attribute in op.attributes if attribute.name in known.values}
    operands: list[Term] = []
    inputs: dict[str, Array] = {}
    for name in op.operands:
        arrays = known.arrays.get(name, ())
        operands += [absent()] if not arrays else []
        for number, value in enumerate(arrays):
            label = f"{name}_{number}" if number else name
            inputs[label] = value
            operands.append(input_term(label, type_of(value)))
    try:
        meant = expand(make(op, operands, attributes))
    except CosetError as error:
        return None if ground.never else RuleError(f"`{op.name}` is not defined at its test", place=ground.place, help=error.message)
    if ground.never:
        return RuleError(f"`{op.name}` is defined here, where its test says that it is not", place=ground.place, help=f"it is {meant}")
    promise = max((numerics_of(clause.promise) for clause in entry.clauses), key=lambda each: NUMERICS_ORDER.index(each.word))
    return _compared(op.name, promise, (meant, meant), inputs, ground)


def _text(array: Array) -> str:
    return f"{np.array2string(array, threshold=24, separator=', ').replace(chr(10), '')}"


def _where(difference: tuple[tuple[int, ...], str]) -> str:
    index, why = difference
    return f"at {list(index)}: {why}" if index else why
