"""`coset lower`: a package for a GPU, compared with its model, and what is to blame where it differs."""
