"""Passes over a finished plan: layouts, recomputation, order, streams."""
