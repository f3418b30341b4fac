"""The types of the public names: a stub, since a start loads none of their modules."""

from coset.api import bisect as bisect
from coset.api import check as check
from coset.api import diff as diff
from coset.api import explain as explain
from coset.api import lower as lower
from coset.api import prove as prove
from coset.api import verify as verify
from coset.comparing.deadline import Unknown as Unknown
from coset.comparing.refused import Refused as Refused
from coset.comparing.samples import with_samples as with_samples
from coset.compiling import compile as compile
from coset.compiling import compiled_graphs as compiled_graphs
from coset.egraph.limits import Limits as Limits
from coset.ir.errors import CosetError as CosetError
from coset.optimizing.optimized import Optimized as Optimized
from coset.optimizing.pipeline import optimize as optimize
from coset.optimizing.running import load as load
from coset.rules.spelled import names as names
from coset.rules.spelled import op as op
from coset.rules.written import rule as rule

__version__: str
