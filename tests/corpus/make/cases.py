"""A spelling as a torch module, and what the tables of modules share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True)
class Case:
    """One spelling: a module, its inputs, what it is, what it imitates (`how`), and the kernels that may stand beside it.

    `dynamic`: {input: {axis: symbol}}. `ways`: `script13` is torch.onnx.export(dynamo=False) at opset 13, `dynamo18` with
    dynamo=True, `hlo` torch.export and torch-mlir, `compile` what torch.compile gives to a backend.
    """

    module: Callable[[], nn.Module]
    inputs: Callable[[], tuple[Any, ...]]
    wanted: tuple[str, ...]
    how: str
    beside: str = ""
    ways: tuple[str, ...] = ("script13",)
    dynamic: dict[int, dict[int, str]] = field(default_factory=dict)


class Formula(nn.Module):
    """A function of the parameters `w` and `b`, of one shape, and of the inputs."""

    def __init__(self, function: Callable[..., Any], *shape: int, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.function = function
        self.w = nn.Parameter(torch.randn(*shape).to(dtype))
        self.b = nn.Parameter(torch.randn(*shape).to(dtype))

    def forward(self, *inputs: Any) -> Any:
        return self.function(self.w, self.b, *inputs)


class Plain(nn.Module):
    """A function of the inputs alone."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def formula(function: Callable[..., Any], *shape: int, dtype: torch.dtype = torch.float32) -> Callable[[], nn.Module]:
    return lambda: Formula(function, *shape, dtype=dtype)


def plain(function: Callable[..., Any]) -> Callable[[], nn.Module]:
    return lambda: Plain(function)


def normal(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Callable[[], tuple[Any, ...]]:
    return lambda: tuple(torch.randn(*shape).to(dtype) for shape in shapes)
