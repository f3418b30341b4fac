"""The rule language: what an op means, which programs are equal, how the search is staged (see docs/rules.md)."""
