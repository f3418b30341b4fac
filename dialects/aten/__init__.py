"""PyTorch's ATen ops, as terms of the hub and of ONNX's definitions."""
