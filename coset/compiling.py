"""`torch.compile(backend="coset")` and `coset.compile`: what a Dynamo graph becomes, and what was done of it.

Nothing here imports torch before it is used: `coset.frontends.torch.capture` and `coset.backends.torch_loaded` do.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import logging
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coset.backends.torch_package import INSTALL
from coset.backends.tuning_profile import reading
from coset.egraph.limits import Limits
from coset.ir.errors import CosetError
from coset.ir.extras import MissingExtra
from coset.ir.suggestions import like
from coset.job.alone import alone
from coset.job.own_rules import not_shown_lines
from coset.packaging.asked import Check, Lowering
from coset.packaging.lower import lower
from coset.pricing.plan_price import PlanPrices
from coset.rules.equation import NUMERICS_ORDER
from coset.targets.target import Target, all_targets, get_target

if TYPE_CHECKING:
    from coset.frontends.torch.fx import Imported
    from coset.frontends.torch.kept import Keeping, Kept
    from coset.frontends.torch.parts import Fallback

LOGGER = logging.getLogger("coset")
CODES = ("auto", "triton", "torch", "aten")
MOST_KEPT = 512  # parts that are known again; those in use live on by themselves
ANY_GPU = "nvidia-h100"  # whose plans are taken where the device is none that a target describes


@dataclass(frozen=True)
class TorchOptions:
    """How parts of a torch program are compiled; each field is a key of `torch.compile`'s `options`.

    `target`: a target's name (None: that of the device). `code`: `triton`, `torch` (torch functions in place of Triton kernels), `aten`
    (one op after the other), or `auto`: Triton on a GPU, `aten` elsewhere. `numerics`, `rules`, `allow_assumed`: as `coset.optimize` takes
    them.
    `seconds`, `nodes`: limits of the search of one part. `check`: compare each part with its reference meaning before it is used.
    `folder`: where packages are kept to be read (None: they go with the process). `max_memory`: bytes that the temporaries of one part may
    take at once; a part that cannot keep to it runs in torch, and is said. `max_kept`: bytes that a forward graph may keep for its backward
    graph beside inputs, weights and results; where no way was found, the one that keeps least is taken, and that is said. `profile`: a file
    of `coset tune`, whose numbers kernels take.

    Raises:
        CosetError: there is no such target, code, numerics or profile, or a limit is not positive.
    """

    target: str | None = None
    code: str = "auto"
    numerics: str = "reassociates"
    rules: Sequence[str | Path] = ()
    seconds: float = 4.0
    nodes: int = 20_000
    check: bool = True
    folder: str | Path | None = None
    max_memory: int | None = None
    max_kept: int | None = None
    profile: str | Path | None = None
    allow_assumed: bool = False

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise CosetError(f"there is no code `{self.code}`", help=f"one of: {', '.join(CODES)}")
        if self.numerics not in NUMERICS_ORDER:
            raise CosetError(f"there are no numerics `{self.numerics}`", help=f"one of: {', '.join(NUMERICS_ORDER)}")
        if self.target is not None and get_target(self.target).dialect != "torch":
            raise CosetError(f"the target `{self.target}` is not lowered to torch", help=f"one of: {', '.join(_torch_targets())}")
        if self.max_memory is not None and (self.max_memory < 1 or self.code == "aten"):
            why = "it has to be 1 or more" if self.max_memory < 1 else "the code `aten` has no plan whose memory could be limited"
            raise CosetError(f"`max_memory` is {self.max_memory}: {why}", help="give bytes, and `triton` or `torch` for `code`")
        if self.max_kept is not None and (self.max_kept < 0 or self.code == "aten"):
            why = "it has to be 0 or more" if self.max_kept < 0 else "the code `aten` has no plan by whose price it could be chosen"
            raise CosetError(f"`max_kept` is {self.max_kept}: {why}", help="give bytes, and `triton` or `torch` for `code`")
        Limits(seconds=self.seconds, nodes=self.nodes)
        if self.profile is not None:
            if self.code == "aten":
                raise CosetError("the code `aten` has no kernels that a profile could speak of", help="leave `profile` out")
            with reading(Path(self.profile)):
                """It is there, and it is one."""


def options_of(given: Mapping[str, Any] | None) -> TorchOptions:
    """The options that a dictionary gives by name.

    Raises:
        CosetError: one is none, or has a wrong value.
    """
    known = [each.name for each in fields(TorchOptions)]
    for name in given or {}:
        if name not in known:
            raise CosetError(f"there is no option `{name}`", help=like(name, known) or f"one of: {', '.join(known)}")
    return TorchOptions(**dict(given or {}))


def _torch_targets() -> list[str]:
    return [target.name for target in all_targets() if target.dialect == "torch"]


# ---------------------------------------------------------------- what was done


@dataclass(frozen=True)
class CompiledPart:
    """One package: how many ops torch had, the kernels as the package's manifest lists them, the seconds by stage, whether it was compared
    with its reference, and where it lies. `memory`: bytes of its temporaries and predicted seconds, with and without a limit (None where
    the code has no plan). `reused`: an equal part was compiled before."""

    ops: int
    symbols: tuple[str, ...]
    kernels: tuple[Mapping[str, Any], ...]
    seconds: Mapping[str, float]
    checked: bool
    folder: Path
    memory: Mapping[str, Any] | None = None
    reused: bool = False


@dataclass(frozen=True)
class CompiledGraph:
    """One graph that torch gave: `kind` is forward, backward or inference; `seconds` is all time spent on it. `kept`: of a forward graph,
    what it keeps for its backward graph (None where torch chose that). `later`: the parts that failed in a call, which torch then made."""

    kind: str
    parts: tuple[CompiledPart, ...]
    fallbacks: tuple["Fallback", ...]
    seconds: float
    kept: "Kept | None" = None
    later: Sequence["Fallback"] = ()


_GRAPHS: list[CompiledGraph] = []


def compiled_graphs() -> tuple[CompiledGraph, ...]:
    """The graphs that were compiled in this process since `forget_graphs`, oldest first."""
    return tuple(_GRAPHS)


def forget_graphs() -> None:
    """Begin the list of compiled graphs anew. What was compiled stays so."""
    _GRAPHS.clear()


# ---------------------------------------------------------------- the backend


@alone
def backend(module: Any, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, mode: str | None = None,
            **more: Any) -> Callable[..., Any]:  # fmt: skip
    """What `torch.compile(backend="coset", options=..)` calls with a Dynamo graph: its compiled form.

    Raises:
        CosetError: an option is wrong, or there is a `mode`.
    """
    if mode not in (None, "default"):
        raise CosetError(
            f"the backend `coset` has no mode `{mode}`", help=f"say options={{..}}: {', '.join(f.name for f in fields(TorchOptions))}"
        )
    if more:
        raise CosetError(f"the backend `coset` takes no `{next(iter(more))}`", help="it takes options={..}")
    from coset.frontends.torch.capture import capture
    from coset.frontends.torch.kept import Keeping

    work = _Work(options_of(options))
    if work.options.code in ("triton", "torch") or (
        work.options.code == "auto" and any(each.is_cuda for each in example_inputs if hasattr(each, "is_cuda"))
    ):
        work.keeping = Keeping(work.price, work.options.max_kept)
    elif work.options.max_kept is not None:
        raise CosetError(
            "what is kept is chosen by the prices of a plan, which op-by-op code has not", help="give `triton` or `torch` for `code`"
        )
    return capture(module, example_inputs, work.part, work.record, keeping=work.keeping)


def compile(module: Any, *, dynamic: bool | None = None, fullgraph: bool = False, **options: Any) -> Any:
    """A torch module or function that coset compiles as it is called: `torch.compile` with this backend.

    `dynamic`: True for sizes that change without a compilation; None lets torch decide at the first change. `fullgraph`: a graph break
    is an error. `options`: those of `TorchOptions`.

    Raises:
        MissingExtra: torch is not installed.
        CosetError: an option is wrong.
    """
    if importlib.util.find_spec("torch") is None:
        raise MissingExtra("torch is not installed", help=INSTALL)
    options_of(options)
    torch = importlib.import_module("torch")
    return torch.compile(module, backend=partial(backend, options=options), dynamic=dynamic, fullgraph=fullgraph)


@dataclass
class _Work:
    """What is done of one Dynamo graph."""

    options: TorchOptions
    started: float = field(default_factory=time.perf_counter)
    parts: list[CompiledPart] = field(default_factory=list)
    keeping: "Keeping | None" = None

    def price(self, imported: Imported, device: Any) -> float:
        """Predicted seconds of a part as it is, before any search.

        Raises:
            CosetError: no kernels can be planned for it.
        """
        numerics = self.options.numerics
        return PlanPrices(self._target(device), dict(imported.hints), numerics=numerics, lays=False).seconds(imported.program)

    def part(self, imported: Imported, device: Any) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """The part as a function of tensors; an equal one that was compiled before in this process is used again.

        Raises:
            CosetError: it cannot be lowered, or differs from its reference.
        """
        asked = self._asked(imported, device)
        key = (imported.program.inputs, imported.program.roots, str(device), asked.target.name, asked.code, self.options.numerics,
               tuple(map(str, self.options.rules)), self.options.allow_assumed, asked.check, self.options.folder, self.options.max_memory,
               self.options.profile and (str(self.options.profile), Path(self.options.profile).stat().st_mtime_ns))  # fmt: skip
        done = _PARTS.get(key)
        if done is None:
            if len(_PARTS) >= MOST_KEPT:
                del _PARTS[next(iter(_PARTS))]
            done = _PARTS[key] = self._compiled(asked, imported, device)
            self.parts.append(done[1])
        else:
            self.parts.append(replace(done[1], reused=True))
        return done[0]

    def _asked(self, imported: Imported, device: Any) -> Lowering:
        options, gpu = self.options, device.type == "cuda"
        code = options.code if options.code != "auto" else "triton" if gpu else "aten"
        interpreted = code == "triton" and not gpu
        check = Check.NONE if not options.check else Check.INTERPRETED if interpreted else Check.TORCH
        target = self._target(device)
        limits = Limits(seconds=options.seconds, nodes=options.nodes)
        return Lowering(
            imported.program, target, options.numerics, limits, options.rules, dict(imported.hints), code, check,
            lambda text: LOGGER.debug(text), _in_this_process, options.max_memory,
            profile=None if options.profile is None or code == "aten" else Path(options.profile), streams=1,
            allow_assumed=options.allow_assumed,
        )  # fmt: skip

    def _target(self, device: Any) -> Target:
        return get_target(self.options.target or (target_of(device) if device.type == "cuda" else ANY_GPU))

    def _compiled(self, asked: Lowering, imported: Imported, device: Any) -> _Done:
        from coset.backends.torch_loaded import LoadedPackage

        folder = _folder(self.options.folder)
        report = lower(asked, folder)
        for line in not_shown_lines(report):
            LOGGER.warning("%s", line)
        package = LoadedPackage(folder, device)
        checked = bool(report["check"].get("ok"))
        part = CompiledPart(
            imported.ops, imported.program.symbols(), tuple(report["kernels"]), report["seconds"], checked, folder, report["memory"]
        )
        return package, part

    def record(self, kind: str, _: Sequence[Imported], fallbacks: Sequence[Fallback]) -> Callable[[Fallback], None]:
        """Enter a graph, and say what of it torch runs; what is given hears of what torch had to run later, in a call."""
        now = time.perf_counter()
        kept = self.keeping.found if self.keeping is not None and kind == "forward" else None
        later: list[Fallback] = []
        _GRAPHS.append(CompiledGraph(kind, tuple(self.parts), tuple(fallbacks), now - self.started, kept, later))
        if kept is not None and kept.limit is not None and kept.bytes > kept.limit:
            LOGGER.warning("%d bytes are kept for the backward pass: no way was found that keeps at most %d", kept.bytes, kept.limit)
        self.parts, self.started = [], now
        for fallback in fallbacks:
            LOGGER.warning("%s", fallback)

        def tell(fallback: Fallback) -> None:
            later.append(fallback)
            LOGGER.warning("%s", fallback)

        return tell


_Done = tuple[Callable[[Sequence[Any]], Sequence[Any]], CompiledPart]
_PARTS: dict[Any, _Done] = {}
_COUNT = itertools.count()
_PLACES: list[Any] = []  # the folder of this process, removed when it ends


def _in_this_process(folder: Path, _: bool) -> Any:
    from coset.backends.torch_loaded import LoadedPackage

    return LoadedPackage(folder)


def _folder(wanted: str | Path | None) -> Path:
    """A new folder for a package."""
    if wanted is None:
        if not _PLACES:
            _PLACES.append(tempfile.TemporaryDirectory(prefix="coset-torch-"))
        wanted = _PLACES[0].name
    while True:
        folder = Path(wanted) / f"part_{next(_COUNT)}"
        if not folder.exists():
            return folder


def target_of(device: Any) -> str:
    """The target that describes a GPU, by its name; another one of its maker where none does.

    Raises:
        MissingExtra: torch is not installed.
    """
    torch = importlib.import_module("torch")
    name = torch.cuda.get_device_name(device).lower()
    for target in _torch_targets():
        if target.split("-")[-1] in name:
            return target
    LOGGER.warning("no target describes the device `%s`: it is compiled for as %s is", name, ANY_GPU)
    return ANY_GPU
