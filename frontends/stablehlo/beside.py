"""What a module says beside its program: names, attributes, other functions. It is kept as text, to be written again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from coset.dialects.hub.mlir_origin import Named
from coset.frontends.stablehlo.module import OpenedModule

_OWN = frozenset({"sym_name", "sym_visibility", "function_type", "arg_attrs", "res_attrs"})  # what the header of a function says
_SYMBOL = re.compile(r'"(?:[^"\\]|\\.)*"|@(?:([\w$.-]+)|"((?:[^"\\]|\\.)*)")')  # a string, or a symbol
_RESOURCE = re.compile(r'dense_resource<(?:([\w.$-]+)|"([^"]*)")>')
_INLINED = frozenset({"jax.global_constant", "jax.result_info"})  # of inlined functions: names, which are read


def attributes_of(op: Any, opened: OpenedModule) -> Named:
    """The attributes of a module or a function beside its header.

    Raises:
        CosetError: one is of a kind that the bindings cannot print.
    """
    return _named(op.attributes, op, opened)


def listed_attributes(op: Any, name: str, count: int, opened: OpenedModule) -> tuple[Named, ...]:
    """The attributes of the arguments (`arg_attrs`) or results (`res_attrs`) of a function, `count` of them.

    Raises:
        CosetError: one is of a kind that the bindings cannot print.
    """
    if name not in op.attributes:
        return ((),) * count
    return tuple(_named(each, op, opened) for each in op.attributes[name])


def _named(attributes: Any, op: Any, opened: OpenedModule) -> Named:
    found = []
    for each in attributes:  # of an operation names, of a dictionary pairs
        name = each if isinstance(each, str) else each.name
        if name in _OWN:
            continue
        try:
            found.append((name, str(attributes[name])))
        except TypeError:
            what = f"the attribute `{name}` is of a kind that cannot be kept"
            raise opened.error(what, op=op, help="leave it out of the module") from None
    return tuple(sorted(found))


def beside_of(opened: OpenedModule, function: Any, kept_texts: Iterable[str]) -> dict[str, str]:
    """The operations of the module that stay beside the program's `function`: all but private functions that no one needs, neither they nor
    `kept_texts` of operations of the function. By a name of their own (that of a symbol, or a number), in the order in which they stand."""
    every = {
        name_of(op) or f"#{place}": op.operation
        for place, op in enumerate(opened.module.body.operations)
        if op.operation != function.operation
    }
    texts = {name: op.get_asm(use_local_scope=True) for name, op in every.items()}
    kept = [name for name, op in every.items() if op.name != "func.func" or _visibility(op) != "private"]
    waiting = [*(texts[name] for name in kept), *kept_texts]
    found = set(kept)
    while waiting:
        for name in symbols(waiting.pop()):
            if name in texts and name not in found:
                found.add(name)
                waiting.append(texts[name])
    return {name: text for name, text in texts.items() if name in found}


def name_of(op: Any) -> str:
    """The symbol that an operation is; "" if it is none."""
    return str(op.attributes["sym_name"].value) if "sym_name" in op.attributes else ""


def _visibility(op: Any) -> str:
    return str(op.attributes["sym_visibility"].value) if "sym_visibility" in op.attributes else "public"


def symbols(text: str) -> set[str]:
    """The symbols that a text names."""
    return {plain or quoted for plain, quoted in _SYMBOL.findall(text) if plain or quoted}


def resources_of(texts: Sequence[str], opened: OpenedModule) -> dict[str, str]:
    """The bytes of the `dense_resource` constants in some texts, as MLIR writes them.

    Raises:
        CosetError: the module has none of that name.
    """
    names = {plain or quoted for text in texts for plain, quoted in _RESOURCE.findall(text)}
    return {name: opened.written_resource(name) for name in sorted(names)}


def lost_in_call(op: Any, function: Any, opened: OpenedModule) -> list[str]:
    """What is lost where a call is put in: attributes of the call, and of the function that is called."""
    given = [("a call of", name) for name in op.attributes if "." in name] if op is not None else []
    for name in ("arg_attrs", "res_attrs"):
        own = listed_attributes(function, name, 0, opened)
        given += [("values of", name) for name in dict.fromkeys(name for each in own for name, _ in each) if name not in _INLINED]
    given += [("", name) for name, _ in attributes_of(function, opened) if "." in name]
    callee = name_of(function)
    return [f"`{name}` of {' '.join(filter(None, (where, f'the function `{callee}`')))}" for where, name in given]
