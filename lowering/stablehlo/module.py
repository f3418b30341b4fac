"""StableHLO out: a `Program` becomes MLIR text that MLIR's verifier accepts. No MLIR package is needed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from coset.dialects.expansion import expanded
from coset.dialects.hub.mlir_text import element_text, stored
from coset.dialects.sizes import with_sizes
from coset.ir.errors import CosetError
from coset.ir.program import Program
from coset.ir.types import TokenType
from coset.lowering.stablehlo.attributes import quoted
from coset.lowering.stablehlo.body import PrintedBlock
from coset.lowering.stablehlo.dims import introducers
from coset.lowering.stablehlo.ops import has_form

__all__ = ["element_text", "print_stablehlo", "stored", "write_stablehlo"]


def print_stablehlo(program: Program, *, binding: Mapping[str, int] | None = None) -> str:
    """The text of a module whose public function `main` is `program`, with the numbers of `binding` for its dim symbols.

    Input names are locations, output names `jax.result_info` attributes, as JAX writes them. Symbolic dims are `?`; what needs
    their numbers computes them from the sizes of the values that introduce them. Ops that a term defines are expanded.

    Raises:
        CosetError: a term has no StableHLO form (the error names its op), or a symbol has no value that introduces it.
    """
    program = with_sizes(program, binding) if binding else program
    program = program.with_roots(tuple(expanded(program.roots, has_form)))
    body = PrintedBlock(introducers(program.inputs, program.terms()))
    parameters = []
    for term in program.inputs:
        given = str(term.attribute("name"))
        body.define(term, body.fresh(re.sub(r"[^\w$.-]", "_", given)))
        parameters.append(f"{body.value(term)}: {body.type(term)} loc({quoted(given)})")
    body.emit([root for root in program.roots if not isinstance(root.type, TokenType)])
    body.emit(program.roots)
    values = [term for _, term in program.outputs]
    results = [f"{body.type(term)} {{jax.result_info = {quoted(out)}}}" for out, term in program.outputs]
    returned = f"    return {', '.join(map(body.value, values))} : {', '.join(map(body.type, values))}" if values else "    return"
    head = f"  func.func public @main({', '.join(parameters)}) -> ({', '.join(results)}) {{"
    private = [line for lines in body.functions for line in lines]
    return "\n".join(["module {", head, *(f"    {line}" for line in body.lines), returned, "  }", *private, "}", ""])


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
