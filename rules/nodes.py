"""Calls of ops that no program holds: in a rule each stands for what a node of the op is read as.

A program holds no `onnx.Transpose`: such a node is its meaning as soon as it is read, so the entry of the op is tagged `sugar`. A rule that
writes the op speaks of that meaning. Ops that programs do hold (`onnx.Conv`) have attributes of their own. An entry `node.Conv` says what
a node with the attributes of the standard becomes, and a rule may write these attributes too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from coset.ir.op import Op, find_op
from coset.rules import syntax
from coset.rules.attribute_kinds import check_count, check_kind, no_attribute
from coset.rules.declared_shapes import is_named, item, without
from coset.rules.names import SUGAR, Names, collect
from coset.rules.settled import is_any, is_never, is_true, settled
from coset.rules.syntax import RuleError
from coset.rules.unroll import rewritten, unrolled, variadic
from coset.rules.values import ValueResolver

NODE = "node."  # the dialect whose entries say what nodes of the ops `onnx.*` become
ENTRIES: dict[str, tuple[syntax.OpEntry, Mapping[str, str]]] = {}  # of each op that is tagged `sugar`, with the dialects of its file


@dataclass(frozen=True)
class NodeMeaning:
    """What a call stands for, and under which conditions."""

    body: syntax.Expression
    conditions: tuple[syntax.Expression, ...]


def node_op(name: str) -> Op | None:
    """The op whose entry says what a node `onnx.NAME` becomes, if attributes of the program's op `name` are not those of the standard."""
    return find_op(f"{NODE}{name.partition('.')[2]}")


def written_as(op: Op, call: syntax.Invocation) -> Op | None:
    """The op whose entry `call` of `op` is read by: `node.NAME` if there is one and no program holds the op, or the call has the attributes
    of the standard; the op itself if no program holds it; None if the call is to stay as it is."""
    if op.dialect == "part" and op.name in ENTRIES:
        return op
    if op.dialect != "onnx":
        return None
    other = node_op(op.name)
    if op.name in ENTRIES:
        return other or (None if any(isinstance(each.body, syntax.Comprehension) for each in ENTRIES[op.name][0].clauses) else op)
    if other is None or len(call.arguments) > len(op.operands):
        return None  # attributes by their place are those of the program's op
    given = {name for name, _ in call.keywords}
    own = {attribute.name: attribute.required for attribute in op.attributes}
    standard = {attribute.name for attribute in other.attributes}
    if given & (standard - own.keys()):
        return other
    if given - standard or call.rest is not None:
        return None
    if any(required and name not in given for name, required in own.items()):
        return other
    return other if "axis" in own and _is_a_number(call) else None


def _is_a_number(call: syntax.Invocation) -> bool:
    """Whether the axis is left out, or a number: it may count from the end, and programs hold axes from the front."""
    axis = dict(call.keywords).get("axis")
    return axis is None or isinstance(axis, syntax.Number) or (isinstance(axis, syntax.Operation) and axis.operator == "negate")


def meanings(
    op: Op, call: syntax.Invocation, names: Names, *, left: bool, waiting: Callable[[syntax.Expression], bool]
) -> list[NodeMeaning]:
    """What a call that is read by the entry of `op` may stand for: one for each clause that its attributes leave. `waiting` says which
    operands take the shape of others.

    Raises:
        RuleError: there is no such attribute, too few operands, or no clause for these attributes.
    """
    entry, dialects = ENTRIES[op.name]
    own = variadic(entry)
    if own is not None:
        entry = unrolled(entry, max(len(call.arguments) - len(op.operands) + 1, 1))
    found = []
    for clause in entry.clauses:
        reader = _Reader(entry, clause, dialects, call, names, left, waiting)
        meaning = reader.meaning(op)
        if not any(map(is_never, meaning.conditions)):
            found.append(meaning)
        if call.rest is not None:  # which has the attributes that tell the clauses apart: the first is for their defaults
            break
    if not found:
        asked = dict.fromkeys(text for clause in entry.clauses for each in syntax.joined(clause.condition) if (text := _plain(each)))
        help = f"a rule can write it where {' and '.join(asked)}" if asked else f"its meaning is in {op.source}"
        raise RuleError(f"`{call.name}` has no meaning with these attributes", place=call.place, help=help)
    return found


class _Reader:
    """Writes the call's operands and attributes into one clause of an entry."""

    def __init__(
        self, entry: syntax.OpEntry, clause: syntax.Clause, dialects: Mapping[str, str], call: syntax.Invocation, names: Names, left: bool,
        waiting: Callable[[syntax.Expression], bool],
    ) -> None:  # fmt: skip
        self.entry, self.clause, self.call, self.names, self.left, self.waiting = entry, clause, call, names, left, waiting
        self.own = collect(entry.parameters, clause.locals, dialects)
        self.values = ValueResolver(self.own, left=False)
        self.locals = {local.name: local.value for local in clause.locals}
        self.defaults = {parameter.name: parameter.default for parameter in entry.parameters}
        self.chosen: dict[str, syntax.Expression] = {}
        self.missing: set[str] = set()  # optional operands that the call has not
        self.given: set[str] = set()  # attributes that the call writes
        self.mark = _unused_mark(call)
        self.open: set[str] = set()  # attributes that it neither writes nor leaves at their defaults: those behind `..rest`

    def meaning(self, op: Op) -> NodeMeaning:
        """The clause for the call."""
        self._bind(op)
        body = self.expression(self.clause.body)
        if self.call.rest is not None:
            body = self._with_rest(body)
        conditions = [] if self.clause.condition is None else syntax.joined(self.expression(self.clause.condition))
        if self.left:
            self._refuse_unread(body, conditions)
        asked = (each for each in conditions if not is_true(each) and not any(is_any(p) or self._is_open(p) for p in syntax.walk(each)))
        return NodeMeaning(body, tuple(asked))

    # ------------------------------------------------------------ what the names of the entry stand for

    def _bind(self, op: Op) -> None:
        operands = [each for each in self.entry.parameters if isinstance(each.kind, syntax.TensorKind)]
        needed = sum(not each.optional for each in operands)
        call = self.call
        if len(call.plain) < needed:
            help = f"its operands: {call.name}({', '.join(each.name + '?' * each.optional for each in operands)})"
            raise RuleError(f"`{call.name}` takes {needed} operands, not {len(call.plain)}", place=call.place, help=help)
        for position, operand in enumerate(operands):
            if position < len(call.plain):
                self._operand(operand, call.plain[position])
            else:
                self.missing.add(operand.name)
        self._attributes(op, call.plain[len(operands) :])

    def _operand(self, operand: syntax.Declaration, argument: syntax.Expression) -> None:
        """The operand, and what its declared type says of the argument's."""
        assert isinstance(operand.kind, syntax.TensorKind)
        self.chosen[operand.name] = argument
        shape = self._shape(argument)
        self.chosen.setdefault(operand.kind.dtype, self._dtype(argument))
        dims = operand.kind.dims
        pack = next((place for place, dim in enumerate(dims) if isinstance(dim, syntax.Spread)), len(dims))
        for place, dim in enumerate(dims):
            if isinstance(dim, syntax.Spread) and isinstance(dim.value, syntax.Name):
                self.chosen.setdefault(dim.value.value, without(shape, pack, len(dims) - pack - 1))
            elif isinstance(dim, syntax.Name):
                self.chosen.setdefault(dim.value, item(shape, place if place < pack else place - len(dims)))

    def _dtype(self, argument: syntax.Expression) -> syntax.Expression:
        """The element type of an argument, by its name if it is declared."""
        declared = self.names.terms.get(argument.value) if isinstance(argument, syntax.Name) else None
        if declared is not None and isinstance(declared.kind, syntax.TensorKind) and declared.kind.dtype in self.names.kinds:
            return syntax.Name(declared.kind.dtype, argument.place)
        return syntax.Invocation("dtype", (argument,), (), None, argument.place)

    def _shape(self, argument: syntax.Expression) -> syntax.Expression:
        """The dims of an argument: as they are declared, if that says all of them."""
        declared = self.names.terms.get(argument.value) if isinstance(argument, syntax.Name) else None
        kind = None if declared is None else declared.kind  # of one that may be absent, too: what stands for it has this shape
        if isinstance(kind, syntax.TensorKind) and all(map(is_named, kind.dims)):
            return syntax.Brackets(kind.dims, argument.place)
        if self.waiting(argument):
            return syntax.Brackets((), argument.place)
        return syntax.Invocation("dims", (argument,), (), None, argument.place)

    def _attributes(self, op: Op, positional: Sequence[syntax.Expression]) -> None:
        """What the call says of each attribute: by place, by name, or that it has its default."""
        call = self.call
        known = {attribute.name: attribute for attribute in op.attributes}
        if len(positional) > len(known):
            help = f"leave it out; operands: {', '.join(op.operands) or 'none'}; attributes: {', '.join(known) or 'none'}"
            raise RuleError(f"`{call.name}` has too many arguments", place=positional[len(known)].place, help=help)
        given = dict(zip(known, positional, strict=False))
        for name, value in call.keywords:
            if name not in known:
                raise no_attribute(call.name, name, list(known), value)
            if name in given:
                raise RuleError(
                    f"the attribute `{name}` is given twice", place=value.place, help="write it once, by its place or by its name"
                )
            given[name] = value
        for name, value in given.items():
            check_kind(op.name.replace(NODE, "onnx."), name, known[name].kind, value)
            self._check_word(name, value)
            check_count(call.name, name, value, self.chosen)
        for name, attribute in known.items():
            default = self.defaults[name]
            if name in given:
                self.chosen[name] = given[name]
                self.given.add(name)
            elif call.rest is not None:
                self.chosen[name] = syntax.Name(f"{name}'", call.place)
                self.open.add(f"{name}'")
            elif default is None:
                help = f"add `{name}: ...`" + (", or `_` for any" if self.left else "")
                raise RuleError(f"`{call.name}` needs the attribute `{attribute.name}`", place=call.place, help=help)
            else:
                self.chosen[name] = default

    def _check_word(self, name: str, value: syntax.Expression) -> None:
        """Refuse a text that no condition of the entry speaks of."""
        conditions = [part for clause in self.entry.clauses for part in syntax.walk(clause.condition)]
        asked = [part for part in conditions if isinstance(part, syntax.Operation) and part.operator in ("==", "in")]
        about = [part.operands[1] for part in asked if isinstance(part.operands[0], syntax.Name) and part.operands[0].value == name]
        words = list(dict.fromkeys(part.value for whole in about for part in syntax.walk(whole) if isinstance(part, syntax.Text)))
        if words and isinstance(value, syntax.Text) and value.value not in words:
            help = (
                "one of: "
                + ", ".join(f'"{word}"' for word in words)
                + ("; write other padding in numbers, as `pads`" * (name == "auto_pad"))
            )
            raise RuleError(f'`{name}` of `{self.call.name}` is not "{value.value}" in a rule', place=value.place, help=help)

    # ------------------------------------------------------------ what the entry says

    def expression(self, expression: Any) -> Any:
        """An expression of the entry with the call's own in the place of the entry's names."""
        if isinstance(expression, syntax.Name):
            if expression.value in self.locals:
                return self.expression(self.locals[expression.value])
            return self.chosen.get(expression.value, expression)
        if isinstance(expression, syntax.Comprehension):
            return self._comprehension(expression)
        if isinstance(expression, syntax.Invocation):
            return self._call(expression)
        if isinstance(expression, syntax.Operation):
            for decided in (self._is_empty(expression), self._is_of_kind(expression)):
                if decided is not None:
                    return syntax.Name("true" if decided else "false", expression.place)
        return settled(rewritten(expression, self.expression), self._is_read)

    def _comprehension(self, expression: syntax.Comprehension) -> Any:
        """The names that it binds get others, which no rule file can write: the call's expressions may have the same names."""
        outer, fresh = self.chosen, [f"{name}{self.mark}" for name in expression.names]
        lists = tuple(self.expression(each) for each in expression.lists)
        renamed = {name: syntax.Name(new, expression.place) for name, new in zip(expression.names, fresh, strict=True)}
        self.chosen = {**outer, **renamed}
        item = self.expression(expression.item)
        condition = None if expression.condition is None else self.expression(expression.condition)
        self.chosen = outer
        return settled(replace(expression, item=item, names=tuple(fresh), lists=lists, condition=condition), self._is_read)

    def _call(self, call: syntax.Invocation) -> Any:
        if call.name == "given":
            return self._is_given(call)
        arguments = tuple(
            self.expression(each) for each in call.arguments if not (isinstance(each, syntax.Name) and each.value in self.missing)
        )
        keywords = tuple((name, self.expression(value)) for name, value in call.keywords)
        if call.name == "bcast" and self.waiting(arguments[0]):
            return arguments[0]  # a number takes the shape of what stands beside it
        made = replace(call, arguments=arguments, keywords=keywords, place=self.call.place)
        if self.values.is_function(call) or call.name in SUGAR:
            return settled(made, self._is_read)
        op = self.own.resolve(call.name, call.place)
        self.names.ops[op.name] = op  # by its full name, whatever dialects the rule uses
        return replace(made, name=op.name)

    def _is_given(self, call: syntax.Invocation) -> syntax.Expression:
        """Whether an optional operand is there: a variable that may be absent itself says so."""
        only = call.plain[0]
        assert isinstance(only, syntax.Name)
        chosen = self.chosen.get(only.value)
        if isinstance(chosen, syntax.Name) and chosen.value in self.names.terms and self.names.terms[chosen.value].optional:
            return replace(call, arguments=(chosen,))
        return syntax.Name("false" if chosen is None else "true", self.call.place)

    def _is_empty(self, operation: syntax.Operation) -> bool | None:
        """What `len(a) == 0` is of an attribute that the call writes, and not as a list that can be counted: it is not left out."""
        first = operation.operands[0] if operation.operator in ("==", "!=") else None
        if not isinstance(first, syntax.Invocation) or first.name != "len" or not isinstance(first.plain[0], syntax.Name):
            return None
        name = first.plain[0].value
        if name not in self.given or isinstance(self.chosen[name], syntax.Brackets):
            return None
        return operation.operator == "!="

    def _is_of_kind(self, operation: syntax.Operation) -> bool | None:
        """What `kind(T) == "uint"` is, if all element types of the variable answer alike."""
        first, *others = operation.operands
        if operation.operator not in ("==", "!=") or not isinstance(first, syntax.Invocation) or first.name != "kind":
            return None
        dtype = self.expression(first.plain[0])
        if not isinstance(dtype, syntax.Name) or dtype.value not in self.names.kinds or not isinstance(others[0], syntax.Text):
            return None
        answers = {(each.kind == others[0].value) == (operation.operator == "==") for each in self.names.kinds[dtype.value].classes}
        return answers.pop() if len(answers) == 1 else None

    def _is_read(self, expression: syntax.Expression) -> bool:
        """Whether a name stands for what is there: one that the left side binds."""
        return self.left and isinstance(expression, syntax.Name) and expression.value not in self.names.terms

    # ------------------------------------------------------------ what cannot be said

    def _with_rest(self, body: Any) -> syntax.Expression:
        """The body with `..rest` for the attributes that speak of nothing that the call writes.

        Raises:
            RuleError: one of the program's attributes is made of some that are written and some that are not.
        """
        rest = self.call.rest
        if isinstance(body, syntax.Invocation) and body.name in self.names.ops:
            op = self.names.ops[body.name]
            positional = tuple(zip((a.name for a in op.attributes), body.arguments[len(op.operands) :], strict=False))
            written = [(name, value) for name, value in (*positional, *body.keywords) if not isinstance(value, syntax.Spread)]
            kept = tuple(each for each in written if not self._speaks_of_open(each[1]))
            left_out = [value for _, value in written if self._speaks_of_open(value)]
            operands = body.arguments[: len(op.operands)]
            if not any(map(self._speaks_of_open, operands)) and not any(map(self._speaks_of_given, left_out)):
                return replace(body, arguments=operands, keywords=kept, rest=rest)
        help = f"write the attributes of `{self.call.name}` by name: {', '.join(name[:-1] for name in sorted(self.open))}"
        raise RuleError(f"`..{rest}` cannot stand for attributes of `{self.call.name}`", place=self.call.place, help=help)

    def _speaks_of_open(self, expression: Any) -> bool:
        return any(map(self._is_open, syntax.walk(expression)))

    def _speaks_of_given(self, expression: Any) -> bool:
        given = [self.chosen[name] for name in self.given]
        return any(part in given for part in syntax.walk(expression))

    def _is_open(self, part: Any) -> bool:
        return isinstance(part, syntax.Name) and part.value in self.open

    def _refuse_unread(self, body: syntax.Expression, conditions: Sequence[syntax.Expression]) -> None:
        """Refuse a name for an attribute that programs do not hold: nothing there says what it is."""
        read = {part.value for part in _unconditional(body) if isinstance(part, syntax.Name)}
        equations = [each for each in conditions if isinstance(each, syntax.Operation) and each.operator == "=="]
        read |= {side.value for each in equations for side in each.operands if isinstance(side, syntax.Name)}
        anything = [name for name in sorted(self.given) if is_any(self.chosen[name])]
        if anything and any(is_any(part) for part in _computed(body)):
            help = f"write it: `{anything[0]}: [1]`, or a name that a condition tells"
            raise RuleError(f"`_` does not do for `{anything[0]}` of `{self.call.name}`", place=self.call.place, help=help)
        for name in sorted(self.given):
            value = self.chosen[name]
            if isinstance(value, syntax.Name) and self._is_read(value) and value.value not in read and not _is_literal(value):
                text = isinstance(self.defaults.get(name), syntax.Text)
                help = f'write its value in quotes: `{name}: "{value.value}"`' if text else f"write its value, 1 or 0: `{name}: 1`"
                raise RuleError(f"`{value.value}` is no value of `{name}`, and no program holds one", place=value.place, help=help)


def _unused_mark(call: syntax.Invocation) -> str:
    """What makes names that the call does not have: each call around another one has a longer mark."""
    found = [part.value for part in syntax.walk(call) if isinstance(part, syntax.Name)]
    found += [name for part in syntax.walk(call) if isinstance(part, syntax.Comprehension) for name in part.names]
    return "'" * (1 + max((name.count("'") for name in found), default=0))


def _unconditional(expression: Any) -> list[Any]:
    """The parts of an expression but for what stands between `if` and `then`."""
    if isinstance(expression, syntax.Operation) and expression.operator == "if":
        return [part for branch in expression.operands[1:] for part in _unconditional(branch)]
    found: list[Any] = [expression]

    def visit(part: Any) -> Any:
        found.extend(_unconditional(part))
        return part

    rewritten(expression, visit)
    return found


def _computed(expression: Any) -> Iterator[Any]:
    """The names in an expression that stand in something that is computed, and are no attribute by themselves."""
    if isinstance(expression, syntax.Invocation) and "." in expression.name:
        for value in (*expression.arguments, *(value for _, value in expression.keywords)):
            if not isinstance(value, syntax.Name):
                yield from _computed(value)
        return
    yield from syntax.walk(expression)


def _plain(condition: syntax.Expression) -> str:
    """A condition on one attribute and a number, as it is written; else nothing."""
    if not isinstance(condition, syntax.Operation) or condition.operator not in ("==", "!="):
        return ""
    name, value = condition.operands
    if not isinstance(name, syntax.Name) or not isinstance(value, syntax.Number):
        return ""
    return f"{name.value} {condition.operator} {value.value}"


def _is_literal(name: syntax.Name) -> bool:
    return name.value in ("true", "false")
