"""The commands of `coset`, a theme a file."""
