"""The second checker of certificates from the command line.

    python -m coset.second CERTIFICATE BEFORE AFTER [--rules FILE].. [--map AFTER_NAME=BEFORE_NAME]..

Prints its answer; the exit status is 0 where it accepts, 1 where it rejects, 2 where it cannot say.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import coset.dialects
from coset.job.own_rules import node_ops
from coset.prove import second
from coset.prove.certificate import Rejected
from coset.prove.certificate_file import read_certificate
from coset.proving.verify import read_certified
from coset.rules.library import DEFAULT, load, read_text

assert coset.dialects  # imported so that every op is registered

ROOT = Path(coset.dialects.__file__).parents[1]
LIBRARY = (*sorted((ROOT / "rules" / "library").glob("*.rules")), *sorted((ROOT / "dialects").glob("*/*.rules")))
STATUS = {second.ACCEPTS: 0, second.REJECTS: 1, second.CANNOT_SAY: 2}


def main() -> int:
    """Check what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("certificate", type=Path)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--rules", type=Path, action="append", default=[])
    parser.add_argument("--map", action="append", default=[])
    given = parser.parse_args()
    names = dict(pair.split("=", 1) for pair in given.map)
    try:
        load([*DEFAULT, *given.rules])  # which registers the ops that these files define
        own = node_ops(map(read_text, given.rules))
        programs = read_certified(read_certificate(given.certificate), given.before, given.after, own)
    except Rejected as error:
        print(error.message)
        return STATUS[second.REJECTS]
    answer = second.verify(given.certificate, *programs, [*LIBRARY, *given.rules], names=names)
    print(answer)
    for rule, promise in answer.promises:
        print(f"  {rule}: {promise}")
    return STATUS[answer.verdict]


if __name__ == "__main__":
    sys.exit(main())
