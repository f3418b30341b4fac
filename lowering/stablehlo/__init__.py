"""From a `Program` to StableHLO as MLIR text."""
