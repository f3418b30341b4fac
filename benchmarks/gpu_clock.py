"""Times of GPU programs against each other: the protocol of `coset.comparing.timing` with the device's own clock.

A block is one call that is not timed and then timed ones, each between two events on the stream; on the CPU (a dry run) the host's
clock stands in. Programs are visited in turn, in an order of its own each round, and compared block by block of one round.

Processes that work side by side use the GPU one at a time (`turn`): what they compile meanwhile takes the host's cores only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any

from benchmarks.gpu_turn import turn
from coset.backends.torch_clock import Program, block, captured, synchronize
from coset.comparing import timing
from coset.comparing.timing import Protocol, Timing

__all__ = ["Program", "captured", "measure", "profiled", "synchronize", "tuned_in_turn"]


def tuned_in_turn() -> None:
    """Let torch.compile time its candidates only while no other process uses the GPU; it compiles them at any time."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner
    from torch._inductor.select_algorithm import AlgorithmSelectorCache

    def alone(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def timed(*arguments: Any, **named: Any) -> Any:
            with turn():
                return function(*arguments, **named)

        return timed

    choices: Any = AlgorithmSelectorCache
    choices.benchmark_in_current_process = classmethod(alone(choices.benchmark_in_current_process.__func__))
    configs: Any = CachingAutotuner
    configs.benchmark_all_configs = alone(configs.benchmark_all_configs)


def measure(programs: Mapping[str, Program], protocol: Protocol, device: str) -> dict[str, Timing]:
    """The timing of each program; all have the same number of rounds."""
    with turn():
        return timing.measure(programs, protocol, clock=partial(block, device=device))


def profiled(program: Program, calls: int = 3) -> dict[str, tuple[float, float]]:
    """Of each kernel that a call starts on the GPU, by name: how often, and the seconds of all of them. Kernels that run beside each other
    count in full."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    program()
    synchronize("cuda")
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(calls):
            program()
        synchronize("cuda")
    counts: Counter[str] = Counter()
    took: Counter[str] = Counter()
    for event in found.events():
        if event.device_type == DeviceType.CUDA:
            counts[event.name] += 1
            took[event.name] += event.time_range.elapsed_us() / 1e6
    return {name: (counts[name] / calls, took[name] / calls) for name, _ in took.most_common()}
