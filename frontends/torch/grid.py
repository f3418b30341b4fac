"""`grid_sampler_2d` by torch's own decomposition, with what its kernels make of coordinates that are NaN or infinite."""

from __future__ import annotations

from typing import Any

import torch
from torch._decomp.decompositions import grid_sampler_2d as written_out

_BICUBIC = 2
_ZEROS, _BORDER = 0, 1


def grid_sampler_2d(image: Any, grid: Any, interpolation_mode: int = 0, padding_mode: int = 0, align_corners: bool = False) -> Any:
    """The pixels of `image` at the coordinates of `grid`.

    Documented: NaN is -1. The kernels do so where they clip coordinates, and reflect an infinity to there too; the decomposition gives 0,
    which is no pixel. Without clipping the weights of such a coordinate are NaN in the kernels of the CPU.
    """
    usable = grid.isfinite()
    if interpolation_mode == _BICUBIC:
        return written_out(image, grid, interpolation_mode, padding_mode, align_corners)
    if padding_mode != _ZEROS:
        known = ~grid.isnan() if padding_mode == _BORDER else usable
        return written_out(image, torch.where(known, grid, -1.0), interpolation_mode, padding_mode, align_corners)
    found = written_out(image, grid, interpolation_mode, padding_mode, align_corners)
    if interpolation_mode == 0 and image.device.type == "cpu":
        return torch.where(usable.all(-1).unsqueeze(1), found, torch.nan)
    return found
