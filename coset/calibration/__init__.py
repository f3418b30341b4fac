"""`coset calibrate`: what the ops and kernels of this machine take, timed and fitted to its target."""
