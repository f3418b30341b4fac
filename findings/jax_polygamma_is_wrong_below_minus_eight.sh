#!/usr/bin/env bash
# jax and jaxlib 0.10.2 (CPU), SciPy 1.17.1: jax.scipy.special.polygamma(1, x) is wrong for x below about -8, by any factor, without a NaN.
#
# The trigamma function is positive for every real x; at -9.640864 it is 11.98745. jax gives -1.1e16 in f64. At -30.3 it gives -0.0325 for
# 15.05, at -8.5 6.79 for 9.76. scipy.special.polygamma, of the same name and signature, is right to 15 digits, and at -3.3 both agree.
# The cause is in XLA's expansion of chlo.zeta (jax.scipy.special.zeta has it too): a fixed number of terms is summed before an
# asymptotic series in 1 / (q + N), which for q near -N divides by almost nothing.
#
# Why the quick guess misses: values down to -7 are right to six digits, and tests and plots stop before; no warning, NaN or loss of precision shows
# that a formula was left; and one trusts the same function of SciPy's name to be SciPy's.
#
# Output seen:
#   polygamma(1, -3.3):      jax 14.817739525515929,       scipy 14.817739525515929
#   polygamma(1, -8.5):      jax 6.794955463355337,        scipy 9.75860711262026
#   polygamma(1, -9.640864): jax -1.1271055608804948e+16,  scipy 11.987450235266246
#   polygamma(1, -30.3):     jax -0.03246468140675359,     scipy 15.04694902139554
# Exit code 0 if this is still so, 1 if it changed.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1 JAX_PLATFORMS=cpu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --target "$folder" jax==0.10.2 jaxlib==0.10.2 scipy==1.17.1 numpy==2.4.6
PYTHONPATH="$folder" python3 - <<'PY'
import sys

import jax

jax.config.update("jax_enable_x64", True)
import jax.scipy.special as ours  # noqa: E402
import scipy.special as theirs  # noqa: E402

POINTS = {-3.3: True, -8.5: False, -9.640864: False, -30.3: False}  # whether both agree
print(f"jax {jax.__version__}")
agree = {}
for x in POINTS:
    one, other = float(ours.polygamma(1, x)), float(theirs.polygamma(1, x))
    agree[x] = abs(one - other) < 1e-6 * abs(other)
    print(f"polygamma(1, {x}): jax {one}, scipy {other}")
sys.exit(agree != POINTS)
PY
