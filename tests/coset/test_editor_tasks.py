"""Tasks of the language server in processes of their own: what fails there, dies or is late is told, and nothing of it stays."""

from __future__ import annotations

import asyncio
import multiprocessing
from typing import Any

from coset.editor.tasks import FAULT, GONE, TaskProcesses

ENDLESS = """use stablehlo
rule endless
  for x: F[S..], y: F[S..], z: F[S..], w: F[S..]
  (x + y) * (z + w) * (x + z) * (y + w) * (x + w) => (y + w) * ((x + z) * ((x + w) * ((z + w) * (x + y))))
  numerics reassociates
"""


async def told(processes: TaskProcesses, work: str, *arguments: Any, seconds: float = 240.0) -> list[dict[str, Any]]:
    return [answer async for answer in processes.answers(work, *arguments, seconds=seconds)]


async def outcomes() -> dict[str, list[dict[str, Any]]]:
    processes = TaskProcesses()
    proof = ("prove", "/nowhere/mine.rules", ENDLESS, "endless", 60.0, ())
    found = {
        "right": await told(processes, "layout", "mine.rules", "rule r x => -x numerics exact"),
        "no rule file": await told(processes, "layout", "mine.rules", "rule (("),
        "fault": await told(processes, "no_such_function"),
        "late": await told(processes, *proof, seconds=0.2),
    }
    while multiprocessing.active_children():  # the late one is ended, and goes
        await asyncio.sleep(0.01)
    task = asyncio.create_task(told(processes, *proof))
    while not multiprocessing.active_children():
        await asyncio.sleep(0.01)
    for child in multiprocessing.active_children():
        child.kill()
    found["died"] = await task
    return found


def test_failures_are_answers_and_processes_end() -> None:
    found = asyncio.run(outcomes())
    assert found["right"] == [{"kind": "formatted", "text": "rule r\n  x => -x\n  numerics exact\n"}]
    assert found["no rule file"] == [{"kind": "formatted", "text": None}]
    (fault,) = found["fault"]
    assert fault["kind"] == FAULT and "AttributeError" in fault["message"]
    assert [answer["kind"] for answer in found["late"]] == [GONE]
    assert [answer["kind"] for answer in found["died"]] == [GONE]
    for child in multiprocessing.active_children():
        child.join(60.0)
        assert child.exitcode is not None
