"""What a kernel is called in a profile: the digest of all that its compiler and its device see, and of no name that a model gave."""

from __future__ import annotations

import io
import json
import tokenize
from collections.abc import Mapping
from hashlib import blake2b

from coset.ir.dims import evaluate
from coset.lowering.kernels.kernel import Buffer, Plan
from coset.lowering.triton.body import RESERVED
from coset.lowering.triton.helpers import helper_text, helpers_of
from coset.lowering.triton.launch import EmittedKernel, Launch

_LEFT_OUT = {tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER}


def key_of(emission: EmittedKernel, plan: Plan, sizes: Mapping[str, int]) -> str:
    """The key of a kernel by its default emission, with free dims of these `sizes`: equal kernels of two programs have one key."""
    buffers = {**plan.buffers, **{buffer.name: buffer for buffer in emission.scratch}}
    launches = [_launch(launch, buffers, sizes) for launch in emission.launches]
    told = [nameless(emission.source), helper_text(helpers_of(emission.source)), launches]
    return blake2b(json.dumps(told).encode(), digest_size=12).hexdigest()


def nameless(source: str) -> list[str]:
    """The tokens of Triton functions, where each name of ours is the number of its first place; comments are left out."""
    numbers: dict[str, str] = {}
    found: list[str] = []
    depth, before = 0, ""
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type not in _LEFT_OUT]
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        text = token.string
        if text == "," and after is not None and after.string == ")":
            continue  # long signatures have a parameter a line
        depth += (text in "([{") - (text in ")]}") if token.type == tokenize.OP else 0
        keyword = depth > 0 and after is not None and after.string == "="  # of a call: Triton's name
        if token.type == tokenize.NAME and text not in RESERVED and before != "." and not keyword:
            text = numbers.setdefault(text, f"${len(numbers)}")
        elif token.type in (tokenize.INDENT, tokenize.DEDENT):
            text = tokenize.tok_name[token.type]
        found.append(text)
        before = token.string
    return found


def _launch(launch: Launch, buffers: Mapping[str, Buffer], sizes: Mapping[str, int]) -> list[object]:
    arguments: list[object] = []
    for argument in launch.arguments:
        if argument.buffer is None:
            arguments.append([argument.type, evaluate(argument.dim, sizes)])
        else:
            buffer = buffers[argument.buffer]
            known: list[object] = [
                argument.type,
                buffer.dtype.name,
                [evaluate(dim, sizes) for dim in buffer.shape],
            ]  # strides are in the text
            if argument.tiles is not None:  # or in a descriptor
                shape, strides = ([evaluate(dim, sizes) for dim in dims] for dims in (argument.tiles.shape, argument.tiles.strides))
                known += [argument.begin, shape, strides, list(launch.block(argument.tiles))]
            arguments.append(known)
    numbers = [int(number) for number in launch.numbers(sizes).values()]
    return [arguments, numbers, [evaluate(dim, sizes) for dim in launch.grid], sorted(launch.options().items())]
