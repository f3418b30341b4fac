"""Convolution, batch normalization and activation as torch modules, and written out."""

# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from cases import Case, normal
from torch import nn

IMAGE = normal((2, 3, 6, 6))
CONV = "onnx.Conv"


def statistics(module: nn.Module) -> nn.Module:
    """`module` with running statistics as after training."""
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            size = part.num_features
            part.running_mean, part.running_var = torch.randn(size), torch.rand(size) + 0.5
            if part.affine:
                part.weight, part.bias = nn.Parameter(torch.randn(size)), nn.Parameter(torch.randn(size))
    return module


def block(conv: Callable[[], nn.Module], norm: Callable[[], nn.Module], *after: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    return lambda: statistics(nn.Sequential(conv(), norm(), *(part() for part in after)))


class _WrittenOut(nn.Module):
    """The normalization as arithmetic on the running statistics."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1, bias=way == "bias")
        for name in ("mean", "variance", "scale", "bias"):
            self.register_buffer(name, torch.rand(4) + 0.5)
        self.way = way

    def forward(self, x: Any) -> Any:
        def wide(v: Any) -> Any:
            return v[None, :, None, None]

        y = self.conv(x)
        if self.way == "affine":  # the FrozenBatchNorm of detection models: one multiplication, one addition
            scale = self.scale.reshape(1, -1, 1, 1) * (self.variance.reshape(1, -1, 1, 1) + 1e-5).rsqrt()
            return torch.relu(y * scale + (self.bias.reshape(1, -1, 1, 1) - self.mean.reshape(1, -1, 1, 1) * scale))
        y = (y - wide(self.mean)) / torch.sqrt(wide(self.variance) + 1e-5)
        return torch.relu(y * wide(self.scale) + wide(self.bias))


CONV_BN = {
    "relu": Case(block(lambda: nn.Conv2d(3, 4, 3, padding=1, bias=False), lambda: nn.BatchNorm2d(4), nn.ReLU), IMAGE, (CONV, "onnx.Relu"), "Conv2d, BatchNorm2d, ReLU", ways=("raw11", "raw17", "hlo"), dynamic={0: {0: "batch"}}),
    "relu6": Case(block(lambda: nn.Conv2d(3, 4, 3, stride=2), lambda: nn.BatchNorm2d(4), nn.ReLU6), IMAGE, (CONV, "onnx.Clip"), "Conv2d with bias and stride, BatchNorm2d, ReLU6", ways=("raw13", "hlo")),
    "leaky": Case(block(lambda: nn.Conv2d(3, 4, 3, dilation=2), lambda: nn.BatchNorm2d(4), lambda: nn.LeakyReLU(0.1)), IMAGE, (CONV, "onnx.LeakyRelu alpha=0.1"), "dilated Conv2d, BatchNorm2d, LeakyReLU", ways=("raw13", "hlo")),
    "silu": Case(block(lambda: nn.Conv2d(3, 4, 1, bias=False), lambda: nn.BatchNorm2d(4, eps=1e-3), nn.SiLU), IMAGE, (CONV, "onnx.Swish alpha=1.0"), "1x1 Conv2d, BatchNorm2d, SiLU (YOLO, EfficientNet)", ways=("raw13",)),
    "hardswish": Case(block(lambda: nn.Conv2d(3, 4, 3, bias=False), lambda: nn.BatchNorm2d(4, eps=1e-3), nn.Hardswish), IMAGE, (CONV, "onnx.HardSwish"), "Conv2d, BatchNorm2d, Hardswish (MobileNetV3)", ways=("raw13", "hlo")),
    "depthwise": Case(block(lambda: nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=False), lambda: nn.BatchNorm2d(4), nn.ReLU), normal((1, 4, 6, 6)), (CONV, "onnx.Relu"), "depthwise Conv2d, BatchNorm2d, ReLU", ways=("raw13", "hlo")),
    "one-dim": Case(block(lambda: nn.Conv1d(3, 4, 3), lambda: nn.BatchNorm1d(4), nn.ReLU), normal((1, 3, 8)), (CONV, "onnx.Relu"), "Conv1d, BatchNorm1d, ReLU", ways=("raw13",)),
    "volume": Case(block(lambda: nn.Conv3d(2, 4, 2), lambda: nn.BatchNorm3d(4), nn.ReLU), normal((1, 2, 3, 3, 3)), (CONV, "onnx.Relu"), "Conv3d, BatchNorm3d, ReLU", ways=("raw13",)),
    "not-affine": Case(block(lambda: nn.Conv2d(3, 4, 3), lambda: nn.BatchNorm2d(4, affine=False), nn.ReLU), IMAGE, (CONV, "onnx.Relu"), "Conv2d, BatchNorm2d(affine=False), ReLU", ways=("raw13",)),
    "written-out": Case(lambda: _WrittenOut(""), IMAGE, (CONV, "onnx.Relu"), "(conv - mean) / sqrt(variance + eps) * scale + bias", ways=("script13", "dynamo18")),
    "written-out-bias": Case(lambda: _WrittenOut("bias"), IMAGE, (CONV, "onnx.Relu"), "the same behind a convolution with a bias", ways=("script13",)),
    "frozen": Case(lambda: _WrittenOut("affine"), IMAGE, (CONV, "onnx.Relu"), "FrozenBatchNorm: conv * scale + bias", ways=("script13", "dynamo18", "hlo")),
}  # fmt: skip

CASES: dict[str, dict[str, Case]] = {"conv_bn": CONV_BN}
