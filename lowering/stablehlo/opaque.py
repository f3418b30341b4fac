"""Operations that were kept as text, printed again over their operands."""

from __future__ import annotations

import re

from coset.dialects.hub.mlir_text import type_text
from coset.ir.errors import CosetError
from coset.ir.evaluate import describe
from coset.ir.term import Term
from coset.ir.types import TokenType
from coset.lowering.stablehlo.body import PrintedBlock

_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|%@(\d+)')


def print_opaque(body: PrintedBlock, term: Term) -> str:
    """The operation in the generic form. Tokens of ours order effects and are not written: MLIR keeps the order of operations.

    Raises:
        CosetError: it does not come from MLIR.
    """
    payload = term.attribute("payload")
    if not isinstance(payload, str):
        raise CosetError(
            f"the program cannot be written as StableHLO: `{describe(term)}` is known to its own format only", help="write it as ONNX"
        )
    effect = term.attribute("effect")
    inputs = list(term.operands[1:] if effect else term.operands)
    results = list(term.attribute("results"))
    if effect:
        assert isinstance(results.pop(), TokenType)
    captured = 1 + max((int(match.group(1)) for match in _NAME.finditer(payload) if match.group(1)), default=-1)
    operands, outer = inputs[: len(inputs) - captured], inputs[len(inputs) - captured :]

    def placed(match: re.Match[str]) -> str:
        return match.group(0) if match.group(1) is None else body.value(outer[int(match.group(1))])

    value = body.kept(describe(term), body.typed(operands), _NAME.sub(placed, payload), [type_text(each, body.bounds) for each in results])
    return value or "%unused"
