"""Benchmarks: what a program costs on this machine, and how much is left to win."""
