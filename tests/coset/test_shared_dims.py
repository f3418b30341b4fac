"""Dims that no input has: two programs have the same one only where nodes that give it are seen to be the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from coset.cli import run
from coset.comparing.reference import read_program
from coset.ir.dims import symbol
from coset.ir.program import Program
from coset.ir.term import input_term, make
from coset.ir.types import F32, I64, TensorType
from coset.prove.certificate import Certificate, Rejected
from coset.prove.certificate_file import read_certificate
from coset.prove.contents import by_content, digest, dims_by_content, fitted, inner_symbols
from coset.prove.kernel import verify
from coset.proving.certify import certificate_of
from coset.proving.join import join
from coset.proving.meanings import DEFINED, meaning
from coset.proving.prove import Proving, prove
from coset.rules.library import load

Node = tuple[str, list[str], list[str]]
RULES = {rule.name: rule for rule in load().rules}
COUNT: list[Node] = [("NonZero", ["v"], ["at"]), ("Shape", ["at"], ["y"])]
ROWS: list[Node] = [("NonZero", ["v"], ["at"]), ("Cast", ["at"], ["c"]), ("Neg", ["c"], ["n"]), ("Neg", ["n"], ["y"])]


def saved(folder: Path, name: str, nodes: list[Node], rank: int = 1, called: str = "n") -> Path:
    """A model of a 4x4 input whose output has a dim that only running it says."""
    dtype = TensorProto.INT64 if rank == 1 else TensorProto.FLOAT
    made = [helper.make_node(op, reads, gives, **({"to": TensorProto.FLOAT} if op == "Cast" else {})) for op, reads, gives in nodes]
    graph = helper.make_graph(
        made, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 4])],
        [helper.make_tensor_value_info("y", dtype, [2] if rank == 1 else [2, called])],
    )  # fmt: skip
    path = folder / f"{name}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def read(path: Path) -> Program:
    return by_content(read_program(path))


def checked(certificate: Certificate, before: Path, after: Path) -> None:
    verify(certificate, read_program(before), read_program(after), RULES.get, meaning=meaning, fallback=DEFINED)


def test_one_name_in_two_programs_is_not_one_dim(tmp_path: Path) -> None:
    """Both call the number of what is not zero `d0`, and compute nothing else."""
    one = saved(tmp_path, "one", [("Relu", ["x"], ["v"]), *COUNT])
    other = saved(tmp_path, "other", [("Abs", ["x"], ["v"]), *COUNT])
    assert inner_symbols(read(one)) == inner_symbols(read(other)) and read(one).roots == read(other).roots
    assert digest(read(one)) != digest(read(other)), "what the dim is computed from is part of the program"
    with pytest.raises(Rejected, match="do not join"):
        checked(certificate_of(read(one), read(other), []), one, other)
    checked(certificate_of(read(one), read(one), []), one, one)
    assert prove(Proving(one, other))["answer"] == "refuted"


@pytest.mark.parametrize("nodes", [COUNT, ROWS], ids=["a number", "a shape"])
def test_nodes_on_equal_operands_give_one_dim(nodes: list[Node], tmp_path: Path) -> None:
    rank = 1 if nodes is COUNT else 2
    one = saved(tmp_path, "one", [("Relu", ["x"], ["v"]), *nodes], rank)
    other = saved(tmp_path, "other", [("Relu", ["x"], ["u"]), ("Relu", ["u"], ["v"]), *nodes], rank, called="of_another_exporter")
    proof = tmp_path / "proof"
    assert prove(Proving(one, other, certificate=proof))["answer"] == "proved"
    assert run(["verify", str(proof), str(one), str(other)]) == 0
    found = read_certificate(proof)
    place = next(number for number, line in enumerate(found.lines) if "dims" in line)
    with pytest.raises(Rejected, match=r"do not join|is .* before and"):
        checked(Certificate(found.head, [line for line in found.lines if "dims" not in line]), one, other)
    first = [line for line in found.lines[:place] if "rule" in line]
    assert first, "that the operands are equal is shown"
    early = Certificate(found.head, [found.lines[place], *found.lines[:place]])
    with pytest.raises(Rejected, match="not seen to be equal"):
        checked(early, one, other)


def test_only_nodes_that_give_a_dim_say_what_it_is(tmp_path: Path) -> None:
    """What is cut off at a dim has that dim, and does not say that it is another one."""
    one = saved(tmp_path, "one", [("Relu", ["x"], ["v"]), *ROWS], 2)
    other = saved(tmp_path, "other", [("Abs", ["x"], ["v"]), *ROWS], 2)
    before, after = (dims_by_content(read(path)) for path in (one, other))
    terms = [*before.terms()], [*after.terms()]
    empty = certificate_of(read(one), read(other), [])
    numbers = {term: number for number, term in enumerate(dict.fromkeys((*terms[0], *terms[1])))}
    for mine, theirs in zip(*terms, strict=True):
        if mine is not theirs:
            with pytest.raises(Rejected, match=r"not seen to be equal|two computations"):
                checked(Certificate(empty.head, [{"dims": [[numbers[mine], numbers[theirs]]]}]), one, other)
    for line in ({"dims": [[0]]}, {"dims": 3}, {"dims": [[0, 10_000]]}, {"dims": [["a", None]]}):
        with pytest.raises(Rejected):
            checked(Certificate(empty.head, [line]), one, other)


def test_two_dims_that_give_way_stay_two() -> None:
    """Both names are taken by the inputs of the other program, and what one would be called next is the other."""

    def sizes(*names: str) -> Program:
        x = input_term("x", TensorType(F32, tuple(map(symbol, names))))
        inner = make("builtin.dims", (), {"dims": (symbol("d0"), symbol("d0@")), "type": TensorType(I64, (2,))})
        return Program((x,), (("y", inner),))

    (root,) = fitted(sizes("n", "m"), sizes("d0", "d0@")).roots
    assert len({*root.attribute("dims"), symbol("d0"), symbol("d0@")}) == 4


def test_dims_of_inputs_take_no_name_that_another_dim_has(tmp_path: Path) -> None:
    """Inputs are called as in the other program: a dim that is counted inside keeps a name of its own."""

    def rows(name: str, dim: str) -> Path:
        ops = (("NonZero", "x", "at"), ("Shape", "at", "y"), ("Shape", "x", "z"))
        nodes = [helper.make_node(op, [reads], [gives]) for op, reads, gives in ops]
        given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [dim])
        ends = [helper.make_tensor_value_info(end, TensorProto.INT64, [size]) for end, size in (("y", 2), ("z", 1))]
        graph = helper.make_graph(nodes, "g", [given], ends)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / name)
        return tmp_path / name

    one, other = read(rows("one.onnx", "d0")), read(rows("other.onnx", "n"))
    assert inner_symbols(other) == ["d0"]
    same = fitted(other, one)
    assert same.inputs == one.inputs
    inner = inner_symbols(same)
    assert inner and not set(inner) & set(same.symbols())
    assert dims_by_content(same).roots == dims_by_content(one).roots


def test_each_node_that_gives_a_dim_is_looked_at_on_the_first_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not on the next, larger ones."""
    made = [helper.make_node(op, reads, [give]) for op, reads, give in (
        ("MatMul", ["x", "w"], "m"), ("Add", ["m", "c"], "s"), ("NonZero", ["s"], "a"),
    )]  # fmt: skip
    outputs = [helper.make_tensor_value_info("a", TensorProto.INT64, [2, "count"])]
    weights = [helper.make_tensor("w", TensorProto.FLOAT, [4, 4], range(1, 17)), helper.make_tensor("c", TensorProto.FLOAT, [4], range(4))]
    graph = helper.make_graph(made, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["unk", 4])], outputs, weights)
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    rows: list[int] = []

    def joined(goals: Any, phases: Any, *, alike: Any) -> Any:
        rows.append(next(iter(alike.args[2]))["x"].shape[0])
        return join(goals, phases, alike=alike)

    monkeypatch.setattr("coset.proving.certify.join", joined)
    assert run(["optimize", str(path), "-o", str(tmp_path / "out.onnx"), "--certificate", str(tmp_path / "proof")]) == 0
    assert len(rows) > 1 and set(rows) == {2}
