"""Left sides in pieces: what is cut where, and that the search finds what it finds without."""

from __future__ import annotations

import numpy as np
import pytest

import coset.dialects
from coset.dialects.hub.stablehlo import splat
from coset.egraph import door, encode, facts
from coset.egraph.limits import Limits
from coset.egraph.pieces import Piece, cut
from coset.egraph.saturate import Saturation, saturate
from coset.egraph.tables import Tables
from coset.ir.registry import all_ops
from coset.ir.term import Term, constant, input_term, make
from coset.ir.types import F32, tensor
from coset.job.own_rules import NO_RULES
from coset.job.phases import permitted_phases
from coset.rules.library import load
from coset.rules.parts import variables
from coset.rules.pattern import Application, applications

assert coset.dialects
LEFT_SIDES = [rule.left for rule in load().rules if isinstance(rule.left, Application)]


def constants(piece: Piece) -> int:
    return sum(not node.operands for node in piece.nodes)


def test_pieces_make_up_every_left_side() -> None:
    for left in LEFT_SIDES:
        whole = cut(left)
        pieces = [whole, *whole.deepest_first()]
        assert sorted(node.index for piece in pieces for node in piece.nodes) == [node.index for node in applications(left)]
        assert all(piece.root is piece.nodes[0] and piece.all_nodes == tuple(applications(piece.root)) for piece in pieces)
    assert any(len(list(cut(left).deepest_first())) > 1 for left in LEFT_SIDES)


def test_where_constants_meet_nothing_is_left_to_cut() -> None:
    """Several constants are in a piece only as operands of one node, or under ops that hold nothing but them."""
    for left in LEFT_SIDES:
        for piece in (cut(left), *cut(left).deepest_first()):
            more = [node for node in piece.nodes[1:] if variables(node) and any(not n.operands for n in _inside(node, piece))]
            assert constants(piece) <= 1 or not more


def _inside(node: Application, piece: Piece) -> list[Application]:
    """The nodes of the piece at and under `node`."""
    own = set(map(id, piece.nodes))
    return [below for below in applications(node) if id(below) in own]


def test_egglog_takes_the_find_rules_of_every_rule() -> None:
    """Of all ops at once, so that there are many pieces. egglog names what a fact leaves unnamed by its relation and a number: a relation
    piece_18 beside piece_1 was one of these names in one rule (Elu, when all ops were loaded)."""
    all_ops()
    tables, engine = Tables(), door.Engine()
    pieces: dict[str, str] = {}
    rules = [encode.encode_rule(rule, number, 0, tables) for number, rule in enumerate(load().rules)]
    frames = dict.fromkeys(encoded.frame for encoded in rules)
    texts = [*dict.fromkeys(text for frame in frames for text in (*frame.key_declarations, *frame.declarations))]
    texts += encode.find_texts(rules, tables, pieces)
    for text in (
        encode.PRELUDE,
        *facts.declarations(facts.NAMES, encode.ANALYSIS),
        *encode.rulesets(rules),
        *encode.declarations(tables),
        *texts,
    ):
        engine.parse(text)
    names = sorted(pieces.values())
    assert len(names) > 100
    assert not [(a, b) for a in names for b in names if b.startswith(a) and b[len(a) :].isdigit()]


def gelu(x: Term, number: int) -> Term:
    """The tanh form over a product with a weight."""
    dims = x.tensor.dims
    cube = make("stablehlo.multiply", (x, make("stablehlo.multiply", (x, x))))
    inner = make("stablehlo.add", (x, make("stablehlo.multiply", (splat(0.044715, F32, dims), cube))))
    tanh = make("stablehlo.tanh", (make("stablehlo.multiply", (splat(0.7978845608, F32, dims), inner)),))
    half = make("stablehlo.multiply", (splat(0.5, F32, dims), x))
    shift = constant(np.random.default_rng(number).standard_normal(dims).astype(np.float32))
    return make("stablehlo.add", (make("stablehlo.multiply", (half, make("stablehlo.add", (splat(1.0, F32, dims), tanh)))), shift))


def searched() -> Saturation:
    x = input_term("x", tensor(F32, 4, 6))
    for number in range(2):
        x = gelu(x, number)
    phases = permitted_phases(NO_RULES, "real", lambda rule: rule.definition in (None, "onnx.Gelu"))
    return saturate([x], phases, Limits(iterations=5))


def test_the_search_finds_the_same_uncut(monkeypatch: pytest.MonkeyPatch) -> None:
    found = searched()
    assert "onnx.Gelu.recognise" in {found.rules[number].family for number, count in found.fired.items() if count}
    monkeypatch.setattr(encode, "cut", lambda root: Piece(root, tuple(applications(root)), ()))
    uncut = searched()
    assert (found.enodes, found.eclasses, found.fired) == (uncut.enodes, uncut.eclasses, uncut.fired)
