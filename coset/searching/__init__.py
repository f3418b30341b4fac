"""Search and extraction of a whole program: by regions, by zones, by kernels, under a limit of memory."""
