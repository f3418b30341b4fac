"""Random programs through the whole optimizer: `python -m tests.coset.random_programs 2000 [--seed N] [--from K]`.

Each program is searched with the library's rules, extracted, folded and decoded; the certificate is made and checked by the kernel; the
program before and the one after are evaluated on drawn and special inputs under several numbers for the dims. Where all rules used promise
every bit, every bit is compared, else the difference is held to the running error bounds of the two programs (DESIGN, Numerics). Beside
that, instances of all rules that fired in the search are compared on the values that they have in the program.

A failure is written to a file, the program as drawn and a smaller one that fails alike.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from coset.cli import run as command
from coset.comparing.fold import fallback_for
from coset.comparing.reference import read_program
from coset.egraph.limits import Limits
from coset.extract.candidates import strayed
from coset.ir import dims
from coset.ir.errors import CosetError
from coset.ir.evaluate import bind, evaluate
from coset.ir.program import Program
from coset.ir.specialized import specialized
from coset.ir.term import Term, input_term, make
from coset.ir.types import TensorType, TupleType, Type
from coset.job.job import Job
from coset.job.phases import phases_for, with_witnesses
from coset.lowering.stablehlo.module import write_stablehlo
from coset.optimizing.hub_pipeline import StableHloOut
from coset.prove.error_bound import evaluate_bounded
from coset.prove.promise import difference_of
from coset.prove.values import fits
from coset.proving.certify import CertifiedWay, certify, steps_between
from coset.proving.sizes import SIZED_TWICE
from coset.proving.steps import APART, Uncertified
from coset.rules.applied import matched
from coset.rules.definition import evaluate_defined
from coset.rules.rule import Rule
from coset.searching.solving import finish, keeps_every_bit, solve_task
from coset.searching.task import Task, wanted_roots
from coset.searching.usage import used_rules
from coset.targets.target import get_target
from tests.coset.drawn_hub import BINDINGS, drawn_program, feed_of
from tests.coset.smaller_programs import shrunk, text_of

Array = np.ndarray[Any, Any]
LIMITS = Limits(seconds=3600.0, nodes=3_000, iterations=4)  # counts alone stop a search
NUMERICS = ("exact", "reassociates", "real", "approx")
KINDS = ("moderate", "zeros", "special")
EVERY_OPSET = 1 << 30
SAFETY = 4.0  # on first-order bounds
INSTANCES = 40  # of rules that fired in a search, each rule once first
FILES = 25  # one program in so many goes through files and the command line, too
EMPTY_WINDOW = "expects window to have positive value"  # a size that was symbolic and turned out to be 0
TAME = (1e-3, 1e2)  # sizes of numbers of which sums and products of a few neither overflow nor vanish in any float type of 16 bits

# why the checker of certificates does not admit a constant that was folded: one program in some hundreds computes with numbers that no
# model has (a window of complex numbers, a rounded number that is an output and a constant elsewhere)
ROUNDINGS = "no certificate: a constant is computed with roundings that are not admitted"
# one constant stands for a number that was rounded and for one that was not: which of the nodes that read it is of which is not known
TWICE = "no certificate: a constant stands for a rounded number and for an exact one"
UNJOINED = "the steps do not join"
ROUNDED = (
    "it is computed from rounded numbers", "it is ill-conditioned", "there is no bound of how it rounds",
    "a rounded value is a constant that stands for something else already", "the value stands for a rounded number already",
    "a number is said to be what is computed from it",
)  # fmt: skip


class Failure(AssertionError):
    """What went wrong, in two words, and how."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


@dataclass
class Account:
    """What was done."""

    programs: int = 0
    changed: int = 0
    certified: int = 0
    uncertified: int = 0  # for a rounding of a constant that the checker does not admit
    bitwise: int = 0
    compared: int = 0
    instances: int = 0
    files: int = 0
    ops: Counter[str] = field(default_factory=Counter)
    fired: Counter[str] = field(default_factory=Counter)
    used: Counter[str] = field(default_factory=Counter)
    unsaid: Counter[str] = field(default_factory=Counter)  # comparisons that say nothing, and why
    failures: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Means:
    """How a program is optimized."""

    numerics: str
    prices: int | None  # a number of other prices than the target's


def means_of(number: int) -> Means:
    draw = random.Random(f"means {number}")
    return Means(draw.choice(NUMERICS), draw.choice((None, draw.randrange(100), draw.randrange(100))))


# ---------------------------------------------------------------- one program


def examine(program: Program, means: Means, account: Account, *, files: bool = False, rules: Sequence[Path] = ()) -> None:
    """Optimize, certify and compare one program; `rules` are files of further rules.

    Raises:
        Failure: something is not as it must be.
    """
    target = get_target("stablehlo")
    job = Job(program, target, means.numerics, LIMITS, rules, {}, lambda _: None, certified=True)
    binding = {name: BINDINGS[0][name] for name in program.symbols()}
    task = Task(job, program, binding, phases_for(job, EVERY_OPSET))
    printable = StableHloOut(job).printable(task)
    prices = None if means.prices is None else strayed(target, means.prices)
    with failing("crash"):
        solved, _ = solve_task(task, task.phases, printable, prices=prices)
        after, _ = finish(task, solved)
    if solved.saturation.stop not in ("saturated", "iterations", "nodes"):
        raise Failure("stop", f"the search stopped by {solved.saturation.stop}")
    same_interface(program, after)
    used = [usage.rule for usage in used_rules(solved)]
    account.programs += 1
    account.ops.update({term.op.name for term in program.terms()})
    account.fired.update({solved.saturation.rules[number].name for number, count in solved.saturation.fired.items() if count})
    account.used.update({rule.name for rule in used})
    account.changed += after.roots != program.roots
    phases = with_witnesses(task.phases)
    with failing("crash in certify"):
        way = CertifiedWay(program, wanted_roots(task), solved, program, after)
        try:
            _, said = certify(way, phases)
        except Uncertified as error:
            twice = UNJOINED in error.message and any(step.reason == APART for step in steps_between(way, phases))
            if not twice and not any(reason in error.message for reason in ROUNDED):
                raise Failure("no certificate", error.message) from None
            account.unsaid[TWICE if twice else ROUNDINGS] += 1
            account.uncertified += 1
            said = {"promises": {"": [rule.name for rule in used]}}
        else:
            account.certified += 1
    proof = {rule.name: rule for phase in phases for rule in phase.rules}
    compare(program, after, [proof[name] for names in said["promises"].values() for name in names if name in proof], account)
    instances(program, solved.saturation, account)
    if files and all(printable(t.op.name, dict(t.attributes), [o.type for o in t.operands]) is None for t in program.terms()):
        through_files(program, means, account)


@contextlib.contextmanager
def failing(kind: str) -> Iterator[None]:
    """An error here is a failure of this kind."""
    try:
        yield
    except Failure:
        raise
    except Exception as error:
        lines = traceback.format_exception(error)
        raise Failure(f"{kind} {type(error).__name__}", f"{getattr(error, 'message', error)}\n{''.join(lines[-6:])}") from error


def same_interface(before: Program, after: Program) -> None:
    """Names, order and types."""
    for one, other in ((before.inputs, after.inputs), ([n for n, _ in before.outputs], [n for n, _ in after.outputs])):
        if tuple(one) != tuple(other):
            raise Failure("interface", f"{one} became {other}")
    for (name, one), (_, other) in zip(before.outputs, after.outputs, strict=True):
        if one.type != other.type:
            raise Failure("type", f"`{name}` is {one.type} before and {other.type} after")


# ---------------------------------------------------------------- values


def compare(before: Program, after: Program, rules: Sequence[Rule], account: Account) -> None:
    """The values of both programs on inputs of every kind under every binding that the one before takes."""
    if before.roots == after.roots:
        return
    bitwise = all(keeps_every_bit(rule) for rule in rules)
    bounded = not bitwise and all(rule.numerics.word in ("exact", "reassociates", "real") for rule in rules)
    account.bitwise += bitwise
    done = 0
    for binding in taken(before):
        for kind in KINDS if bitwise else KINDS[:2]:
            feed = feed_of(before, binding, kind)
            expected = values(before, feed)
            if expected is None:
                continue
            with failing("crash in evaluation"):
                found = values(after, feed)
            if found is None:
                raise Failure("shape", f"under {binding} something after has other dims than its type")
            done += 1
            for place, (one, other) in enumerate(zip(expected, found, strict=True)):
                where = f"output y{place} on {kind} inputs under {binding}"
                if one.shape != other.shape or one.dtype != other.dtype:
                    raise Failure("shape", f"{where}: {one.dtype}{one.shape} became {other.dtype}{other.shape}")
                if bitwise and not same_bits(one, other):
                    raise Failure("values", f"{where}: {one.tolist()} became {other.tolist()}; rules {[r.name for r in rules]}")
                if bounded and not same_bits(one, other):
                    within(before.roots[place], after.roots[place], feed, binding, where, rules, account)
    account.compared += done
    if not done:
        account.unsaid["no inputs that the program takes"] += 1


def values(program: Program, feed: Mapping[str, Array]) -> list[Array] | None:
    """The values of the roots; None where the program refuses these numbers for its dims: an op says so, or a value on the way has other
    dims than its type says."""
    order = list(program.terms())
    binding: dict[str, int] = {}
    for term in program.inputs:
        bind(term.type, feed[term.attribute("name")], binding)
    with np.errstate(all="ignore"):
        try:
            found = dict(zip(order, evaluate(order, feed, fallback=fallback_for(None), binding=binding), strict=True))
        except CosetError:  # sizes that are computed from numbers do not fit
            return None
        except (ValueError, IndexError, AssertionError):
            if sound(order, binding):
                raise
            return None
    return [np.asarray(found[root]) for root in program.roots] if all(fitting(t.type, v, binding) for t, v in found.items()) else None


def taken(program: Program) -> list[dict[str, int]]:
    """The numbers for the dims with which the program has types; a branch that is not taken has no value that would show it."""
    order = list(program.terms())
    return [binding for binding in (BINDINGS if program.symbols() else BINDINGS[:1]) if sound(order, binding)]


def sound(order: Sequence[Term], binding: Mapping[str, int]) -> bool:
    """Whether the terms have types with these numbers for the dims."""
    try:
        specialized(order, binding)
    except CosetError:
        return False
    return True


def fitting(type: Type, value: Any, binding: Mapping[str, int]) -> bool:
    if isinstance(type, TupleType):
        return all(fitting(item, part, binding) for item, part in zip(type.items, value, strict=True))
    if not isinstance(type, TensorType):
        return True
    return np.shape(value) == tuple(dims.evaluate(dim, binding) for dim in type.dims) and np.asarray(value).dtype == type.dtype.numpy


def same_bits(one: Array, other: Array) -> bool:
    """Equal to the bit, all NaNs being equal."""
    if one.dtype.kind == "O":  # strings, of which some are drawn as numbers
        return all(a == b or (a != a and b != b) for a, b in zip(one.flat, other.flat, strict=True))
    if one.dtype.kind in "biu?" or one.dtype.name.startswith(("int", "uint")):
        return bool(np.array_equal(one, other))
    if one.dtype.kind == "c":
        return same_bits(one.real, other.real) and same_bits(one.imag, other.imag)
    a, b = one.astype(np.float64), other.astype(np.float64)
    return bool(np.all((a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)))


def within(
    before: Term, after: Term, feed: Mapping[str, Array], binding: Mapping[str, int], where: str, rules: Sequence[Rule], account: Account
) -> None:
    """The two values differ by no more than the error bounds of both programs."""
    one, other = specialized((before, after), binding)
    (a, near), (b, far) = evaluate_bounded(one, feed), evaluate_bounded(other, feed)
    finite = np.isfinite(wide(a)) & np.isfinite(wide(b))
    strict = all(rule.numerics.word != "real" and not rule.numerics.exceptions & {"nan", "inf", "overflow"} for rule in rules)
    lost = np.isfinite(wide(a)) & np.isfinite(near) & ~np.isfinite(wide(b))
    if strict and lost.any():
        at = tuple(int(i) for i in np.argwhere(lost)[0])
        raise Failure(
            "values", f"{where} at {at}: {a[at]} became {b[at]}, with a bound of {near[at]:.3g} before; {[r.name for r in rules]}"
        )
    bound = SAFETY * (near + far)
    if not np.isfinite(bound[finite]).all():
        account.unsaid["no finite bound"] += 1
    with np.errstate(all="ignore"):
        beyond = finite & (np.abs(wide(a) - wide(b)) > bound + 1e-300)
    if beyond.any():
        at = tuple(int(i) for i in np.argwhere(beyond)[0])
        raise Failure(
            "values", f"{where} at {at}: {a[at]} became {b[at]}, bounds {near[at]:.3g} + {far[at]:.3g}; {[r.name for r in rules]}"
        )


def wide(array: Array) -> Array:
    return array if array.dtype.kind == "c" else array.astype(np.float64)


# ---------------------------------------------------------------- rules that fired


def instances(program: Program, saturation: Any, account: Account) -> None:
    """Instances of rules that fired, on the values that their variables have in the program."""
    if saturation.decoder is None:
        return
    listed = list(saturation.decoder.instances())
    draw = random.Random(len(listed))
    draw.shuffle(listed)
    seen: set[str] = set()
    first = [each for each in listed if not (each.rule.name in seen or seen.add(each.rule.name))]
    chosen = [*first, *(each for each in listed if each not in first)][:INSTANCES]
    for kind in KINDS:
        for binding in taken(program)[1::-1]:  # the second one, where it can be
            feed = feed_of(program, binding, kind)
            if values(program, feed) is not None:
                for each in chosen:
                    instance(each.rule, each.pairs, feed, binding, kind, account)
                break


def instance(
    rule: Rule, pairs: Sequence[tuple[Term, Term]], feed: Mapping[str, Array], binding: Mapping[str, int], kind: str, account: Account
) -> None:
    """The sides of one instance, as the rule promises, where its variables have the values that they have in the program."""
    found = matched(rule, [one for one, _ in pairs])
    assert found is not None, "an instance of the rule"
    given = {name: term for name, term in found[1].items() if isinstance(term.type, TensorType)}
    terms = list(given.values())
    with failing(f"crash in a variable of {rule.name}"), np.errstate(all="ignore"):
        arrays = [np.asarray(value) for value in evaluate(terms, feed, fallback=fallback_for(None), binding=binding)]
    if any(array.shape != tuple(dims.evaluate(d, binding) for d in term.tensor.dims) for term, array in zip(terms, arrays, strict=True)):
        return
    exact = rule.numerics.word == "exact"
    if not exact and not all(map(tame, arrays)):
        account.unsaid["numbers of a rule that is not exact are not tame"] += 1
        return
    names = dict(zip(given, arrays, strict=True))
    facts = {name: fact for fact, name in rule.facts}
    for name, array in names.items():
        if array.dtype.kind == "f" and not fits(array, facts.get(name, "")):
            raise Failure("values", f"`{name}` of {rule.name} is not {facts[name]} on {kind} inputs: {array.tolist()}")
    put = {
        term: input_term(name, TensorType(term.tensor.dtype, array.shape))
        for (name, term), array in zip(given.items(), arrays, strict=True)
    }
    for one, other in pairs:
        with failing(f"crash in an instance of {rule.name}"):
            left, right = specialized((one, other), binding, put)
            with np.errstate(all="ignore"):
                a, b = evaluate((left, right), names, fallback=evaluate_defined)
        for place, (x, y) in enumerate(zip(items(a), items(b), strict=True)):
            sides = (left, right) if not isinstance(a, tuple) else tuple(make("builtin.get", (s,), {"index": place}) for s in (left, right))
            difference = difference_of(rule.numerics, x, y, sides, names)
            if difference is not None:
                at, why = difference
                shown = {name: array.tolist() for name, array in names.items()}
                raise Failure("values", f"{rule.name}: {why} at {at} on {kind} inputs: {x[at]} and {y[at]}\n{left}\n{right}\n{shown}")
    account.instances += 1


def items(value: Any) -> list[Array]:
    return [np.asarray(each) for each in (value if isinstance(value, tuple) else (value,))]


def tame(array: Array) -> bool:
    if array.dtype.kind in "biu?O" or array.dtype.name.startswith(("int", "uint")):
        return True
    sizes = np.abs(wide(array))
    return bool(np.all((sizes == 0) | (sizes >= TAME[0]) & (sizes <= TAME[1])))


# ---------------------------------------------------------------- through files


def through_files(program: Program, means: Means, account: Account) -> None:
    """`coset optimize --certificate` and `coset verify` on the program as text."""
    with tempfile.TemporaryDirectory(prefix="coset-") as folder:
        before, after, proof = (str(Path(folder) / name) for name in ("before.mlir", "after.mlir", "proof"))
        try:
            write_stablehlo(program, before)
            read = read_program(before)
        except CosetError as error:  # dims in a function that nothing in it has; collectives of several tensors
            account.unsaid[f"no text: {error.message}"] += 1
            return
        if any(term.op.has("foreign") for term in read.terms()):  # loops whose text has other dims inside
            account.unsaid["its text is kept as it came"] += 1
            return
        said = io.StringIO()
        dims_given = [f"--dim={name}={number}" for name, number in numbers_of(program, read).items()]
        arguments = [before, "-o", after, "--numerics", means.numerics, "--certificate", proof, *dims_given]
        with failing("crash in the command line"), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = command(["optimize", *arguments]) or command(["verify", proof, before, after])
        if code == 2 and EMPTY_WINDOW in said.getvalue():
            account.unsaid["the result is refused, and not handed out: MLIR takes no convolution over windows without elements"] += 1
            return
        if code == 3 and any(reason in said.getvalue() for reason in ROUNDED):
            account.unsaid[ROUNDINGS] += 1
            return
        if code == 3 and SIZED_TWICE in said.getvalue():
            account.unsaid[f"no certificate: {SIZED_TWICE}"] += 1
            return
        if code:
            lines = said.getvalue().strip().splitlines()
            raise Failure("command line", "\n".join([lines[-1], *lines]))
    account.files += 1


def numbers_of(program: Program, written: Program) -> dict[str, int]:
    """The first numbers for the dims of `program` under the names that they have in its text."""
    return {
        name: dims.evaluate(ours, BINDINGS[0])
        for one, other in zip(program.inputs, written.inputs, strict=True)
        for ours, theirs in zip(one.tensor.dims, other.tensor.dims, strict=True)
        if (name := dims.alone(theirs)) is not None
    }


# ---------------------------------------------------------------- the command


def fails(program: Program, means: Means, kind: str, rules: Sequence[Path] = ()) -> bool:
    """Whether the program fails in this way; what is no program any more does not."""
    try:
        examine(program, means, Account(), rules=rules)
    except Failure as failure:
        return failure.kind == kind
    except CosetError:
        return False
    return False


def try_number(number: int, account: Account, folder: Path | None, *, shrink: bool = True) -> None:
    """Draw the program of that number and examine it; a failure is entered, and written to `folder`."""
    program, means = drawn_program(number), means_of(number)
    try:
        with failing("crash in the examination"):
            examine(program, means, account, files=number % FILES == 0)
    except Failure as failure:
        kind = failure.kind
        account.failures.append((number, str(failure)))
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            small = shrunk(program, lambda other: fails(other, means, kind)) if shrink else program
            text = f"{means}\n{failure}\n\n{text_of(small)}\n\nas it was drawn\n{text_of(program)}\n"
            (folder / f"{number}.txt").write_text(text)


def report(account: Account) -> str:
    lines = [
        f"{account.programs} programs, {account.changed} changed, {account.certified} certified, {account.bitwise} compared bit by bit"
    ]
    lines.append(f"{account.compared} evaluations compared, {account.instances} instances of rules, {account.files} through files")
    lines.append(f"{len(account.ops)} ops, {len(account.fired)} rules fired, {len(account.used)} rules in results")
    lines += [f"{count} times: {what}" for what, count in account.unsaid.items()]
    lines.append(
        f"{len(account.failures)} failures" + "".join(f"\n  {number}: {said.splitlines()[0][:200]}" for number, said in account.failures)
    )
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.coset.random_programs", description=__doc__)
    parser.add_argument("count", type=int, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="programs of another seed are others")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the number of the first program")
    parser.add_argument("--failures", type=Path, default=Path("build/random_programs"), help="where failing programs are written")
    parser.add_argument("--no-shrink", action="store_true", help="write failing programs as they were drawn")
    given = parser.parse_args(arguments)
    account, started = Account(), time.perf_counter()
    for place in range(given.first, given.first + given.count):
        try_number(given.seed * 1_000_000 + place, account, given.failures, shrink=not given.no_shrink)
        if (place + 1 - given.first) % 100 == 0:
            print(f"{place + 1 - given.first}: {len(account.failures)} failures, {time.perf_counter() - started:.0f} s", flush=True)
    print(report(account))
    return int(bool(account.failures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
