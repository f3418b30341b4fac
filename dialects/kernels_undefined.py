"""The ops of com.microsoft with a kernel on CPU that have no definition here, each with the reason."""

from __future__ import annotations

_SEARCH = "a search that runs whole graphs, with state of its own"
_LATER = "not said yet"

UNDEFINED: dict[str, str] = {
    "AttnLSTM": _LATER + ": an LSTM around an attention to a memory",
    "BeamSearch": _SEARCH,
    "DynamicQuantizeLSTM": _LATER + ": an LSTM that quantizes its state in each step",
    "DynamicTimeWarping": _LATER + ": the cheapest path through a matrix, whose length depends on the data",
    "GreedySearch": _SEARCH,
    "Sampling": _SEARCH + ", and draws random numbers",
    "SparseToDenseMatMul": "its matrix is a sparse tensor, a type that terms do not have",
    "Tokenizer": "works on strings",
    "VarlenNGramHashMapping": _LATER + ": NGramHashMapping of sequences that lie one after the other",
    "WhisperBeamSearch": _SEARCH,
    "WordConvEmbedding": _LATER + ": works on the characters of words",
}
