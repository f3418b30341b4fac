"""Explanations: where a rule matched, what kept it from matching, and which rules are to blame for a difference."""
