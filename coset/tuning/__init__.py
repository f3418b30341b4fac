"""`coset tune`: other numbers for the kernels of a program, ruled out by prediction and by compilers, chosen by the clock."""
