#!/usr/bin/env bash
# benchmarks/gpu.py on a machine that has torch, Triton and a GPU and reaches no package registry.
#
#   here, in the repository's root:      bash benchmarks/gpu.sh wheels        (downloads what such a machine lacks into .whl, 6 MiB)
#   there, carrying .whl with the tree:  bash benchmarks/gpu.sh --out "$OUT"  (any options of benchmarks.gpu)
#   here, with the Triton of that machine: python -m benchmarks.gpu_ahead       (compiles beforehand: .triton.tar.xz, to be carried too)
#   there, for the GPU's numbers alone:   bash benchmarks/gpu.sh --part calibrate --out "$OUT"    (a target file and the profile in $OUT)
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}

if [ "${1:-}" = wheels ]; then
    mkdir -p .whl && rm -f .whl/*.whl
    ignored=$(git rev-parse --git-path info/exclude)
    mkdir -p "$(dirname "$ignored")"
    for name in /.whl/ /.triton.tar.xz; do grep -qsx "$name" "$ignored" || echo "$name" >> "$ignored"; done
    platforms=(manylinux_2_28_x86_64 manylinux_2_27_x86_64 manylinux_2_17_x86_64 manylinux2014_x86_64 manylinux1_x86_64)
    "$PYTHON" -m pip download --quiet --no-deps --only-binary=:all: --python-version "${WHEELS_FOR:-3.12}" --implementation cp \
        "${platforms[@]/#/--platform=}" -d .whl \
        egglog==13.2.0 lark==1.3.1 black==26.10.1 pathspec==1.1.1 platformdirs pytokens graphviz opentelemetry-api
    if command -v strip > /dev/null; then  # egglog's symbols are nine tenths of what would travel
        slim=$(mktemp -d)
        for wheel in .whl/egglog-*.whl; do
            "$PYTHON" -m zipfile -e "$wheel" "$slim"
            find "$slim" -name '*.so' -exec strip --strip-unneeded {} +
            rm "$wheel" && (cd "$slim" && "$PYTHON" -m zipfile -c "$OLDPWD/$wheel" ./*)
        done
        rm -rf "$slim"
    fi
    du -sh .whl
    exit
fi

if compgen -G '.whl/*.whl' > /dev/null; then
    "$PYTHON" -m pip install --quiet --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/coset-site .whl/*.whl
    export PYTHONPATH="$PWD:/tmp/coset-site${PYTHONPATH:+:$PYTHONPATH}"
fi
if [ -f .triton.tar.xz ]; then
    mkdir -p /tmp/coset-triton && tar xJf .triton.tar.xz -C /tmp/coset-triton
    export TRITON_CACHE_DIR=/tmp/coset-triton
fi
export PYTHONUNBUFFERED=1
exec "$PYTHON" -m benchmarks.gpu "$@"
