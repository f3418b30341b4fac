"""What `gpu` does of `coset calibrate`: a GPU target's numbers fitted to the GPU, kept beside the results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

from coset.backends.profile import opened
from coset.calibration.calibrate import as_file, calibrate
from coset.calibration.gpu import on_gpu
from coset.targets.target import get_target

PROFILE = "measured.sqlite"


def calibrated(device: str, name: str, folder: Path, seconds: float, *, tiny: bool) -> dict[str, Any]:
    """The summary of a calibration of the target `name`; its file and the profile lie in `folder`."""
    if tiny:
        torch.set_num_threads(1)  # those that wait for each other on a busy machine take seconds for microseconds
    base = get_target(name)
    bench = on_gpu(base, device, tiny=tiny)
    with opened(folder / PROFILE) as profile:
        found = calibrate(
            base, profile, bench, seconds=seconds, each=0.01 if tiny else 0.3, progress=lambda line: print(line, file=sys.stderr)
        )
    file = folder / f"{name}-calibrated.toml"
    file.write_text(as_file(found, base))
    return {**found.summary(), "file": file.name, "profile": PROFILE}
