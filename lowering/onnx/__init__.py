"""From a `Program` to an ONNX model."""
