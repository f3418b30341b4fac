"""A program as a Python package on disk: its text, its runtime, its weights."""
