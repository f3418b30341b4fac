"""A program and rules as egglog commands: one constructor an op and arity, one `match` and one `apply` rule a rule.

The find rule only looks at structure and leaves its bindings in `found_R`. The type rule joins the types of all that it bound
(there, and not in the find rule: each fact of a rule is one more join for every new row, and most rules find nothing), moves
them to `match_R` and leaves the numbers that the rule's conditions depend on (attribute lists and types) in `key_R`. Python decides
each *distinct* key once (`Rule.decide`) and answers with a row of `plan_R` (the numbers of the right side) or `refuse_R`; the apply
rule joins both and does the work inside egglog. So shapes, permutations and conditions cost Python time by the number of
different situations, not of matches; and what a rule needs beyond its find rule is declared when it first finds something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coset.egraph import door
from coset.egraph.tables import Tables, is_static
from coset.ir.term import Term
from coset.rules.pattern import Application, Variable, applications
from coset.rules.pattern import variables as pattern_variables
from coset.rules.rule import Rule

ANALYSIS = "analysis"
LIVE_LEAVES = ("builtin.input", "builtin.parameter", "builtin.token", "builtin.dims", "stablehlo.iota")
PRELUDE = f"""
(sort T)
(function term (i64) T :no-merge)
(relation type_of (T i64))
(relation known (T))
(relation live (T))
(relation static_type (i64))
(relation static_payload (i64))
(relation conflict (T i64 i64))
(ruleset {ANALYSIS})
(rule ((type_of x t) (type_of x u) (!= t u)) ((conflict x t u)) :ruleset {ANALYSIS} :name "conflict")
"""


@dataclass(frozen=True)
class EncodedRule:
    """Where the tables of one rule are, and how wide they are."""

    rule: Rule
    number: int
    phase: int
    left: tuple[Application, ...]  # by index
    right: tuple[Application, ...]
    needs: tuple[str, ...]  # the constructors of the left side

    @property
    def found(self) -> str:
        """The relation of what the find rule found: nodes, variables and payloads of the left side, types not yet looked at."""
        return f"found_{self.number}"

    @property
    def match(self) -> str:
        """The relation of the rule's matches: root, variables, key."""
        return f"match_{self.number}"

    @property
    def typing(self) -> str:
        """The ruleset that makes matches of what was found."""
        return f"typing_{self.number}"

    @property
    def find(self) -> str:
        """The ruleset that fills it: one of its own where the rule has a limit, else the one of its phase."""
        return f"find_{self.number}" if self.rule.limit is not None else f"find_all_{self.phase}"

    @property
    def apply(self) -> str:
        """The ruleset that turns matches into nodes and unions."""
        return f"apply_{self.number}"

    @property
    def refuse(self) -> str:
        """The ruleset that drops the matches that were refused."""
        return f"refusing_{self.number}"

    @property
    def key(self) -> str:
        """The relation of the distinct situations: payloads of the left side, its types, the variables' types."""
        return f"key_{self.number}"

    @property
    def done(self) -> str:
        """The relation of the matches that were applied: root, variables, key."""
        return f"done_{self.number}"


def encode_rule(rule: Rule, number: int, phase: int, tables: Tables) -> EncodedRule:
    """Name the tables of `rule` and enter the constructors that it mentions."""
    left, right = tuple(applications(rule.left)), tuple(applications(rule.right))
    names = [tables.constructor(node.op, len(node.operands)) for node in (*left, *right)]
    return EncodedRule(rule, number, phase, left, right, tuple(dict.fromkeys(names[: len(left)])))


def declarations(tables: Tables) -> list[str]:
    """The constructors in use, and the analysis that finds what is known at build time and what lives on an input.

    Rules that are not exact match at live roots only: a value that is known is computed once, in whatever form it has, so
    other roundings of it would be e-nodes for nothing (and there are many: sums of constants in every order).
    """
    lines = []
    for name, (op, arity) in sorted(tables.constructors.items()):
        lines.append(f"(constructor {name} ({'T ' * arity}i64) T)")
        for i in range(arity):
            operands = " ".join(f"x{j}" for j in range(arity))
            lines.append(f'(rule ((= e ({name} {operands} p)) (live x{i})) ((live e)) :ruleset {ANALYSIS} :name "live_{name}_{i}")')
        if op.name in LIVE_LEAVES:
            lines.append(f'(rule ((= e ({name} p))) ((live e)) :ruleset {ANALYSIS} :name "live_{name}")')
        if op.name in ("builtin.constant", "builtin.absent"):
            lines.append(f'(rule ((= e ({name} p))) ((known e)) :ruleset {ANALYSIS} :name "known_{name}")')
        elif arity or op.name == "stablehlo.iota":
            operands = " ".join(f"x{i}" for i in range(arity))
            facts = " ".join(f"(known x{i})" for i in range(arity))
            lines.append(
                f"(rule ((= e ({name} {operands} p)) {facts} (type_of e t) (static_type t) (static_payload p)) ((known e))"
                f' :ruleset {ANALYSIS} :name "known_{name}")'
            )
    return lines


def find_text(encoded: EncodedRule, tables: Tables) -> list[str]:
    """The egglog declarations that look for a rule's left side."""
    rule = encoded.rule
    facts = [f"(= e{node.index} ({tables.constructor(node.op, len(node.operands))} {_operands(node, 'e')} a{node.index}))"
             for node in encoded.left]  # fmt: skip
    facts += [f"(known v_{name})" for _, name in rule.facts]
    if rule.numerics.word != "exact":
        facts.append("(live e0)")
    facts += [f"(!= {above} {below})" for above, below in _paths(rule)]
    return [
        f"(relation {encoded.found} ({'T ' * (len(encoded.left) + len(rule.variables))}{'i64 ' * len(encoded.left)}))",
        *([f"(ruleset {encoded.find})"] if rule.limit is not None else []),
        f'(rule ({" ".join(facts)}) (({encoded.found} {_found(encoded)})) :ruleset {encoded.find} :name "find_{encoded.number}")',
    ]


def typing_text(encoded: EncodedRule) -> list[str]:
    """The egglog declarations that make matches of what was found; needed once the rule has found something."""
    n = encoded.number
    key, row = _columns(encoded)
    found = f"({encoded.found} {_found(encoded)})"
    types = [f"(type_of e{i} t{i})" for i in range(len(encoded.left))]
    types += [f"(type_of v_{name} u{i})" for i, name in enumerate(encoded.rule.variables)]
    return [
        f"(relation match_{n} ({_row_sorts(encoded)}))",
        f"(relation key_{n} ({'i64 ' * len(key.split())}))",
        f"(ruleset {encoded.typing})",
        f"(rule ({found} {' '.join(types)}) ((match_{n} {row}) (key_{n} {key}) (delete {found}))"
        f' :ruleset {encoded.typing} :name "typing_{n}")',
    ]


def refuse_text(encoded: EncodedRule) -> list[str]:
    """The egglog declarations that drop refused matches; needed once a key was refused."""
    n = encoded.number
    key, row = _columns(encoded)
    return [
        f"(relation refuse_{n} ({'i64 ' * len(key.split())}))",
        f"(ruleset {encoded.refuse})",
        f'(rule ((match_{n} {row}) (refuse_{n} {key})) ((delete (match_{n} {row}))) :ruleset {encoded.refuse} :name "refuse_{n}")',
    ]


def apply_text(encoded: EncodedRule, tables: Tables) -> list[str]:
    """The egglog declarations that act on a rule's matches; needed once a key has a plan."""
    rule, n = encoded.rule, encoded.number
    key, row = _columns(encoded)
    right = range(len(encoded.right))
    plan = " ".join([*(f"b{i}" for i in right), *(f"s{i}" for i in right)])
    build = []
    for node in reversed(encoded.right):  # preorder: operands have higher numbers than their user
        build.append(f"(let n{node.index} ({tables.constructor(node.op, len(node.operands))} {_operands(node, 'n')} b{node.index}))")
        build.append(f"(type_of n{node.index} s{node.index})")
    result = f"v_{rule.right.name}" if isinstance(rule.right, Variable) else "n0"
    return [
        f"(relation done_{n} ({_row_sorts(encoded)}))",
        f"(relation plan_{n} ({'i64 ' * (len(key.split()) + len(plan.split()))}))",
        f"(ruleset apply_{n})",
        f"(rule ((match_{n} {row}) (plan_{n} {key} {plan}))"
        f' ({" ".join(build)} (union e0 {result}) (done_{n} {row}) (delete (match_{n} {row}))) :ruleset apply_{n} :name "apply_{n}")',
    ]


def _found(encoded: EncodedRule) -> str:
    """The columns of what was found."""
    left = range(len(encoded.left))
    return " ".join([*(f"e{i}" for i in left), *(f"v_{name}" for name in encoded.rule.variables), *(f"a{i}" for i in left)])


def _columns(encoded: EncodedRule) -> tuple[str, str]:
    """The columns of the rule's tables: of a key, and of a whole match."""
    left = range(len(encoded.left))
    variables = " ".join(f"v_{name}" for name in encoded.rule.variables)
    key = " ".join([*(f"a{i}" for i in left), *(f"t{i}" for i in left), *(f"u{i}" for i in range(len(encoded.rule.variables)))])
    return key, f"e0 {variables} {key}"


def _row_sorts(encoded: EncodedRule) -> str:
    key, _ = _columns(encoded)
    return f"T {'T ' * len(encoded.rule.variables)}{'i64 ' * len(key.split())}"


def _paths(rule: Rule) -> list[tuple[str, str]]:
    """Pairs of a node of the left side and what stands below it, which must be different classes for the rule to build anything.

    A class that holds itself (x = x + 0) unrolls without end: y = y + z = y + (z + z) ... No finite term goes through it twice.
    """
    if isinstance(rule.right, Variable):
        return []
    pairs = []
    for node in applications(rule.left):
        inner = [f"e{below.index}" for below in applications(node) if below is not node]
        pairs += [(f"e{node.index}", below) for below in (*inner, *(f"v_{name}" for name in pattern_variables(node)))]
    return pairs


def _operands(node: Application, prefix: str) -> str:
    return " ".join(f"v_{o.name}" if isinstance(o, Variable) else f"{prefix}{o.index}" for o in node.operands)


def graph_commands(numbers: Mapping[Term, int], tables: Tables) -> list[door.Command]:
    """Commands that enter the terms (operands come first in `numbers`), each under its number, with its type."""
    commands: list[door.Command] = []
    for term, number in numbers.items():
        operands = [door.call("term", door.integer(numbers[operand])) for operand in term.operands]
        payload = tables.payload(term.attributes, term.regions)
        node = door.call(tables.constructor(term.op, len(term.operands)), *operands, door.integer(payload))
        commands.append(door.set_("term", [door.integer(number)], node))
        type_number = tables.types.number(term.type)
        commands.append(door.insert("type_of", door.call("term", door.integer(number)), door.integer(type_number)))
    return commands


def static_facts(tables: Tables, types_from: int, payloads_from: int) -> list[door.Command]:
    """Facts about the table entries from the given numbers on: which hold no dim symbol."""
    commands = [
        door.insert("static_type", door.integer(i))
        for i in range(types_from, len(tables.types.values))
        if is_static(tables.types.values[i])
    ]
    for i in range(payloads_from, len(tables.payloads.values)):
        if is_static(tables.payloads.values[i][0]):
            commands.append(door.insert("static_payload", door.integer(i)))
    return commands


def plan_row(encoded: EncodedRule, key: Sequence[int], plan: Sequence[int] | None) -> door.Command:
    """The answer to one key: a plan, or a refusal."""
    name = f"refuse_{encoded.number}" if plan is None else f"plan_{encoded.number}"
    return door.insert(name, *(door.integer(i) for i in (*key, *(plan or ()))))
