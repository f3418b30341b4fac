"""Reads rule files: the second checker's own reader of the language that `docs/rules.md` describes, by recursive descent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from coset.prove.second.answer import CannotSay
from coset.prove.second.syntax import (
    AnyDims,
    Binary,
    Call,
    Choice,
    Clause,
    Definition,
    Each,
    Entry,
    Expression,
    Function,
    Grouped,
    Item,
    Kind,
    Listed,
    Locals,
    Name,
    Number,
    Part,
    Promise,
    Rule,
    Splice,
    Text,
    Unary,
    Variable,
)
from coset.prove.second.words import Token, tokens

FACTS = frozenset({"const", "varying", "nonnegative", "positive", "finite", "unique_indices", "sparse"})
ENTRIES = frozenset({"rule", "op", "kernel", "phase", "use"})
CLAUSES = frozenset({"for", "with", "where", "numerics", "test", "means", "then", "else", "if", "not", "in"})


class Reader:
    """Reads the tokens of one entry from left to right."""

    def __init__(self, words: list[Token]) -> None:
        self.words = words
        self.place = 0

    def peek(self, ahead: int = 0) -> str:
        """The text of the next word but `ahead`, or nothing at the end."""
        place = self.place + ahead
        return self.words[place].text if place < len(self.words) else ""

    def kind(self, ahead: int = 0) -> str:
        """The kind of that word."""
        place = self.place + ahead
        return self.words[place].kind if place < len(self.words) else ""

    def take(self, *wanted: str) -> bool:
        """Step over the next word if it is one of `wanted`."""
        if self.kind() != "text" and self.peek() in wanted:
            self.place += 1
            return True
        return False

    def want(self, text: str) -> None:
        """Step over `text`.

        Raises:
            CannotSay: something else stands there.
        """
        if not self.take(text):
            raise CannotSay(f"`{self.peek()}` in a rule file where `{text}` was looked for")

    def name(self) -> str:
        """The name that stands here."""
        if self.kind() != "name":
            raise CannotSay(f"`{self.peek()}` in a rule file where a name was looked for")
        self.place += 1
        return self.words[self.place - 1].text

    def names(self) -> tuple[str, ...]:
        """Names with commas between them."""
        found = [self.name()]
        while self.take(","):
            found.append(self.name())
        return tuple(found)

    # ------------------------------------------------------------ expressions

    def expression(self) -> Expression:
        """An expression, whatever it is."""
        if self.take("if"):
            condition = self.expression()
            self.want("then")
            yes = self.expression()
            self.want("else")
            return Choice(condition, yes, self.expression())
        if self.take("lambda"):
            names = self.names()
            self.want(":")
            return Function(names, self.expression())
        return self._chain(("or",), lambda: self._chain(("and",), self._negation))

    def _chain(self, marks: tuple[str, ...], inner: "Callable") -> Expression:  # type: ignore[name-defined]  # noqa: F821
        left = inner()
        while self.kind() != "text" and self.peek() in marks:
            mark = self.peek()
            self.place += 1
            left = Binary(mark, left, inner())
        return left  # type: ignore[no-any-return]

    def _negation(self) -> Expression:
        if self.take("not"):
            return Unary("not", self._negation())
        left = self._sum()
        if self.kind() != "text" and self.peek() in ("==", "!=", "<=", "<", ">=", ">", "in"):
            mark = self.peek()
            self.place += 1
            return Binary(mark, left, self._sum())
        return left

    def _sum(self) -> Expression:
        return self._chain(("+", "-"), lambda: self._chain(("*", "//", "/", "%", "@"), self._unary))

    def _unary(self) -> Expression:
        return Unary("-", self._unary()) if self.take("-") else self._postfix()

    def _postfix(self) -> Expression:
        found = self._atom()
        while self.peek() == "[" and self.kind() == "mark":
            self.place += 1
            first = None if self.peek() == ":" else self.expression()
            if self.take(":"):
                last = None if self.peek() == "]" else self.expression()
                found = Part(found, first, last)
            else:
                assert first is not None
                found = Item(found, first)
            self.want("]")
        return found

    def _atom(self) -> Expression:
        kind, text = self.kind(), self.peek()
        self.place += 1
        if kind == "number":
            return Number(Fraction(text), text.isdigit())
        if kind == "text":
            return Text(text[1:-1])
        if text == "(":
            items = [self.expression()]
            while self.take(","):
                items.append(self.expression())
            self.want(")")
            return items[0] if len(items) == 1 else Grouped(tuple(items))
        if text == "[":
            return self._list()
        if kind == "name" and text not in CLAUSES and (text not in ("and", "or") or self.peek() == "("):
            return self._call(text) if self.take("(") else Name(text)
        raise CannotSay(f"`{text}` in a rule file where an expression was looked for")

    def _list(self) -> Expression:
        if self.take("]"):
            return Listed(())
        first = self._dim()
        if self.take("for"):
            names = self.names()
            self.want("in")
            lists = [self.expression()]
            while self.take(","):
                lists.append(self.expression())
            condition = self.expression() if self.take("if") else None
            self.want("]")
            return Each(first, names, tuple(lists), condition)
        items = [first]
        while self.take(","):
            items.append(self._dim())
        self.want("]")
        return Listed(tuple(items))

    def _dim(self) -> Expression:
        if self.take(".."):
            return AnyDims()
        found = self.expression()
        return Splice(found) if self.take("..") else found

    def _call(self, function: str) -> Call:
        positional: list[Expression] = []
        named: list[tuple[str, Expression]] = []
        rest = None
        while not self.take(")"):
            if self.take(".."):
                rest = self.name()
            elif self.kind() == "name" and self.peek(1) == ":":
                key = self.name()
                self.want(":")
                named.append((key, self.expression()))
            else:
                positional.append(self._dim())
            if self.peek() != ")":
                self.want(",")
        return Call(function, tuple(positional), tuple(named), rest)

    # ------------------------------------------------------------ declarations

    def variables(self, end: tuple[str, ...]) -> tuple[list[Variable], list[tuple[str, str]]]:
        """Declared variables, and variables for ops with what they may be."""
        found: list[Variable] = []
        ops: list[tuple[str, str]] = []
        while self.peek() not in end:
            if self.peek() == "op" and self.kind(1) == "name":
                self.place += 1
                name = self.name()
                self.want(":")
                ops.append((name, self.name()))
            else:
                found += self._declared()
            if not self.take(","):
                break
        return found, ops

    def _declared(self) -> list[Variable]:
        heads: list[tuple[str, bool, bool]] = []
        while True:
            name = self.name()
            heads.append((name, self.take("?"), self.take("..")))
            if not self.take(","):
                break
        self.want(":")
        kind = self.a_kind()
        default = self.expression() if self.take("=") else None
        return [Variable(name, kind, optional, repeated, default) for name, optional, repeated in heads]

    def a_kind(self) -> Kind:
        """What stands behind a colon."""
        fact = self.name() if self.peek() in FACTS and self.kind(1) == "name" else ""
        dtype = self.name()
        if dtype in ("permutation", "axes") and self.take("("):
            self.expression()
            self.want(")")
            return Kind(dtype)
        if self.peek() == "[":
            self.place += 1
            dims = self._list()
            assert isinstance(dims, Listed)
            return Kind(dtype, dims.items, fact)
        return Kind(dtype, None, fact)

    # ------------------------------------------------------------ entries

    def tags(self) -> tuple[str, ...]:
        """The tags behind a colon; a list of parameters may follow the last one."""
        return self.names() if self.take(":") else ()

    def roots(self) -> tuple[tuple[str, Expression], ...]:
        """Terms with their names, where they have any."""
        found: list[tuple[str, Expression]] = []
        while True:
            name = ""
            if self.kind() == "name" and self.peek(1) == "=":
                name = self.name()
                self.want("=")
            found.append((name, self.expression()))
            if not self.take(","):
                return tuple(found)

    def tail(self) -> tuple[Locals, Expression | None, Promise]:
        """What may follow a body: locals, a condition, the promise."""
        own: list[tuple[str, Expression]] = []
        if self.take("with"):
            while True:
                name = self.name()
                self.want("=")
                own.append((name, self.expression()))
                if not self.take(","):
                    break
        condition = self.expression() if self.take("where") else None
        return tuple(own), condition, self.promise() if self.take("numerics") else Promise()

    def promise(self) -> Promise:
        """The words behind `numerics`."""
        word, bound = self.name(), ""
        if self.kind() == "number":
            bound = self.peek()
            self.place += 1
            if self.kind() == "name" and self.peek() not in ("except", "test", "means"):
                bound += " " + self.name()
        return Promise(word, bound, self.names() if self.take("except") else ())

    def rule(self, dialects: tuple[tuple[str, str], ...]) -> Rule:
        """The rule whose name stands here."""
        name = self.name()
        self.tags()
        self.place += self.kind() == "text"
        declared: tuple[list[Variable], list[tuple[str, str]]] = self.declarations_of_rule() if self.take("for") else ([], [])
        left = self.roots()
        both = self.peek() == "<=>"
        if not self.take("=>", "<=>"):
            raise CannotSay(f"the rule {name} has no arrow")
        right = self.roots()
        own, condition, promise = self.tail()
        return Rule(name, tuple(declared[0]), tuple(declared[1]), left, right, both, own, condition, promise, dialects)

    def declarations_of_rule(self) -> tuple[list[Variable], list[tuple[str, str]]]:
        """Declarations that end where the left side begins: no comma follows."""
        return self.variables(())

    def definition(self, dialects: tuple[tuple[str, str], ...]) -> Definition:
        """The op whose name stands here."""
        name = self.name()
        self.tags()
        self.want("(")
        variables, ops = self.variables((")",))
        self.want(")")
        results: list[Kind] = []
        if self.take("->"):
            several = self.take("(")
            results.append(self.a_kind())
            while several and self.take(","):
                results.append(self.a_kind())
            if several:
                self.want(")")
        if self.take("on"):
            self.names()
        self.place += self.kind() == "text"
        clauses = []
        while self.take("means"):
            body = self.expression()
            clauses.append(Clause(body, *self.tail()))
        return Definition(name, tuple(variables), tuple(ops), tuple(results), tuple(clauses), dialects)


def read(texts: Iterable[str]) -> dict[str, list[Entry]]:
    """The entries of rule files, by name: a name may be that of a rule and of an op.

    Raises:
        CannotSay: a file is not written in the language as it is known here.
    """
    found: dict[str, list[Entry]] = {}
    for text in texts:
        dialects: tuple[tuple[str, str], ...] = ()
        for whole in _entries(tokens(text)):
            words = _untested(whole)
            reader = Reader(words)
            head = reader.name()
            if head == "use":
                dialects += _used(reader)
            elif head != "phase":
                entry: Entry = reader.rule(dialects) if head == "rule" else reader.definition(dialects)
                if reader.place < len(words):
                    raise CannotSay(f"`{reader.peek()}` is left over in the entry {entry.name}")
                found.setdefault(entry.name, []).append(replace(entry, text=" ".join(word.text for word in whole)))
    return found


def _entries(words: list[Token]) -> list[list[Token]]:
    """The words of each entry."""
    found: list[list[Token]] = []
    for word in words:
        if word.column == 0 and word.text in ENTRIES:
            found.append([])
        if found and not (found[-1] and found[-1][0].text == "phase"):
            found[-1].append(word)
    return found


def _untested(words: list[Token]) -> list[Token]:
    """The words of an entry without its test lines, which come last."""
    tests = (place for place, word in enumerate(words) if word.leads and word.text == "test")
    return words[: next(tests, len(words))]


def _used(reader: Reader) -> tuple[tuple[str, str], ...]:
    """The dialects of a `use` line: the name that a file calls each by, and its own."""
    found = []
    while True:
        dialect = reader.name()
        found.append((reader.name() if reader.take("as") else dialect, dialect))
        if not reader.take(","):
            return tuple(found)
