"""ONNX in: a file or a ModelProto becomes a `Program`."""
