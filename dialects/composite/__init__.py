"""Ops of the dialect `kernel`: composites that several backends have a kernel for."""
