"""The machine that one sits at: what it is called in measurements, and the targets that `coset calibrate` made for it."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from coset.backends.profile import MeasuredAt
from coset.ir.errors import CosetError
from coset.rules.cache import cache_file
from coset.targets.target import Target, get_target

HERE = "cpu"  # the target that means this machine
GPU = "gpu"  # the one that means its GPU
THREADS = 2  # of a session, where nothing says how many


def cores() -> int:
    """How many cores there are for this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory() -> int:
    """The bytes of memory that the machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def this_machine() -> MeasuredAt:
    """The processor and how many of its cores there are for us, and what runs programs on it."""
    try:
        release = version("onnxruntime")
    except PackageNotFoundError:  # one of its builds under another name
        release = "of unknown version"
    return MeasuredAt(f"{_processor()}, {cores()} cores", f"onnxruntime {release}, {THREADS} threads")


def _processor() -> str:
    """Its name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    told = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    family = f" (family {told['cpu family']}, model {told.get('model', '?')})" if "cpu family" in told else ""
    return told.get("model name", platform.machine()) + family


def this_gpu() -> MeasuredAt:
    """The GPU that torch sees, and what runs programs on it.

    Raises:
        CosetError: there is none, or torch or Triton is not installed.
    """
    from coset.backends.torch_clock import gpu  # torch is asked for only where a GPU is

    return gpu()


def calibrated_file(name: str = HERE) -> Path | None:
    """Where the target that was calibrated on this machine (`cpu`) or its GPU (`gpu`) is kept; None where the user wants no cache. With
    another version of what runs programs, or on another device, it is another file.

    Raises:
        CosetError: as `this_gpu`.
    """
    place = this_gpu() if name == GPU else this_machine()
    file = cache_file("targets", place.device, place.versions)
    return None if file is None else file.with_suffix("") / f"{name}-calibrated.toml"  # its name is the target's


def profile_file() -> Path | None:
    """Where measurements are kept, of this machine and of others that share the folder; None where the user wants no cache."""
    file = cache_file("profile")
    return None if file is None else file.parent / "measured.sqlite"


def find_target(name: str | Path) -> Target:
    """As `get_target`; but `cpu` is what was calibrated on this machine, where that was done, and `gpu` what was on its GPU.

    Raises:
        CosetError: as `get_target`, what was calibrated cannot be read, or there is no GPU or no calibration of it.
    """
    file = calibrated_file(str(name)) if name in (HERE, GPU) else None
    if file is None or not file.is_file():
        if name == GPU:
            raise CosetError("this machine's GPU was not calibrated", help="run `coset calibrate --target` with the target of such a GPU")
        return get_target(name)
    try:
        return get_target(file)
    except CosetError as error:  # damaged, or written by a coset whose targets were others
        again = "run `coset calibrate` again, or remove the file"
        raise CosetError(f"what was calibrated on this machine cannot be read: {error.message}", place=error.place, help=again) from None
