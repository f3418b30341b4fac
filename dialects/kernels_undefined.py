"""The ops of com.microsoft with a kernel on CPU that have no definition here, each with the reason."""

from __future__ import annotations

_SEARCH = "a search that runs whole graphs, with state of its own"

UNDEFINED: dict[str, str] = {
    "AttnLSTM": "not said yet: an LSTM whose input is joined in each step by an attention to a memory",
    "BeamSearch": _SEARCH,
    "GreedySearch": _SEARCH,
    "Sampling": _SEARCH + ", and draws random numbers",
    "SparseToDenseMatMul": "its matrix is a sparse tensor, a type that terms do not have",
    "Tokenizer": "works on strings",
    "WhisperBeamSearch": _SEARCH,
}
