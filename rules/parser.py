"""Text to surface syntax. The only file that imports lark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from coset.ir.errors import Place
from coset.rules import syntax
from coset.rules.syntax import RuleError

DEEPEST = 100  # levels of a term: what reads terms recurses
CHAINS = ("sum", "product", "conjunction", "disjunction")


@lru_cache(maxsize=1)
def grammar() -> Lark:
    """The LALR parser of `grammar.lark`."""
    text = (Path(__file__).parent / "grammar.lark").read_text()
    return Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=True)


@lru_cache(maxsize=1)
def keywords() -> frozenset[str]:
    """The words of the grammar that are no names: its literal strings, and the facts before a type."""
    patterns = {terminal.name: terminal.pattern.value for terminal in grammar().terminals}
    return frozenset((*(word for word in patterns.values() if word.isidentifier()), *re.findall("[a-z]{2,}", patterns["FACT"])))


def parse_tree(text: str, path: str) -> Tree[Token]:
    """The raw tree of `text`.

    Raises:
        RuleError: the text is no rule file.
    """
    try:
        return grammar().parse(text)
    except UnexpectedInput as error:
        raise _unexpected(error, text, path) from None


def parse(text: str, path: str) -> tuple[syntax.RuleFile, list[RuleError]]:
    """The syntax of a rule file, and what in it is refused without further analysis.

    Raises:
        RuleError: the text is no rule file.
    """
    tree, reader = parse_tree(text, path), _Reader(text, path)
    deep = _too_deep(tree)
    if deep is not None:
        raise RuleError(f"the term is nested more than {DEEPEST} deep", place=reader.place(deep), help="name parts of it after `with`")
    return reader.file(tree)


def _too_deep(tree: Tree[Token]) -> Tree[Token] | None:
    """A part nested deeper than what is read; a chain of operators nests to the left."""
    waiting = [(tree, 0)]
    while waiting:
        top, depth = waiting.pop()
        if depth > DEEPEST:
            return top
        steps = len(top.children) // 2 if top.data in CHAINS else 1
        waiting += [(child, depth + max(1, steps)) for child in top.children if isinstance(child, Tree)]
    return None


@dataclass(frozen=True)
class Lexeme:
    """One token of a file: its text and where it stands."""

    text: str
    start: int
    end: int


def lexemes(text: str, path: str) -> tuple[list[Lexeme], dict[int, str]]:
    """The tokens of a file, without comments, and which of them start an `item`, a `clause`, or are the colon of `tags`.

    Raises:
        RuleError: the text is no rule file.
    """
    tree = parse_tree(text, path)
    starts: dict[int, str] = {}
    for item in _trees(tree):
        starts[item.meta.start_pos] = "item"
        for child in item.children:
            if isinstance(child, Token) and child.type == "STRING":
                starts[child.start_pos or 0] = "clause"
            elif isinstance(child, Tree) and not child.meta.empty:
                word = {"tags": "tags", "for": "clause", "roots": "clause", "locals": "clause", "where": "clause", "numerics": "clause",
                        "test": "clause", "clause": "clause"}.get(str(child.data))  # fmt: skip
                earlier = item.children[: item.children.index(child)]
                after_arrow = child.data == "roots" and any(isinstance(c, Tree) and c.data == "arrow" for c in earlier)
                if word is not None and not after_arrow:
                    starts[child.meta.start_pos] = word
                if child.data == "clause":
                    starts |= {part.meta.start_pos: "clause" for part in _trees(child) if part.data in ("locals", "where", "numerics")}
    tokens = [Lexeme(str(token), token.start_pos or 0, token.end_pos or 0) for token in grammar().lex(text)]
    return tokens, starts


def _unexpected(error: UnexpectedInput, text: str, path: str) -> RuleError:
    lines = text.splitlines() or [""]
    line = error.line if isinstance(error.line, int) and error.line > 0 else len(lines)
    source = lines[min(line, len(lines)) - 1]
    column = error.column if isinstance(error.column, int) and error.column > 0 else len(source) + 1
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        line, source = len(lines), lines[-1]
        return RuleError("the file ends too early", place=Place(path, line, len(source) + 1, source), help=_expected(error))
    if isinstance(error, UnexpectedCharacters):
        place = Place(path, line, column, source)
        if source[column - 1 : column] == '"':
            return RuleError("the text does not end on its line", place=place, help="a text has no quotes and no line breaks inside")
        return RuleError(f"`{source[column - 1 : column]}` does not belong to the rule language", place=place, help=_LETTERS)
    assert isinstance(error, UnexpectedToken)
    place = Place(path, line, column, source, len(str(error.token)))
    return RuleError(f"unexpected `{error.token}`", place=place, help=_expected(error))


_LETTERS = 'names, numbers, "texts" on one line and signs do; a comment begins with #'
_SPELLINGS = {"QUALIFIED": "a name", "NUMBER": "a number", "STRING": "a text in quotes", "LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]",
              "COMMA": ",", "COLON": ":", "EQUAL": "=", "DOTS": "..", "LBRACE": "{", "RBRACE": "}", "MINUS": "-", "SUM": "+",
              "PRODUCT": "* / // % @", "COMPARISON": "== != < <= > >=", "OPTIONAL": "?", "PARAMETRIC": "permutation, axes"}  # fmt: skip


def _expected(error: UnexpectedToken) -> str:
    names = sorted(error.accepts or error.expected)  # `expected` has what is possible elsewhere in the same state of the parser
    words = [_SPELLINGS.get(name, name.lower() if name.isidentifier() and not name.startswith("__") else "=> or <=>") for name in names]
    return f"expected one of: {', '.join(dict.fromkeys(words))}"


class _Reader:
    """Walks the tree once; mistakes that need no analysis are collected, so that one run reports them all."""

    def __init__(self, text: str, path: str) -> None:
        self.text, self.path, self.lines = text, path, text.splitlines()
        self.errors: list[RuleError] = []

    def place(self, node: Tree[Token] | Token) -> Place:
        if isinstance(node, Token):
            line, column, width = node.line or 1, node.column or 1, len(node)
        else:
            meta = node.meta
            if meta.empty:
                return Place(self.path)
            line, column = meta.line, meta.column
            end = meta.end_column if meta.end_line == line else len(self.lines[line - 1]) + 1
            width = max(1, end - column)
        return Place(self.path, line, column, self.lines[line - 1], width)

    def refuse(self, message: str, node: Tree[Token] | Token, help: str = "") -> None:
        self.errors.append(RuleError(message, place=self.place(node), help=help))

    def file(self, tree: Tree[Token]) -> tuple[syntax.RuleFile, list[RuleError]]:
        dialects: list[tuple[str, str, Place]] = []
        rules: list[syntax.RuleEntry] = []
        ops: list[syntax.OpEntry] = []
        phases: list[syntax.PhaseEntry] = []
        for item in _trees(tree):
            before = len(self.errors)
            if item.data == "use":
                for used in _trees(item):
                    name, alias = used.children
                    dialects.append((str(alias or name), str(name), self.place(used)))
            elif item.data == "rule":
                rule = self.rule(item)
                if len(self.errors) == before:
                    rules.append(rule)
            elif item.data == "definition":
                op = self.definition(item)
                if len(self.errors) == before:
                    ops.append(op)
            elif item.data == "phases":
                phases += [self.phase(phase) for phase in _trees(item)]
            else:
                self.refuse("`kernel` definitions are not there yet", item, "define the meaning with `op`")
        return syntax.RuleFile(self.path, tuple(dialects), tuple(rules), tuple(ops), tuple(phases)), self.errors

    def rule(self, tree: Tree[Token]) -> syntax.RuleEntry:
        name = _token(tree, "QUALIFIED")
        part = {str(child.data): child for child in _trees(tree)}
        left_roots, right_roots = (child for child in _trees(tree) if child.data == "roots")
        for roots in (left_roots, right_roots):
            if len(roots.children) > 1 or any(isinstance(root, Tree) and root.children[0] is not None for root in roots.children):
                self.refuse("rules with several roots are not there yet", roots, "write one term on each side of the arrow")
        if "test" in part:
            self.refuse("`test` lines are not there yet", part["test"])
        declarations = self.declarations(part["for"].children[0]) if "for" in part else ()
        left, right = (self.expression(roots.children[0].children[1]) for roots in (left_roots, right_roots))  # type: ignore[union-attr]
        return syntax.RuleEntry(
            str(name),
            tuple(map(str, part["tags"].children)) if "tags" in part else (),
            self.document(tree),
            declarations,
            left,
            right,
            str(part["arrow"].children[0]) == "<=>",
            self.locals(part.get("locals")),
            self.expression(part["where"].children[0]) if "where" in part else None,
            self.promise(part.get("numerics"), name),
            self.place(name),
            self.canonical(tree),
        )

    def definition(self, tree: Tree[Token]) -> syntax.OpEntry:
        name = _token(tree, "QUALIFIED")
        if "." not in name:
            self.refuse(f"the op `{name}` has no dialect", name, f"write dialect.{name}")
        part = {str(child.data): child for child in _trees(tree)}
        parameters = self.declarations(part["declarations"], definition=True) if "declarations" in part else ()
        kinds = [self.kind(kind) for kind in part["result"].children] if "result" in part else []
        result = tuple(kind for kind in kinds if isinstance(kind, syntax.TensorKind))
        if len(result) < len(kinds):
            self.refuse("the result of an op is a tensor type", part["result"], "write -> F[M, N]")
        clauses = tuple(self.clause(child) for child in _trees(tree) if child.data == "clause")
        if not clauses:
            self.refuse(f"the op `{name}` has no meaning", name, "add `means <term> numerics <promise>`")
        plain = tuple(p for p in parameters if isinstance(p, syntax.Declaration))
        if len(plain) != len(parameters):
            self.refuse("an op has no op parameters", name, "define an op for each of them")
        tags = tuple(map(str, part["tags"].children)) if "tags" in part else ()
        return syntax.OpEntry(str(name), plain, result, self.document(tree), clauses, self.place(name), self.canonical(tree), tags)

    def clause(self, tree: Tree[Token]) -> syntax.Clause:
        part = {str(child.data): child for child in _trees(tree)}
        condition = self.expression(part["where"].children[0]) if "where" in part else None
        promise = self.promise(part.get("numerics"), tree)
        return syntax.Clause(self.expression(tree.children[0]), self.locals(part.get("locals")), condition, promise, self.place(tree))

    def phase(self, tree: Tree[Token]) -> syntax.PhaseEntry:
        entries = []
        for entry in _trees(tree):
            name = _token(entry, "QUALIFIED")
            last = entry.children[1]
            limit = None if last is None else 1 if isinstance(last, Token) and last.type == "ONCE" else int(str(last))
            entries.append((str(name), limit, self.place(entry)))
        return syntax.PhaseEntry(str(_token(tree, "QUALIFIED")), tuple(entries), self.place(tree))

    def document(self, tree: Tree[Token]) -> str:
        return next((str(c)[1:-1] for c in tree.children if isinstance(c, Token) and c.type == "STRING"), "")

    def canonical(self, tree: Tree[Token]) -> str:
        """The tokens of an entry with single spaces and no comments: what the lock file hashes."""
        source = self.text[tree.meta.start_pos : tree.meta.end_pos]
        return " ".join(str(token) for token in grammar().lex(source))

    def promise(self, tree: Tree[Token] | None, owner: Tree[Token] | Token) -> syntax.Promise:
        if tree is None:
            help = "add `numerics exact`, `reassociates`, `real`, `approx <bound>` or `lossy`"
            self.refuse("the rule does not say what it promises about numbers", owner, help)
            return syntax.Promise("exact", (), "", self.place(owner))
        tokens = [child for child in tree.children if isinstance(child, Token)]
        bound = next((" ".join(str(c) for c in child.children if c is not None) for child in _trees(tree)), "")
        return syntax.Promise(str(tokens[0]), tuple(map(str, tokens[1:])), bound, self.place(tree))

    def locals(self, tree: Tree[Token] | None) -> tuple[syntax.Local, ...]:
        if tree is None:
            return ()
        return tuple(syntax.Local(str(t.children[0]), self.expression(t.children[1]), self.place(t.children[0])) for t in _trees(tree))

    def declarations(self, tree: Any, *, definition: bool = False) -> tuple[syntax.Declaration | syntax.OpVariable, ...]:
        found: list[syntax.Declaration | syntax.OpVariable] = []
        for declaration in _trees(tree):
            if declaration.data == "op_variable":
                name, trait = declaration.children
                found.append(syntax.OpVariable(str(name), str(trait), self.place(declaration)))
                continue
            names = [child for child in _trees(declaration) if child.data == "declared"]
            rest = declaration.children[len(names) :]
            kind, default = self.kind(rest[0]), None if rest[1] is None else self.expression(rest[1].children[0])  # type: ignore[union-attr]
            for name in names:
                label, mark = name.children
                variadic = isinstance(mark, Token) and mark.type == "DOTS"
                if variadic and not definition:
                    self.refuse("variadic operands are not there yet", name, "write the operands one by one")
                optional = isinstance(mark, Token) and mark.type == "OPTIONAL"
                if optional and not isinstance(kind, syntax.TensorKind):
                    self.refuse("only tensors are optional", name, "give an attribute a default: `alpha: float = 1`")
                elif optional and default is None and not definition:
                    self.refuse(f"`{label}?` needs the value that stands for its absence", name, f"write {label}?: ... = 0")
                found.append(syntax.Declaration(str(label), kind, optional, default, self.place(label), variadic))
        return tuple(found)

    def kind(self, tree: Any) -> syntax.TensorKind | syntax.ValueKind:
        place = self.place(tree)
        if tree.data == "tensor":
            fact = str(tree.children[0] or "")
            dims = () if tree.children[2] is None else tuple(self.item(dim) for dim in tree.children[2].children)
            return syntax.TensorKind(str(tree.children[1]), dims, fact, place)
        if tree.data == "parametric":
            arguments = tuple(self.expression(argument) for argument in tree.children[1].children)
            return syntax.ValueKind(str(tree.children[0]), arguments, place)
        if tree.data == "fact_kind":
            self.refuse(f"`{tree.children[0]}` belongs before a tensor type", tree, f"write {tree.children[0]} F[N]")
        return syntax.ValueKind(str(tree.children[-1]), (), place)

    def item(self, tree: Any) -> Any:
        if tree.data == "any_dims":
            return syntax.Spread(None, self.place(tree))
        if tree.data == "splice":
            return syntax.Spread(self.expression(tree.children[0]), self.place(tree))
        return self.expression(tree)

    def expression(self, tree: Any) -> Any:
        place, kind, children = self.place(tree), str(tree.data), tree.children
        if kind in ("number", "negative"):
            value = Decimal(str(children[0]))
            return syntax.Number(value if kind == "number" else value.copy_negate(), place)
        if kind == "string":
            return syntax.Text(str(children[0])[1:-1], place)
        if kind == "name":
            return syntax.Name(str(children[0]), place)
        if kind == "negative_name":
            return syntax.Operation("negate", (syntax.Name(str(children[0]), place),), place)
        if kind == "list":
            dims = children[0].children if children[0] is not None else []
            return syntax.Brackets(tuple(self.item(dim) for dim in dims), place)
        if kind == "literal_list":
            return syntax.Brackets(tuple(self.expression(child) for child in children if child is not None), place)
        if kind == "comprehension":
            return self.comprehension(tree)
        if kind in ("conditional", "tuple"):
            return syntax.Operation("if" if kind == "conditional" else kind, tuple(map(self.expression, children)), place)
        if kind == "call":
            return self.call(tree)
        if kind == "negate":
            inner = self.expression(children[1])
            if isinstance(inner, syntax.Number):
                return syntax.Number(inner.value.copy_negate(), place)
            return syntax.Operation(kind, (inner,), place)
        if kind in ("sum", "product", "comparison"):
            return self.chain(children, place)
        if kind in ("item", "slice"):
            return syntax.Operation(kind, tuple(None if child is None else self.expression(child) for child in children), place)
        name = {"negation_of": "not", "conjunction": "and", "disjunction": "or", "contained": "in"}.get(kind)
        if name is None:
            self.refuse(f"a {kind} does not belong here", tree, "write a name, a number or a term")
            return syntax.Name("_", place)
        operands = [self.expression(child) for child in children]
        result = operands[0] if len(operands) > 1 else syntax.Operation(name, (operands[0],), place)
        for operand in operands[1:]:
            result = syntax.Operation(name, (result, operand), place)
        return result

    def comprehension(self, tree: Tree[Token]) -> syntax.Comprehension:
        item, bound, lists, condition = tree.children
        names = tuple(str(name) for name in bound.children)  # type: ignore[union-attr]
        found = tuple(self.expression(each) for each in lists.children)  # type: ignore[union-attr]
        if len(names) != len(found) or len(set(names)) != len(names):
            self.refuse("each list of a comprehension has a name of its own", tree, "write [a + b for a, b in p, q]")
        given = None if condition is None else self.expression(condition)
        return syntax.Comprehension(self.expression(item), names, found, given, self.place(tree))

    def chain(self, children: list[Any], place: Place) -> Any:
        """`a + b - c` to the left; a comparison is a chain of one."""
        result = self.expression(children[0])
        for operator, operand in zip(children[1::2], children[2::2], strict=True):
            if operator is not None:
                result = syntax.Operation(str(operator), (result, self.expression(operand)), place)
        return result

    def call(self, tree: Any) -> syntax.Invocation:
        positional: list[Any] = []
        keywords: list[tuple[str, Any]] = []
        rest: str | None = None
        for argument in tree.children[1].children if tree.children[1] is not None else []:
            if argument.data == "keyword":
                keywords.append((str(argument.children[0]), self.expression(argument.children[1])))
            elif argument.data == "rest":
                rest = str(argument.children[1])
            elif argument.data == "splice":
                positional.append(self.item(argument))
            elif keywords:
                self.refuse("an operand after a keyword", argument, "operands come first, then positional attributes, then keywords")
            else:
                positional.append(self.expression(argument))
        return syntax.Invocation(str(tree.children[0]), tuple(positional), tuple(keywords), rest, self.place(tree))


def _trees(tree: Any) -> list[Tree[Token]]:
    return [child for child in tree.children if isinstance(child, Tree)]


def _token(tree: Tree[Token], type: str) -> Token:
    return next(child for child in tree.children if isinstance(child, Token) and child.type == type)
