"""Tensors of test data beside an ONNX model: `input_0.pb` and its like, as the ONNX model zoo has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import numpy_helper

from coset.ir.errors import CosetError
from coset.ir.place import Place


def read_tensor(path: Path) -> tuple[str, np.ndarray[Any, Any]]:
    """The name, which may be empty, and the elements of the one tensor in a file.

    Raises:
        CosetError: there is none.
    """
    message = onnx.TensorProto()
    try:
        message.ParseFromString(path.read_bytes())
        return message.name, numpy_helper.to_array(message)
    except OSError as error:
        raise CosetError(
            f"cannot read the tensor: {error.strerror or error}", place=Place(str(path)), help="name a readable file"
        ) from None
    except (DecodeError, ValueError, TypeError) as error:
        raise CosetError(f"this is no tensor: {error}", place=Place(str(path)), help="sample inputs are tensors") from None
