"""The jobs of the command line as functions, under the same names: each returns what `--json` prints (without
`report_version`), with the options as arguments.

`coset.optimize` is in `coset/optimizing/pipeline.py`. Models are paths of ONNX or StableHLO files, or an `onnx.ModelProto`. `rules` are
files of further rules, `dims` numbers for free dims, `progress` is told what is being done. Jobs of several threads run one after the
other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coset.egraph.limits import Limits
from coset.ir.errors import CosetError
from coset.ir.held import working_folder
from coset.job.admission import Admission
from coset.job.alone import alone
from coset.job.arguments import listed, numbered, required
from coset.job.job import Job
from coset.job.machine import find_target
from coset.rules.elaborated import LIBRARY, comes_with_coset
from coset.rules.lock import NAME, read_lock

if TYPE_CHECKING:
    from coset.comparing.feeds import Sample
    from coset.job.job import Progress
    from coset.prove.verdict import RuleVerdict
    from coset.rules.written import WrittenRule

Model = Any  # str | Path | onnx.ModelProto; the stub of onnx would be loaded for it
Rules = Sequence["str | Path | WrittenRule"]

SEARCHES = 4  # at most, in one stage of a proof
CHECKED = 600.0  # s for a comparison
SHOWN = ("proved", "bounded", "tested")  # what a rule may be required to be, the strongest first
EACH_RULE = 90.0  # s of the processor to draw and to prove it


def _silent(_: str) -> None:
    pass


@contextmanager
def _files(one: Model, other: Model) -> Iterator[tuple[Path, Path]]:
    """The paths of two models; a model that is no path is written where temporary files go."""
    with working_folder("coset-models-") as folder:
        yield _file(one, folder / "one.onnx"), _file(other, folder / "other.onnx")


def _file(model: Model, otherwise: Path) -> Path:
    if not hasattr(model, "SerializeToString"):
        required("model", model, str, Path, says="the path of a model or an onnx.ModelProto")
        return Path(model)
    otherwise.write_bytes(model.SerializeToString())
    return otherwise


@alone
def prove(
    before: Model, after: Model, *, numerics: str = "reassociates", rules: Rules = (), names: Mapping[str, str] | None = None,
    time_limit: float = 20.0, check_seconds: float = CHECKED, certificate: str | Path | None = None,
    counterexample: str | Path | None = None, allow_assumed: bool = False, dims: Mapping[str, int] | None = None,
    sample_inputs: Sequence[Sample] = (), progress: Progress = _silent,
) -> dict[str, Any]:  # fmt: skip
    """Whether two programs are one: `answer` is proved, refuted (with inputs that show it) or unknown (with how far it got).

    `names` says what inputs and outputs of `after` are called in `before`. `time_limit` are the seconds of each search, `check_seconds`
    those of the comparison. `certificate` and `counterexample` are files to write.

    Raises:
        CosetError: a model cannot be read, or the interfaces do not correspond. `RefutedRule`, `UnshownRule`: as `coset.optimize`.
    """
    from coset.comparing.deadline import Unknown, within
    from coset.job.machine import memory
    from coset.proving.prove import Proving, unanswered
    from coset.proving.prove import prove as run

    listed(rules=rules, sample_inputs=sample_inputs)
    proof, inputs = (None if each is None else Path(each) for each in (certificate, counterexample))
    sizes, longest = numbered("dims", dims), check_seconds + SEARCHES * time_limit
    with _files(before, after) as (one, other):
        asked = Proving(one, other, numerics, rules, sizes, names or {}, time_limit, proof, inputs, progress, allow_assumed, sample_inputs)
        try:
            work = lambda talk: run(replace(asked, progress=talk.say))  # noqa: E731
            return within(work, longest, say=progress, doing="the proof", each=True, memory=memory())
        except Unknown as error:
            return {"not_shown": [], **unanswered(error.message)}


@alone
def verify(
    certificate: str | Path, before: Model, after: Model, *, rules: Sequence[str | Path] = (), names: Mapping[str, str] | None = None,
    prove_rules: bool = False, allow_assumed: bool = False, progress: Progress = _silent,
) -> dict[str, Any]:  # fmt: skip
    """Whether the certificate shows that two programs are one (`ok`), what that rests on, or the `reason` why not.

    `rules` are those that it was made with beside the library's; `names` as for `prove`. With `prove_rules` no lock file is believed: the
    rules and definitions that are used are tested and proved anew.

    Raises:
        CosetError: a file cannot be read, or is no model, rule file or certificate.
    """
    from coset.proving.verify import verify_files

    with _files(before, after) as (one, other):
        return verify_files(
            Path(certificate), one, other, rules, names=names, prove_rules=prove_rules,
            allow_assumed=allow_assumed, progress=progress,
        )  # fmt: skip


@alone
def diff(
    first: Model, second: Model, *, html: str | Path | None = None, numerics: str = "reassociates", rules: Rules = (),
    allow_assumed: bool = False, time_limit: float = 5.0, check_seconds: float = CHECKED, dims: Mapping[str, int] | None = None,
    sample_inputs: Sequence[Sample] = (),
) -> dict[str, Any]:  # fmt: skip
    """The outputs of two models beside each other on drawn and adversarial inputs (`ok`), and their graphs node by node.

    `html` is a page to write, with both graphs. Nodes are paired by a search of `time_limit` seconds; 0 pairs equal terms only. `rules` say
    what nodes of the user's own ops mean, and pair nodes too.

    Raises:
        CosetError: a model cannot be read, or the first one runs on no drawn input. `RefutedRule`, `UnshownRule`: as `coset.optimize`.
        `coset.Unknown`: the comparison did not end in time.
    """
    from coset.comparing.deadline import within
    from coset.job.machine import memory
    from coset.job.own_rules import own_rules
    from coset.reporting.differing import Asked, differing

    listed(rules=rules)
    own = own_rules(rules, allow_assumed=allow_assumed)
    with _files(first, second) as (one, other):
        asked = Asked(str(one), str(other), dims or {}, numerics, time_limit, None if html is None else Path(html), sample_inputs, own)
        return within(lambda _: differing(asked), check_seconds + time_limit, memory=memory())


@alone
def check(
    *files: str | Path, anew: bool = False, accept_weaker: bool = False, time_limit: float = EACH_RULE, require: str | None = None,
    smt: str | Path | None = None, progress: Progress = _silent,
) -> dict[str, Any]:  # fmt: skip
    """The verdicts on the rules of `files` (none: the whole library), each parsed, type-checked, drawn and proved.

    `ok` is True if nothing is refuted, unknown or a mistake, and no verdict is weaker than the one that a lock file has. Then the lock
    files beside the rules are written, with weaker verdicts if `accept_weaker`. `anew` looks again at what has not changed; `time_limit`
    are seconds of the processor for each rule; `smt` is a folder for each question to Z3 (it implies `anew`).
    """
    found = checked(files, anew=anew, accept_weaker=accept_weaker, time_limit=time_limit, require=require, smt=smt, progress=progress)
    return found.summary()


class Checked:
    """What a check of rule files found: the `verdicts`, the mistakes in files (`errors`), the verdicts that are `weaker` than before or
    `below` what is required, and the names of those that are `unknown` or `taken` by rules of the library."""

    def __init__(
        self, verdicts: Sequence[RuleVerdict], errors: Sequence[CosetError], weaker: Sequence[RuleVerdict], require: str | None
    ) -> None:  # fmt: skip
        self.verdicts, self.errors, self.weaker = verdicts, errors, weaker
        most = () if require is None else SHOWN[: SHOWN.index(require) + 1]
        self.below = [each for each in verdicts if most and each.assurance not in (*most, "refuted", "unknown")]
        self.unknown = [verdict.name for verdict in verdicts if verdict.assurance == "unknown"]
        library = read_lock(LIBRARY / NAME)
        self.taken = [each.name for each in verdicts if each.name in library and not comes_with_coset(Path(each.file).parent)]

    @property
    def holds(self) -> bool:
        """Whether nothing is refuted, a mistake, weaker than before or below what is required."""
        return not self.errors and not self.weaker and not self.below and all(verdict.ok for verdict in self.verdicts)

    def summary(self) -> dict[str, Any]:
        """What `--json` prints, and whether all is well."""
        from coset.console.verdicts import verdict_summary

        weaker, below = ([verdict.name for verdict in those] for those in (self.weaker, self.below))
        return {
            **verdict_summary(self.verdicts, self.errors),
            "ok": self.holds and not self.unknown,
            "weaker": weaker,
            "below": below,
            "unknown": self.unknown,
            "taken": self.taken,
        }


@alone
def checked(
    files: Sequence[str | Path],
    *,
    anew: bool,
    accept_weaker: bool,
    time_limit: float,
    require: str | None,
    smt: str | Path | None,
    progress: Progress,
) -> Checked:
    """As `check`, with what was found as it is."""
    import coset.dialects
    from coset.job.kernels import kernel_errors
    from coset.prove.check import verify as run
    from coset.prove.obligations import recording
    from coset.prove.verdict import prune_locks, weaker, write_lock
    from coset.rules.library import DEFAULT

    assert coset.dialects
    if require is not None and require not in SHOWN:
        raise CosetError(f"there is no assurance `{require}`", help=f"one of: {', '.join(SHOWN)}")
    paths = [Path(file) for file in files]
    with nullcontext() if smt is None else recording(Path(smt)):
        verdicts, errors = run(paths or DEFAULT, anew=anew or smt is not None, seconds=time_limit)
    errors += kernel_errors(paths)
    found = Checked(verdicts, errors, [] if errors or accept_weaker else weaker(verdicts), require)
    for name in found.taken:
        progress(f"warning: the library has a rule `{name}`; `--rules` takes no second one of the name: give yours another")
    if found.holds:
        write_lock(verdicts)
        for name in prune_locks(paths or DEFAULT):
            progress(f"the lock file forgets `{name}`: no rule file beside it has an entry of this name")
    return found


@alone
def explain(model: Model, rule: str, *, at: str | None = None, **options: Any) -> dict[str, Any]:
    """Where the rules of one name match in a model (`matched`), how much of the chosen program they made (`used`), and else the nearest
    places and what fails there (`nearest`, `reasons`).

    `rule` is a rule, an entry of the library or an op that has a definition; `at` the value of the model at which it should match. The
    further options are those of `coset.optimize`: target, numerics, limits, rules, allow_assumed, disable_rules, only_rules, dims,
    progress.

    Raises:
        CosetError: there is no such rule or value, or the model cannot be read.
    """
    from coset.explaining.explain import ExplainedRule
    from coset.explaining.explain import explain as run

    required("rule", rule, str)
    return run(ExplainedRule(_job(model, **options), rule, at))


@alone
def bisect(
    model: Model, *, max_abs: float | None = None, max_rel: float | None = None, sample_inputs: Sequence[Sample] = (), **options: Any
) -> dict[str, Any]:
    """Whether an optimized model's outputs stay `within` bounds, and else the rules and the values of the model that are to blame.

    `max_abs` is how far an output may be off, in its unit, `max_rel` the same as a share of its largest element; without both it is what
    `coset.optimize` allows. The further options are those of `explain`.

    Raises:
        CosetError: the model cannot be read.
    """
    from coset.explaining.bisect import Bounds
    from coset.explaining.bisect import bisect as run

    return run(replace(_job(model, **options), samples=sample_inputs), Bounds(max_abs, max_rel))


def _job(
    model: Model, *, target: str | Path | None = None, numerics: str = "reassociates", limits: Limits | None = None, rules: Rules = (),
    allow_assumed: bool = False, disable_rules: Sequence[str] = (), only_rules: Sequence[str] = (), dims: Mapping[str, int] | None = None,
    progress: Progress = _silent,
) -> Job:  # fmt: skip
    """What `coset.optimize` would do with the same options."""
    from coset.optimizing.pipeline import default_target

    listed(rules=rules, disable_rules=disable_rules, only_rules=only_rules)
    admission = Admission(tuple(disable_rules), tuple(only_rules))
    found = find_target(target or default_target(model))
    return Job(
        model,
        found,
        numerics,
        limits or Limits(),
        rules,
        numbered("dims", dims),
        progress,
        admission=admission,
        allow_assumed=allow_assumed,
    )


@alone
def lower(
    model: Model, output: str | Path, *, target: str | Path = "nvidia-h200", numerics: str = "reassociates", limits: Limits | None = None,
    rules: Sequence[str | Path] = (), dims: Mapping[str, int] | None = None, code: str = "triton", check: str = "torch",
    max_memory: int | None = None, profile: str | Path | None = None, streams: int | None = None, atomics: bool = False,
    allow_assumed: bool = False, disable_rules: Sequence[str] = (), only_rules: Sequence[str] = (), sample_inputs: Sequence[Sample] = (),
    check_seconds: float = CHECKED, progress: Progress = _silent,
) -> dict[str, Any]:  # fmt: skip
    """Lower a model to the folder `output`, an importable Python package that needs torch and not coset; returns what is said of it.

    `code` is triton (fused kernels), torch (the same as torch functions) or aten (one call for each op). `check` says how the package is
    compared with the reference: torch, interpreted (in Triton's interpreter) or none. `max_memory` are the bytes that temporaries may
    take at once. `profile` is what `coset tune` wrote. `streams` is how many kernels may run beside each other in a captured graph. With
    `atomics` scattered sums of floats come in any order.

    Raises:
        CosetError: bad input, or options that do not go together. `Refused`: the package differs from the model.
    """
    from coset.packaging.asked import Check, Lowering
    from coset.packaging.lower import lower as run

    if check not in [each.value for each in Check]:
        raise CosetError(f"there is no check `{check}`", help=f"one of: {', '.join(each.value for each in Check)}")
    asked = Lowering(
        model, find_target(target), numerics, limits or Limits(), rules, dims or {}, code, Check(check), progress,
        max_memory=max_memory, atomics=atomics, profile=None if profile is None else Path(profile), streams=streams,
        admission=Admission(tuple(disable_rules), tuple(only_rules)), allow_assumed=allow_assumed, samples=sample_inputs,
        check_seconds=check_seconds,
    )  # fmt: skip
    return run(asked, Path(output))
