"""A program and rules as egglog commands: one constructor an op and arity, one `find` and one `apply` rule a rule.

The find rule only looks at structure and leaves its bindings in `found_S`. The typing rule joins the types of all that it bound
(there, and not in the find rule: each fact of a rule is one more join for every new row, and most rules find nothing), moves
them to `match_S` and leaves the numbers that the rule's conditions depend on (attribute lists and types) in `key_S`. Python decides
each *distinct* key once (`Rule.decide`) and answers with a row of `plan_R` (the numbers of the right side). Matches and plans name the key
by one value, its situation; the apply rule joins them by it and does the work inside egglog. Matches that were refused stay where they
are until there are many: then `refuse_S` drops them. So shapes, permutations and conditions cost Python time by the number of different
situations, not of matches; and an apply rule is declared when its rule is first allowed to act.

The tables belong to a frame S (so many nodes on the left side that bind so many classes; R nodes on the right), not to a rule: their
first column is the rule's number. To declare a rule costs egglog time by the number of names (0.14 ms with 40, 0.37 ms with 1,500: it
copies them all, relations and rulesets, to look for one that is used twice).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from coset.egraph import door, fractions
from coset.egraph.edges import Edge
from coset.egraph.pieces import Piece, cut
from coset.egraph.tables import Tables
from coset.rules.parts import variables as pattern_variables
from coset.rules.pattern import Application, Variable, applications
from coset.rules.rule import Rule

ANALYSIS, PIECES, TYPING, REFUSING, FORGETTING = "analysis", "pieces", "typing", "refusing", "forgetting"
FACTS = {"const": "known", "varying": "live"}  # the relations of what a rule asks of a variable; facts about numbers are their own
LIVE_LEAVES = ("builtin.input", "builtin.parameter", "builtin.token", "builtin.dims", "stablehlo.iota")
PRELUDE = f"""
(sort T)
(sort K)
(function term (i64) T :no-merge)
(relation type_of (T i64))
(relation known (T))
(relation live (T))
(relation static_type (i64))
(relation static_payload (i64))
(relation conflict (T i64 i64))
(relation refused (K))
(ruleset {ANALYSIS})
(ruleset {PIECES})
(ruleset {TYPING})
(ruleset {REFUSING})
(ruleset {FORGETTING})
(rule ((type_of x t) (type_of x u) (!= t u)) ((conflict x t u)) :ruleset {ANALYSIS} :name "conflict")
"""


@dataclass(frozen=True)
class EncodedRule:
    """Where the tables of one rule are, and how wide they are."""

    rule: Rule
    number: int
    phase: int
    needs: frozenset[str]  # the constructors of the left side
    edges: frozenset[Edge]  # and which of them stands above which

    # sides are read when they are asked for: most rules never find the edges of theirs
    @cached_property
    def left(self) -> tuple[Application, ...]:
        """The nodes of the left side, by index."""
        return tuple(applications(self.rule.left))

    @cached_property
    def right(self) -> tuple[Application, ...]:
        """Those of the right side."""
        return tuple(applications(self.rule.right))

    @property
    def made(self) -> tuple[Application, ...]:
        """The nodes of the right side; the tuple of several roots is none."""
        return self.right if self.rule.roots == 1 else self.right[1:]

    @cached_property
    def frame(self) -> TableFrame:
        """The tables that it shares with all rules of as many classes and about as many nodes."""
        return TableFrame(_wide(len(self.left)), self.binds)

    @cached_property
    def binds(self) -> int:
        """How many classes it binds."""
        return len(self.rule.typed) + len(self.rule.variables)

    @property
    def classes(self) -> str:
        """What it binds: the nodes whose types decide, and the variables."""
        return " ".join([*(f"e{i}" for i in self.rule.typed), *(f"v{i}" for i in range(len(self.rule.variables)))])

    @property
    def payloads(self) -> str:
        """Those of its left side, and zeros where the frame is wider."""
        return " ".join([*(f"a{i}" for i in range(len(self.left))), *["0"] * (self.frame.nodes - len(self.left))])

    @cached_property
    def find(self) -> str:
        """The ruleset of its find rule: it is run in the same iterations as all others of it."""
        return f"find_{self.rule.limit}_in_{self.phase}" if self.rule.limit is not None else f"find_all_{self.phase}"

    @property
    def apply(self) -> str:
        """The ruleset that turns matches into nodes and unions, with those of all rules of its phase."""
        return f"apply_all_{self.phase}"

    @property
    def apply_alone(self) -> str:
        """The ruleset that does the same for this rule only."""
        return f"apply_{self.number}"

    @property
    def plan(self) -> str:
        """The relation of its plans: situation, payloads and types of the right side."""
        return f"plan_{len(self.right)}"


def _wide(number: int) -> int:
    """The power of two, 2 or more, that `number` fits into: half as many frames serve (a class more would be a join more)."""
    return max(2, 1 << (number - 1).bit_length())


@dataclass(frozen=True)
class TableFrame:
    """The tables of all rules with up to so many nodes on the left side, which bind so many classes."""

    nodes: int
    classes: int

    @property
    def name(self) -> str:
        return f"{self.nodes}_{self.classes}"

    @property
    def found(self) -> str:
        """The relation of what the find rules found: rule, classes and payloads of the left side, types not yet looked at."""
        return f"found_{self.name}"

    @property
    def match(self) -> str:
        """The relation of matches: rule, classes, situation."""
        return f"match_{self.name}"

    @property
    def situation(self) -> str:
        """The constructor of situations: rule, payloads of the left side, types of the classes, and zeros, for it is one for frames of
        several widths. What joins by a situation joins by one value instead of a dozen numbers."""
        return f"situation_{self.key_width}"

    @property
    def key(self) -> str:
        """The relation of the situations that are new, as numbers: it is read, and each is forgotten when it was."""
        return f"key_{self.key_width}"

    @property
    def key_width(self) -> int:
        """How many numbers a situation has, with the rule's: a power of two."""
        return 1 << self.width.bit_length()

    @property
    def done(self) -> str:
        """The relation of the matches that were applied: rule, classes, situation."""
        return f"done_{self.name}"

    @property
    def width(self) -> int:
        """How many numbers a key has, without the rule's."""
        return self.nodes + self.classes

    @property
    def declarations(self) -> list[str]:
        """The tables, and the rule that types what was found."""
        classes = " ".join(f"c{i}" for i in range(self.classes))
        found = f"({self.found} r {classes} {self.payloads})"
        types = " ".join(f"(type_of c{i} t{i})" for i in range(self.classes))
        numbers = " ".join(["r", self.payloads, *(f"t{i}" for i in range(self.classes)), *["0"] * (self.key_width - self.width - 1)])
        make = f"(let k ({self.situation} {numbers})) ({self.match} r {classes} k) ({self.key} {numbers})"
        row = f"i64 {'T ' * self.classes}K"
        return [
            f"(relation {self.found} (i64 {'T ' * self.classes}{'i64 ' * self.nodes}))",
            f"(relation {self.match} ({row}))",
            f"(relation {self.done} ({row}))",
            f'(rule ({found} {types}) ({make} (delete {found})) :ruleset {TYPING} :name "typing_{self.name}")',
        ]

    @property
    def key_declarations(self) -> list[str]:
        """The table of keys, the rule that forgets those that were read, and the situations."""
        key = f"({self.key} {' '.join(f'k{i}' for i in range(self.key_width))})"
        return [
            f"(relation {self.key} ({'i64 ' * self.key_width}))",
            f"(constructor {self.situation} ({'i64 ' * self.key_width}) K)",
            f'(rule ({key}) ((delete {key})) :ruleset {FORGETTING} :name "forget_{self.key_width}")',
        ]

    @property
    def refusal_declarations(self) -> list[str]:
        """The rule that drops the matches of situations that were refused."""
        match = f"({self.match} r {' '.join(f'c{i}' for i in range(self.classes))} k)"
        return [f'(rule ({match} (refused k)) ((delete {match})) :ruleset {REFUSING} :name "refuse_{self.name}")']

    @property
    def payloads(self) -> str:
        """The last columns of what was found."""
        return " ".join(f"a{i}" for i in range(self.nodes))


def encode_rule(rule: Rule, number: int, phase: int, tables: Tables) -> EncodedRule:
    """Name the tables of `rule` and enter the constructors that it mentions."""
    named = {spelled: tables.spelled(spelled) for spelled in sorted(rule.reads | rule.makes)}
    edges = frozenset((named[above], place, named[below]) for above, place, below in rule.edges)
    return EncodedRule(rule, number, phase, frozenset(named[spelled] for spelled in rule.reads), edges)


def rulesets(rules: Sequence[EncodedRule]) -> list[str]:
    """The rulesets that `rules` are in."""
    return [f"(ruleset {name})" for name in dict.fromkeys(name for encoded in rules for name in (encoded.find, encoded.apply))]


def declarations(tables: Tables) -> list[str]:
    """The constructors in use."""
    return [f"(constructor {name} ({'T ' * arity}i64) T)" for name, (_, arity) in sorted(tables.constructors.items())]


def analysis_texts(names: Iterable[str], tables: Tables) -> Iterator[str]:
    """The analysis of the constructors `names`, which finds what is known at build time and what lives on an input.

    Rules that are not exact match at live roots only: a value that is known is computed once, in whatever form it has, so
    other roundings of it would be e-nodes for nothing (and there are many: sums of constants in every order).
    """
    for name in names:
        op, arity = tables.constructors[name]
        operands = " ".join(f"x{i}" for i in range(arity))
        for i in range(arity):
            yield f'(rule ((= e ({name} {operands} p)) (live x{i})) ((live e)) :ruleset {ANALYSIS} :name "live_{name}_{i}")'
        if op.name in LIVE_LEAVES:
            yield f'(rule ((= e ({name} p))) ((live e)) :ruleset {ANALYSIS} :name "live_{name}")'
        if op.name in ("builtin.constant", "builtin.absent"):
            yield f'(rule ((= e ({name} p))) ((known e)) :ruleset {ANALYSIS} :name "known_{name}")'
        elif arity or op.name == "stablehlo.iota":
            facts = " ".join(f"(known x{i})" for i in range(arity))
            yield (
                f"(rule ((= e ({name} {operands} p)) {facts} (type_of e t) (static_type t) (static_payload p)) ((known e))"
                f' :ruleset {ANALYSIS} :name "known_{name}")'
            )


def find_texts(rules: Sequence[EncodedRule], tables: Tables, pieces: dict[str, str], *, fractional: bool = False) -> list[str]:
    """The egglog declarations that look for the left sides of `rules`: one rule for all that look for the same.

    `pieces` are the relations of those that were declared before, by what they hold. `fractional`: what looks into a fraction is dropped.
    """
    texts: list[str] = []
    groups: dict[tuple[str, str], list[EncodedRule]] = {}
    for encoded in rules:
        wholes = [cut(root) for root, _ in encoded.rule.pairs]
        names: dict[int, str] = {}  # of the relations, by the root's index
        for piece in (piece for whole in wholes for piece in whole.deepest_first()):
            held = " ".join(_piece_facts(piece, _own_places(piece), piece.root.index, tables, names, distinct=_builds(encoded.rule)))
            if held not in pieces:
                pieces[held] = f"piece_{len(pieces)}_"  # egglog puts numbers behind names: piece_1 and 8 would be piece_18
                texts += _piece_texts(piece, held, pieces[held])
            names[piece.root.index] = pieces[held]
        groups.setdefault((encoded.find, _facts(encoded, wholes, tables, names)), []).append(encoded)
    for (ruleset, facts), group in groups.items():
        rows = [f"({encoded.frame.found} {encoded.number} {encoded.classes} {encoded.payloads})" for encoded in group]
        texts.append(f'(rule ({facts}) ({" ".join(rows)}) :ruleset {ruleset} :name "find_{group[0].number}")')
        for encoded, row in zip(group, rows, strict=True) if fractional else ():
            for n in fractions.looked_into(encoded.rule, encoded.left):
                texts.append(
                    f"(rule ((fraction e{n}) {row} {facts}) ((delete {row})) :ruleset {fractions.FRACTIONS}"
                    f' :name "fraction_{encoded.number}_{n}")'
                )
    return texts


def _facts(encoded: EncodedRule, wholes: Sequence[Piece], tables: Tables, names: Mapping[int, str]) -> str:
    """What a find rule looks for; `names` are the relations of its pieces by the index of their root."""
    rule, place = encoded.rule, _places(encoded)
    facts = [fact for whole in wholes for fact in _piece_facts(whole, place, 0, tables, names, distinct=_builds(rule))]
    facts += [f"({FACTS.get(fact, fact)} {place[name]})" for fact, name in rule.facts]
    roots = [root.index for root, _ in rule.pairs]
    if rule.numerics.word != "exact":
        facts += [f"(live e{root})" for root in roots]
    if rule.roots > 1:  # a value and itself are no two roots; and their tuple is no node, whose attributes would be none
        facts += [f"(!= e{one} e{other})" for one, other in combinations(roots, 2)]
        facts.append(f"(= a0 {tables.payload(())})")
    return " ".join(facts)


def _builds(rule: Rule) -> bool:
    """True for a rule that makes nodes: then what stands below a node must be another class than the node."""
    return not isinstance(rule.right, Variable)


def _own_places(piece: Piece) -> dict[str, str]:
    """The egglog variable of each term variable in the rule of a piece."""
    return {name: f"v{index}" for index, name in enumerate(piece.variables)}


def _piece_texts(piece: Piece, facts: str, name: str) -> list[str]:
    """The relation of a piece and the rule that fills it."""
    nodes, holes = len(piece.all_nodes), len(piece.variables)
    columns = " ".join([*(f"e{i}" for i in range(nodes)), *(f"v{i}" for i in range(holes)), *(f"a{i}" for i in range(nodes))])
    return [
        f"(relation {name} ({'T ' * (nodes + holes)}{'i64 ' * nodes}))",
        f'(rule ({facts}) (({name} {columns})) :ruleset {PIECES} :name "{name}")',
    ]


def _piece_facts(
    piece: Piece, place: Mapping[str, str], first: int, tables: Tables, names: Mapping[int, str], *, distinct: bool
) -> list[str]:
    """The nodes of a piece, the pieces inside it, and what must be different classes (`distinct`); node n is called e(n - first)."""
    facts = [
        f"(= e{node.index - first} ({tables.constructor(node.op, len(node.operands))}"
        f" {_operands(node, 'e', place, first)} a{node.index - first}))"
        for node in piece.nodes
    ]  # fmt: skip
    for inner in piece.inner:
        numbers = [node.index - first for node in inner.all_nodes]
        columns = [*(f"e{n}" for n in numbers), *(place[name] for name in inner.variables), *(f"a{n}" for n in numbers)]
        facts.append(f"({names[inner.root.index]} {' '.join(columns)})")
    return facts + [f"(!= {above} {below})" for above, below in (_paths(piece.nodes, place, first) if distinct else ())]


def plan_text(encoded: EncodedRule) -> str:
    """The egglog declaration of the table of plans that the rule shares."""
    return f"(relation {encoded.plan} (K {'i64 ' * (2 * len(encoded.right))}))"


def apply_text(encoded: EncodedRule, tables: Tables, ruleset: str) -> str:
    """The egglog rule that acts on a rule's matches, as one of `ruleset`; needed once a key has a plan."""
    rule, n, frame, place = encoded.rule, encoded.number, encoded.frame, _places(encoded)
    right = range(len(encoded.right))
    plan = " ".join([*(f"b{i}" for i in right), *(f"s{i}" for i in right)])
    build = []
    for node in reversed(encoded.made):  # preorder: operands have higher numbers than their user
        build.append(f"(let n{node.index} ({tables.constructor(node.op, len(node.operands))} {_operands(node, 'n', place)} b{node.index}))")
        build.append(f"(type_of n{node.index} s{node.index})")
    results = ((left, place[right.name] if isinstance(right, Variable) else f"n{right.index}") for left, right in rule.pairs)
    unions = " ".join(f"(union e{left.index} {result})" for left, result in results)
    row = f"{n} {encoded.classes} k"
    return (
        f"(rule (({frame.match} {row}) ({encoded.plan} k {plan}))"
        f' ({" ".join(build)} {unions} ({frame.done} {row}) (delete ({frame.match} {row}))) :ruleset {ruleset} :name "{ruleset} {n}")'
    )


def _places(encoded: EncodedRule) -> dict[str, str]:
    """The egglog variable of each term variable."""
    return {name: f"v{index}" for index, name in enumerate(encoded.rule.variables)}


def _paths(nodes: Sequence[Application], place: Mapping[str, str], first: int) -> list[tuple[str, str]]:
    """Pairs of one of `nodes` and what stands below it, which must be different classes for a rule to build anything.

    A class that holds itself (x = x + 0) unrolls without end: y = y + z = y + (z + z) ... No finite term goes through it twice.
    """
    pairs = []
    for node in nodes:
        inner = [f"e{below.index - first}" for below in applications(node) if below is not node]
        pairs += [(f"e{node.index - first}", below) for below in (*inner, *(place[name] for name in pattern_variables(node)))]
    return pairs


def _operands(node: Application, prefix: str, place: Mapping[str, str], first: int = 0) -> str:
    return " ".join(place[o.name] if isinstance(o, Variable) else f"{prefix}{o.index - first}" for o in node.operands)


def row(relation: str, encoded: EncodedRule, key: Sequence[int], *numbers: int) -> door.Command:
    """A row of a relation over a situation of a rule, and integers."""
    frame = encoded.frame
    situation = (encoded.number, *key, *[0] * (frame.key_width - frame.width - 1))
    return door.insert(relation, door.call(frame.situation, *map(door.integer, situation)), *map(door.integer, numbers))
