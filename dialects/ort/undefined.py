"""The ops of com.microsoft with a kernel on CPU that have no definition here, each with the reason."""

from __future__ import annotations

_SEARCH = "a search that runs whole graphs, with state of its own"

UNDEFINED: dict[str, str] = {
    "AttnLSTM": "not said yet: an LSTM whose input is joined in each step by an attention to a memory",
    "BeamSearch": _SEARCH,
    "GatedDeltaNet": "not said yet: linear attention over packed sequences, with a state and replayed updates (new in ONNX Runtime 1.32)",
    "GatherPacked": "not said yet: its bytes are laid out by a format that ONNX Runtime's documents describe (new in 1.32)",
    "GreedySearch": _SEARCH,
    "MoEGroupRouter": "not said yet: a router that picks groups of experts, then experts (new in 1.32)",
    "Sampling": _SEARCH + ", and draws random numbers",
    "SparseToDenseMatMul": "its matrix is a sparse tensor, a type that terms do not have",
    "Tokenizer": "works on strings",
    "VarlenCausalConvWithState": "not said yet: a convolution over packed sequences, with a state (new in 1.32)",
    "WhisperBeamSearch": _SEARCH,
}
