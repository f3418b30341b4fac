"""What a person reads on a terminal: tables, progress, docs/targets.md."""
