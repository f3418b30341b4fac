"""A program or a kernel of a plan as text of torch calls."""
