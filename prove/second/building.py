"""The term that a definition's clause says, in the normal form: what changes nothing is not there, what is one number is written as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coset.ir.builtin import absent
from coset.ir.errors import CosetError
from coset.ir.op import Op
from coset.ir.term import Term, constant, get, make
from coset.ir.types import BOOL, I64, TensorType
from coset.prove.second import arithmetic, exact
from coset.prove.second import syntax as l
from coset.prove.second.absent import LEFT_ALONE, neutral
from coset.prove.second.answer import CannotSay, Unknown
from coset.prove.second.matching import assigned
from coset.prove.second.scope import MARKS, REDUCTIONS, Found, Unbound, rounds, value_of


def spread(x: Term, shape: tuple[Any, ...], axes: tuple[int, ...]) -> Term:
    """`x` with its dim i along axis `axes[i]` of `shape`, in the normal form: dims of 1 that are repeated are reshaped away first, and what
    only adds dims of 1 is a reshape."""
    if x.tensor.shape == shape and axes == tuple(range(len(shape))):
        return x
    kept = [(dim, axis) for dim, axis in zip(x.tensor.dims, axes, strict=True) if dim == shape[axis]]
    places = [axis for _, axis in kept]
    others = [dim for axis, dim in enumerate(shape) if axis not in places]
    if x.tensor.rank and places == sorted(places) and all(dim == 1 for dim in others):
        return make("stablehlo.reshape", (x,), {"shape": shape})
    if len(kept) < len(axes):
        x = make("stablehlo.reshape", (x,), {"shape": tuple(dim for dim, _ in kept)})
    return make("stablehlo.broadcast_in_dim", (x,), {"shape": shape, "broadcast_dimensions": tuple(places)})


class Builder:
    """Builds terms under a substitution; locals are built once."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self.made: dict[str, Term] = {}

    def locals_known(self) -> Found:
        """The substitution with the locals that are terms, as far as they can be built without what is beside them."""
        for name, e in self.found.scope.locals.items():
            if self.found.scope.is_term(e) and name not in self.found.values and not self.elastic(e) and neutral(e, self.found) is None:
                try:
                    self.found = self.found.bind(name, self.term(e, None))
                except (Unbound, Unknown):
                    continue
        return self.found

    def elastic(self, e: l.Expression) -> bool:
        """Whether the shape or the element type of a term is that of its neighbour."""
        scope = self.found.scope
        if not scope.is_term(e):
            return True
        match e:
            case l.Name(name) if name in scope.locals and name not in self.found.values:
                return self.elastic(scope.locals[name])
            case l.Call("splat", _, _, _):
                return True
            case l.Call("bcast", arguments, _, _):
                return len(arguments) == 1
            case l.Unary(_, inner):
                return self.elastic(inner)
            case l.Binary(mark, left, right) if mark in MARKS:
                return all(self.elastic(side) or neutral(side, self.found) is not None for side in (left, right))
            case l.Choice(condition, yes, no):
                return self.elastic(yes if value_of(condition, self.found) else no)
        return False

    def term(self, e: l.Expression, beside: TensorType | None) -> Term:
        """The term that an expression stands for; `beside` is the type of its neighbours, where they say it.

        Raises:
            Unknown: a value in it has none.
            CannotSay: it asks for what is not known here.
        """
        found = self.found
        scope = found.scope
        if not scope.is_term(e):
            return self._number(value_of(e, found), beside)
        match e:
            case l.Name(name):
                return self._named(name, beside)
            case l.Choice(condition, yes, no):
                return self.term(yes if value_of(condition, found) else no, beside)
            case l.Binary("@", left, right):
                return self._product(self.term(left, None), self.term(right, None))
            case l.Binary("%", left, right):
                return make("stablehlo.remainder", self._siblings((left, right), beside))
            case l.Binary(mark, left, right):
                return self._arithmetic(mark, left, right, beside)
            case l.Unary("-", inner):
                return make("stablehlo.negate", (self.term(inner, beside),))
            case l.Unary(_, inner):
                return make("stablehlo.not", (self.term(inner, beside),))
            case l.Grouped(items):
                return make("builtin.tuple", tuple(self.term(item, None) for item in items))
            case l.Item(whole, index):
                return self._item(whole, index)
            case l.Call():
                return self._call(e, beside)
        raise CannotSay(f"the term {e}")

    def _number(self, value: Any, beside: TensorType | None) -> Term:
        if beside is None:
            raise CannotSay("a number with nothing beside it")
        element = exact.rounded(arithmetic.number(value), beside.dtype)
        return spread(constant(np.asarray(element, beside.dtype.numpy), beside.dtype), tuple(beside.dims), ())

    def _named(self, name: str, beside: TensorType | None) -> Term:
        value = self.found.values.get(name)
        if isinstance(value, Term):
            return value
        if name in self.found.scope.locals:
            if name not in self.made or self.elastic(self.found.scope.locals[name]):
                self.made[name] = self.term(self.found.scope.locals[name], beside)
            return self.made[name]
        raise CannotSay(f"`{name}` as a term")

    def _item(self, whole: l.Expression, index: l.Expression) -> Term:
        if isinstance(whole, l.Listed | l.Each):
            values: Any = tuple(self._listed((l.Splice(whole),)))
        else:
            values = value_of(whole, self.found)
        found = arithmetic.item(values, value_of(index, self.found))
        if not isinstance(found, Term):
            raise CannotSay("an item that is no term")
        return found

    # ------------------------------------------------------------ operators

    def _siblings(self, patterns: Sequence[l.Expression], beside: TensorType | None) -> list[Term]:
        """Operands of an elementwise op: what is a number has the type of those that are not."""
        made: dict[int, Term] = {place: self.term(e, None) for place, e in enumerate(patterns) if not self.elastic(e)}
        known = next(iter(made.values())).tensor if made else beside
        return [made[place] if place in made else self.term(e, known) for place, e in enumerate(patterns)]

    def _arithmetic(self, mark: str, left: l.Expression, right: l.Expression, beside: TensorType | None) -> Term:
        a, b = neutral(left, self.found), neutral(right, self.found)
        if b is not None and LEFT_ALONE[mark](b):
            return self.term(left, beside)
        if a is not None and mark in ("+", "*") and LEFT_ALONE[mark](a):
            return self.term(right, beside)
        if a is not None and mark == "-" and a == 0:
            return make("stablehlo.negate", (self.term(right, beside),))
        if mark == "*":
            for factor, other in ((left, right), (right, left)):
                if not self.found.scope.is_term(factor) and arithmetic.equal(value_of(factor, self.found), 1) and not self.elastic(other):
                    return self.term(other, beside)
        return make(MARKS[mark], self._siblings((left, right), beside))

    def _product(self, a: Term, b: Term) -> Term:
        left, right = a.tensor.rank, b.tensor.rank
        if right < 2 or left < 1 or (right > 2 and left != right):
            raise CannotSay("a product of these ranks")
        batch = tuple(range(right - 2))
        named = {"lhs_batch": batch, "rhs_batch": batch, "lhs_contract": (left - 1,), "rhs_contract": (right - 2,)}
        return make("stablehlo.dot_general", (a, b), named)

    # ------------------------------------------------------------ calls

    def _call(self, e: l.Call, beside: TensorType | None) -> Term:
        found = self.found
        arguments, named = e.arguments, dict(e.named)
        match e.function:
            case "splat":
                return self._splat(arguments[0], beside)
            case "bcast":
                return self._bcast(arguments, named, beside)
            case "full":
                value, shape, dtype = (value_of(argument, found) for argument in arguments)
                return self._number(value, TensorType(dtype, shape))
            case "scalar":
                value, dtype = (value_of(argument, found) for argument in arguments)
                return self._number(value, TensorType(dtype, ()))
            case "host":
                return self._host(value_of(arguments[0], found))
            case "swap_last":
                x = self.term(arguments[0], beside)
                rank = x.tensor.rank
                return make("stablehlo.transpose", (x,), {"permutation": (*range(rank - 2), rank - 1, rank - 2)})
            case "get":
                return get(self.term(arguments[0], None), value_of(arguments[1], found))
            case "fold":
                return self._fold(arguments)
        if e.function in REDUCTIONS:
            axes = value_of(arguments[1], found)
            return make("stablehlo.reduce", (self.term(arguments[0], None),), {"dimensions": axes, "combiner": REDUCTIONS[e.function]})
        bound = found.values.get(e.function)
        op = bound if isinstance(bound, Op) else found.scope.op(e.function)
        if op is None:
            raise CannotSay(f"the function `{e.function}` in a term")
        return self._applied(op, e, beside)

    def _splat(self, inner: l.Expression, beside: TensorType | None) -> Term:
        if not self.found.scope.is_term(inner):
            return self._number(value_of(inner, self.found), beside)
        if beside is None:
            raise CannotSay("a number with nothing beside it")
        return spread(self.term(inner, TensorType(beside.dtype, ())), tuple(beside.dims), ())

    def _bcast(self, arguments: tuple[l.Expression, ...], named: dict[str, l.Expression], beside: TensorType | None) -> Term:
        if len(arguments) > 1:
            shape = value_of(arguments[1], self.found)
        elif beside is not None:
            shape = tuple(beside.dims)
        else:
            raise CannotSay("a broadcast with nothing beside it")
        x = self.term(arguments[0], None)
        rank = x.tensor.rank
        axes = value_of(named["axes"], self.found) if "axes" in named else tuple(range(len(shape) - rank, len(shape)))
        if len(arguments) > 1 and isinstance(arguments[1], l.Call) and arguments[1].function == "broadcast":
            return spread(x, shape, axes)  # an operand of any shape: in the normal form, and nothing where it has the shape
        if x.tensor.rank == len(shape) == 0:
            return x
        return make("stablehlo.broadcast_in_dim", (x,), {"shape": shape, "broadcast_dimensions": axes})

    def _host(self, value: Any) -> Term:
        if isinstance(value, int):
            return constant(np.asarray(value, np.int64))
        return make("builtin.dims", (), {"dims": (value,), "type": TensorType(I64, ())})

    def _fold(self, arguments: tuple[l.Expression, ...]) -> Term:
        name, *rest = arguments
        op = self.found.scope.op(name.name) if isinstance(name, l.Name) else None
        items = self._listed(tuple(rest))
        if op is None or not items:
            raise CannotSay("this fold")
        result = items[0]
        for item in items[1:]:
            result = make(op, (result, item))
        return result

    def _applied(self, op: Op, e: l.Call, beside: TensorType | None) -> Term:
        patterns, named = assigned(op, e, self.found)
        attributes: dict[str, Any] = {}
        for name, pattern in named:
            if name in op.operands:
                place = op.operands.index(name)
                patterns += [l.Name("_absent")] * (place + 1 - len(patterns))
                patterns[place] = pattern
            else:
                attributes[name] = self._attribute(op, name, pattern)
        if e.rest is not None:
            bound = self.found.values.get(f"..{e.rest}")
            if bound is None or bound[1]:
                raise CannotSay("attributes and functions that are passed on")
            attributes = {**dict(bound[0]), **attributes}
        for one, other in ((0, 1), (1, 0)):
            given = neutral(patterns[one], self.found) if op.name in LEFT_ALONE and len(patterns) == 2 else None
            if given is not None and LEFT_ALONE[op.name](given):
                return self.term(patterns[other], beside)
        return self._made(op, self._operands(op, patterns, beside), attributes)

    def _attribute(self, op: Op, name: str, pattern: l.Expression) -> Any:
        value = value_of(pattern, self.found)
        kind = next((each.kind for each in op.attributes if each.name == name), None)
        if kind is None:
            raise CannotSay(f"`{name}` of {op.name}")
        return float(value) if kind == "float" else value

    def _operands(self, op: Op, patterns: list[l.Expression], beside: TensorType | None) -> list[Term]:
        if op.variadic:
            return self._listed(tuple(patterns))
        given = [self._not_given(pattern) for pattern in patterns]
        if op.has("elementwise") and not any(given):
            if op.name == "stablehlo.select":
                chosen = self._siblings(patterns[1:], beside)
                whole = TensorType(BOOL, tuple(chosen[0].tensor.dims))
                return [self.term(patterns[0], whole), *chosen]
            return self._siblings(patterns, beside)
        if op.name == "stablehlo.pad":
            x = self.term(patterns[0], None)
            return [x, self.term(patterns[1], TensorType(x.tensor.dtype, ()))]
        return [absent() if missing else self.term(pattern, None) for pattern, missing in zip(patterns, given, strict=True)]

    def _not_given(self, pattern: l.Expression) -> bool:
        return (isinstance(pattern, l.Name) and pattern.name == "_absent") or neutral(pattern, self.found) is not None

    def _listed(self, patterns: tuple[l.Expression, ...]) -> list[Term]:
        result: list[Term] = []
        for pattern in patterns:
            inner = pattern.inner if isinstance(pattern, l.Splice) else pattern
            match inner:
                case l.Listed(items):
                    result += self._listed(items)
                case l.Each():
                    for turn in rounds(inner, self.found):
                        result.append(Builder(turn).term(inner.inner, None))
                case _:
                    value = value_of(inner, self.found) if isinstance(pattern, l.Splice) or isinstance(inner, l.Part) else None
                    many = isinstance(inner, l.Name) and isinstance(self.found.values.get(inner.name), tuple)
                    if many:
                        value = self.found.values[inner.name]  # type: ignore[union-attr]
                    result += value if value is not None else [self.term(inner, None)]
        return result

    def _made(self, op: Op, operands: Sequence[Term], attributes: dict[str, Any]) -> Term:
        return make(op, operands, attributes)


def built(e: l.Expression, found: Found, type: Any) -> Term:
    """The term of a clause's body.

    Raises:
        Unknown: it has none of this type.
    """
    builder = Builder(found)
    try:
        made = builder.term(e, type if isinstance(type, TensorType) else None)
    except CosetError as error:
        raise Unknown(f"what the clause says is no term: {error}") from None
    if made.type != type:
        raise Unknown(f"what the clause says is {made.type} and not {type}")
    return made
