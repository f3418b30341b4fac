"""Whether two programs are equal: certificates of optimizations and of pairs of files, and their re-check."""
