#!/usr/bin/env bash
# torch 2.13.0 (CPU): grid_sample of bf16 computes the places of pixels in bf16, step by step, and takes the neighbour of the pixel that is
# asked for, even where bf16 has the coordinate and the place exactly. What torch.compile makes of the same call takes the right one.
#
# In a row of 300 pixels the coordinate 0.25 is pixel 187: ((0.25 + 1) * 300 - 1) / 2. In f32 and f16 eager torch takes it. In bf16 it takes 188:
# the product 375 lies between 374 and 376, the bf16 numbers there. Likewise -0.25 of 500 pixels. Torch's own decomposition, by which
# torch.compile goes, converts to f32 first and rounds the result alone (so does, by its source, the kernel for CUDA: opmath_t).
#
# Why the quick guess misses: torch computes 16-bit floats in f32 on a CPU in nearly every kernel and rounds once, so that bf16 costs digits of
# the result only. Here it costs digits of a place: the result is another pixel, or a mixture with weights that are off by tenths, however small
# the image (0.45 off where the largest pixel is 2, on torch's own sample inputs of 5 by 20 pixels).
#
# Output seen:
#   pixel at 0.25 of 300:  f32 187, f16 187, bf16 188, bf16 compiled 187
#   pixel at -0.25 of 500: f32 187, f16 187, bf16 188, bf16 compiled 187
# Exit code 0 if this is still so, 1 if it changed.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --target "$folder" torch==2.13.0 numpy==2.4.6
PYTHONPATH="$folder" python3 - <<'PY'
import sys

import torch


def nearest(image, grid):
    return torch.nn.functional.grid_sample(image, grid, "nearest", align_corners=False)


compiled = torch.compile(nearest, backend="aot_eager_decomp_partition", dynamic=False)


def pixel(count, coordinate, dtype, call):
    numbers = torch.arange(count)
    image = torch.stack([numbers // 64, numbers % 64]).to(dtype).reshape(1, 2, 1, count)  # two channels: bf16 has both numbers exactly
    grid = torch.tensor([coordinate, 0.0], dtype=dtype).reshape(1, 1, 1, 2)
    high, low = call(image, grid).flatten().tolist()
    return round(high * 64 + low)


print(f"torch {torch.__version__}")
seen = []
for coordinate, count in ((0.25, 300), (-0.25, 500)):
    seen.append([pixel(count, coordinate, dtype, nearest) for dtype in (torch.float32, torch.float16, torch.bfloat16)])
    seen[-1].append(pixel(count, coordinate, torch.bfloat16, compiled))
    print(f"pixel at {coordinate} of {count}: f32 {seen[-1][0]}, f16 {seen[-1][1]}, bf16 {seen[-1][2]}, bf16 compiled {seen[-1][3]}")
sys.exit(seen != [[187, 187, 188, 187]] * 2)
PY
