"""Inputs of the user's own to compare on: arrays of an .npz file, or folders of test data as the ONNX model zoo has them."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from coset.feeds import SAMPLES, Feed, Sample, sizes_in
from coset.frontends.onnx_samples import read_tensor
from coset.ir import dims
from coset.ir.errors import CosetError
from coset.ir.place import Place
from coset.ir.program import Program
from coset.ir.types import TensorType

GIVEN = "input "  # in front of the names of inputs in the files that `coset prove --counterexample` writes
TESTS, ENTRY = "test_data_set_*", re.compile(r"input_(\d+)\.pb")
HELP = "give an .npz file with an array for each input, or a folder with input_0.pb, input_1.pb, .."


def with_samples(program: Program, samples: Sequence[Sample]) -> Program:
    """The program with inputs that its user knows, which `coset.feeds` gives in front of those that it draws. Each of `samples` is the
    path of an .npz file with arrays by the names of inputs, the path of a folder with `input_0.pb` .., or of one with several such folders
    (`test_data_set_0` ..), or a mapping of arrays.

    Raises:
        CosetError: a file cannot be read, an input has no array, or one of another type or shape.
    """
    if not samples:
        return program
    feeds = [_fitting(program, name, feed) for each in samples for name, feed in _read(program, each)]
    return replace(program, source={**program.source, SAMPLES: tuple(feeds)})


def _read(program: Program, sample: Sample) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Arrays by name, and what they are called in messages."""
    if isinstance(sample, Mapping):
        return [("(arrays in memory)", sample)]
    path = Path(sample)
    if path.is_dir():
        folders = sorted(path.glob(TESTS), key=lambda each: (len(each.name), each.name)) or [path]
        return [(str(each), _messages(program, each)) for each in folders]
    return [(str(path), _arrays(path))]


def _arrays(path: Path) -> Feed:
    """What an .npz file holds; an input that a counterexample has is called by its name alone."""
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):  # NumPy takes what it does not know for a pickle, and says so
                raise CosetError("these are no sample inputs: it is no .npz file", place=Place(str(path)), help=HELP)
            with np.load(file, allow_pickle=False) as found:
                arrays = {name: found[name] for name in found.files}
    except OSError as error:
        raise CosetError(f"cannot read the sample inputs: {error.strerror or error}", place=Place(str(path)), help=HELP) from None
    except (ValueError, EOFError, zipfile.BadZipFile, TypeError) as error:
        raise CosetError(f"these are no sample inputs: {error}", place=Place(str(path)), help=HELP) from None
    given = {name.removeprefix(GIVEN): value for name, value in arrays.items() if name.startswith(GIVEN)}
    return given or arrays


def _messages(program: Program, folder: Path) -> Feed:
    """The tensors `input_0.pb` .. of a folder, which belong to the inputs of their names or, where these have none, in their order."""
    files = sorted((int(match[1]), each) for each in folder.iterdir() if (match := ENTRY.fullmatch(each.name)))
    if not files:
        raise CosetError("the folder has no input_0.pb", place=Place(str(folder)), help=HELP)
    names = [str(term.attribute("name")) for term in program.inputs]
    found: Feed = {}
    for number, path in files:
        called, value = read_tensor(path)
        if called not in names and number >= len(names):
            raise CosetError(f"the model has {len(names)} inputs", place=Place(str(path)), help=f"its inputs: {', '.join(names)}")
        name = called if called in names else names[number]
        if name in found:
            raise CosetError(f"there are two arrays for the input `{name}`", place=Place(str(path)), help="name the tensors as the inputs")
        found[name] = value
    return found


def _fitting(program: Program, name: str, feed: Mapping[str, Any]) -> Feed:
    """The arrays for the program's inputs, of their types."""
    outputs = {output for output, _ in program.outputs}  # which people keep beside inputs
    types = {str(term.attribute("name")): term.type for term in program.inputs}
    place = Place(name)
    spare = [each for each in feed if each not in types and each not in outputs]
    if spare:
        raise CosetError(f"the model has no input `{spare[0]}`", place=place, help=f"its inputs: {', '.join(types)}")
    found: Feed = {}
    for called, type in types.items():
        if called not in feed:
            raise CosetError(f"there is no array for the input `{called}`", place=place, help=f"it is {type}")
        if not isinstance(type, TensorType):
            raise CosetError(f"the input `{called}` is {type}", place=place, help="sample inputs are tensors")
        found[called] = _typed(np.asarray(feed[called]), called, type, place)
    sizes = sizes_in(program, found)
    for called, value in found.items():
        type = types[called]
        assert isinstance(type, TensorType)
        shape = type.shape
        known = shape is None or (len(shape) == value.ndim and all(dims.symbols(dim) <= sizes.keys() for dim in shape))
        if not known or (shape is not None and tuple(dims.evaluate(dim, sizes) for dim in shape) != value.shape):
            raise CosetError(f"the array for the input `{called}` has the shape {list(value.shape)}", place=place, help=f"it is {type}")
    return found


def _typed(value: np.ndarray[Any, Any], called: str, type: TensorType, place: Place) -> np.ndarray[Any, Any]:
    """The array in the input's element type, which files without that type have as bytes."""
    if type.dtype.kind == "string" and value.dtype.kind in "UO":
        return value.astype(np.object_)
    wanted = np.dtype(type.dtype.numpy)
    if value.dtype.kind == "V" and value.dtype != wanted and value.dtype.itemsize == wanted.itemsize and value.dtype.names is None:
        value = value.view(wanted)
    if value.dtype != wanted:
        raise CosetError(f"the array for the input `{called}` has elements of {value.dtype}", place=place, help=f"it is {type}")
    return value
