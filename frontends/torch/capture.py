"""How a Dynamo graph becomes compiled parts: AOTAutograd gives functional graphs of core ATen ops, forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch
from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from torch._decomp import core_aten_decompositions, get_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch.nn.attention import SDPBackend, sdpa_kernel

from coset.frontends.torch.attention import written_out
from coset.frontends.torch.fx import Imported
from coset.frontends.torch.grid import grid_sampler_2d
from coset.frontends.torch.kept import Keeping
from coset.frontends.torch.partition import partition
from coset.frontends.torch.parts import Compile, Fallback, Tell, compiled_parts, tell_later

Record = Callable[[str, Sequence[Imported], Sequence[Fallback]], Tell | None]
_ALSO = (  # beyond the core ATen decompositions: named ops that are made of others without loss
    "native_layer_norm", "native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional",
    "_native_batch_norm_legit_no_training", "_batch_norm_with_update", "_batch_norm_with_update_functional", "_batch_norm_no_update",
    "batch_norm_backward", "upsample_bilinear2d", "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d",
    "_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "upsample_bicubic2d", "upsample_trilinear3d",
    "linalg_vector_norm", "dist", "hypot", "_addmm_activation", "addmv", "adaptive_max_pool2d",
)  # fmt: skip


@cache
def decompositions() -> dict[Any, Any]:
    """What torch writes as other ops before we see a graph."""
    packets = [getattr(torch.ops.aten, name) for name in _ALSO if hasattr(torch.ops.aten, name)]
    own = {torch.ops.aten.grid_sampler_2d.default: grid_sampler_2d}
    return {**core_aten_decompositions(), **get_decompositions(packets), **own}


def capture(
    module: Any, example_inputs: Sequence[Any], compile: Compile, record: Record, *, keeping: Keeping | None = None
) -> Callable[..., Any]:
    """The compiled form of a Dynamo graph: `compile` makes the parts, and `record` hears of each graph; what it
    gives hears of calls that torch had to make later. `keeping`: ops share kernels, by
    whose prices is chosen what is kept for the backward graph; attention may be a kernel, whose scores are not kept. None: torch chooses.

    Attention is captured as the products and the softmax that it is, for the names of torch's fused kernels say no more.
    """
    driver = aot_autograd(
        fw_compiler=partial(_compiled, kind="forward", compile=compile, record=record),
        bw_compiler=partial(_compiled, kind="backward", compile=compile, record=record),
        inference_compiler=partial(_compiled, kind="inference", compile=compile, record=record),
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition if keeping is None else partial(partition, keeping=keeping),
    )  # fmt: skip
    with sdpa_kernel(SDPBackend.MATH):
        return driver(written_out(module), example_inputs)  # type: ignore[no-any-return]


def _compiled(module: Any, _: Sequence[Any], *, kind: str, compile: Compile, record: Record) -> Any:
    with torch.utils._python_dispatch._disable_current_modes(), torch.no_grad():
        module, parts, fallbacks = compiled_parts(module, compile)
    tell = record(kind, parts, fallbacks)
    if tell is not None:
        tell_later(module, tell)
    return make_boxed_func(module.forward)
