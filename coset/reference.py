"""For scripts: a model of any format as a program, and its values by the evaluator. Both are in `coset/comparing/`."""

from coset.comparing.reference import read_program, values_of

__all__ = ["read_program", "values_of"]
