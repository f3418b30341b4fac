"""Targets: one file of data a machine, `NAME.toml`, read when it is asked for."""
