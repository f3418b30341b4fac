"""`scaled_dot_product_attention` as products, masks and a softmax, before AOTAutograd sees it.

torch's own form for that (its MATH backend) multiplies both operands by the root of the scale and adds minus infinity where nothing is
seen, by which a NaN of a hidden key reaches every query. Its fused kernels do neither. Here hidden scores are chosen away, products and
softmax are in f32 at least, and the operands stay as they came: a backward pass keeps nothing wider.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.nn import functional as F


def written_out(module: Any) -> Any:
    """A Dynamo graph whose calls of attention are those of `attention`; anything else as it is."""
    if not isinstance(module, GraphModule):
        return module
    found = [node for node in module.graph.nodes if node.target is F.scaled_dot_product_attention]
    for node in found:
        node.target = attention
    if found:
        module.recompile()
    return module


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """What torch documents of `scaled_dot_product_attention`: query [.., L, D], key [.., S, D], value [.., S, E], a mask that broadcasts to
    [.., L, S]. Rows that see nothing are 0."""
    if is_causal and attn_mask is not None:
        raise RuntimeError("scaled_dot_product_attention takes a mask or is_causal, not both")
    if enable_gqa:
        key, value = (each.repeat_interleave(query.size(-3) // each.size(-3), -3) for each in (key, value))
    wide = torch.promote_types(query.dtype, torch.float32)
    factor = query.size(-1) ** -0.5 if scale is None else scale
    scores = (query.to(wide) @ key.to(wide).transpose(-2, -1)) * factor
    if is_causal:
        rows = torch.arange(scores.size(-2), device=query.device)[:, None]
        attn_mask = rows >= torch.arange(scores.size(-1), device=query.device)
    if attn_mask is not None:
        seen = attn_mask.dtype == torch.bool
        scores = torch.where(attn_mask, scores, float("-inf")) if seen else scores + attn_mask.to(wide)
    weights = torch.ops.aten._safe_softmax(scores, -1) if attn_mask is not None else scores.softmax(-1)
    if dropout_p:
        weights = F.dropout(weights, dropout_p)
    return (weights @ value.to(wide)).to(query.dtype)
