"""ONNX Runtime's own ops (domain com.microsoft), the dialect `ort`."""
