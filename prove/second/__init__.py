"""A second checker of certificates, written from `docs/certificates.md` and `docs/rules.md` alone.

It shares with the first one the readers of models, the types and type rules of the ops, and dims. Its reader of rules, matching, equality,
values and bounds are its own.
"""

from coset.prove.second.answer import ACCEPTS, CANNOT_SAY, REJECTS, Answer
from coset.prove.second.check import answered, verify
from coset.prove.second.language import read
from coset.prove.second.syntax import Entry

__all__ = ["ACCEPTS", "CANNOT_SAY", "REJECTS", "Answer", "Entry", "answered", "read", "verify"]
