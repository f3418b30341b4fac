"""What a GPU kernel and a plan are: loops, index arithmetic, buffers, memory, the text of a plan. No pass over plans is here."""
