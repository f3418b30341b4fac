"""Problems for the tests: random ones that are small enough to solve by trying everything."""

from __future__ import annotations

import itertools
import random

from hypothesis import strategies as st

from coset.extract.problem import Choice, Problem, choice, cost_of, find_order


@st.composite
def problems(draw: st.DrawFn, *, classes: int = 7) -> Problem:
    """A problem with shared classes, cycles, free choices and, at times, classes without a finite choice."""
    count = draw(st.integers(1, classes))
    number = st.integers(0, count - 1)
    cost = st.sampled_from((0.0, 0.0, 1.0, 2.0, 2.5, 7.0, 1e-6))
    entry = st.builds(choice, cost, st.lists(number, max_size=3))
    made = [tuple(draw(st.lists(entry, min_size=1, max_size=3))) for _ in range(count)]
    roots = tuple(dict.fromkeys(draw(st.lists(number, min_size=1, max_size=2))))
    return Problem(made, roots)


def best_by_trying(problem: Problem) -> float | None:
    """The least cost over all acyclic picks; None when there are none."""
    found = []
    for indices in itertools.product(*(range(len(choices)) for choices in problem.classes)):
        picks = dict(enumerate(indices))
        if find_order(problem, picks) is not None:
            found.append(cost_of(problem, picks))
    return min(found, default=None)


def shuffled(problem: Problem, seed: int) -> Problem:
    """The same problem with classes renumbered and choices in another order."""
    generator = random.Random(seed)
    to = list(range(len(problem.classes)))
    generator.shuffle(to)
    made: list[tuple[Choice, ...]] = [()] * len(to)
    for number, choices in enumerate(problem.classes):
        entries = [choice(entry.cost, (to[child] for child in entry.children)) for entry in choices]
        generator.shuffle(entries)
        made[to[number]] = tuple(entries)
    return Problem(made, tuple(to[root] for root in problem.roots))


def layered(count: int, seed: int) -> Problem:
    """Layers that share: two products of one value, apart or merged, joined for the next layer."""
    generator = random.Random(seed)
    made: list[tuple[Choice, ...]] = [(choice(0.0),)]
    value = 0
    for _ in range(count):
        both = len(made)
        made.append((choice(generator.uniform(3, 5), [value]),))
        made.extend((choice(generator.uniform(2, 3), [value]), choice(0.1, [both])) for _ in range(2))
        made.append((choice(1.0, [both + 1, both + 2]), choice(1.5, [both + 1])))
        value = len(made) - 1
    return Problem(made, (value,))


def layouts(count: int, seed: int) -> Problem:
    """Blocks of a residual network: every value stands in one of two layouts, each made of the other by a transpose. A convolution needs
    the one and a product the other, a scale goes before or after the transpose back, and the sum is taken in either."""
    generator = random.Random(seed)
    turn = 7.0
    made: list[tuple[Choice, ...]] = [(choice(0.0),), (choice(turn, [0]),)]
    rows, columns = 0, 1  # the value that goes from block to block, in either layout
    for _ in range(count):
        first = len(made)
        made += [
            (choice(generator.uniform(50, 60), [rows]), choice(turn, [first + 1])),
            (choice(turn, [first]), choice(generator.uniform(300, 400), [columns])),
            (choice(generator.uniform(500, 600), [first + 1]), choice(turn, [first + 3])),
            (choice(turn, [first + 2]),),
            (choice(3.0, [first + 2]), choice(turn, [first + 5])),
            (choice(3.0, [first + 3]), choice(turn, [first + 4])),
            (choice(4.0, [rows, first + 5]), choice(turn, [first + 7])),
            (choice(4.0, [columns, first + 4]), choice(turn, [first + 6])),
        ]
        rows, columns = first + 6, first + 7
    return Problem(made, (rows,))
