"""`coset optimize`: one flow for all formats, from a model to a file that was compared with it."""
