"""Optional tools: which packages bring them, and the error where one is not installed."""

from __future__ import annotations

from coset.ir.errors import CosetError

# by the extra of `pyproject.toml` that names them; coset is installed from a checkout, so that no index knows the extra
PACKAGES = {
    "mlir": "torch-mlir==20261001",
    "torch": "'torch>=2.9'",
    "editor": "'pygls>=2.1,<3'",
    "gpu": "'torch>=2.9' 'triton>=3.5,<4'",
}


class MissingExtra(CosetError):
    """An optional tool that is not installed; the help says what to install."""


def install(extra: str) -> str:
    """The command that brings the packages of an extra."""
    cpu = " (without a GPU: --index-url https://download.pytorch.org/whl/cpu)" if extra == "torch" else ""
    return f"pip install {PACKAGES[extra]}{cpu}, or `pip install -e '.[{extra}]'` in a checkout of coset"
