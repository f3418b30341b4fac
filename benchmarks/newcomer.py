"""What a new user does, from a wheel in an empty environment outside of the checkout: each step with its seconds, and whether it was right.

    python -m benchmarks.newcomer [--only WORDS] [--wheel FILE] [--keep FOLDER] [--record FILE]

A wheel is built from this checkout (or given), and installed with the versions of `.ci/constraints.txt`. Then everything runs with that
installation, in empty folders: the blocks of the pages of docs/ that have such, the commands of the README, and what people tried that
used to fail (messages, threads, processes, targets, proofs). Exit code 1 if a step is wrong. Needs the network, for pip.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.docs.blocks import run_page

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 900  # s of a command
PAGES = ("concepts.md", "tutorial.md", "adding-a-target.md", "own-ops.md", "explaining.md")
GELU = """
import onnx, onnx.parser
onnx.save(onnx.parser.parse_model('''<ir_version: 9, opset_import: ["": 19]>
  g (float[n, 8] x) => (float[n, 8] y) <float root = {0.70710678}, float one = {1.0}, float half = {0.5}> {
    a = Mul(x, root) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half) }'''), "model.onnx")
"""
PAIRS = {  # equal programs in two spellings; numerics
    "a sum in another order": ("p = Add(a, b) y = Add(p, c)", "p = Add(b, c) y = Add(a, p)", "reassociates"),
    "a Relu of a permuted sum": (
        "p = Add(a, b) q = Add(c, a) r = Add(p, q) y = Relu(r)", "p = Add(a, c) q = Add(a, p) r = Add(b, q) y = Relu(r)", "reassociates"
    ),
    "a difference of squares": ("p = Sub(a, b) q = Add(a, b) y = Mul(p, q)", "p = Mul(a, a) q = Mul(b, b) y = Sub(p, q)", "real"),
}  # fmt: skip
MESSAGES = {  # a wrong rule -> what the answer must name
    "use stablehlo\nrule r for x: F[S..] -(-x) -> x numerics exact\n": "=>",
    "use stablehl\nrule r for x: F[S..] -(-x) => x numerics exact\n": "stablehlo",
    "use stablehlo\nrule r for x: float32[S..] -(-x) => x numerics exact\n": "f32",
    "rule r for x: F[S..] sine(-x) => -sine(x) numerics exact\n": "use stablehlo",
}
THREADS = """
import threading, pickle, multiprocessing
import coset

def work(number=0):
    return coset.optimize("model.onnx").report["nodes"]

if __name__ == "__main__":
    found = []
    threads = [threading.Thread(target=lambda: found.append(work())) for _ in range(3)]
    for each in threads: each.start()
    for each in threads: each.join()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found += pool.map(work, range(2))
    assert found == [{"before": 5, "after": 1}] * 5, found
    made = coset.optimize("model.onnx")
    again = pickle.loads(pickle.dumps(made))
    assert again.report["nodes"] == made.report["nodes"] and len(repr(made)) < 300 and "\\n" not in repr(made)
    assert {"prove", "verify", "check", "diff", "explain", "lower", "CosetError", "optimize"} <= set(dir(coset))
    try:
        coset.optimize("model.onnx", limits="many")
    except TypeError as error:
        assert "Limits" in str(error)
    else:
        raise AssertionError("limits may be a text")
"""


class Wrong(Exception):
    """A step came out otherwise than a user must see it."""


@dataclass
class User:
    """Somebody with an environment and a folder."""

    python: str
    folder: Path

    def run(self, *command: str, code: int = 0) -> str:
        """What a command of the installation prints on both channels, where it ends with `code`."""
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
        environment |= {"ORT_DISABLE_TELEMETRY": "1", "NO_COLOR": "1", "COLUMNS": "200"}
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
        )  # fmt: skip
        said = done.stdout + done.stderr
        if done.returncode != code:
            raise Wrong(f"{' '.join(command)[-80:]}: exit code {done.returncode}, not {code}: {said[-400:]}")
        return said

    def coset(self, *arguments: str, code: int = 0) -> str:
        return self.run(str(Path(self.python).parent / "coset"), *arguments, code=code)

    def asked(self, *arguments: str, code: int = 0) -> Any:
        """The object that a command prints for `--json`."""
        said = self.coset(*arguments, "--json", code=code)
        return json.loads(next(line for line in said.splitlines() if line.startswith("{")))

    def does(self, text: str) -> str:
        (self.folder / "step.py").write_text(text)
        return self.run(self.python, "step.py")


def must(true: bool, what: str) -> None:
    if not true:
        raise Wrong(what)


def faster(user: User) -> None:
    """Job 1 of the README, with report and certificate; the rules of the report are those of the certificate."""
    user.does(GELU)
    given = ["optimize", "model.onnx", "-o", "fast.onnx", "--report", "page.html", "--certificate", "fast.proof"]
    report = user.asked(*given)
    must(report["nodes"] == {"before": 5, "after": 1}, f"nodes {report['nodes']}")
    must((user.folder / "page.html").stat().st_size > 10_000, "the page is empty")
    said = user.asked("verify", "fast.proof", "model.onnx", "fast.onnx")
    named = {each["name"] for each in report["rules"]}
    proved = {rule for rules in said["promises"].values() for rule in rules}
    must(named == proved, f"the report names {sorted(named)}, the certificate {sorted(proved)}")


def equal(user: User) -> None:
    """Job 2: proved, refuted with inputs, and outputs compared."""
    user.does(GELU)
    user.coset("optimize", "model.onnx", "-o", "other.onnx")
    must("proved" in user.coset("prove", "model.onnx", "other.onnx"), "not proved")
    user.coset("diff", "model.onnx", "other.onnx")
    user.does(GELU.replace("{0.5}", "{0.75}").replace("model.onnx", "third.onnx"))
    must("refuted" in user.coset("prove", "model.onnx", "third.onnx", code=1), "not refuted")


def own_rule(user: User) -> None:
    """Job 3: the README's own rule is proved and may be used."""
    (text,) = re.findall(r"```\n(use stablehlo\n.*?)```", (ROOT / "README.md").read_text(), re.S)
    (user.folder / "mine.rules").write_text(text)
    must("proved" in user.coset("check", "mine.rules"), "the README's rule is not proved")
    user.does(
        "import onnx, onnx.parser\nonnx.save(onnx.parser.parse_model('''<ir_version: 9, opset_import: [\"\": 19]>\n"
        "g (float[n] x, float[n] y) => (float[n] z) { a = Max(x, y) b = Min(x, y) z = Add(a, b) }'''), 'model.onnx')\n"
    )
    report = user.asked("optimize", "model.onnx", "-o", "fast.onnx", "--rules", "mine.rules")
    must(report["nodes"]["after"] == 1, f"nodes {report['nodes']}")
    must("larger_and_smaller" in {each["name"] for each in report["rules"]}, "the report does not name the rule")


def reasons(user: User) -> None:
    """Job 4: explain, bisect, bench."""
    user.does(GELU)
    user.coset("explain", "model.onnx", "--rule", "onnx.Gelu")
    user.coset("bisect", "model.onnx", "--max-abs", "1e-3")
    user.coset("optimize", "model.onnx", "-o", "fast.onnx")
    timed = user.asked("bench", "model.onnx", "--against", "fast.onnx", "--dim", "n=64")
    must(timed["sizes"] == {"n": 64} and len(timed["variants"]) == 5, f"{timed['sizes']}")


def onnx_words(user: User) -> None:
    """Ops of ONNX have ONNX's attributes and the standard's defaults."""
    said = user.coset("rules", "--ops", "onnx.Conv", "onnx.ReduceSum")
    for word in ("pads", "strides", "dilations", "group", "keepdims"):
        must(word in said, f"`{word}` is not described")


def messages(user: User) -> None:
    """Wrong files say what to write."""
    for number, (text, remedy) in enumerate(MESSAGES.items()):
        name = f"wrong{number}.rules"
        (user.folder / name).write_text(text)
        said = user.coset("check", name, code=2)
        must(remedy in said and f"{name}:" in said, f"no `{remedy}` in: {said[-300:]}")
        must("proved  bounded" not in said, "a table after a mistake")
    error = user.asked("optimize", "absent.onnx", "-o", "out.onnx", code=2)["error"]
    must(error["place"]["file"] == "absent.onnx" and bool(error["help"]), str(error))


def proofs(user: User) -> None:
    """Pairs in two spellings are proved, for all sizes."""
    for what, (one, other, numerics) in PAIRS.items():
        for name, body in (("one", one), ("other", other)):
            head = '<ir_version: 9, opset_import: ["": 19]> g (float[n, 4] a, float[n, 4] b, float[n, 4] c) => (float[n, 4] y)'
            user.does(f"import onnx, onnx.parser\nonnx.save(onnx.parser.parse_model('''{head} {{ {body} }}'''), '{name}.onnx')\n")
        said = user.coset("prove", "one.onnx", "other.onnx", "--numerics", numerics)
        must("proved" in said, f"{what}: {said[-200:]}")


def processes(user: User) -> None:
    """Threads, workers of a pool, pickles, and what Python shows."""
    user.does(GELU)
    user.does(THREADS)


def wrong_target(user: User) -> None:
    """All mistakes of a target's file at once, each with its line."""
    (user.folder / "mine.toml").write_text('base = "cpu-onnxruntime"\ntitel = "mine"\n[legal]\nnever = "onnx.Gellu"\n')
    user.does(GELU)
    said = user.coset("optimize", "model.onnx", "-o", "out.onnx", "--target", "mine.toml", code=2)
    must("mine.toml:2" in said and "mine.toml:4" in said and "onnx.Gelu" in said and "2 mistakes" in said, said[-300:])


def extra(user: User) -> None:
    """Without an extra a command says in one line what to install; that line is enough."""
    user.does(GELU)
    said = user.coset("optimize", "model.onnx", "-o", "model.mlir", code=2)
    (wanted,) = re.findall(r"pip install ([\w.=-]+)", said)[:1] or [""]
    must(bool(wanted), said[-300:])
    user.run(user.python, "-m", "pip", "install", "--quiet", wanted)
    user.coset("optimize", "model.onnx", "-o", "model.mlir")


PAIRS_OF_Q = """
import onnx, onnx.parser
HEAD = '<ir_version: 9, opset_import: ["": 19]> '
onnx.save(onnx.parser.parse_model(HEAD + '''g (float[n, 8] x) => (float[n, 8] y) <float s = {0.1}, uint8 z = {128}> {
  a = QuantizeLinear(x, s, z) b = DequantizeLinear(a, s, z) c = QuantizeLinear(b, s, z) y = DequantizeLinear(c, s, z) }'''), "pairs.onnx")
onnx.save(onnx.parser.parse_model(HEAD + '''g (float[4] x, int64 n) => (float[4] y) <float one = {1}> {
  y = Loop (n, , x) <body = b (int64 i, bool ci, float[4] v) => (bool co, float[4] vo) {
    co = Identity(ci) p = Mul(v, one) q = Neg(p) r = Neg(q) vo = Add(r, x) }> }'''), "loop.onnx")
"""


def quantized(user: User) -> None:
    """Two pairs with one scale become one, and the body of a loop is optimized."""
    user.does(PAIRS_OF_Q)
    nodes = user.asked("optimize", "pairs.onnx", "-o", "pair.onnx")["nodes"]
    must(nodes == {"before": 4, "after": 2}, f"nodes {nodes}")
    nodes = user.asked("optimize", "loop.onnx", "-o", "better.onnx")["nodes"]
    must(nodes["after"] < nodes["before"], f"nodes {nodes}")


def editor(user: User) -> None:
    """Completion for a shell, and a language server that says what to install."""
    must("_COSET_COMPLETE" in user.coset("completion", "bash"), "no script")
    must("pip install" in user.coset("language-server", code=2), "the missing package is not named")


def page(name: str) -> Callable[[User], None]:
    """The blocks of a page, in order."""

    def step(user: User) -> None:
        try:
            run_page(name, user.folder, python=user.python)
        except AssertionError as error:
            raise Wrong(str(error)[-400:]) from None

    return step


STEPS: dict[str, Callable[[User], None]] = {
    "a model becomes faster": faster, "two models are equal": equal, "a rule of one's own": own_rule, "why": reasons,
    "ONNX's own words": onnx_words, "messages": messages, "proofs": proofs, "threads and processes": processes,
    "mistakes of a target": wrong_target, "an extra that is missing": extra,
    "quantized pairs, a body": quantized, "an editor": editor, **{f"docs/{name}": page(name) for name in PAGES},
}  # fmt: skip


@dataclass
class Outcome:
    """What became of each step."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def took(self, name: str, step: Callable[[], object]) -> None:
        """Run a step, and print what became of it."""
        begun, wrong = time.perf_counter(), ""
        try:
            step()
        except (Wrong, subprocess.SubprocessError, LookupError, ValueError) as error:
            kind = "" if isinstance(error, Wrong) else f"{type(error).__name__}: "  # the answer is not of the form that was expected
            wrong = kind + " ".join(str(error).split())
        self.rows.append({"step": name, "seconds": round(time.perf_counter() - begun, 1), "wrong": wrong})
        print(f"{name:32} {self.rows[-1]['seconds']:7.1f} s  {wrong or 'right'}", flush=True)


def installed(folder: Path, wheel: str | None) -> str:
    """The interpreter of an empty environment in which the wheel is installed."""
    plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def done(*command: str) -> None:
        found = subprocess.run(command, env=plain, capture_output=True, text=True, check=False)
        if found.returncode:
            raise Wrong(f"{command[0]}: {found.stderr[-400:]}")

    python = str(folder / "environment" / "bin" / "python")
    done(sys.executable, "-m", "venv", str(folder / "environment"))
    if wheel is None:
        done(sys.executable, "-m", "venv", str(folder / "build"))
        done(str(folder / "build" / "bin" / "python"), "-m", "pip", "install", "--quiet", "build")
        done(str(folder / "build" / "bin" / "python"), "-m", "build", "--wheel", "--outdir", str(folder / "dist"), str(ROOT))
        (built,) = (folder / "dist").glob("*.whl")
        wheel = str(built)
    done(python, "-m", "pip", "install", "--quiet", "--constraint", str(ROOT / ".ci" / "constraints.txt"), wheel)
    return python


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="steps whose name has this in it")
    parser.add_argument("--wheel", help="a wheel that is built already")
    parser.add_argument("--keep", type=Path, help="an empty folder for everything, which stays")
    parser.add_argument("--record", type=Path, help="a file for the rows, as JSON")
    options = parser.parse_args(given)
    os.environ.pop("PYTHONPATH", None)  # the pages run with the installation, too
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.keep or Path(temporary)).resolve()
        python: list[str] = []
        outcome.took("wheel and environment", lambda: python.append(installed(folder, options.wheel)))
        for number, (name, step) in enumerate(STEPS.items()):
            if python and options.only in name:
                place = folder / f"step{number}"
                place.mkdir()
                user = User(python[0], place)
                outcome.took(name, lambda step=step, user=user: step(user))  # type: ignore[misc]
    if options.record:
        options.record.write_text("".join(json.dumps(row) + "\n" for row in outcome.rows))
    wrong = sum(bool(row["wrong"]) for row in outcome.rows)
    print(f"{len(outcome.rows)} steps, {wrong} wrong, {sum(row['seconds'] for row in outcome.rows):.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
