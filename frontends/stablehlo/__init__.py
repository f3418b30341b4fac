"""StableHLO in: MLIR text or bytecode becomes a `Program`."""
