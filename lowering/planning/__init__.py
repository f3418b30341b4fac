"""From a `Program` to a plan: which terms share a kernel, what is stored, what is left to a library."""
