"""The ops of com.microsoft with a kernel on CPU that have no definition here, each with the reason."""

from __future__ import annotations

_SEARCH = "a search that runs whole graphs, with state of its own"
_NOT_YET = "not said yet"

_LATER = """
    AttnLSTM Attention BifurcationDetector BranchwiseRMSNorm CausalConvWithState CropAndResize DecoderMaskedMultiHeadAttention
    DynamicQuantizeLSTM DynamicQuantizeMatMul DynamicTimeWarping EngramGate GatherBlockQuantized GroupQueryAttention
    HyperConnectionPostMix HyperConnectionPreMix Inverse LinearAttention LinearAttentionGate MRotaryEmbedding MatMulBnb4 MatMulFpQ4
    MaxpoolWithMask MoE MultiHeadAttention MurmurHash3 NGramHashMapping NGramRepeatBlock QAttention QEmbedLayerNormalization
    QLinearAveragePool QLinearConcat QLinearConv QLinearSoftmax QMoE SparseAttention VarlenNGramHashMapping WordConvEmbedding
"""

UNDEFINED: dict[str, str] = {
    "BeamSearch": _SEARCH,
    "GreedySearch": _SEARCH,
    "Sampling": _SEARCH + ", and draws random numbers",
    "SparseToDenseMatMul": "its matrix is a sparse tensor, a type that terms do not have",
    "Tokenizer": "works on strings",
    "WhisperBeamSearch": _SEARCH,
    **dict.fromkeys(_LATER.split(), _NOT_YET),
}
