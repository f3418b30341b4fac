"""Entries to rules: directions, variants, and the lints that need no types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from coset.ir.op import Op
from coset.ir.place import Place
from coset.ir.term import TUPLE
from coset.rules import syntax
from coset.rules.algebra import Call, Expression, Literal, Ref
from coset.rules.compile import CompiledSide, compiled, determined, finish, needed_names, readable, type_pattern, types_read
from coset.rules.draft import DraftApplication, Hole, NeedChoice, Node, context_of
from coset.rules.equation import EXCEPTIONS, NUMERICS_ORDER, Compiled, Numerics
from coset.rules.ground import lint_tests
from coset.rules.meant import with_what_it_rests_on
from coset.rules.names import LAWFUL, Names, collect, ops_with
from coset.rules.native import natives_in
from coset.rules.op_parameters import never
from coset.rules.parts import conjuncts
from coset.rules.pattern import Application, applications
from coset.rules.rule import Rule
from coset.rules.syntax import RuleError
from coset.rules.terms import NODE_FORM, Drafter
from coset.rules.unroll import UNROLLED, NoSuchOperand, repeated, unrolled_rule

DIFFERENT = "a rule says that two different terms are equal: change one of them, or take the rule out"


@dataclass(frozen=True)
class Direction:
    """What one reading of an entry needs: `left => right` under `names`."""

    name: str
    family: str
    left: syntax.Expression
    right: syntax.Expression
    condition: syntax.Expression | None
    promise: syntax.Promise
    document: str
    place: Place
    text: str
    tags: tuple[str, ...] = ()
    tests: tuple[syntax.Ground, ...] = ()
    roots: int = 1
    natives: tuple[str, ...] = ()
    definition: str | None = None
    result: tuple[syntax.TensorKind, ...] = ()
    trial: bool = False  # `f(x) => f(x)`: not for a search, but what is drawn and evaluated to test a definition
    lenient: bool = False  # a mirrored definition: a variant that cannot be read in this direction is left out


def numerics_of(promise: syntax.Promise) -> Numerics:
    """The promise of an entry.

    Raises:
        RuleError: an unknown word or exception, or an `approx` without a bound.
    """
    if promise.word not in NUMERICS_ORDER:
        raise RuleError(f"`{promise.word}` is no promise about numbers", place=promise.place, help=f"one of: {', '.join(NUMERICS_ORDER)}")
    for name in promise.exceptions:
        if name not in EXCEPTIONS:
            raise RuleError(f"`{name}` is no exception", place=promise.place, help=f"one of: {', '.join(EXCEPTIONS)}")
    if (promise.word == "approx") != bool(promise.bound):
        help = "write `approx 1e-3`" if promise.word == "approx" else "only `approx` has a bound"
        raise RuleError(f"the promise `{promise.word}` and its bound do not fit", place=promise.place, help=help)
    return Numerics(promise.word, frozenset(promise.exceptions), promise.bound)


def rules_of(entry: syntax.RuleEntry, dialects: Mapping[str, str]) -> tuple[list[Rule], list[RuleError]]:
    """The rules of one entry, every direction and variant, and what is wrong with it."""
    try:
        names = collect(entry.declarations, entry.locals, dialects, classes=LAWFUL)
        errors = lint_uses(entry, names)
        numerics_of(entry.promise)
        _lint_sides(entry, names)
    except RuleError as error:
        return [], [error]
    if errors:
        return [], errors
    try:
        own = repeated(entry)
        forms = [("", entry)] if own is None else list(_written_out(entry, own))
    except RuleError as error:
        return [], [error]
    natives = natives_in((entry.left, entry.right, entry.condition, *(local.value for local in entry.locals)))
    text = " ".join([entry.text, *(f"{each.name}: {each.digest}" for each in natives)])  # what is locked rests on them too
    found: list[Rule] = []
    try:
        for count, form in forms:
            forward = Direction(
                f"{entry.name}{count}", entry.name, form.left, form.right, form.condition, entry.promise, entry.document, entry.place, text,
                entry.tags, entry.tests, entry.roots, tuple(each.name for each in natives),
            )  # fmt: skip
            directions = [forward]
            if entry.both:
                directions.append(replace(forward, name=f"{entry.name}.reverse{count}", left=form.right, right=form.left))
            for direction in directions:
                for label, ops in _op_assignments(names):
                    again = collect(form.declarations, form.locals, dialects, classes=LAWFUL)
                    again.ops = ops
                    found += variants(replace(direction, name=direction.name + label), again)
    except RuleError as error:
        return [], [error]
    used = {node.op.name for rule in found for pair in rule.pairs for side in pair for node in applications(side)}
    told = with_what_it_rests_on(text, used)
    found = found if told == text else [rule.changed(text=told) for rule in found]
    wrong = lint_tests(entry.tests, names, found[0].compiled.kinds, results=entry.roots) if entry.tests and found else []
    return found, [*_lint_wildcards(entry, names, found), *wrong]


def _written_out(entry: syntax.RuleEntry, own: syntax.Declaration) -> Iterator[tuple[str, syntax.RuleEntry]]:
    """The entry for each number of terms in the place of the variable that repeats which has all that it names."""
    for count in UNROLLED:
        try:
            form = unrolled_rule(entry, own, count)
            if form.condition is None or not any(map(never, syntax.joined(form.condition))):  # `len(xs) == 2` is of no other number
                yield f"*{count}", form
        except NoSuchOperand:
            if count == UNROLLED[-1]:
                raise


def _op_assignments(names: Names) -> Iterator[tuple[str, dict[str, Op]]]:
    """Each choice of ops for the op variables, with the suffix that tells the rules apart."""
    assignments: list[tuple[str, dict[str, Op]]] = [("", {})]
    for name, variable in names.op_variables.items():
        fitting = ops_with(variable.trait, names.dialects.values())
        assignments = [(f"{label}[{op.name}]", {**ops, name: op}) for label, ops in assignments for op in fitting]
    yield from assignments


def variants(direction: Direction, names: Names, *, most: int | None = None) -> list[Rule]:
    """One rule for each combination of forms: optional operands, defaults, splats at rank 0, open broadcasts, conditionals; at
    most so many."""
    found: list[Rule] = []
    pending: list[dict[str, int]] = [{}]
    while pending:
        choices = pending.pop(0)
        try:
            rule = _variant(direction, names, choices)
        except NeedChoice as need:
            pending[0:0] = [{**choices, need.key: form} for form in range(need.count)]
            continue
        if len(found) == most:
            return found
        if rule is not None:
            found.append(rule if not found else replace(rule, name=f"{rule.name}#{len(found) + 1}"))
    if not found and not direction.lenient:
        raise RuleError(
            f"no form of `{direction.family}` has an op on its left side", place=direction.place, help="write a term that an op computes"
        )
    return found


def _variant(direction: Direction, names: Names, choices: dict[str, int]) -> Rule | None:
    of_rule = direction.definition is None and not direction.trial
    drafters = Drafter(names, choices, left=True, reads_nodes=of_rule), Drafter(names, choices, left=False, reads_nodes=of_rule)
    if _excluded(direction, drafters[1]):
        return None
    pairs = _drafted(direction, drafters, names)
    if any(isinstance(left, Hole) for left, _ in pairs):
        return None
    left, right = (
        pairs[0]
        if direction.roots == 1
        else (DraftApplication(TUPLE, list(side), {}, direction.place) for side in zip(*pairs, strict=True))
    )
    conditions = [*_defaults(names, choices), *{**drafters[0].conditions, **drafters[1].conditions}.values()]
    if direction.condition is not None:
        conditions += conjuncts(drafters[1].judging.value(direction.condition))
    _check_arguments(names)
    left_side, right_side = finish(left, right)
    found, written = compiled(left_side, right_side, conditions, names)
    missing = sorted(needed_names(right_side, written) - determined(found, written))
    if direction.lenient and (missing or not readable(found, written)):
        return None
    if missing:
        raise _unbound(missing[0], direction, names)
    if _same(left_side, right_side) and any(key.startswith(NODE_FORM) for key in choices):
        return None  # what a node means for some types only may leave nothing to say
    if _same(left_side, right_side) and not direction.trial:
        raise RuleError("both sides are the same term", place=direction.place, help=DIFFERENT)
    if direction.result:
        written = replace(written, result=tuple(type_pattern(kind, names) for kind in direction.result))
    assert isinstance(left_side.pattern, Application)
    typed = _typed(written, left_side.pattern, direction.roots)
    facts = tuple((fact, name) for name in found for fact in [_fact(names, name)] if fact)
    return Rule(
        name=direction.name, family=direction.family, left=left_side.pattern, right=right_side.pattern, variables=found, facts=facts,
        numerics=numerics_of(direction.promise), place=direction.place, document=direction.document, compiled=written, typed=typed,
        definition=direction.definition, tags=direction.tags, text=direction.text, tests=direction.tests, roots=direction.roots,
        natives=direction.natives,
    )  # fmt: skip


def _typed(written: Compiled, left: Application, roots: int) -> tuple[int, ...]:
    """The applications of the left side whose types are read: several roots have types of their own, their tuple has none."""
    found = types_read(written)
    own = {root.index for root in left.operands if isinstance(root, Application)} if roots > 1 else set()
    return tuple(sorted({*found, *own} - {0})) if own else found


def _drafted(direction: Direction, drafters: tuple[Drafter, Drafter], names: Names) -> list[tuple[Node, Node]]:
    """Each root of the left side with what equals it."""
    lefts, rights = ((side,) if direction.roots == 1 else _roots(side) for side in (direction.left, direction.right))
    found: list[tuple[Node, Node]] = []
    drafted = [drafters[0].term(left, None) for left in lefts]
    for left, right in zip(drafted, rights, strict=True):
        found.append((left, left if isinstance(left, Hole) else drafters[1].term(right, context_of(left, names))))
    return found


def _roots(side: syntax.Expression) -> tuple[syntax.Expression, ...]:
    assert isinstance(side, syntax.Operation)
    return tuple(root for root in side.operands if root is not None)


def _check_arguments(names: Names) -> None:
    """Refuse `permutation(x)` of what is no pack and no dim, now that the terms have said what is one."""
    for declaration in names.attributes.values():
        assert isinstance(declaration.kind, syntax.ValueKind)
        for argument in declaration.kind.arguments:
            kind = names.kinds.get(argument.value) if isinstance(argument, syntax.Name) else None
            if isinstance(argument, syntax.Name) and (kind is None or kind.word not in ("pack", "dim")):
                help = f"write {declaration.kind.word}(S) for x: T[S..]"
                raise RuleError(f"`{argument.value}` is no pack and no dim", place=argument.place, help=help)


def _excluded(direction: Direction, drafter: Drafter) -> bool:
    """True when the condition asks for an operand that this variant leaves out, or the other way round: its terms are not read."""
    if direction.condition is None or not any(
        isinstance(p, syntax.Invocation) and p.name == "given" for p in syntax.walk(direction.condition)
    ):
        return False
    return any(part == Literal(False) for part in _settled(conjuncts(drafter.judging.value(direction.condition))))


def _settled(conditions: Iterable[Expression]) -> Iterator[Expression]:
    """`conditions` with the negations of literals computed."""
    for each in conditions:
        inner = each.arguments[0] if isinstance(each, Call) and each.function == "not" else None
        yield Literal(not inner.value) if isinstance(inner, Literal) else each


def _fact(names: Names, name: str) -> str:
    """What the search must know of a variable: `const`, `varying` or nothing."""
    kind = names.terms[name].kind
    return kind.fact if isinstance(kind, syntax.TensorKind) else ""


def _defaults(names: Names, choices: Mapping[str, int]) -> list[Expression]:
    """An attribute that this variant takes at its default, or away from it."""
    conditions: list[Expression] = []
    for key, form in choices.items():
        if key.startswith("default "):
            name = key.removeprefix("default ")
            default = names.attributes[name].default
            assert isinstance(default, syntax.Number)
            conditions.append(Call("!=" if form else "==", (Ref(name), Literal(float(default.value)))))
    return conditions


def _same(left: CompiledSide, right: CompiledSide) -> bool:
    if str(left.pattern) != str(right.pattern):
        return False
    plain = [str([a.items for a in side.attributes]).replace("'right'", "'left'").replace("right ", "left ") for side in (left, right)]
    return plain[0] == plain[1] and [a.rest for a in left.attributes] == [a.rest for a in right.attributes]


def _unbound(name: str, direction: Direction, names: Names) -> RuleError:
    sources = [direction.right, *names.locals.values(), direction.condition]
    place = next((p.place for s in sources for p in syntax.walk(s) if isinstance(p, syntax.Name) and p.value == name), direction.place)
    return RuleError(f"`{name}` is not bound by the left side", place=place, help=f"use `{name}` on the left, or leave it out on the right")


# ---------------------------------------------------------------- lints of what is written


def _lint_sides(entry: syntax.RuleEntry, names: Names) -> None:
    sides = (entry.left, entry.right) if entry.both else (entry.left,)
    for side in sides if entry.roots == 1 else (root for each in sides for root in _roots(each)):
        if isinstance(side, syntax.Name) and side.value in names.terms:
            help = "such a rule matches every term; turn the rule round, or write `=>`"
            raise RuleError(f"the left side is the bare variable `{side.value}`", place=side.place, help=help)
    if entry.left == entry.right:
        raise RuleError("both sides are the same term", place=entry.left.place, help=DIFFERENT)


def _uses(expressions: Iterable[syntax.Expression | syntax.Spread | None]) -> Counter[str]:
    count: Counter[str] = Counter()
    for expression in expressions:
        for part in syntax.walk(expression):
            if isinstance(part, syntax.Name):
                count[part.value] += 1
            elif isinstance(part, syntax.Invocation):
                count[part.name] += 1
                if part.rest is not None:
                    count[part.rest] += 1
    return count


def lint_uses(entry: syntax.RuleEntry, names: Names) -> list[RuleError]:
    """Declared names that nothing uses."""
    types = [d.kind for d in entry.declarations if isinstance(d, syntax.Declaration)]
    sides = _uses([entry.left, entry.right, entry.condition, *(local.value for local in entry.locals)])
    inside = _uses(dim for kind in types if isinstance(kind, syntax.TensorKind) for dim in kind.dims)
    inside += _uses(argument for kind in types if isinstance(kind, syntax.ValueKind) for argument in kind.arguments)
    inside += Counter(kind.dtype for kind in types if isinstance(kind, syntax.TensorKind))
    errors = []
    for name, place in names.places.items():
        declared = name in names.terms or name in names.attributes or name in names.op_variables or name in names.locals
        is_dtype = names.kinds.get(name) is not None and names.kinds[name].word == "dtype"
        if (declared and not sides[name]) or (is_dtype and not sides[name] + inside[name]):
            errors.append(RuleError(f"`{name}` is not used", place=place, help="leave it out, or use it"))
    return errors


def _lint_wildcards(entry: syntax.RuleEntry, names: Names, found: list[Rule]) -> list[RuleError]:
    """Attributes bound once and never read: they are wildcards, and are written so."""
    if not found:
        return []
    count = _uses([entry.left, entry.right, entry.condition, *(local.value for local in entry.locals)])
    for declaration in entry.declarations:
        if isinstance(declaration, syntax.Declaration):
            written = declaration.kind
            count += _uses(written.dims if isinstance(written, syntax.TensorKind) else written.arguments)
    errors = []
    for name, kind in found[0].compiled.kinds.items():
        if count[name] == 1 and kind.word not in ("dim", "pack", "dtype", "rest") and name not in names.op_variables:
            place = next((p.place for p in syntax.walk(entry.left) if isinstance(p, syntax.Name) and p.value == name), entry.place)
            errors.append(RuleError(f"`{name}` is used once", place=place, help="write `_` for an attribute that may be anything"))
    return errors
