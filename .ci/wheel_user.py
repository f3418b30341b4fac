"""What a user's script does with an installed coset: a GELU that is written out becomes one node, with types that mypy sees."""

import onnx  # type: ignore[import-untyped, unused-ignore]
from onnx import TensorProto, helper  # type: ignore[import-untyped, unused-ignore]

import coset


def written_out() -> onnx.ModelProto:
    """x * (1 + erf(x / sqrt 2)) / 2 as five nodes."""
    constants = {"root": 0.70710678, "one": 1.0, "half": 0.5}
    nodes = [("Mul", "x root", "scaled"), ("Erf", "scaled", "erf"), ("Add", "erf one", "sum"), ("Mul", "x sum", "double"),
             ("Mul", "double half", "y")]  # fmt: skip
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 8]) for name in "xy"]
    initializers = [helper.make_tensor(name, TensorProto.FLOAT, [], [number]) for name, number in constants.items()]
    graph = helper.make_graph(
        [helper.make_node(op, into.split(), [out]) for op, into, out in nodes], "gelu", value[:1], value[1:], initializers
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def main() -> None:
    """Optimize it, and save both."""
    onnx.save(written_out(), "gelu.onnx")
    found: coset.Optimized = coset.optimize("gelu.onnx", numerics="reassociates", limits=coset.Limits(seconds=20))
    assert found.report["nodes"] == {"before": 5, "after": 1}, found.report["nodes"]
    found.save("saved.onnx")


main()
