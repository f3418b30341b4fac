"""Calls of every ATen op that coset has a term for: the call, and the tensors that it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
aten, prims = torch.ops.aten, torch.ops.prims
Sample = tuple[str, Callable[..., Any], tuple[Any, ...]]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, float("inf"), float("-inf"), float("nan"), 1e-30, 7.25]
_FLOATS = (
    "neg exp expm1 log log1p sqrt rsqrt sin cos tan tanh sigmoid asin acos atan sinh cosh asinh acosh atanh erf erfc floor ceil round sign "
    "abs trunc reciprocal log2 log10 exp2 isnan isinf logical_not relu gelu elu leaky_relu hardtanh erfinv lgamma digamma"
)
_INTEGERS = "abs neg exp sqrt sin tanh sigmoid floor ceil round sign trunc reciprocal log2 isnan isinf logical_not relu bitwise_not"
_BINARY = "add sub mul div remainder fmod eq ne lt le gt ge"
UNARY, WHOLE, BINARY = _FLOATS.split(), _INTEGERS.split(), _BINARY.split()


def zeros(anything: Any) -> Any:
    """Zeros, whatever the elements are: memory that nobody wrote may hold NaN, and NaN times 0 is no 0."""
    return ((anything == anything) & (anything != anything)).float()


def drawn(*shape: int, dtype: Any = torch.float32) -> Any:
    """Numbers, the first of them special where there is room."""
    found = torch.randn(*shape, dtype=torch.float64) * 2
    flat = found.reshape(-1)
    if flat.numel() >= 2 * len(SPECIAL):
        flat[: len(SPECIAL)] = torch.tensor(SPECIAL, dtype=torch.float64)
    return found.to(dtype)


def numbered(name: str) -> Any:
    """The overload that takes a number: what `x + 2` calls."""
    packet = getattr(aten, name)
    return packet.Tensor if name in ("add", "sub", "mul", "div") else packet.Scalar


def calm(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.randn(*shape).to(dtype)


def whole(*shape: int, low: int = -9, high: int = 9, dtype: Any = torch.int64) -> Any:
    return torch.randint(low, high, shape).to(dtype)


def pointwise() -> Iterator[Sample]:
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        for name in UNARY:
            special = name in ("lgamma", "digamma", "erfinv", "gelu")  # gelu of infinity is NaN in torch's vectors, and infinity elsewhere
            x = (torch.rand(5, 7) * 0.8 + 0.1).to(dtype) if special else drawn(5, 7, dtype=dtype)
            yield f"{name} {dtype}", getattr(aten, name).default, (x,)
    for name in WHOLE:
        yield f"{name} i64", getattr(aten, name).default, (whole(4, 5),)
    yield "gelu tanh", lambda x: aten.gelu(x, approximate="tanh"), (drawn(4, 9),)
    yield "elu", lambda x: aten.elu(x, 1.3, 0.7, 1.1), (drawn(4, 9),)
    yield "round decimals", lambda x: aten.round.decimals(x, decimals=2), (calm(4, 9),)
    yield "round tens", lambda x: aten.round.decimals(x * 100, decimals=-1), (calm(4, 9),)
    yield "bitwise_not bool", aten.bitwise_not.default, (whole(6) > 0,)
    kinds = [(drawn(6, 7), drawn(7)), (whole(6, 7), whole(7, low=1)), (drawn(6, 7), whole(7, low=1)),
             (drawn(6, 7, dtype=torch.bfloat16), drawn(())),
             (whole(6, 7), drawn(())), (whole(5, dtype=torch.uint8, low=0), whole(5, low=1, dtype=torch.int32)),
             (drawn(6, 7, dtype=torch.float16), drawn(6, 7)), (drawn(4, 7, dtype=torch.float64), drawn(7))]  # fmt: skip
    for name in BINARY:
        for number, (a, b) in enumerate(kinds):
            yield f"{name} {number}", getattr(aten, name).Tensor, (a, b)
        plain = numbered(name)
        for scalar in (2, -3, 2.3, 0.1):
            for x in (drawn(5, 6), drawn(5, 6, dtype=torch.bfloat16), whole(5, 6)):
                yield f"{name} {x.dtype} {scalar}", lambda x, call=plain, scalar=scalar: call(x, scalar), (x,)
        yield f"{name} Scalar", lambda x, name=name: getattr(aten, name).Scalar(x, 3), (drawn(5, 6),)
    for name in ("add", "sub"):
        yield (
            f"{name} alpha",
            lambda a, b, name=name: getattr(aten, name).Tensor(a, b, alpha=2.5),
            (drawn(5, dtype=torch.float16), drawn(5, dtype=torch.float16)),
        )
        yield f"{name} whole alpha", lambda a, b, name=name: getattr(aten, name).Tensor(a, b, alpha=-3), (whole(5), whole(5))
        yield f"{name} bool", lambda a, b: a | b, (whole(5) > 0, whole(5) > 2)
    for mode in ("floor", "trunc", None):
        for a, b in (
            (drawn(40), calm(40) + 3),
            (whole(40, low=-30, high=30), whole(40, low=1)),
            (whole(40), -whole(40, low=1)),
            (calm(8), torch.zeros(8)),
        ):
            yield f"div {mode} {a.dtype}", lambda a, b, mode=mode: aten.div.Tensor_mode(a, b, rounding_mode=mode), (a, b)
        yield f"div {mode} 0.1", lambda x, mode=mode: aten.div.Scalar_mode(x, 0.1, rounding_mode=mode), (torch.arange(12).float() / 4,)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        yield name, getattr(aten, name).Tensor, (whole(6), whole(6))
        yield f"{name} bool", getattr(aten, name).Tensor, (whole(6) > 0, whole(6) > 2)
        yield f"{name} Scalar", lambda x, name=name: getattr(aten, name).Scalar(x, 5), (whole(6),)
    for name in ("logical_and", "logical_or", "logical_xor"):
        yield name, getattr(aten, name).default, (drawn(30), whole(30))
    for name in ("maximum", "minimum"):
        yield name, getattr(aten, name).default, (drawn(40), drawn(40).flip(0))
    yield "atan2", aten.atan2.default, (calm(9), calm(9))
    for exponent in (0, 0.5, 1, 2, 3, -0.5, -1, -2, 2.7, 4):
        yield f"pow {exponent}", lambda x, exponent=exponent: aten.pow.Tensor_Scalar(x, exponent), (drawn(30).abs(),)
        yield (
            f"pow bf16 {exponent}",
            lambda x, exponent=exponent: aten.pow.Tensor_Scalar(x, exponent),
            (calm(30, dtype=torch.bfloat16).abs() + 0.1,),
        )
    yield "pow whole", lambda x: aten.pow.Tensor_Scalar(x, 3), (whole(9),)
    yield "pow of 2", lambda x: aten.pow.Scalar(2.0, x), (calm(9),)
    yield "pow each", aten.pow.Tensor_Tensor, (calm(9).abs(), calm(9))
    yield "where", lambda c, a, b: aten.where.self(c, a, b), (whole(4, 1) > 0, calm(4, 5), calm(5))
    yield "where promotes", lambda c, a, b: torch.where(c, a, b), (whole(4, 1) > 0, calm(4, 5), whole(5))
    yield "clamp", lambda x: aten.clamp.default(x, -0.5, 0.7), (drawn(40),)
    yield "clamp below", lambda x: aten.clamp.default(x, min=-0.5), (drawn(40),)
    yield "clamp crossed", lambda x: aten.clamp.default(x, 2.0, 1.0), (calm(9),)
    yield "clamp whole", lambda x: aten.clamp.default(x, -2, 3), (whole(9),)
    yield "clamp tensors", lambda x, a, b: aten.clamp.Tensor(x, a, b), (drawn(40), calm(40) - 1, calm(40) + 1)
    for a, b in ((torch.float32, torch.bfloat16), (torch.float64, torch.float32), (torch.int64, torch.float16),
                 (torch.float32, torch.int32),
                 (torch.float32, torch.bool), (torch.bool, torch.float32), (torch.int64, torch.uint8)):  # fmt: skip
        x = (calm(9) * 20).to(a) if a.is_floating_point else whole(9, low=0).to(a)
        yield f"copy {a} {b}", lambda x, b=b: aten._to_copy.default(x, dtype=b), (x,)
    yield "convert", lambda x: prims.convert_element_type.default(x, torch.float64), (calm(9),)


def movement() -> Iterator[Sample]:
    x = calm(4, 6, 5)
    yield "view", lambda x: aten.view(x, [24, 5]) * 1, (x,)
    yield "unsqueeze", lambda x: aten.unsqueeze(x, -2) * 1, (x,)
    yield "squeeze", lambda x: aten.squeeze.dims(x, [0, 1]) * 1, (calm(1, 4, 1),)
    yield "clone", lambda x: aten.clone(x) + aten.alias(x), (x,)
    yield "lift", lambda x: x + torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]), (x,)
    yield "permute", lambda x: aten.permute(x, [2, 0, -2]) * 1, (x,)
    yield "expand", lambda x: aten.expand(x, [3, -1, 5]) * 1, (calm(4, 1),)
    yield "repeat", lambda x: aten.repeat(x, [2, 1, 3, 2]), (x,)
    yield "flip", lambda x: aten.flip(x, [0, -1]), (x,)
    for start, end, step in ((1, 4, 1), (-3, -1, 1), (None, None, 2), (2, 100, 3), (-100, 3, 1), (4, 2, 1)):
        yield f"slice {start} {end} {step}", lambda x, s=start, e=end, t=step: aten.slice.Tensor(x, 1, s, e, t) * 1, (x,)
        if (start, end) != (4, 2):
            src = torch.zeros_like(x)[:, slice(start, end, step)] + 7
            yield f"slice_scatter {start} {step}", lambda x, y, s=start, e=end, t=step: aten.slice_scatter(x, y, 1, s, e, t), (x, src)
    yield "select", lambda x: aten.select.int(x, 1, -2) + aten.select.int(x, 1, 1), (x,)
    yield "split", lambda x: [part * 2 for part in aten.split_with_sizes(x, [1, 3, 2], 1)], (x,)
    for offset in (0, 1, -2, 4):
        yield f"diagonal {offset}", lambda x, o=offset: aten.diagonal(x, o, -1, 0) * 1, (drawn(4, 6, 5),)
    yield "diagonal bool", lambda x: aten.diagonal(x) | False, (whole(3, 3) > 0,)
    yield "unfold", lambda x: x.unfold(1, 3, 2) * 1, (x,)
    yield "cat", lambda a, b: aten.cat([a, b, a], -2), (x, calm(4, 2, 5))
    yield "cat promotes", lambda a, b: aten.cat([a, b]), (calm(3), whole(4))
    yield "cat empty", lambda a: aten.cat([torch.empty(0), a], 1), (calm(3, 2),)
    yield "pad", lambda x: aten.constant_pad_nd(x, [1, 2, -1, 3], 0.5), (x,)
    yield "full", lambda x: x + aten.full([6, 1], 2.5) + aten.full_like(x, 3) + aten.scalar_tensor(1.5), (x,)
    yield "full whole", lambda x: x + aten.full([3], 7, dtype=torch.int64), (whole(3),)
    yield "empty", lambda x: x + zeros(torch.empty(5)) + zeros(torch.empty_like(x)), (x,)
    yield "empty strided", lambda x: x + zeros(aten.empty_strided([5], [1])) + zeros(aten.empty_permuted([6, 5], [1, 0])), (x,)
    yield "copy", lambda x, y: aten.copy(x, y), (x, whole(5))
    yield "arange", lambda x: x + torch.arange(5) + torch.arange(0, 1, 0.2) + torch.arange(5, 0, -1), (x,)
    yield "arange far", lambda x: x + torch.arange(1.5, 10, 1.7), (calm(5),)
    yield "triangle", lambda x: x[torch.tril_indices(4, 6)[0]] + x[torch.triu_indices(5, 6, 1)[1][:1]], (calm(9),)
    yield "index_select", lambda x, i: aten.index_select(x, 1, i), (x, torch.tensor([5, 0, 3]))


def reductions() -> Iterator[Sample]:
    x = calm(4, 6, 5)
    for name in ("sum", "mean"):
        full = getattr(aten, name).dim_IntList if name == "sum" else aten.mean.dim
        for dims, keep in (([1], False), ([0, -1], True), ([], False)):
            yield f"{name} {dims}", lambda x, f=full, d=dims, k=keep: f(x, d, k), (x,)
        yield f"{name} bf16", lambda x, f=full: f(x, [1]), (x.bfloat16(),)
        yield f"{name} f64", lambda x, f=full: f(x, [1], dtype=torch.float64), (x,)
        yield f"{name} scalar", lambda x, f=full: f(x, []), (calm(()),)
    yield "mean all", aten.mean.default, (x,)
    yield "sum whole", lambda x: aten.sum.dim_IntList(x, [1]), (whole(3, 4, dtype=torch.int32),)
    yield "sum bool", lambda x: x.sum(), (whole(3, 4) > 0,)
    for correction in (0, 1, 2.5, None, 30):
        yield f"var {correction}", lambda x, c=correction: aten.var.correction(x, [0, 1], correction=c, keepdim=True), (x,)
    yield "var_mean", lambda x: aten.var_mean.correction(x, [2], correction=1), (x,)
    yield "prod", lambda x: (aten.prod.default(x), aten.prod.dim_int(x, 1, True)), (x,)
    for name, f in (("amax", aten.amax.default), ("amin", aten.amin.default)):
        yield name, lambda x, f=f: (f(x, [0, 2]), f(x)), (drawn(4, 6, 5),)
    yield "max", lambda x: (aten.max.default(x), aten.min.default(x)), (x,)
    yield "any", lambda x: (aten.any.default(x > 2), aten.any.dim(x > 1, 1), aten.any.dims(x > 1, [0, 1]), torch.all(x > -1, 1)), (x,)
    for name, f in (("argmax", aten.argmax.default), ("argmin", aten.argmin.default)):
        yield name, lambda x, f=f: (f(x), f(x, 1), f(x, -1, True)), (x,)
        yield f"{name} NaN", lambda x, f=f: f(x, 1), (drawn(4, 30),)
    yield "max dim", lambda x: (*aten.max.dim(x, 1), *aten.min.dim(x, -1, True)), (x,)
    yield "cumsum", lambda x: (aten.cumsum(x, 1), x.cumprod(-1), aten.cumsum(x.bfloat16(), 0)), (x,)
    yield "cumsum whole", lambda x: aten.cumsum(x, 0), (whole(5, dtype=torch.int32),)
    for descending in (False, True):
        yield f"sort {descending}", lambda x, d=descending: aten.sort.default(x, 1, d)[0], (drawn(4, 30),)
        yield (
            f"sort stable {descending}",
            lambda x, d=descending: aten.sort.stable(x, stable=True, dim=0, descending=d),
            (whole(20, 3).float(),),
        )
    yield "topk", lambda x: (*aten.topk(x, 3, 1), *aten.topk(x, 2, -1, False)), (x,)
    for name, f in (("_softmax", aten._softmax.default), ("_log_softmax", aten._log_softmax.default)):
        yield name, lambda x, f=f: f(x, -1, False), (x * 9,)
        yield f"{name} bf16", lambda x, f=f: f(x, 1, False), (x.bfloat16(),)
        yield (
            f"{name} infinite",
            lambda x, f=f: f(x, 1, False),
            (torch.tensor([[1.0, float("-inf")], [2.0, float("inf")]]),),
        )


def contractions() -> Iterator[Sample]:
    yield "mm", aten.mm.default, (calm(4, 5), calm(5, 6))
    yield "mm bf16", aten.mm.default, (calm(4, 50, dtype=torch.bfloat16), calm(50, 6, dtype=torch.bfloat16))
    yield "mm whole", aten.mm.default, (whole(4, 5), whole(5, 6))
    yield "bmm", aten.bmm.default, (calm(3, 4, 5), calm(3, 5, 6))
    ends = torch.tensor([8, 8, 24], dtype=torch.int32)
    stacks = [calm(*shape, dtype=torch.bfloat16) for shape in ((24, 16), (3, 16, 32), (3, 8, 16))]
    yield "grouped_mm", lambda x, w, e: aten._grouped_mm(x, w, e), (*stacks[:2], ends)
    yield "grouped_mm stacks", lambda x, w: aten._grouped_mm(x, w), (stacks[2], stacks[1])
    own_draw = torch.Generator().manual_seed(3)  # so that what follows is drawn as before
    x, w, s, t = (torch.rand(shape, generator=own_draw) + 0.5 for shape in ((16, 32), (48, 32), (16, 1), (1, 48)))
    eights = (x - 1).to(torch.float8_e4m3fn), (w - 1).to(torch.float8_e5m2).t()
    for scales in ((s[0, 0], t[0, 0]), (s, t)):
        for out in (torch.float32, torch.bfloat16):
            yield f"scaled_mm {len(scales[0].shape)} {out}", (
                lambda x, w, s, t, o=out: aten._scaled_mm(x, w, s, t, out_dtype=o)
            ), (*eights, *scales)  # fmt: skip
    for beta, alpha in ((1, 1), (0, 1), (0.5, 2), (0, 3)):
        own = torch.full((6,), float("nan")) if beta == 0 else calm(6)
        yield f"addmm {beta} {alpha}", lambda c, a, b, p=beta, q=alpha: aten.addmm(c, a, b, beta=p, alpha=q), (own, calm(4, 5), calm(5, 6))
    for spatial in (1, 2, 3):
        sizes = (9, 8, 7)[:spatial]
        for stride, pad, dilation, groups in ((1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 1), (3, 1, 2, 4), (2, 0, 1, 1)):
            x, w, b = calm(2, 4, *sizes), calm(8, 4 // groups, *(3, 2, 2)[:spatial]), calm(8)
            more = ([stride] * spatial, [pad] * spatial, [dilation] * spatial)
            call = (False, [0] * spatial, groups)
            y = aten.convolution(x, w, b, *more, *call)
            yield f"convolution {spatial} {more} {groups}", lambda x, w, b, m=more, c=call: aten.convolution(x, w, b, *m, *c), (x, w, b)
            yield f"its gradients {spatial} {more} {groups}", (
                lambda g, x, w, m=more, c=call: aten.convolution_backward(g, x, w, [8], *m, *c, [True, True, True])
            ), (torch.randn_like(y), x, w)  # fmt: skip
            w = calm(4, 8 // groups, *(3, 2, 2)[:spatial])
            call = (True, [stride - 1] * spatial, groups)
            y = aten.convolution(x, w, b, *more, *call)
            yield f"transposed {spatial} {more} {groups}", lambda x, w, b, m=more, c=call: aten.convolution(x, w, b, *m, *c), (x, w, b)
            yield f"its gradients, transposed {spatial} {more} {groups}", (
                lambda g, x, w, m=more, c=call: aten.convolution_backward(g, x, w, [8], *m, *c, [True, True, True])
            ), (torch.randn_like(y), x, w)  # fmt: skip
    yield "no bias", lambda x, w: aten.convolution(x, w, None, [1], [1], [1], False, [0], 1), (calm(2, 4, 9), calm(8, 4, 3))
    yield "group norm", lambda x, w, b: aten.native_group_norm(x, w, b, 2, 6, 20, 3, 1e-5), (calm(2, 6, 4, 5), calm(6), calm(6))
    yield "group norm bare", lambda x: aten.native_group_norm(x, None, None, 2, 6, 20, 2, 1e-3), (calm(2, 6, 4, 5),)
    yield "group norm bf16", lambda x: torch.nn.functional.group_norm(x, 3), (calm(2, 6, 4, 5, dtype=torch.bfloat16),)


def windows() -> Iterator[Sample]:
    x = calm(2, 3, 9, 8)
    for kernel, stride, pad, dilation, ceil in (
        ([3, 2], [2, 1], [1, 0], [1, 1], False),
        ([3, 3], [2, 2], [1, 1], [1, 1], True),
        ([2, 2], [3, 3], [0, 0], [2, 1], True),
    ):
        call = (kernel, stride, pad, dilation, ceil)
        yield f"max pool {call}", lambda x, c=call: aten.max_pool2d_with_indices(x, *c), (x,)
        y, at = aten.max_pool2d_with_indices(x, *call)
        yield (
            f"its gradient {call}",
            lambda g, x, at, c=call: aten.max_pool2d_with_indices_backward(g, x, *c, at),
            (torch.randn_like(y), x, at),
        )
        for inside, divisor in ((True, None), (False, None), (True, 5)):
            more = (kernel, stride, pad, ceil, inside, divisor)
            yield f"mean pool {more}", lambda x, c=more: aten.avg_pool2d(x, *c), (x,)
            yield (
                f"its gradient {more}",
                lambda g, x, c=more: aten.avg_pool2d_backward(g, x, *c),
                (torch.randn_like(aten.avg_pool2d(x, *more)), x),
            )
    yield "max pool of a plane", lambda x: aten.max_pool2d_with_indices(x, [2, 2], [2, 2])[0], (calm(3, 6, 6),)
    yield "max pool 3", lambda x: aten.max_pool3d_with_indices(x, [2, 2, 2], [2, 2, 2]), (calm(2, 3, 6, 4, 4),)
    yield "mean pool 3", lambda x: aten.avg_pool3d(x, [2, 2, 2]), (calm(2, 3, 6, 4, 4),)
    for size in ([1, 1], [3, 4], [9, 2], [12, 3]):
        y = aten._adaptive_avg_pool2d(x, size)
        yield f"adaptive {size}", lambda x, s=size: aten._adaptive_avg_pool2d(x, s), (x,)
        yield f"its gradient {size}", aten._adaptive_avg_pool2d_backward.default, (torch.randn_like(y), x)
    x = calm(2, 3, 6, 5, 4)
    yield "adaptive 3", lambda x: aten._adaptive_avg_pool3d(x, [2, 3, 4]), (x,)
    yield "its gradient 3", aten._adaptive_avg_pool3d_backward.default, (calm(2, 3, 2, 3, 4), x)


def indexing() -> Iterator[Sample]:
    x, i = calm(5, 6, 7), whole(3, 4, low=0, high=5)
    yield "embedding", aten.embedding.default, (calm(9, 4), whole(2, 3, low=0))
    table, ids, offsets = calm(9, 4), whole(12, low=0), torch.tensor([0, 3, 3, 8, 12])
    for mode in (0, 1):
        given: dict[str, Any] = {"mode": mode}
        for more in ({}, {"padding_idx": 2}, {"include_last_offset": True}):
            yield (
                f"bag {mode} {more}",
                lambda w, i, o, given=given | more: aten._embedding_bag_forward_only(w, i, o, **given)[0],
                (table, ids, offsets),
            )
        rows = lambda w, i, given=given: aten._embedding_bag_forward_only(w, i, torch.arange(0, 12, 4), **given)[0]  # noqa: E731
        yield f"bag of rows {mode}", rows, (table, ids)
    weighted = lambda w, i, o, s: aten._embedding_bag(w, i, o, per_sample_weights=s)[0]  # noqa: E731
    yield "bag weighted", weighted, (table.half(), ids, offsets, calm(12).half())
    yield "gather", lambda x, i: aten.gather(x, 1, i), (calm(5, 6), whole(4, 9, low=0, high=6))
    for name, call in (("src", aten.scatter.src), ("add", aten.scatter_add.default)):
        at = torch.stack([torch.randperm(6)[:4] for _ in range(3)]) if name == "src" else whole(3, 4, low=0, high=6)
        yield f"scatter {name}", lambda x, i, s, f=call: f(x, 1, i, s), (calm(5, 6), at, calm(4, 5))
    yield "scatter value", lambda x, i: aten.scatter.value(x, -1, i, 2.5), (calm(5, 6), whole(5, 2, low=0, high=6))
    for how in ("sum", "prod", "amax", "amin"):
        yield (
            f"scatter {how}",
            lambda x, i, s, h=how: aten.scatter_reduce.two(x, 0, i, s, h),
            (calm(5, 6), whole(8, 6, low=0, high=5), calm(8, 6)),
        )
    yield (
        "scatter reduce",
        lambda x, i, s: aten.scatter.reduce(x, 0, i, s, reduce="add"),
        (calm(5, 6), whole(3, 6, low=0, high=5), calm(3, 6)),
    )
    yield (
        "scatter value reduce",
        lambda x, i: aten.scatter.value_reduce(x, 0, i, 2, reduce="multiply"),
        (calm(5, 6), whole(3, 6, low=0, high=5)),
    )
    j = whole(4, low=-6, high=6)
    for name, indices in (
        ("first", [i]),
        ("second", [None, j]),
        ("both", [i, j]),
        ("apart", [i, None, whole(4, low=-7, high=7)]),
        ("last two", [None, j, whole(3, 1, low=0, high=7)]),
    ):
        given = [index for index in indices if index is not None]
        shape = aten.index.Tensor(x, indices).shape

        def refilled(tensors: Any, indices: Any = indices) -> list[Any]:
            rest = iter(tensors)
            return [None if index is None else next(rest) for index in indices]

        yield f"index {name}", lambda x, *t, r=refilled: aten.index.Tensor(x, r(t)), (x, *given)
        yield f"index_put add {name}", lambda x, v, *t, r=refilled: aten.index_put(x, r(t), v, True), (x, calm(*shape), *given)
        yield f"index_put {name}", lambda x, v, *t, r=refilled: aten.index_put(x, r(t), v), (x, calm(()), *given)
    yield "index_put mask", lambda x, m, v: aten.index_put(x, [m], v), (x, x[..., 0] > 0, calm(()))
    yield (
        "index_put add bf16",
        lambda x, v, i: aten.index_put(x, [i], v, True),
        (calm(5, 3, dtype=torch.bfloat16), calm(40, 3, dtype=torch.bfloat16), whole(40, low=0, high=5)),
    )


def signs() -> Iterator[Sample]:
    """Signs as bits."""
    yield "copysign", aten.copysign.Tensor, (calm(9), -calm(1))
    yield "copysign of a number", aten.copysign.Scalar, (calm(9), -0.0)
    yield "signbit", aten.signbit.default, (calm(9),)


def samples() -> list[Sample]:
    """All calls, drawn alike each time."""
    torch.manual_seed(0)
    return [sample for kind in (pointwise, movement, reductions, contractions, windows, indexing, signs) for sample in kind()]
