"""A program as egglog commands, with facts about what its terms hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coset.egraph import door
from coset.egraph import facts as numbers
from coset.egraph.tables import Tables, is_static
from coset.ir.term import Term


def graph_commands(numbers: Mapping[Term, int], tables: Tables) -> list[door.Command]:
    """Commands that enter the terms (operands come first in `numbers`), each under its number, with its type."""
    commands: list[door.Command] = []
    for term, number in numbers.items():
        operands = [door.call("term", door.integer(numbers[operand])) for operand in term.operands]
        payload = tables.payload(term.attributes, term.regions)
        node = door.call(tables.constructor(term.op, len(term.operands)), *operands, door.integer(payload))
        commands.append(door.set_("term", [door.integer(number)], node))
        type_number = tables.types.number(term.type)
        commands.append(door.insert("type_of", door.call("term", door.integer(number)), door.integer(type_number)))
    return commands


def static_facts(tables: Tables, types_from: int, payloads_from: int, asked: Sequence[str]) -> list[door.Command]:
    """Facts about the table entries from the given numbers on: which hold no dim symbol, and what is `asked` of numbers."""
    commands = [
        door.insert("static_type", door.integer(i))
        for i in range(types_from, len(tables.types.values))
        if is_static(tables.types.values[i])
    ]
    for i in range(payloads_from, len(tables.payloads.values)):
        if is_static(tables.payloads.values[i][0]):
            commands.append(door.insert("static_payload", door.integer(i)))
        if asked:
            commands += numbers.rows(i, tables.payloads.values[i][0], asked)
    return commands
