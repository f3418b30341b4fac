"""A seeded tenth of what `python -m benchmarks.hostile` runs: damaged models, rules, targets and texts give a result or a clear error."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from importlib.util import find_spec

import pytest

from benchmarks import hostile

SHARES, BLOCKS = {"rules": 30}, 10  # one case in so many of the whole campaign; of others one in ten
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="cases run in forked processes")]


@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize("kind", sorted(hostile.KINDS))
def test_what_is_damaged_gives_a_result_or_a_clear_error(kind: str, block: int) -> None:
    if kind == "texts" and find_spec("torch_mlir") is None:
        pytest.skip("needs the extra [mlir]")
    count = hostile.COUNTS[kind] // SHARES.get(kind, 10) // BLOCKS
    found = hostile.campaign(kind, block * count, count, progress=False)
    wrong = [f"{kind} {seed} ({done}): {verdict}" for seed, verdict, done in found if verdict.kind not in ("result", "refusal")]
    assert not wrong, "\n".join(wrong)


def test_a_case_that_crashes_hangs_or_leaves_something_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def verdict(call: Callable[[], object]) -> str:
        monkeypatch.setitem(hostile.KINDS, "rules", lambda seed, folder: hostile.Case((), "", call=call))
        return hostile.judged("rules", 0)[0].kind

    assert verdict(lambda: None) == "result"
    assert verdict(lambda: 1 / 0) == "TRACEBACK"
    assert verdict(lambda: os.kill(os.getpid(), 11)) == "KILLED by SIGSEGV"
    assert verdict(lambda: bytearray(2 * hostile.BYTES)) == "TRACEBACK"
    assert verdict(lambda: os._exit(3)) == "EXIT CODE 3"
    assert verdict(lambda: os._exit(2)) == "NO MESSAGE"
    monkeypatch.setattr(hostile, "SECONDS", 0.5)
    assert verdict(signal.pause) == "HANG"
