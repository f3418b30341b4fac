"""Which of TASO's and TENSAT's rules the library covers, found out by running both sides of each.

    python -m benchmarks.taso_rules [--target nvidia-a100] [--rules benchmarks/taso.rules] [--json]

The rules are those that TASO proves its substitutions from (Jia et al., SOSP 2019, table 2; `verify/verify.py` of its repository) and the
kinds of substitution in TENSAT's lists (Yang et al., MLSys 2021: 120 with one output, 15 with two, most of which differ only in the size
of a kernel or in what a variable is called). They are written here anew, by what they say. A convolution with an activation is a
convolution and a Relu here, so that what only moves between the two spellings is one program.

Each is asked three things. Does a search that is given the left side alone find the right one, term by term? Does one that is given the
right side find the left one? And where both are given, do they meet in one e-class: are they known to be equal, whichever way? Chains of
products are ordered by dynamic programming and products of one operand merged as a whole (decisions 3 and 13), sums and products are
gathered and not spread out (decision 4): such a rule meets, and is found one way at most.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path

import numpy as np
import onnx

from benchmarks.stacks import Builder
from coset.egraph.limits import Limits
from coset.egraph.saturate import Saturation
from coset.frontends.onnx.model import import_model
from coset.ir.program import Program
from coset.ir.term import Term, exact_key, topological
from coset.job.job import Job
from coset.job.phases import phases_for
from coset.lowering.planning.primitive import primitive
from coset.packaging.searched import EVERY_OPSET
from coset.searching.solving import search_roots
from coset.searching.task import Task
from coset.targets.target import Rate, get_target

FURTHER = Path(__file__).parent / "taso.rules"
"""What the library leaves out."""
LIMITS = Limits(seconds=60.0, nodes=400_000)
SHAPES = {
    **dict.fromkeys("xyzw", (16, 16)), **dict.fromkeys("abcd", (16, 16)), **dict.fromkeys("uv", (2, 16, 6, 6)),
    **dict.fromkeys("KL", (16, 16, 3, 3)), **dict.fromkeys("PQ", (16, 16, 1, 1)), "s": (), "t": (),
}  # fmt: skip
"""Variables: matrices `x` to `w` and images `u`, `v` are inputs, `s` and `t` numbers that are inputs; matrices `a` to `d` and kernels `K`,
`L` (3 x 3), `P`, `Q` (1 x 1) are weights. They are large enough not to be folded when they are read."""
WEIGHTS = "abcdKLPQ"


Side = tuple[Term, ...]


@dataclass(frozen=True)
class TasoRule:
    """A rule as equal programs: each side is one expression for each of its outputs."""

    family: str
    left: str
    right: str
    outputs: int = 1

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"


def _rules(family: str, text: str, outputs: int = 1) -> tuple[TasoRule, ...]:
    sides = (line.split(" = ") for line in text.strip().splitlines())
    return tuple(TasoRule(family, left.strip(), right.strip(), outputs) for left, right in sides)


AXIOMS = (
    *_rules("elementwise", """
        (ewadd x (ewadd y z)) = (ewadd (ewadd x y) z)
        (ewadd x y) = (ewadd y x)
        (ewmul x (ewmul y z)) = (ewmul (ewmul x y) z)
        (ewmul x y) = (ewmul y x)
        (ewmul (ewadd x y) z) = (ewadd (ewmul x z) (ewmul y z))
        (ewmul x one) = x
    """),
    *_rules("scalar", """
        (smul (smul x s) t) = (smul x (times s t))
        (smul (ewadd x y) s) = (ewadd (smul x s) (smul y s))
        (smul (ewmul x y) s) = (ewmul x (smul y s))
        (smul (transpose x) s) = (transpose (smul x s))
        (smul (matmul x a) s) = (matmul x (smul a s))
        (smul (concat0 x y) s) = (concat0 (smul x s) (smul y s))
        (smul (concat1 x y) s) = (concat1 (smul x s) (smul y s))
        (conv (smul u s) K) = (conv u (smul K s))
        (smul (conv u K) s) = (conv (smul u s) K)
    """),
    *_rules("relu", """
        (relu (concat0 x y)) = (concat0 (relu x) (relu y))
        (relu (concat1 u v)) = (concat1 (relu u) (relu v))
        (relu (transpose x)) = (transpose (relu x))
    """),
    *_rules("convolution", """
        (conv u (ewadd K L)) = (ewadd (conv u K) (conv u L))
        (conv (ewadd u v) K) = (ewadd (conv u K) (conv v K))
        (ewadd (conv u K) (conv v L)) = (conv (concat1 u v) (concat1 K L))
        (concat0 (conv u K) (conv v K)) = (conv (concat0 u v) K)
        (concat1 (conv u K) (conv u L)) = (conv u (concat0 K L))
        (conv u Iconv) = u
        (conv u Cpool) = (poolavg u)
        (conv u P) = (conv u (enlarge P))
    """),
    *_rules("product", """
        (matmul x (matmul a b)) = (matmul (matmul x a) b)
        (matmul x (ewadd a b)) = (ewadd (matmul x a) (matmul x b))
        (matmul x (concat1 a b)) = (concat1 (matmul x a) (matmul x b))
        (ewadd (matmul x a) (matmul y b)) = (matmul (concat1 x y) (concat0 a b))
        (matmul x Imatmul) = x
    """),
    *_rules("transpose", """
        (transpose (transpose x)) = x
        (transpose (matmul x y)) = (matmul (transpose y) (transpose x))
        (transpose (concat0 x y)) = (concat1 (transpose x) (transpose y))
        (transpose (ewadd x y)) = (ewadd (transpose x) (transpose y))
        (transpose (ewmul x y)) = (ewmul (transpose x) (transpose y))
    """),
    *_rules("concatenation", """
        (split0 (concat0 x y)) = x
        (split1 (concat0 x y)) = y
        (concat0 (ewadd x y) (ewadd z w)) = (ewadd (concat0 x z) (concat0 y w))
        (concat0 (ewmul x y) (ewmul z w)) = (ewmul (concat0 x z) (concat0 y w))
        (concat0 (concat1 x y) (concat1 z w)) = (concat1 (concat0 x z) (concat0 y w))
    """),
    *_rules("pooling", """
        (concat0 (poolavg u) (poolavg v)) = (poolavg (concat0 u v))
        (concat1 (poolavg u) (poolavg v)) = (poolavg (concat1 u v))
        (concat0 (poolmax u) (poolmax v)) = (poolmax (concat0 u v))
        (concat1 (poolmax u) (poolmax v)) = (poolmax (concat1 u v))
    """),
)  # fmt: skip
SINGLE = (
    *_rules("products in a row", """
        (matmul (matmul x a) (matmul b c)) = (matmul (matmul x (matmul a b)) c)
        (matmul (matmul x a) (matmul b c)) = (matmul x (matmul (matmul a b) c))
        (matmul (matmul (matmul x a) b) b) = (matmul x (matmul (matmul a b) b))
        (matmul (concat0 a (matmul x a)) b) = (concat0 (matmul a b) (matmul x (matmul a b)))
        (ewadd (matmul x a) (matmul (matmul x a) b)) = (matmul x (ewadd a (matmul a b)))
        (matmul (ewadd x (matmul x a)) b) = (matmul x (ewadd b (matmul a b)))
        (matmul (ewadd y (matmul x y)) c) = (ewadd (matmul y c) (matmul x (matmul y c)))
        (concat1 (matmul x a) (matmul (matmul x a) b)) = (matmul x (concat1 a (matmul a b)))
        (ewadd (matmul x a) (matmul y a)) = (matmul (ewadd x y) a)
        (concat0 (matmul x a) (matmul y a)) = (matmul (concat0 x y) a)
    """),
    *_rules("sums and products", """
        (ewadd z (ewadd x y)) = (ewadd y (ewadd x z))
        (ewadd (ewadd x y) (ewadd y z)) = (ewadd y (ewadd y (ewadd x z)))
        (ewadd z (ewadd z (ewadd x y))) = (ewadd (ewadd x z) (ewadd y z))
        (ewmul z (ewmul x y)) = (ewmul y (ewmul x z))
        (ewmul (ewmul x y) (ewmul y z)) = (ewmul y (ewmul y (ewmul x z)))
        (ewmul z (ewmul z (ewmul x y))) = (ewmul (ewmul x z) (ewmul y z))
        (ewadd (ewmul x y) (ewmul z (ewmul x y))) = (ewmul y (ewadd x (ewmul x z)))
        (ewmul z (ewadd y (ewmul x y))) = (ewmul y (ewadd z (ewmul x z)))
    """),
    *_rules("numbers", """
        (smul (matmul x a) s) = (matmul (smul x s) a)
        (smul (matmul (matmul x a) b) s) = (matmul (smul x s) (matmul a b))
        (smul (matmul (matmul x a) b) s) = (matmul x (smul (matmul a b) s))
        (smul (ewadd x (matmul x a)) s) = (ewadd (smul x s) (matmul (smul x s) a))
        (smul (ewmul y (matmul x a)) s) = (ewmul y (matmul (smul x s) a))
        (smul (concat1 x (matmul x a)) s) = (concat1 (smul x s) (matmul (smul x s) a))
        (smul (matmul (ewmul x y) a) s) = (matmul (ewmul y (smul x s)) a)
        (ewadd (matmul x a) (smul (matmul x a) s)) = (matmul (ewadd x (smul x s)) a)
        (ewadd (ewmul x y) (smul (ewmul x y) s)) = (ewmul y (ewadd x (smul x s)))
        (concat0 (matmul x a) (smul (matmul x a) s)) = (matmul (concat0 x (smul x s)) a)
        (smul (smul (ewmul x y) s) s) = (ewmul (smul x s) (smul y s))
        (smul (smul (matmul x a) s) s) = (matmul (smul x s) (smul a s))
        (smul (smul (matmul x a) s) s) = (matmul (smul (smul x s) s) a)
        (smul (ewmul z (ewmul x y)) s) = (ewmul (ewmul x z) (smul y s))
        (matmul x (smul Imatmul s)) = (smul x s)
        (matmul y (transpose (smul x s))) = (matmul (smul y s) (transpose x))
        (ewmul y (transpose (smul x s))) = (ewmul (smul y s) (transpose x))
        (concat1 (smul x s) (transpose (smul x s))) = (smul (concat1 x (transpose x)) s)
        (relu (smul (conv u K) s)) = (relu (conv (smul u s) K))
        (relu (smul (conv u K) s)) = (relu (conv u (smul K s)))
        (ewadd (conv u K) (smul (conv u K) s)) = (conv (ewadd u (smul u s)) K)
        (concat0 (conv u K) (smul (conv u K) s)) = (conv (concat0 u (smul u s)) K)
        (concat1 (conv u K) (smul (conv u K) s)) = (conv u (concat0 K (smul K s)))
        (conv (ewmul u v) (smul K s)) = (conv (ewmul v (smul u s)) K)
        (smul (conv (conv u K) L) s) = (conv (conv (smul u s) K) L)
        (smul (smul (conv u K) s) s) = (conv (smul u s) (smul K s))
        (conv u (smul Iconv s)) = (smul u s)
        (smul (poolavg u) s) = (poolavg (smul u s))
        (smul (poolavg u) s) = (conv (smul u s) Cpool)
        (ewadd (poolavg u) (smul (poolavg u) s)) = (poolavg (ewadd u (smul u s)))
        (concat0 (poolavg u) (smul (poolavg u) s)) = (poolavg (concat0 u (smul u s)))
        (smul (conv (poolavg u) K) s) = (conv (poolavg (smul u s)) K)
    """),
    *_rules("kernels", """
        (relu (conv (conv u K) Iconv)) = (relu (conv u K))
        (poolavg (relu (conv u K))) = (conv (relu (conv u K)) Cpool)
        (relu (relu (conv u K))) = (relu (conv (relu (conv u K)) Iconv))
        (conv (relu (conv u K)) P) = (conv (relu (conv u K)) (enlarge P))
        (smul (conv u P) s) = (conv (smul u s) (enlarge P))
        (smul (conv u P) s) = (conv u (smul (enlarge P) s))
        (concat0 (conv u P) (conv v P)) = (conv (concat0 u v) (enlarge P))
        (concat1 (conv u K) (conv u P)) = (conv u (concat0 K (enlarge P)))
        (concat1 (relu (conv u K)) (relu (conv u P))) = (relu (conv u (concat0 K (enlarge P))))
        (concat1 (relu (conv u K)) (relu (conv u L))) = (relu (conv u (concat0 K L)))
        (concat0 (relu (conv u K)) (relu (conv v K))) = (relu (conv (concat0 u v) K))
        (ewadd (conv u K) (conv u P)) = (conv u (ewadd K (enlarge P)))
        (concat0 (poolavg u) (poolavg v)) = (conv (concat0 u v) Cpool)
    """),
    *_rules("transposes", """
        (relu x) = (transpose (relu (transpose x)))
        (transpose (concat1 x y)) = (concat0 (transpose x) (transpose y))
        (transpose (concat0 x (smul x s))) = (concat1 (transpose x) (smul (transpose x) s))
        (transpose (concat0 x (relu x))) = (concat1 (transpose x) (relu (transpose x)))
        (transpose (ewadd x (relu x))) = (ewadd (transpose x) (relu (transpose x)))
        (transpose (ewadd x (transpose y))) = (ewadd y (transpose x))
        (transpose (matmul y (transpose x))) = (matmul x (transpose y))
        (transpose (matmul (transpose x) y)) = (matmul (transpose y) x)
        (transpose (matmul x (smul x s))) = (matmul (smul (transpose x) s) (transpose x))
        (matmul (matmul x (transpose y)) z) = (matmul x (matmul (transpose y) z))
        (matmul Imatmul (transpose x)) = (transpose x)
        (concat1 (relu x) (transpose (relu x))) = (relu (concat1 x (transpose x)))
    """),
)  # fmt: skip
MULTI = _rules("two outputs", """
    (matmul x a) (matmul x b) = (split0' (matmul x (concat1 a b))) (split1' (matmul x (concat1 a b)))
    (matmul x a) (matmul y a) = (split0 (matmul (concat0 x y) a)) (split1 (matmul (concat0 x y) a))
    (relu x) (relu y) = (split0 (relu (concat0 x y))) (split1 (relu (concat0 x y)))
    (relu x) (relu y) = (split0' (relu (concat1 x y))) (split1' (relu (concat1 x y)))
    (relu u) (relu v) = (split0 (relu (concat0 u v))) (split1 (relu (concat0 u v)))
    (relu u) (relu v) = (split0' (relu (concat1 u v))) (split1' (relu (concat1 u v)))
    (conv u K) (conv v K) = (split0 (conv (concat0 u v) K)) (split1 (conv (concat0 u v) K))
    (relu (conv u K)) (relu (conv v K)) = (split0 (relu (conv (concat0 u v) K))) (split1 (relu (conv (concat0 u v) K)))
    (conv u K) (conv u L) = (split0' (conv u (concat0 K L))) (split1' (conv u (concat0 K L)))
    (relu (conv u K)) (relu (conv u L)) = (split0' (relu (conv u (concat0 K L)))) (split1' (relu (conv u (concat0 K L))))
    (conv u K) (conv u P) = (split0' (conv u (concat0 K (enlarge P)))) (split1' (conv u (concat0 K (enlarge P))))
    (matmul (matmul x y) x) (matmul y (matmul x y)) = (matmul x (matmul y x)) (matmul (matmul y x) y)
""", 2)  # fmt: skip
RULES = (*AXIOMS, *SINGLE, *MULTI)


class Entered:
    """All rules as one ONNX model: each has variables of its own, and its two sides are outputs."""

    def __init__(self) -> None:
        self._b = Builder()
        self._named: dict[str, str] = {}
        self._outputs: list[str] = []

    def add(self, rule: TasoRule, number: int) -> None:
        """Enter the outputs of both sides."""
        for side in (rule.left, rule.right):
            tokens = re.findall(r"[()]|[^\s()]+", side)
            self._outputs += [self._expression(tokens, number) for _ in range(rule.outputs)]
            assert not tokens, f"{side}: more than {rule.outputs} outputs"

    def program(self) -> Program:
        """What was entered, read: the outputs of the left side before those of the right one, rule by rule."""
        names = [self._b.node("Identity", output) for output in self._outputs]
        model = self._b.model(names[0], ())
        del model.graph.output[:]
        model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names)
        return import_model(model)

    def _expression(self, tokens: list[str], number: int) -> str:
        head = tokens.pop(0)
        if head != "(":
            return self._leaf(head, number)
        op, operands = tokens.pop(0), []
        while tokens[0] != ")":
            operands.append(self._expression(tokens, number))
        tokens.pop(0)
        return self._node(op, operands)

    def _leaf(self, name: str, number: int) -> str:
        b, key = self._b, f"{name}_{number}"
        if name not in SHAPES:
            return b.number(CONSTANTS[name])
        if key not in self._named:
            self._named[key] = b.weight(*SHAPES[name]) if name in WEIGHTS else b.input(key, *SHAPES[name])
        return self._named[key]

    def _node(self, op: str, operands: list[str]) -> str:
        b = self._b
        if op in PLAIN:
            return b.node(PLAIN[op], *operands)
        if op.startswith("concat"):
            return b.node("Concat", *operands, axis=int(op[-1]))
        if op.startswith("split"):
            return self._half(operands[0], axis=op.count("'"), second="1" in op)
        if op == "transpose":
            return b.node("Transpose", *operands, perm=[1, 0])
        if op == "enlarge":
            return b.node("Pad", *operands, b.number([0, 0, 1, 1, 0, 0, 1, 1], np.int64))
        if op == "poolmax":
            return b.node("MaxPool", *operands, kernel_shape=[3, 3], pads=[1] * 4)
        if op == "poolavg":
            return b.node("AveragePool", *operands, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1)
        assert op == "conv", op
        pool = operands[1] == b.number(CONSTANTS["Cpool"])
        return b.node("Conv", *operands, auto_pad="SAME_UPPER", group=16 if pool else 1)

    def _half(self, x: str, *, axis: int, second: bool) -> str:
        b = self._b
        size = b.node("Gather", b.node("Shape", x), b.number([axis], np.int64), axis=0)
        middle = b.node("Div", size, b.number([2], np.int64))
        start, stop = (middle, size) if second else (b.number([0], np.int64), middle)
        return b.node("Slice", x, start, stop, b.number([axis], np.int64))


PLAIN = {"ewadd": "Add", "ewmul": "Mul", "smul": "Mul", "times": "Mul", "matmul": "MatMul", "relu": "Relu"}
CONSTANTS: dict[str, np.ndarray] = {
    "one": np.ones((16, 16), np.float32), "Imatmul": np.eye(16, dtype=np.float32), "Cpool": np.full((16, 1, 3, 3), 1 / 9, np.float32),
    "Iconv": np.pad(np.eye(16, dtype=np.float32)[:, :, None, None], ((0, 0), (0, 0), (1, 1), (1, 1))),
}  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """What a search made of a rule: both sides are one program as imported; the right side was found from the left alone, the left from
    the right alone; given both, they met in one class."""

    rule: TasoRule
    same: bool
    right: bool
    left: bool
    met: bool

    @property
    def covered(self) -> bool:
        """Whether the library knows that the two sides are equal."""
        return self.same or self.right or self.left or self.met


def judge(rules: Sequence[TasoRule], target: str, further: Sequence[Path] = ()) -> list[Verdict]:
    """All rules in three searches: with both sides, with the left ones, with the right ones. No two rules share a variable. What searches
    are the library's rules and those of `further` files."""
    entered = Entered()
    for number, rule in enumerate(rules):
        entered.add(rule, number)
    program = entered.program()
    outputs = iter(primitive(program))
    pairs = [tuple(tuple(next(outputs) for _ in range(rule.outputs)) for _ in range(2)) for rule in rules]
    task = task_of(program, target, further)
    both, from_left, from_right = (
        search_roots([root for pair in pairs for side in sides for root in pair[side]], task.phases, task)[0]
        for sides in ((0, 1), (0,), (1,))
    )
    return [
        Verdict(rule, left == right, finds(from_left, left, right), finds(from_right, right, left), meet(both, left, right))
        for rule, (left, right) in zip(rules, pairs, strict=True)
    ]


def task_of(program: Program, target: str, further: Sequence[Path]) -> Task:
    """What TENSAT's table searches with, products of one operand merged at any number of rows, as TENSAT does."""
    own = replace(get_target(target), merges=Rate(inf, "rows", "asked for"))
    job = Job("the rules", own, "reassociates", LIMITS, further, {}, lambda _: None)
    return Task(job, program, {}, phases_for(job, EVERY_OPSET))


def meet(found: Saturation, left: Side, right: Side) -> bool:
    """Whether each output of one side is in the class of the other side's."""
    return all(found.source[one][0] == found.source[other][0] for one, other in zip(left, right, strict=True))


def finds(found: Saturation, given: Side, wanted: Side) -> bool:
    """Whether each of the `wanted` terms is, node by node, in the class of the one that was given."""
    table = {
        (node.op.name, node.children, exact_key(node.attributes), node.regions): number
        for number, nodes in enumerate(found.graph.nodes)
        for node in nodes
    }
    classes: dict[Term, int | None] = {}
    for term in topological(wanted):
        children = tuple(classes[operand] for operand in term.operands)
        classes[term] = table.get((term.op.name, children, exact_key(term.attributes), term.regions))  # type: ignore[arg-type]
    return all(classes[term] == found.source[root][0] for term, root in zip(wanted, given, strict=True))


def summary(verdicts: Sequence[Verdict]) -> str:
    """How many are covered, and how."""
    count = len(verdicts)
    ways = {
        "covered": [v.covered for v in verdicts], "one program as read": [v.same for v in verdicts], "met": [v.met for v in verdicts],
        "right found from left": [v.right for v in verdicts], "left found from right": [v.left for v in verdicts],
    }  # fmt: skip
    return ", ".join(f"{name} {sum(truths)}" for name, truths in ways.items()) + f", of {count}"


def lines(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """The counts by family, then each rule that is not covered."""
    yield f"{'':22s} {summary(verdicts)}"
    for name, own in (("axioms of TASO", AXIOMS), ("TENSAT, one output", SINGLE), ("two outputs", MULTI)):
        yield f"{name:22s} {summary([v for v in verdicts if v.rule in own])}"
    for verdict in verdicts:
        if not verdict.covered:
            yield f"  not covered: {verdict.rule}  ({verdict.rule.family})"


def main() -> None:
    """Judge all rules and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="nvidia-a100")
    parser.add_argument("--rules", type=Path, action="append", default=[], help="a file of further rules")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    started = time.perf_counter()
    verdicts = judge(RULES, arguments.target, arguments.rules)
    if arguments.json:
        print(json.dumps([{**asdict(verdict), "covered": verdict.covered} for verdict in verdicts]))
        return
    print("\n".join(lines(verdicts)))
    print(f"{time.perf_counter() - started:.1f} s, target {arguments.target}")


if __name__ == "__main__":
    main()
