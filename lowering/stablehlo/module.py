"""StableHLO out: a `Program` becomes MLIR text that MLIR's verifier accepts. No MLIR package is needed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from coset.dialects.expansion import expanded
from coset.dialects.hub.mlir_origin import KeptOperation, MlirOrigin, Named, mlir_origin
from coset.dialects.hub.mlir_text import DimBounds, bounded_text, bounds_of_shape, element_text, stored, type_text
from coset.dialects.sizes import with_sizes
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.term import Term
from coset.ir.types import TensorType, TokenType
from coset.lowering.stablehlo.attributes import name_text, quoted, symbol
from coset.lowering.stablehlo.body import PrintedBlock
from coset.lowering.stablehlo.dims import introducers
from coset.lowering.stablehlo.ops import has_form

NAME_OF_RESULT = "jax.result_info"
__all__ = ["element_text", "print_stablehlo", "stored", "write_stablehlo"]


def print_stablehlo(program: Program, *, binding: Mapping[str, int] | None = None) -> str:
    """The text of a module whose public function `main` is `program`, with the numbers of `binding` for its dim symbols. What the module
    that it was read from says beside it is written again: names, attributes, other functions.

    Input names are locations, output names `jax.result_info` attributes, as JAX writes them. Symbolic dims are `?`; what needs
    their numbers computes them from the sizes of the values that introduce them. Ops that a term defines are expanded.

    Raises:
        CosetError: a term has no StableHLO form (the error names its op), or a symbol has no value that introduces it.
    """
    origin = mlir_origin(program.source)
    program = with_sizes(program, binding) if binding else program
    program = program.with_roots(tuple(expanded(program.roots, has_form)))
    body = PrintedBlock(introducers(program.inputs, program.terms()), bounds=origin.bounds)
    _refuse_other_bounds(program, origin)
    body.reserved = frozenset((*origin.beside, origin.function))
    parameters = []
    body.own_types = {term: _own_type(term, bounds) for term, bounds in zip(program.inputs, origin.argument_bounds, strict=False) if bounds}
    for term, said in zip(program.inputs, _each(origin.arguments, len(program.inputs)), strict=True):
        given = str(term.attribute("name"))
        body.define(term, body.fresh(re.sub(r"[^\w$.-]", "_", given, flags=re.ASCII)))
        parameters.append(f"{body.value(term)}: {body.type(term)}{_braces(said)} loc({quoted(given)})")
    _print_kept(body, origin.checks, program)
    body.emit([root for root in program.roots if not isinstance(root.type, TokenType)])
    body.emit(program.roots)
    values = [term for _, term in program.outputs]
    said_of = _each(origin.results, len(values))
    results = [f"{body.type(term)}{_braces(_with_name(said, out))}" for (out, term), said in zip(program.outputs, said_of, strict=True)]
    returned = f"    return {', '.join(map(body.value, values))} : {', '.join(map(body.type, values))}" if values else "    return"
    function = _attributes("attributes", origin.function_attributes)
    head = f"  func.func public {symbol(origin.function)}({', '.join(parameters)}) -> ({', '.join(results)}){function} {{"
    module = f"module{f' {symbol(origin.module)}' if origin.module else ''}{_attributes('attributes', origin.module_attributes)} {{"
    private = [line for lines in body.functions for line in lines]
    beside = [f"  {line}" for text in origin.beside.values() for line in text.split("\n")]
    lines = [module, head, *(f"    {line}" for line in body.lines), returned, "  }", *private, *beside, "}", *_resources(origin), ""]
    return "\n".join(lines)


def _print_kept(body: PrintedBlock, kept: Sequence[KeptOperation], program: Program) -> None:
    """Operations over the inputs that are no terms."""
    known: list[tuple[str, str]] = []
    for each in kept:
        operands = [known[n] if n >= 0 else (body.value(program.inputs[~n]), body.type(program.inputs[~n])) for n in each.operands]
        value, types = body.kept(each.name, operands, each.payload, each.results), each.results
        known += [(value if len(types) == 1 else f"{value}#{place}", type) for place, type in enumerate(types)]


def _own_type(term: Term, bounds: DimBounds) -> str:
    """The type of an input with the bounds that the module gives it, where its dims are still symbols."""
    if not bounds or not isinstance(term.type, TensorType) or term.type.static is not None:
        return type_text(term.type)
    left = tuple(None if isinstance(dim, int) else bound for dim, bound in zip(term.tensor.dims, bounds, strict=True))
    return bounded_text(term.tensor, left)


def _refuse_other_bounds(program: Program, origin: MlirOrigin) -> None:
    """Nothing if the outputs have the bounds that the module gives them, where their dims are still symbols.

    Raises:
        CosetError: one has another bound: another interface.
    """
    for (name, term), bounds in zip(program.outputs, origin.result_bounds, strict=False):
        if term in program.inputs or not isinstance(term.type, TensorType) or term.type.shape is None:
            continue
        own = bounds_of_shape(term.type.shape, origin.bounds)
        for axis, (dim, ours, bound) in enumerate(zip(term.type.shape, own, bounds, strict=False)):
            if ours != bound and not isinstance(dim, int):
                what = f"dim {axis} of the output `{name}` has the bound {bound or 'none'}, but {ours or 'none'} in the result"
                raise CosetError(what, help="give equal dims equal bounds in the module")


def _each(said: Sequence[Named], count: int) -> Sequence[Named]:
    return said or ((),) * count


def _with_name(said: Named, name: str) -> Named:
    """The attributes of a result, with its name as JAX writes it unless it has one already."""
    return said if NAME_OF_RESULT in dict(said) else tuple(sorted((*said, (NAME_OF_RESULT, quoted(name)))))


def _braces(said: Named) -> str:
    """A dictionary of attributes, with the space in front."""
    return f" {{{', '.join(name_text(name) if text == 'unit' else f'{name_text(name)} = {text}' for name, text in said)}}}" if said else ""


def _attributes(word: str, said: Named) -> str:
    return f" {word}{_braces(said)}" if said else ""


def _resources(origin: MlirOrigin) -> list[str]:
    """The bytes of constants that attributes and kept operations name."""
    if not origin.resources:
        return []
    rows = ",\n".join(f'      {name_text(name)}: "0x{digits}"' for name, digits in origin.resources.items())
    return ["", "{-#", "  dialect_resources: {", "    builtin: {", rows, "    }", "  }", "#-}"]


def write_stablehlo(program: Program, path: str | Path) -> None:
    """Write the text of `program` to `path`, which appears whole or not at all.

    Raises:
        CosetError: as `print_stablehlo`, or the file cannot be written.
    """
    target = Path(path)
    text = print_stablehlo(program)
    beside = target.with_name(f"{target.name}.part")
    try:
        beside.write_text(text)
        beside.replace(target)
    except OSError as error:
        raise CosetError(f"cannot write {target}: {error.strerror}") from None
