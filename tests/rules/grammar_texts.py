"""Texts drawn from the grammar, some with a token out of place. `python tests/rules/grammar_texts.py 100000` tries many."""

from __future__ import annotations

import random
import re
import signal
import sys
import time
import traceback
from functools import lru_cache

import coset.dialects
from coset.rules.elaborate import rules_of
from coset.rules.library import DEFAULT, read_text, rule_files
from coset.rules.parser import lexemes, parse
from coset.rules.syntax import RuleError
from coset.rules.typecheck import type_errors

assert coset.dialects
HANG = 30  # seconds of the processor after which a text is said to hang
TYPED = 10  # one in so many is type-checked too
TERMS = ("x", "y", "z")
UNARY = ("hlo.negate", "tanh", "exponential", "abs", "sqrt", "hlo.not", "is_finite", "floor", "nosuch")
CALLS = (
    "transpose({0}, p)", "transpose({0}, [1, 0])", "reshape({0}, [M, N])", "bcast({0}, [M, N])", "sum({0}, [0])", "max({0}, [rank(x) - 1])",
    "reverse({0}, A)", "concatenate({0}, {1}, dimension: 0)", 'compare({0}, {1}, "LT")', "select({0}, {1}, {1})", "convert({0}, f32)",
    "slice({0}, [0], [N], [1])", "pad({0}, {1}, [0], [1], [0])", "swap_last({0})", "splat({0})", "dot_general({0}, {1}, ..attrs)",
    "clamp({0}, {1}, {0})", "f({0})", "get({0}, 0)", "iota(dtype: i32, shape: [N], dimension: 0)",
    "hlo.map({0}, dimensions: _, body: h)", "hlo.map({0}, dimensions: [0], body: lambda a: h(a) + 1)", "hlo.map({0}, ..attrs)",
    "hlo.reduce_region({0}, {1}, dimensions: A, body: lambda a, b: a + b)", "hlo.reduce_region({0}, scalar(c, F), dimensions: A, body: h)",
    "hlo.while({0}, condition: _, body: h)", "hlo.while({0}, condition: lambda a: scalar(0, bool), body: _)", "h({0})",
    "hlo.if({0}, {1}, results: r, true_branch: h, false_branch: lambda a: -a)", "hlo.map({0}, dimensions: _, body: lambda x: x)",
)  # fmt: skip
KINDS = (
    "F[S..]",
    "F[M, N]",
    "F[N]",
    "F[]",
    "T[S..]",
    "I[N]",
    "const F[N]",
    "bool[S..]",
    "f32[2, N]",
    "i8[..]",
    "N[S..]",
    "positive F[S..]",
    "finite F[N]",
    "nonnegative T[..]",
)
VALUES = ("p: permutation(S)", "A: axes(S)", "a: ints", "c: float", "n: int", "N: number", "op f: unary")
GIVEN = (
    "[1, 2]: f32", "[[1, 2], [3, 4]]: f32", "[1, -inf]: i8", "[[1], []]", "true: bool", "nan: bf16", "[1, 0]", "x: f32", "2: f99",
    "[]: i32",
)  # fmt: skip
NUMERICS = (*("exact", "reassociates", "real") * 4, "lossy", "approx 1e-3", "exact except signed_zero", "close", "exact except rain")
CONDITIONS = (
    "associative(h)",
    "neutral(h, 0)",
    "commutative(h) and associative(h)",
    "rank(x) > 1",
    "N % 2 == 0",
    "p == range(len(S))",
    "not (N in S)",
    "len(a) == rank(x)",
    "M == N and N != 1",
    "sum(a) < product(S)",
)
NOISE = (
    "=>",
    "<=>",
    "for",
    "where",
    "(",
    ")",
    "[",
    "]",
    ",",
    "..",
    ":",
    "numerics",
    "with",
    "1e9",
    '"',
    "@",
    "//",
    "-",
    "phase",
    "\x00",
    "é",
)


def _term(draw: random.Random, depth: int) -> str:
    choice = draw.random()
    if depth == 0 or choice < 0.25:
        return draw.choice((*TERMS, *TERMS, *TERMS, *TERMS, "splat(1)", "2", "w", "_"))
    if choice < 0.5:
        return f"({_term(draw, depth - 1)} {draw.choice('+-*/@')} {_term(draw, depth - 1)})"
    if choice < 0.6:
        return f"-{_term(draw, depth - 1)}"
    if choice < 0.8:
        return f"{draw.choice(UNARY)}({_term(draw, depth - 1)})"
    return draw.choice(CALLS).format(_term(draw, depth - 1), _term(draw, depth - 1))


def _test(draw: random.Random, used: set[str]) -> list[str]:
    given = ", ".join(f"{name} = {draw.choice(GIVEN)}" for name in (*TERMS, "p", "c") if name in used or draw.random() < 0.05)
    return ["test", *(["not"] if draw.random() < 0.2 else []), given, *([f"=> {draw.choice(GIVEN)}"] if draw.random() < 0.3 else [])]


def text(seed: int) -> str:
    """One file, the same for the same seed."""
    draw = random.Random(seed)
    entries = []
    for number in range(draw.choice((1, 1, 1, 2))):
        left, right = _term(draw, 3), _term(draw, 2)
        if draw.random() < 0.1:
            left, right = f"{left}, {_term(draw, 2)}", draw.choice((f"{right}, {_term(draw, 2)}", right, f"a = {right}"))
        used = set(re.findall(r"\w+", f"{left} {right}"))
        kind = draw.choice(KINDS)
        declared = [f"{name}: {kind if draw.random() < 0.8 else draw.choice(KINDS)}" for name in TERMS if name in used]
        declared += [value for value in VALUES if value.split(":")[0].split()[-1] in used or draw.random() < 0.03]
        parts = [f"rule r{number}", "for " + ", ".join(declared) if declared else "", left, draw.choice(("=>", "=>", "<=>")), right]
        if draw.random() < (0.9 if "w" in used else 0.02):
            parts.append(f"with w = {_term(draw, 1)}")
        if draw.random() < 0.1:
            parts.append(f"where {draw.choice(CONDITIONS)}")
        parts.append(f"numerics {draw.choice(NUMERICS)}")
        if draw.random() < 0.2:
            parts += _test(draw, used)
        entries.append(" ".join(parts))
    if draw.random() < 0.3:
        entries = _known(draw)
    return "use stablehlo as hlo, chlo\n" + _damaged(draw, "\n".join(entries))


@lru_cache(maxsize=1)
def _library() -> tuple[str, ...]:
    """The entries of the library, one text each."""
    return tuple(entry.text for path in rule_files(DEFAULT) for entry in parse(read_text(path), str(path))[0].rules)


def _known(draw: random.Random) -> list[str]:
    """An entry of the library with a token that is another one."""
    tokens = [lexeme.text for lexeme in lexemes(draw.choice(_library()), "")[0]]
    tokens[draw.randrange(len(tokens))] = draw.choice(tokens)
    return [" ".join(tokens)]


def _damaged(draw: random.Random, given: str) -> str:
    if draw.random() < 0.7:
        return given
    words = given.split(" ")
    place = draw.randrange(len(words))
    words[place : place + draw.randrange(2)] = [draw.choice(NOISE)]
    return " ".join(words)


def read(given: str, *, types: bool) -> int:
    """Parse and elaborate a text, and type-check it; the number of mistakes. Anything but a RuleError is a crash."""
    try:
        file, errors = parse(given, "drawn.rules")
    except RuleError:
        return 1
    dialects = {name: dialect for name, dialect, _ in file.dialects}
    mistakes = len(errors)
    for entry in file.rules:
        rules, found = rules_of(entry, dialects)
        mistakes += len(found)
        if types and not found:
            mistakes += len(type_errors(rules[:1]))
    return mistakes


def _hangs(signal: int, frame: object) -> None:
    raise TimeoutError(f"nothing in {HANG} s of the processor")


def main(number: int, first: int = 0) -> int:
    """Read so many texts, tell of each crash and of the slowest; the number of crashes. One that hangs is ended, and counts as one."""
    signal.signal(signal.SIGVTALRM, _hangs)
    start = time.perf_counter()
    slowest, wrong, crashes = (0.0, 0), 0, 0
    for seed in range(first, first + number):
        before = time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, HANG)
        try:
            wrong += read(text(seed), types=seed % TYPED == 0) > 0
        except Exception:
            crashes += 1
            print(f"seed {seed}:\n{text(seed)}\n{traceback.format_exc()}", file=sys.stderr)
        slowest = max(slowest, (time.process_time() - before, seed))
        if seed % 10_000 == 9_999:
            print(f"up to seed {seed}, {time.perf_counter() - start:.0f} s, {crashes} crashes", file=sys.stderr)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    print(
        f"{number} texts, {wrong} with mistakes, {crashes} crashes, {time.perf_counter() - start:.0f} s, "
        f"the slowest {slowest[0]:.2f} s (seed {slowest[1]})"
    )
    return crashes


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    sys.exit(main(*(given or [10_000])) > 0)
