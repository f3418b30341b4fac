"""Text to surface syntax: the grammar, its errors, and what a file is made of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from coset.ir.place import Place
from coset.rules import syntax
from coset.rules.reader import TermReader, token, trees
from coset.rules.syntax import RuleError
from coset.rules.unexpected import unexpected

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
    return frozenset((*(word for word in patterns.values() if word.isidentifier()), *re.findall("[a-z_]{2,}", patterns["FACT"])))


def parse_tree(text: str, path: str) -> Tree[Token]:
    """The raw tree of `text`.

    Raises:
        RuleError: the text is no rule file.
    """
    try:
        return grammar().parse(text)
    except UnexpectedInput as error:
        raise unexpected(error, text, path) from None


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
    for item in trees(tree):
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
                    starts |= {part.meta.start_pos: "clause" for part in trees(child) if part.data in ("locals", "where", "numerics")}
    tokens = [Lexeme(str(token), token.start_pos or 0, token.end_pos or 0) for token in grammar().lex(text)]
    return tokens, starts


class _Reader(TermReader):
    """Walks the tree once, entry by entry."""

    def file(self, tree: Tree[Token]) -> tuple[syntax.RuleFile, list[RuleError]]:
        dialects: list[tuple[str, str, Place]] = []
        rules: list[syntax.RuleEntry] = []
        ops: list[syntax.OpEntry] = []
        phases: list[syntax.PhaseEntry] = []
        for item in trees(tree):
            before = len(self.errors)
            if item.data == "use":
                for used in trees(item):
                    name, alias = used.children
                    dialects.append((str(alias or name), str(name), self.place(used)))
            elif item.data == "rule":
                rule = self.rule(item)
                if len(self.errors) == before:
                    rules.append(rule)
            elif item.data in ("definition", "kernel"):
                op = self.definition(item)
                if len(self.errors) == before:
                    ops.append(op)
            else:
                phases += [self.phase(phase) for phase in trees(item)]
        return syntax.RuleFile(self.path, tuple(dialects), tuple(rules), tuple(ops), tuple(phases)), self.errors

    def rule(self, tree: Tree[Token]) -> syntax.RuleEntry:
        name = token(tree, "QUALIFIED")
        part = {str(child.data): child for child in trees(tree)}
        declarations = self.declarations(part["for"].children[0]) if "for" in part else ()
        left, right = self.sides(*(child for child in trees(tree) if child.data == "roots"))
        roots = len(left)
        return syntax.RuleEntry(
            str(name),
            tuple(map(str, part["tags"].children)) if "tags" in part else (),
            self.document(tree),
            declarations,
            left[0] if roots == 1 else syntax.Operation("tuple", left, left[0].place),
            right[0] if roots == 1 else syntax.Operation("tuple", right, right[0].place),
            str(part["arrow"].children[0]) == "<=>",
            self.locals(part.get("locals")),
            self.expression(part["where"].children[0]) if "where" in part else None,
            self.promise(part.get("numerics"), name),
            self.place(name),
            self.canonical(tree),
            self.grounds(tree),
            roots,
        )

    def sides(self, left: Tree[Token], right: Tree[Token]) -> tuple[tuple[syntax.Expression, ...], tuple[syntax.Expression, ...]]:
        """The roots of the left side, and in the same order what stands for each on the right: by place, by name, or as one of several
        results of a term (`y1, y2 = t`)."""
        names = [str(label) for label, _ in (root.children for root in trees(left)) if label is not None]
        terms = tuple(self.expression(root.children[1]) for root in trees(left))
        if (names and len(names) < len(terms)) or len(set(names)) < len(names):
            self.refuse("the roots of a rule have one name each, or none", left, "write y1 = .., y2 = .. => y1 = .., y2 = ..")
            return terms, terms
        named: dict[str, syntax.Expression] = {}
        plain: list[syntax.Expression] = []
        waiting: list[str] = []
        for root in trees(right):
            label, term = root.children[0], self.expression(root.children[1])
            if label is None and isinstance(term, syntax.Name) and term.value in names:
                waiting.append(term.value)
            elif label is None:
                plain.append(term)
            else:
                group, waiting = [*waiting, str(label)], []
                named |= {group[0]: term} if len(group) == 1 else {name: _result(term, place) for place, name in enumerate(group)}
        if (named and (plain or waiting or set(named) != set(names))) or len(plain) not in (0, len(terms)) or waiting:
            what = f"{len(terms)} roots" if not names else " and ".join(f"`{name}`" for name in names)
            self.refuse(f"the right side does not say what {what} become", right, "write one term for each root, in order or by name")
            return terms, terms
        return terms, tuple(plain) or tuple(named[name] for name in names)

    def definition(self, tree: Tree[Token]) -> syntax.OpEntry:
        name = token(tree, "QUALIFIED")
        if "." not in name:
            self.refuse(f"the op `{name}` has no dialect", name, f"write dialect.{name}")
        part = {str(child.data): child for child in trees(tree)}
        parameters = self.declarations(part["declarations"], definition=True) if "declarations" in part else ()
        kinds = [self.kind(kind) for kind in part["result"].children] if "result" in part else []
        result = tuple(kind for kind in kinds if isinstance(kind, syntax.TensorKind))
        if len(result) < len(kinds):
            self.refuse("the result of an op is a tensor type", part["result"], "write -> F[M, N]")
        clauses = tuple(self.clause(child) for child in trees(tree) if child.data == "clause")
        if not clauses:
            self.refuse(f"the op `{name}` has no meaning", name, "add `means <term> numerics <promise>`")
        ops = tuple(p for p in parameters if isinstance(p, syntax.OpVariable))
        plain = tuple(p if isinstance(p, syntax.Declaration) else _by_name(p) for p in parameters)
        tags = tuple(map(str, part["tags"].children)) if "tags" in part else ()
        document, text = self.document(tree), self.canonical(tree)
        targets = self.targets(part["targets"]) if "targets" in part else ()
        return syntax.OpEntry(str(name), plain, result, document, clauses, self.place(name), text, tags, self.grounds(tree), targets, ops)

    def targets(self, tree: Tree[Token]) -> tuple[syntax.Name, ...]:
        names = tuple(syntax.Name(str(name), self.place(name)) for name in tree.children)
        for place, name in enumerate(names):
            if name in names[:place]:
                self.refuse(f"`{name.value}` is named twice", tree.children[place], "name each target once")
        return names

    def clause(self, tree: Tree[Token]) -> syntax.Clause:
        part = {str(child.data): child for child in trees(tree)}
        condition = self.expression(part["where"].children[0]) if "where" in part else None
        promise = self.promise(part.get("numerics"), tree)
        return syntax.Clause(self.expression(tree.children[0]), self.locals(part.get("locals")), condition, promise, self.place(tree))

    def grounds(self, tree: Tree[Token]) -> tuple[syntax.Ground, ...]:
        """The `test` lines of an entry."""
        found = []
        for line in (child for child in trees(tree) if child.data == "test"):
            given = tuple(self.written(each.children[1], each) for each in trees(line) if each.data == "given")
            results = tuple(self.written(each) for gives in trees(line) if gives.data == "gives" for each in trees(gives))
            found.append(syntax.Ground(given, results, line.children[0] is not None, self.place(line)))
        return tuple(found)

    def written(self, tree: Any, given: Tree[Token] | None = None) -> syntax.Written:
        value, dtype = tree.children
        name = "" if given is None else str(given.children[0])
        return syntax.Written(name, self.expression(value), str(dtype or ""), self.place(given or tree))

    def phase(self, tree: Tree[Token]) -> syntax.PhaseEntry:
        entries = []
        for entry in trees(tree):
            name = token(entry, "QUALIFIED")
            last = entry.children[1]
            limit = None if last is None else 1 if isinstance(last, Token) and last.type == "ONCE" else int(str(last))
            entries.append((str(name), limit, self.place(entry)))
        return syntax.PhaseEntry(str(token(tree, "QUALIFIED")), tuple(entries), self.place(tree))

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
        bound = next((" ".join(str(c) for c in child.children if c is not None) for child in trees(tree)), "")
        return syntax.Promise(str(tokens[0]), tuple(map(str, tokens[1:])), bound, self.place(tree))

    def locals(self, tree: Tree[Token] | None) -> tuple[syntax.Local, ...]:
        if tree is None:
            return ()
        return tuple(syntax.Local(str(t.children[0]), self.expression(t.children[1]), self.place(t.children[0])) for t in trees(tree))

    def declarations(self, tree: Any, *, definition: bool = False) -> tuple[syntax.Declaration | syntax.OpVariable, ...]:
        found: list[syntax.Declaration | syntax.OpVariable] = []
        for declaration in trees(tree):
            if declaration.data == "op_variable":
                name, trait = declaration.children
                found.append(syntax.OpVariable(str(name), str(trait), self.place(declaration)))
                continue
            names = [child for child in trees(declaration) if child.data == "declared"]
            rest = declaration.children[len(names) :]
            kind, default = self.kind(rest[0]), None if rest[1] is None else self.expression(rest[1].children[0])  # type: ignore[union-attr]
            for name in names:
                label, mark = name.children
                variadic = isinstance(mark, Token) and mark.type == "DOTS"
                if variadic and not isinstance(kind, syntax.TensorKind):
                    self.refuse("only tensors repeat", name, "write xs..: T[..], and a list as a pack of an attribute")
                optional = isinstance(mark, Token) and mark.type == "OPTIONAL"
                if optional and not isinstance(kind, syntax.TensorKind):
                    self.refuse("only tensors are optional", name, "give an attribute a default: `alpha: float = 1`")
                elif optional and default is None and not definition:
                    self.refuse(f"`{label}?` needs the value that stands for its absence", name, f"write {label}?: ... = 0")
                found.append(syntax.Declaration(str(label), kind, optional, default, self.place(label), variadic))
        return tuple(found)


def _by_name(variable: syntax.OpVariable) -> syntax.Declaration:
    """The attribute that names the op in the place of an op parameter."""
    return syntax.Declaration(variable.name, syntax.ValueKind("string", (), variable.place), False, None, variable.place)


def _result(term: syntax.Expression, index: int) -> syntax.Invocation:
    """One of several results of a term."""
    return syntax.Invocation("get", (term, syntax.Number(Decimal(index), term.place)), (), None, term.place)
