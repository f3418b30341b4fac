"""A search that tells what it has found while it runs: steps, snapshots, the result or an error."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from coset.egraph.ranges import KEPT
from coset.egraph.request import Request
from coset.egraph.search import Conflict, Search
from coset.ir.errors import CosetError


def conflict_error(request: Request, conflict: Conflict) -> CosetError:
    """The user's error for a conflict, with the rule that makes it: found by running again, one rule after the other."""
    culprit = conflict.rule
    if culprit is None:
        try:
            for _ in Search(request, stepwise=True).run():
                pass
        except Conflict as again:
            culprit = again.rule
    if culprit is None:
        return CosetError(f"the program itself makes one value of two types, {conflict.types}")
    return CosetError(
        f"rule `{culprit.name}` is unsound: it makes one value of two types, {conflict.types}",
        place=culprit.place,
        help="guard the rule with a condition on the types, or leave it out",
    )


CHECKPOINT_SECONDS = 3.0  # before the first checkpoint, where there is time for four of them; most searches are over by then
ENODE_SECONDS = 16e-6  # for a snapshot with one e-node more, until one was taken
LONGER = 3  # times the last iteration: what the next may take
RECEIVING = 1.3  # how much longer it takes until a snapshot is of use to who asked
Send = Callable[[tuple[str, Any]], None]


def serve(search: Search, send: Send) -> None:
    """Run `search`, sending ("step", Step) after each iteration, ("snapshot", Snapshot)... and at the end ("done", Snapshot), or
    ("error", CosetError), before which a ("conflict", types) tells that a rule is looked for.

    A checkpoint costs time: they take about a tenth of the search. One more is made where the next iteration may well come to no end.
    """
    quiet_until = search.started + min(CHECKPOINT_SECONDS, search.request.limits.seconds / 4)
    rate, begun = ENODE_SECONDS, time.monotonic()
    told = 0
    try:
        for stop in search.run():
            now = time.monotonic()
            for step in search.steps[told:]:
                send(("step", step))
            told = len(search.steps)
            search.reserve = RECEIVING * rate * search.enodes()
            if stop != "partial":
                KEPT.save()  # before it is sent: then this process is ended
                send(("done", search.snapshot(stop)))
            elif now >= quiet_until or search.deadline - now < LONGER * (now - begun) + search.reserve:
                send(("snapshot", search.snapshot(stop)))
                taken = time.monotonic() - now
                rate = taken / max(search.enodes(), 1)
                quiet_until = now + 10 * taken
            begun = time.monotonic()
    except Conflict as conflict:
        send(("conflict", conflict.types))
        send(("error", conflict_error(search.request, conflict)))
    except CosetError as error:
        send(("error", error))
