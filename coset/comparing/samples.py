"""Inputs of the user's own to compare on: arrays of an .npz file, or folders of test data as the ONNX model zoo has them."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from coset.comparing.feeds import Feed, Sample
from coset.comparing.loose_inputs import elements_of, entries_of, is_sequence
from coset.comparing.sizes import sizes_in
from coset.frontends.onnx.samples import read_value
from coset.ir import dims
from coset.ir.errors import CosetError
from coset.ir.place import Place
from coset.ir.program import Program
from coset.ir.program_source import source_of
from coset.ir.types import DType, TensorType, Type

GIVEN = "input "  # in front of the names of inputs in the files that `coset prove --counterexample` writes
TESTS, ENTRY = "test_data_set_*", re.compile(r"input_(\d+)\.pb")
HELP = "give an .npz file with an array for each input, or a folder with input_0.pb, input_1.pb, .."
KEYS, VALUES = "keys", "values"  # of a map, behind its name
LISTS = "a sequence `s` is arrays `s/0`, `s/1`, .. (without any: an array `s` of no elements), a map `m` is `m/keys` and `m/values`"


def with_samples(program: Program, samples: Sequence[Sample]) -> Program:
    """The program with inputs that its user knows, which the comparison runs in front of those that it draws. Each of `samples` is the
    path of an .npz file with arrays by the names of inputs, the path of a folder with `input_0.pb` .., or of one with several such folders
    (`test_data_set_0` ..), or a mapping of arrays. A sequence is a list of arrays, in an .npz file arrays `NAME/0`, `NAME/1` ..; a map is a
    dictionary, in an .npz file `NAME/keys` and `NAME/values`.

    Raises:
        CosetError: a file cannot be read, an input has no array, or one of another type or shape.
    """
    if not samples:
        return program
    feeds = [_fitting(program, name, feed) for each in samples for name, feed in _read(program, each)]
    return replace(program, source=replace(source_of(program), samples=tuple(feeds)))


def _read(program: Program, sample: Sample) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Arrays by name, and what they are called in messages."""
    if isinstance(sample, Mapping):
        return [("(arrays in memory)", gathered(program, sample))]
    path = Path(sample)
    if path.is_dir():
        folders = sorted(path.glob(TESTS), key=lambda each: (len(each.name), each.name)) or [path]
        return [(str(each), _messages(program, each)) for each in folders]
    return [(str(path), gathered(program, _arrays(path)))]


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


def spread(name: str, value: Any) -> Feed:
    """The arrays of an .npz file that hold the value of an input or output: `gathered` gives it back. A text is kept as one of NumPy's; the
    results of a node that has several are kept as a sequence, what is left out not at all."""
    if value is None:
        return {}
    if isinstance(value, dict):
        return {**spread(f"{name}/{KEYS}", np.array([*value])), **spread(f"{name}/{VALUES}", np.array([*value.values()]))}
    if isinstance(value, list | tuple):
        parts = [part for number, each in enumerate(value) for part in spread(f"{name}/{number}", each).items()]
        return dict(parts) if value else {name: np.zeros(0)}
    array = np.asarray(value)
    return {name: array.astype(np.str_) if array.dtype.kind == "O" else array}


def gathered(program: Program, arrays: Mapping[str, Any]) -> Feed:
    """The values of inputs that are sequences or maps, put together from arrays that are called so; all else as it is."""
    found = dict(arrays)
    for term in program.inputs:
        name = str(term.attribute("name"))
        keys, values = (found.get(f"{name}/{part}") for part in (KEYS, VALUES))
        if entries_of(term.type) is not None and keys is not None and values is not None:
            del found[f"{name}/{KEYS}"], found[f"{name}/{VALUES}"]
            found[name] = dict(zip(np.asarray(keys).tolist(), list(np.asarray(values)), strict=False))
        elif is_sequence(term.type):
            count = next(number for number in range(len(found) + 1) if f"{name}/{number}" not in found)
            if count:
                found[name] = [found.pop(f"{name}/{number}") for number in range(count)]
            elif isinstance(found.get(name), np.ndarray) and not found[name].size:
                found[name] = []
    return found


def _messages(program: Program, folder: Path) -> Feed:
    """The values `input_0.pb` .. of a folder, which belong to the inputs of their names or, where these have none, in their order."""
    files = sorted((int(match[1]), each) for each in folder.iterdir() if (match := ENTRY.fullmatch(each.name)))
    if not files:
        raise CosetError("the folder has no input_0.pb", place=Place(str(folder)), help=HELP)
    types = {str(term.attribute("name")): term.type for term in program.inputs}
    names = list(types)
    found: Feed = {}
    for number, path in files:
        name, value = read_value(path, types, names[number] if number < len(names) else None)
        if name in found:
            raise CosetError(f"there are two arrays for the input `{name}`", place=Place(str(path)), help="name the tensors as the inputs")
        found[name] = value
    return found


def _fitting(program: Program, name: str, feed: Mapping[str, Any]) -> Feed:
    """The arrays for the program's inputs, of their types."""
    outputs = {output for output, _ in program.outputs}  # which people keep beside inputs
    types = {str(term.attribute("name")): term.type for term in program.inputs}
    place = Place(name)
    spare = [each for each in feed if each not in types and each not in outputs and each.rpartition("/")[0] not in outputs]
    if spare:
        raise CosetError(f"the model has no input `{spare[0]}`", place=place, help=f"its inputs: {', '.join(types)}")
    found: Feed = {}
    for called, type in types.items():
        if called not in feed:
            raise CosetError(f"there is no array for the input `{called}`", place=place, help=f"it is {type}")
        found[called] = _value(feed[called], called, type, place)
    sizes = sizes_in(program, found)
    for called, value in found.items():
        type = types[called]
        if not isinstance(type, TensorType):
            continue
        shape = type.shape
        known = shape is None or (len(shape) == value.ndim and all(dims.symbols(dim) <= sizes.keys() for dim in shape))
        if not known or (shape is not None and tuple(dims.evaluate(dim, sizes) for dim in shape) != value.shape):
            raise CosetError(f"the array for the input `{called}` has the shape {list(value.shape)}", place=place, help=f"it is {type}")
    return found


def _value(value: Any, called: str, type: Type, place: Place) -> Any:
    """What is given for an input of this type, in its element types.

    Raises:
        CosetError: it is of another kind, or an array has another element type or rank.
    """
    if isinstance(type, TensorType):
        return _typed(np.asarray(value), called, type.dtype, place)
    entries, elements = entries_of(type), elements_of(type)
    if entries is not None:
        if not isinstance(value, dict):
            raise CosetError(f"the input `{called}` is a map", place=place, help=LISTS)
        if any(isinstance(key, str) is not entries.texts for key in value):
            raise CosetError(f"the input `{called}` is a map whose keys are {'texts' if entries.texts else 'integers'}", place=place)
        return dict(zip(value, _typed(np.asarray([*value.values()]), called, entries.dtype, place).reshape(-1), strict=True))
    if elements is None:
        raise CosetError(f"the input `{called}` is {type}", place=place, help="tensors, sequences of them, and maps can be given")
    if elements.sequence != isinstance(value, list | tuple):
        what = "a sequence" if elements.sequence else "one tensor, which may be left out"
        raise CosetError(f"the input `{called}` is {what}", place=place, help=LISTS)
    parts = [_typed(np.asarray(each), called, elements.dtype, place) for each in (value if elements.sequence else [value])]
    for part in parts:
        if elements.dims is not None and not _is_of(part.shape, elements.dims):
            what = f"a tensor of the input `{called}` has the shape {list(part.shape)}"
            raise CosetError(what, place=place, help=f"it is {list(elements.dims)}")
    return parts if elements.sequence else parts[0]


def _is_of(shape: Sequence[int], dims: Sequence[int | str]) -> bool:
    """Whether a shape has the numbers that a type gives for dims."""
    return len(shape) == len(dims) and all(isinstance(dim, str) or dim == size for dim, size in zip(dims, shape, strict=True))


def _typed(value: np.ndarray[Any, Any], called: str, dtype: DType, place: Place) -> np.ndarray[Any, Any]:
    """The array in the input's element type, which files without that type have as bytes."""
    if dtype.kind == "string" and value.dtype.kind in "UO":
        return value.astype(np.object_)
    wanted = np.dtype(dtype.numpy)
    if value.dtype.kind == "V" and value.dtype != wanted and value.dtype.itemsize == wanted.itemsize and value.dtype.names is None:
        value = value.view(wanted)
    if value.dtype != wanted:
        raise CosetError(f"the array for the input `{called}` has elements of {value.dtype}", place=place, help=f"they are {wanted}")
    return value
