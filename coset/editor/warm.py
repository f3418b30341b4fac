"""What every task on a rule file needs: to import this module is to load it. Processes that are forked afterwards have all of it."""

from __future__ import annotations

from coset.editor import catalogue, judging
from coset.ir.registry import all_ops
from coset.rules.definition import definitions
from coset.rules.parser import grammar

assert catalogue and judging
all_ops()
definitions()
grammar()
