"""A plan's kernels as Triton source text, and how they are launched."""
