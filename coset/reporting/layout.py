"""Where the nodes of a drawn graph stand: in layers, operands above users, the layers in columns like the lines of a page.

A deep network is a thousand layers of two or three nodes: one column of it would be a thread. It is folded where fewest edges cross,
so that the whole is seen at once. Layers by the longest path, order in a layer by barycenters (Sugiyama, Tagawa and Toda 1981, steps
1 and 3), places in a line by isotonic regression. Every step is linear in nodes and edges, but for sorting within layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

WIDTH, HEIGHT = 150, 34  # of a node
ROW, GAP, LANE = 62, 18, 22  # from layer to layer, between nodes, of an edge that passes a layer
COLUMN_GAP = 70
REACH = 16  # layers over which an edge is drawn in full; longer ones are drawn as their ends
SWEEPS = 6
YIELDING = 0.01  # how much the place of a passing edge counts beside that of a node
ASPECT = 1.3  # width by height of what is to be filled
SLACK = 0.15  # of a column's height: how far from the even place it may end


@dataclass(frozen=True)
class Edge:
    """From an operand to a user, by number. `lanes`: where it passes the layers between; None for an edge that is drawn as its ends."""

    source: int
    target: int
    lanes: tuple[int, ...] | None


@dataclass(frozen=True)
class GraphLayout:
    """The upper left corner of each node, and the edges. `breaks`: the layers that columns begin at, the first included."""

    x: list[int]
    y: list[int]
    layers: list[int]
    edges: list[Edge]
    breaks: list[int]
    width: int
    height: int


def layout(operands: Sequence[Sequence[int]], *, breaks: Sequence[int] | None = None) -> GraphLayout:
    """The layout of a graph whose node i reads `operands[i]`, all of lower number. `breaks`: where columns are to begin, where that is
    known; else it is chosen."""
    layers = layers_of(operands)
    depth = max(layers, default=-1) + 1
    pairs = [(source, target) for target, read in enumerate(operands) for source in dict.fromkeys(read)]
    chosen = _breaks(layers, pairs, depth) if breaks is None else list(breaks)
    column_of = [0] * depth
    for column, (begin, end) in enumerate(zip(chosen, [*chosen[1:], depth], strict=True)):
        column_of[begin:end] = [column] * (end - begin)
    drawing = _Drawing(layers, pairs, depth, column_of)
    drawing.sort()
    places = drawing.places()
    lefts = _columns(drawing, places, column_of, len(chosen))
    x = [lefts[column_of[layers[node]]] + round(places[node]) for node in range(len(operands))]
    y = [(layers[node] - chosen[column_of[layers[node]]]) * ROW for node in range(len(operands))]
    edges = [
        Edge(source, target, None if passes is None else tuple(lefts[column_of[layers[source]]] + round(places[p]) for p in passes))
        for (source, target), passes in zip(pairs, drawing.passes, strict=True)
    ]
    tallest = max((end - begin for begin, end in zip(chosen, [*chosen[1:], depth], strict=True)), default=0)
    width = max(x, default=-WIDTH) + WIDTH
    return GraphLayout(x, y, layers, edges, chosen, width, max(0, tallest - 1) * ROW + HEIGHT)


def layers_of(operands: Sequence[Sequence[int]]) -> list[int]:
    """The layer of each node: below all its operands; one with more users than operands stands as near to its users as it can."""
    layers = [0] * len(operands)
    users = [0] * len(operands)
    nearest = [len(operands)] * len(operands)
    for node, read in enumerate(operands):
        layers[node] = 1 + max((layers[operand] for operand in read), default=-1)
        for operand in dict.fromkeys(read):
            users[operand] += 1
    for node in reversed(range(len(operands))):
        if users[node] > len(operands[node]):
            layers[node] = nearest[node] - 1
        for operand in operands[node]:
            nearest[operand] = min(nearest[operand], layers[node])
    return layers


def _breaks(layers: Sequence[int], pairs: Sequence[tuple[int, int]], depth: int) -> list[int]:
    """The layers that columns begin at: near the even places, where fewest edges cross."""
    if not depth:
        return [0]
    crossing = [0] * (depth + 1)
    for source, target in pairs:
        if layers[target] - layers[source] <= REACH:
            crossing[layers[source] + 1] += 1
            crossing[layers[target] + 1] -= 1
    for layer in range(1, depth + 1):
        crossing[layer] += crossing[layer - 1]
    rows = [LANE * crossed for crossed in crossing[:depth]]
    for layer in layers:
        rows[layer] += WIDTH + GAP
    wide = sorted(rows)[int(0.98 * (depth - 1))] + COLUMN_GAP  # but for a few
    columns = max(1, min(depth, round((ASPECT * depth * ROW / wide) ** 0.5)))
    found = [0]
    for column in range(1, columns):
        even, slack = column * depth // columns, max(1, round(SLACK * depth / columns))
        window = range(max(found[-1] + 1, even - slack), min(depth - 1, even + slack) + 1)
        if window:
            found.append(min(window, key=lambda layer: (crossing[layer], abs(layer - even))))
    return found


class _Drawing:
    """Nodes, and the points where edges pass a layer, in their layers; a point is numbered behind the nodes."""

    def __init__(self, layers: Sequence[int], pairs: Sequence[tuple[int, int]], depth: int, column_of: Sequence[int]) -> None:
        self.count = len(layers)
        self.column_of = column_of
        self.rows: list[list[int]] = [[] for _ in range(depth)]
        for node, layer in enumerate(layers):
            self.rows[layer].append(node)
        self.above: list[list[int]] = [[] for _ in layers]
        self.below: list[list[int]] = [[] for _ in layers]
        self.passes: list[list[int] | None] = []
        for source, target in pairs:
            begin, end = layers[source], layers[target]
            if end - begin > REACH or column_of[begin] != column_of[end]:
                self.passes.append(None)
                continue
            points, last = [], source
            for layer in range(begin + 1, end):
                point = len(self.above)
                self.above.append([last])
                self.below.append([])
                self.below[last].append(point)
                self.rows[layer].append(point)
                points.append(point)
                last = point
            self.above[target].append(last)
            self.below[last].append(target)
            self.passes.append(points)

    def width(self, point: int) -> int:
        """What a node or a passing edge takes of a line."""
        return WIDTH + GAP if point < self.count else LANE

    def sort(self) -> None:
        """Order each layer by where its neighbours stand, down and up in turn."""
        place = [0.0] * len(self.above)

        def number(row: Sequence[int]) -> None:
            for position, point in enumerate(row):
                place[point] = position - (len(row) - 1) / 2  # from the middle: layers have different widths

        for row in self.rows:
            number(row)
        for sweep in range(SWEEPS):
            neighbours = self.below if sweep % 2 else self.above
            for row in reversed(self.rows) if sweep % 2 else self.rows:
                key = {p: sum(place[n] for n in neighbours[p]) / len(neighbours[p]) if neighbours[p] else place[p] for p in row}
                row.sort(key=key.__getitem__)
                number(row)

    def places(self) -> list[float]:
        """The left end of each node, and the middle of each passing edge, from the middle of the column."""
        middle = [0.0] * len(self.above)
        for row in self.rows:
            total = sum(map(self.width, row))
            done = -total / 2
            for point in row:
                middle[point] = done + self.width(point) / 2
                done += self.width(point)
        straight = [[self.straight(each) for each in side] for side in (self.above, self.below)]
        for sweep in range(SWEEPS):
            neighbours = straight[sweep % 2]
            for row in reversed(self.rows) if sweep % 2 else self.rows:
                wanted = [sum(middle[n] for n in neighbours[p]) / len(neighbours[p]) if neighbours[p] else middle[p] for p in row]
                weights = [1.0 if point < self.count else YIELDING for point in row]
                for point, found in zip(row, _apart(wanted, [self.width(point) for point in row], weights), strict=True):
                    middle[point] = found
        self.hold(middle)
        return [x - WIDTH / 2 if point < self.count else x for point, x in enumerate(middle)]

    def straight(self, neighbours: Sequence[int]) -> Sequence[int]:
        """Of neighbours those that a point stands in line with: nodes, where there are any. A chain with edges beside it stays straight;
        else each one that joins it would move it a little, and always to that side."""
        return [point for point in neighbours if point < self.count] or neighbours

    def hold(self, middle: list[float]) -> None:
        """Move the rows that have drifted off back to about where their column is widest."""
        widest: dict[int, int] = {}
        centers: dict[int, list[float]] = {}
        for layer, row in enumerate(self.rows):
            column = self.column_of[layer]
            widest[column] = max(widest.get(column, 0), sum(map(self.width, row)))
            centers.setdefault(column, []).append((middle[row[0]] + middle[row[-1]]) / 2)
        around = {column: sum(found) / len(found) for column, found in centers.items()}
        for layer, row in enumerate(self.rows):
            column = self.column_of[layer]
            room = widest[column] / 2 + WIDTH
            low, high = (middle[row[place]] - around[column] + side * self.width(row[place]) / 2 for place, side in ((0, -1), (-1, 1)))
            shift = -(low + high) / 2 if high - low > 2 * room else max(0.0, -room - low) - max(0.0, high - room)
            for point in row:
                middle[point] += shift


def _apart(wanted: Sequence[float], widths: Sequence[int], weights: Sequence[float]) -> list[float]:
    """Middles in the given order, nothing over its neighbour, that are nearest to `wanted` (weighted least squares: pooled violators)."""
    offsets, offset = [], 0.0
    for width in widths:
        offsets.append(offset + width / 2)
        offset += width
    pools: list[tuple[float, float, int]] = []  # weighted sum, weight, and how many
    for want, own, weight in zip(wanted, offsets, weights, strict=True):
        total, heavy, many = weight * (want - own), weight, 1
        while pools and pools[-1][0] / pools[-1][1] > total / heavy:
            before = pools.pop()
            total, heavy, many = total + before[0], heavy + before[1], many + before[2]
        pools.append((total, heavy, many))
    shifts = [total / heavy for total, heavy, many in pools for _ in range(many)]
    return [shift + own for shift, own in zip(shifts, offsets, strict=True)]


def _columns(drawing: _Drawing, places: Sequence[float], column_of: Sequence[int], count: int) -> list[int]:
    """What is added to the places of each column, so that they stand side by side."""
    ends = [(0.0, 0.0)] * count
    for layer, row in enumerate(drawing.rows):
        column = column_of[layer]
        for point in row:
            wide = WIDTH if point < drawing.count else 0
            ends[column] = (min(ends[column][0], places[point]), max(ends[column][1], places[point] + wide))
    lefts, done = [], 0.0
    for low, high in ends:
        lefts.append(ceil(done - low + 1))  # places are rounded too
        done += high - low + COLUMN_GAP
    return lefts
