#!/usr/bin/env bash
# highspy 1.16.0 (Python): `highspy.Highs()` itself writes two lines to stdout (the first object of a process), so `output_flag = False`,
# `silent()` and `log_to_console = False` come too late: each is a method of the object that has written already. 1.15.1 writes nothing.
#
# Why the quick guess misses: the options say that the solver is silent, later objects and the solver itself are silent, and a test that
# reads what a function returns sees nothing. What breaks is a program whose stdout is data (one JSON object), and only on the runs that
# come to solve a linear program. SciPy carries an older HiGHS of its own, which writes nothing.
#
# Output seen:
#   1.15.1: 0 lines before and behind `Highs()`
#   1.16.0: 2 lines, "Running HiGHS 1.16.0 (git hash: f3f113d): Copyright (c) 2026 under MIT licence terms" and the next one
# Exit code 0 if this is still so, 1 if it changed.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
lines() {
    python3 -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --target "$folder/$1" "highspy==$1" numpy==2.4.6
    PYTHONPATH="$folder/$1" python3 -c '
import highspy
solver = highspy.Highs()
solver.silent()
solver.setOptionValue("output_flag", False)
highspy.Highs().setOptionValue("output_flag", False)' | tee /dev/stderr | wc -l
}
before=$(lines 1.15.1)
now=$(lines 1.16.0)
echo "1.15.1: $before lines; 1.16.0: $now lines"
[ "$before" = 0 ] && [ "$now" = 2 ]
