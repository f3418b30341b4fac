"""ONNX: named ops with definitions, and how its nodes become terms of the hub."""
