"""How two programs are compared: inputs, tolerance, reference runs, constants computed at build time, and the clock."""
