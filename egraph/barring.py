"""What constants with infinities or NaN in them keep from firing.

A rule that says `except nonfinite` may exchange an infinity and a NaN, so it does not fire on values that such a constant reaches through
sums, products, choices and moves; an exponential, a softmax or a comparison ends its reach. A `const` operand of a rule is one whose
numbers are finite. Programs without such constants pay nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from coset.egraph import door
from coset.egraph.encode import ANALYSIS, EncodedRule, TableFrame
from coset.egraph.tables import Tables
from coset.ir.constants import Constant
from coset.ir.op import Op
from coset.ir.stored import is_finite
from coset.ir.term import CONSTANT, Term, topological

BARRING = "barring"
PRELUDE = f"""
(relation infinite (T))
(relation unfit (T))
(relation infinite_constant (i64))
(relation excepting (i64))
(relation weighing (i64 i64))
(ruleset {BARRING})
"""
_CARRYING = frozenset(f"stablehlo.{name}" for name in (
    "add", "subtract", "multiply", "divide", "negate", "abs", "select", "clamp", "maximum", "minimum", "convert", "dot_general",
    "convolution", "reduce", "reduce_window", "pad", "concatenate",
))  # fmt: skip
_ENDING = frozenset((
    "softmax", "sigmoid", "tanh", "exp", "equal", "greater", "greaterorequal", "less", "lessorequal", "isnan", "isinf", "attention",
))  # fmt: skip


def constants(terms: Iterable[Term]) -> list[Term]:
    """The constants among `terms` that have an infinity or a NaN in them."""
    return [term for term in terms if term.op is CONSTANT and not is_finite(_value(term))]


def reached(roots: Iterable[Term]) -> set[Term]:
    """The terms under `roots` that an infinity or a NaN in a constant reaches."""
    found: set[Term] = set()
    for term in topological(roots):
        own = term.op is CONSTANT and not is_finite(_value(term))
        if own or (_carries(term.op) and any(operand in found for operand in term.operands)):
            found.add(term)
    return found


def _value(term: Term) -> Constant:
    value: Constant = term.attribute("value")
    return value


def rows(found: Iterable[Term], tables: Tables) -> list[door.Command]:
    """What is known of the constants that were `found`."""
    return [door.insert("infinite_constant", door.integer(tables.payload(term.attributes, term.regions))) for term in found]


def derivations(name: str, tables: Tables) -> Iterator[str]:
    """The rules that say what nodes of the constructor `name` carry."""
    op, arity = tables.constructors[name]
    operands = " ".join(f"x{i}" for i in range(arity))
    if op is CONSTANT:
        yield (
            f'(rule ((= e ({name} p)) (infinite_constant p)) ((infinite e) (unfit e)) :ruleset {ANALYSIS} :name "infinite_{name}")'
        )  # fmt: skip
    for i in range(arity):
        node = f"(= e ({name} {operands} p))"
        if _carries(op):
            yield f'(rule ({node} (infinite x{i})) ((infinite e)) :ruleset {ANALYSIS} :name "infinite_{name}_{i}")'
        yield f'(rule ({node} (unfit x{i}) (known e)) ((unfit e)) :ruleset {ANALYSIS} :name "unfit_{name}_{i}")'


def _carries(op: Op) -> bool:
    """Whether an infinity in an operand may come out of `op` as such; of other dialects' ops only some are known to end its reach."""
    if op.dialect == "stablehlo":
        return op.name in _CARRYING or op.has("movement")
    return op.name.rpartition(".")[2].lower() not in _ENDING


def frame_texts(frame: TableFrame) -> Iterator[str]:
    """The rules that drop matches of a frame."""
    match = f"({frame.match} r {' '.join(f'c{i}' for i in range(frame.classes))} k)"
    for i in range(frame.classes):
        yield f'(rule ({match} (excepting r) (infinite c{i})) ((delete {match})) :ruleset {BARRING} :name "bar_{frame.name}_{i}")'
        yield f'(rule ({match} (weighing r {i}) (unfit c{i})) ((delete {match})) :ruleset {BARRING} :name "weigh_{frame.name}_{i}")'


def rule_rows(rules: Sequence[EncodedRule]) -> list[door.Command]:
    """Which rules except something, and which of the classes that they bind must have finite numbers."""
    found = []
    for encoded in rules:
        rule = encoded.rule
        if "nonfinite" in rule.numerics.exceptions:
            found.append(door.insert("excepting", door.integer(encoded.number)))
        for place, name in enumerate(rule.variables, start=len(rule.typed)):
            if ("const", name) in rule.facts and rule.numerics.word != "exact":
                found.append(door.insert("weighing", door.integer(encoded.number), door.integer(place)))
    return found
