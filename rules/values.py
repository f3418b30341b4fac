"""Values of one entry: surface expressions as expressions of the index algebra, with their names resolved."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

from coset.ir.op import find_op
from coset.ir.place import Place
from coset.ir.types import DTYPES
from coset.rules import syntax
from coset.rules.algebra import SCALAR_FUNCTIONS, Call, Expression, Listing, Literal, MappedList, PayloadFunction, Ref, Splice, TypeOf, Wild
from coset.rules.equation import Kind
from coset.rules.functions import FUNCTIONS
from coset.rules.names import FUNCTION, SUGAR, Names, imply
from coset.rules.native import KINDS as NATIVE_KINDS
from coset.rules.native import PREFIX, all_natives, find_native
from coset.rules.syntax import RuleError

OTHER_FUNCTIONS = {
    "ndim": "rank",
    "shape": "dims",
    "size": "product(dims(x))",
    "numel": "product(dims(x))",
    "prod": "product",
    "type": "dtype",
}
_CONSTANTS = {"inf": Decimal("Infinity"), "nan": Decimal("NaN")}


class ValueResolver:
    """Resolves values; on the left side a bare name that nothing declares is bound by the attribute that it stands for."""

    def __init__(self, names: Names, *, left: bool) -> None:
        self.names, self.left = names, left
        self.bound: tuple[str, ...] = ()  # the names of the comprehensions around
        self.absent: Callable[[syntax.Expression], bool] = lambda _: False  # whether an optional operand is left out
        self.typed: Callable[[syntax.Expression], TypeOf] | None = None  # the type of a term that is no variable

    def is_function(self, call: syntax.Invocation) -> bool:
        """True for a function of the algebra, not an op: names that are both (`sort`, `max`) are ops of terms."""
        if call.name.startswith(PREFIX):
            return True
        if not is_called(call.name) and call.name not in ("sqrt", "exp", "log"):
            return False
        if call.name not in SUGAR and all(find_op(f"{dialect}.{call.name}") is None for dialect in self.names.dialects.values()):
            return True
        return not call.keywords and all(self.numeric(argument) for argument in call.arguments)

    def numeric(self, expression: syntax.Expression | syntax.Spread) -> bool:
        """True when no term variable and no op occurs in `expression` but inside functions of types."""
        while isinstance(expression, syntax.Name) and expression.value in self.names.locals:
            expression = self.names.locals[expression.value]
        if isinstance(expression, syntax.Name):
            return expression.value not in self.names.terms
        if isinstance(expression, syntax.Invocation):
            return self.is_function(expression)
        if isinstance(expression, syntax.Operation):
            if expression.operator == "if":
                return all(self.numeric(branch) for branch in expression.operands[1:] if branch is not None)
            return expression.operator == "item" or all(operand is None or self.numeric(operand) for operand in expression.operands)
        return True

    def attribute(self, expression: syntax.Expression, kind: str) -> Expression:
        """The value of an attribute of `kind`."""
        if self.left:
            self.introduce(expression, kind)
        value = self.value(expression)
        if kind == "float" and isinstance(value, Literal) and isinstance(value.value, int):
            return Literal(float(value.value))
        return value

    def function(self, expression: syntax.Expression) -> Expression:
        """A payload function: a name, `_`, or one that is written down.

        Raises:
            RuleError: it is something else, or a name in it is unknown.
        """
        while isinstance(expression, syntax.Name) and expression.value in self.names.locals:
            expression = self.names.locals[expression.value]
        if isinstance(expression, syntax.Lambda):
            return self._written(expression)
        if not isinstance(expression, syntax.Name) or expression.value in self.names.terms:
            raise RuleError("a function is needed here", place=expression.place, help="write a name, or lambda a, b: a + b")
        if self.left:
            self.introduce(expression, FUNCTION)
        if expression.value != "_" and self.names.kinds.get(expression.value, Kind(FUNCTION)).word not in (FUNCTION, "any"):
            word = self.names.kinds[expression.value].word
            raise RuleError(f"`{expression.value}` is a {word}, and no function", place=expression.place, help=f"declare it: {FUNCTION}")
        return self._name(expression)

    def _written(self, written: syntax.Lambda) -> PayloadFunction:
        """A function that is written down. It speaks of its parameters, of values and of other functions, not of terms outside."""
        for name in written.parameters:
            if self.names.known(name):
                raise RuleError(f"`{name}` is declared twice", place=written.place, help="give the parameter another name")
        free: dict[str, Ref] = {}
        for part in syntax.walk(written.body):
            if isinstance(part, syntax.Lambda):
                raise RuleError("a function inside of a function", place=part.place, help="its ops are those without functions")
            name = part.value if isinstance(part, syntax.Name) else part.name if isinstance(part, syntax.Invocation) else ""
            if isinstance(part, syntax.Name) and name in (*self.names.terms, *self.names.locals):
                help = "it speaks of its own parameters: captured values are operands"
                raise RuleError(f"`{name}` is a term outside of the function", place=part.place, help=help)
            if name in self.names.kinds:
                free[name] = Ref(name)
            elif isinstance(part, syntax.Invocation) and not (self.is_function(part) or name in SUGAR):
                self.names.resolve(name, part.place)
            elif isinstance(part, syntax.Name) and not self._meant(name, written):
                help = f"its parameters are {', '.join(written.parameters)}"
                raise RuleError(f"`{name}` is not bound in the function", place=part.place, help=help)
        dialects, ops = tuple(sorted(self.names.dialects.items())), tuple(sorted(self.names.ops.items()))
        return PayloadFunction(written, tuple(free.values()), dialects, ops)

    def _meant(self, name: str, written: syntax.Lambda) -> bool:
        """Whether a bare name in a function has a meaning that no rule gives it."""
        return name in written.parameters or name in (*DTYPES, *_CONSTANTS, "true", "false", "pi")

    def introduce(self, expression: syntax.Expression, kind: str) -> None:
        """Enter the names that an attribute of `kind` on the left side binds."""
        if isinstance(expression, syntax.Name) and expression.value != "_" and not self._taken(expression.value):
            imply(self.names, expression.value, {"dims": "pack"}.get(kind, kind), expression.place)
        if kind == "dims" and isinstance(expression, syntax.Brackets):
            for item in expression.items:
                name, word = (item.value, "pack") if isinstance(item, syntax.Spread) else (item, "dim")
                if isinstance(name, syntax.Name) and name.value != "_" and not self._taken(name.value):
                    imply(self.names, name.value, word, name.place)

    def _taken(self, name: str) -> bool:
        return self.names.known(name) or name in DTYPES or name in ("true", "false")

    def value(self, expression: syntax.Expression | syntax.Spread | None) -> Expression:
        """The algebra's form of `expression`.

        Raises:
            RuleError: an unknown name or function, or a term where a value is needed.
        """
        assert not isinstance(expression, syntax.Spread)
        if expression is None:
            return Literal(None)
        if isinstance(expression, syntax.Number):
            return Literal(int(expression.value) if expression.integral else float(expression.value))
        if isinstance(expression, syntax.Text):
            return Literal(expression.value)
        if isinstance(expression, syntax.Name):
            return self._name(expression)
        if isinstance(expression, syntax.Brackets):
            return Listing(tuple(self._item(item) for item in expression.items))
        if isinstance(expression, syntax.Comprehension):
            return self._comprehension(expression)
        if isinstance(expression, syntax.Invocation):
            return self._call(expression)
        if isinstance(expression, syntax.Lambda):
            raise RuleError(
                "a function is no value here", place=expression.place, help="it stands in the place of an op's function: body: .."
            )
        if expression.operator not in FUNCTIONS:
            raise RuleError(
                f"`{expression.operator}` is for terms, not for values", place=expression.place, help="here stand numbers, lists and types"
            )
        return Call(expression.operator, tuple(self._argument(operand) for operand in expression.operands))

    def _comprehension(self, expression: syntax.Comprehension) -> MappedList:
        for name in expression.names:
            if self.names.known(name) or name in self.bound:
                raise RuleError(f"`{name}` is declared twice", place=expression.place, help="give the item of the list another name")
        lists = tuple(self._argument(each) for each in expression.lists)
        outer, self.bound = self.bound, (*self.bound, *expression.names)
        try:
            condition = Literal(True) if expression.condition is None else self.value(expression.condition)
            return MappedList(self.value(expression.item), expression.names, lists, condition)
        finally:
            self.bound = outer

    def _item(self, item: Any) -> Expression | Splice:
        if isinstance(item, syntax.Spread):
            if not self.left and (item.value is None or _is_wild(item.value)):
                raise RuleError("`..` is a pattern: it has no value here", place=item.place, help="name it on the left side, `S..`")
            return Splice(None if item.value is None or _is_wild(item.value) else self.value(item.value))
        return self.value(item)

    def _name(self, name: syntax.Name) -> Expression:
        if name.value == "_":
            if not self.left:
                raise RuleError("`_` is a pattern: it has no value here", place=name.place, help="bind a name on the left side and use it")
            return Wild()
        if name.value in self.names.kinds or name.value in self.bound:
            return Ref(name.value)
        if name.value in self.names.locals:
            return self.value(self.names.locals[name.value])
        if name.value in DTYPES:
            return Literal(DTYPES[name.value])
        if name.value in ("true", "false"):
            return Literal(name.value == "true")
        if name.value in _CONSTANTS:
            return Literal(float(_CONSTANTS[name.value]))
        if name.value in self.names.terms:
            help = f"rank({name.value}), dims({name.value}) and dtype({name.value}) are values"
            raise RuleError(f"`{name.value}` is a term where a value is needed", place=name.place, help=help)
        help = "declare it after `for`, or bind it in an attribute of the left side"
        owner = name.value.partition(".")[0]
        if owner in self.names.terms and owner != name.value:
            help = f"dims({owner}) is the list of its dims, rank({owner}) their number, dtype({owner}) its element type"
        raise RuleError(f"`{name.value}` is not bound", place=name.place, help=help)

    def _call(self, call: syntax.Invocation) -> Expression:
        if call.name in ("sqrt", "exp", "log"):
            return self.scalar(call, None)
        if call.name == "given":
            return self._given(call)
        if call.name.startswith(PREFIX):
            return self._native(call)
        function = FUNCTIONS.get(call.name)
        if function is None or not is_called(call.name):
            known = sorted(filter(is_called, FUNCTIONS))
            close = [OTHER_FUNCTIONS[call.name]] if call.name in OTHER_FUNCTIONS else get_close_matches(call.name, known, 3)
            help = f"did you mean {' or '.join(close)}?" if close else f"the functions are: {', '.join(known)}"
            raise RuleError(f"there is no function `{call.name}` of values", place=call.place, help=help)
        if call.keywords or call.rest is not None or not function.arity[0] <= len(call.arguments) <= function.arity[1]:
            raise RuleError(f"`{call.name}` is written {function.usage}", place=call.place, help=function.document)
        return Call(call.name, tuple(self._argument(argument) for argument in call.arguments))

    def _native(self, call: syntax.Invocation) -> Call:
        """A call of a function that code registered."""
        function = find_native(call.name)
        if function is None:
            known = ", ".join(each.name for each in all_natives()) or "none"
            help = f"import the module that registers it (coset check --native MODULE); registered: {known}"
            raise RuleError(f"there is no native function `{call.name}`", place=call.place, help=help)
        if call.keywords or call.rest is not None or len(call.arguments) != len(function.takes):
            raise RuleError(f"`{call.name}` is written {function.usage}", place=call.place, help=function.document)
        for argument, kind in zip(call.arguments, function.takes, strict=True):
            own = self.names.kinds.get(argument.value) if isinstance(argument, syntax.Name) else None
            is_term = isinstance(argument, syntax.Name) and argument.value in self.names.terms
            if is_term or (own is not None and own.word not in NATIVE_KINDS[kind]):
                what = "a term" if own is None else f"of kind {own.word}"
                raise RuleError(
                    f"`{call.name}` takes {kind} here, and this is {what}", place=argument.place, help=f"it is {function.usage}"
                )
        return Call(call.name, tuple(self._argument(argument) for argument in call.arguments))

    def _given(self, call: syntax.Invocation) -> Literal:
        """Whether an optional operand is there."""
        only = call.arguments[0] if len(call.arguments) == 1 else None
        if not isinstance(only, syntax.Name) or only.value not in self.names.terms or not self.names.terms[only.value].optional:
            raise RuleError("`given` is about an optional operand", place=call.place, help="write given(b) for b?: F[N]")
        return Literal(not self.absent(only))

    def _argument(self, expression: syntax.Expression | syntax.Spread | None) -> Expression:
        if isinstance(expression, syntax.Name) and expression.value in self.names.terms:
            return TypeOf("variable", expression.value)
        if isinstance(expression, syntax.Spread):
            raise RuleError("a list is spread in brackets only", place=expression.place, help="write [a, p..]")
        if expression is not None and self.typed is not None and not self.numeric(expression):
            return self.typed(expression)
        return self.value(expression)

    def scalar(self, expression: syntax.Expression, known: Decimal | None) -> Expression:
        """A scalar expression; its arithmetic is exact or to 60 digits. `known` replaces it where it has a value already."""
        if known is not None:
            return Literal(known)
        while isinstance(expression, syntax.Name) and expression.value in self.names.locals:
            expression = self.names.locals[expression.value]
        if isinstance(expression, syntax.Number):
            return Literal(expression.value)
        if isinstance(expression, syntax.Name) and expression.value in _CONSTANTS:
            return Literal(_CONSTANTS[expression.value])
        if isinstance(expression, syntax.Name) and expression.value == "pi":
            return Call("pi", ())
        if isinstance(expression, syntax.Operation) and expression.operator in SCALAR_FUNCTIONS:
            return Call(expression.operator, tuple(self.scalar(o, None) for o in expression.operands if o is not None))
        if isinstance(expression, syntax.Invocation) and expression.name in ("sqrt", "exp", "log"):
            return Call(expression.name, tuple(self.scalar(argument, None) for argument in expression.plain))
        if isinstance(expression, syntax.Operation) and expression.operator == "if":
            condition, *branches = (operand for operand in expression.operands if operand is not None)
            return Call("if", (self.value(condition), *(self.scalar(branch, None) for branch in branches)))
        return self.value(expression)

    def decimal(self, expression: syntax.Expression | None) -> Decimal:
        """The number that a default is.

        Raises:
            RuleError: it is none.
        """
        if isinstance(expression, syntax.Number):
            return expression.value
        if isinstance(expression, syntax.Operation) and expression.operator == "negate":
            return self.decimal(expression.operands[0]).copy_negate()
        if isinstance(expression, syntax.Name) and expression.value in _CONSTANTS:
            return _CONSTANTS[expression.value]
        place = expression.place if expression is not None else Place("")
        raise RuleError("a default of a tensor is a number, inf or -inf", place=place, help="write b?: F[N] = 0")


def is_called(name: str) -> bool:
    """True for a function that is written `name(..)`, not as an operator."""
    return name == "given" or (name in FUNCTIONS and FUNCTIONS[name].usage.startswith(f"{name}("))


def _is_wild(expression: Any) -> bool:
    return isinstance(expression, syntax.Name) and expression.value == "_"
