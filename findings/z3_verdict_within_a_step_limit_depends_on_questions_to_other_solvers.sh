#!/usr/bin/env bash
# z3-solver 5.4.1.0 (Python): whether a question is answered within a limit of steps (`rlimit`) depends on what OTHER solvers of the process
# were asked before, though no symbol is shared. Steps are deterministic, and yet the same question is unsat, then unknown.
#
# The question: (a div b) div c = a div (b * c) for a >= 0, b, c >= 1. It stands as SMT-LIB text and is read anew each time into a Solver
# of its own. Before it 0 to 25 unrelated questions over other symbols are put to Solvers of their own in the same Context; z3.Solver()
# uses one Context for the whole process unless another is handed over. In a Context of its own it always takes 11,558 steps. Behind 20
# others it takes 41,388, behind 21 31,499, behind 22 11,611. With rlimit 15000 it is therefore proved or unknown, by how many came before.
#
# Why the quick guess misses: Solver objects look apart from each other (`push`, `reset` and a new Solver all leave nothing asserted), and
# rlimit is there because it counts steps and not seconds, so that a limit gives the same verdict on each machine. But numbers of terms are
# given out by the Context, and the order of terms decides which way the search takes. A test suite in another order, one more question, or
# a forked worker that inherits the default Context changes verdicts. The statistic "rlimit count" does not show it at once: it is summed
# over the Context, so the steps of one check are a difference.
#
# Output seen (three runs, the same each time):
#   steps in one Context: [11588, 10805, 12094, 11815, 11616, 11611, 21664, 10801, 12818, .., 41388, 31499, 11611, 12818, 21669, 10800]
#   within 15000 steps: unknown behind 6, 10, 15, 20, 21 and 24 questions, else unsat
#   in a Context of its own: 11558 steps and unsat, each time
# Exit code 0 if this is still so, 1 if it changed.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --target "$folder" z3-solver==5.4.1.0
PYTHONPATH="$folder" python3 - <<'PY'
import sys

import z3

QUESTION = """(declare-const a Int)(declare-const b Int)(declare-const c Int)
(assert (and (>= a 0) (>= b 1) (>= c 1)))
(assert (not (= (div (div a b) c) (div a (* b c)))))"""
BEFORE = range(26)


def total(context):
    """The steps of a context so far, as a question that costs almost nothing shows them."""
    solver = z3.Solver(ctx=context)
    solver.check()
    return solver.statistics().get_key_value("rlimit count")


def unrelated(context, number):
    solver = z3.Solver(ctx=context)
    v = z3.Ints(" ".join(f"v{number}_{i}" for i in range(6)), context)
    solver.add(*[x >= 0 for x in v], v[0] * v[1] == v[2] * 7 + 3, v[3] + v[4] == v[5] * 2, v[0] != v[1], v[2] < 50)
    solver.check()


def asked(context, limit):
    start = total(context)
    solver = z3.Solver(ctx=context)
    solver.set("rlimit", limit)
    solver.from_string(QUESTION)
    verdict = str(solver.check())
    return verdict, solver.statistics().get_key_value("rlimit count") - start


def behind(count, limit, apart=False):
    context = z3.Context()
    for number in range(count):
        unrelated(context, number)
    return asked(z3.Context() if apart else context, limit)


asked(z3.Context(), 10**7)  # the first question of a process takes a few steps of its own
steps = [behind(count, 10**7) for count in BEFORE]
limited = [behind(count, 15_000)[0] for count in BEFORE]
alone = [behind(count, 10**7, apart=True) for count in BEFORE]
print("z3", z3.get_version_string(), "behind 0 to 25 unrelated questions")
print("steps in one Context:", [taken for _, taken in steps])
print("within 15000 steps:", limited)
print("in a Context of its own:", set(alone))
counts = [taken for _, taken in steps]
same = all(verdict == "unsat" for verdict, _ in steps) and max(counts) > 2 * min(counts)
same = same and set(limited) == {"unsat", "unknown"} and len(set(alone)) == 1 and alone[0][0] == "unsat"
sys.exit(not same)
PY
