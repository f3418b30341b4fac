"""What `coset.optimize` hands out: the checked program, its report, and how it is run, saved, sent and shown."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coset.comparing.reference import is_stablehlo, read_program, values_of
from coset.ir.program import Program
from coset.lowering.onnx.write import copy_model
from coset.optimizing import running
from coset.optimizing.draft import Draft

if TYPE_CHECKING:
    from coset.backends.onnxruntime import Session
    from coset.prove.certificate import Certificate


class Optimized:
    """An optimized, checked program: `program` (terms), `report` (what `--json` prints), callable on NumPy inputs, saved by `save`.
    `certificate`: where one was asked for and there is one; `report["certificate"]` says why there is none. It can be pickled: the file
    that was checked, the report and the certificate travel."""

    def __init__(self, program: Program | None, report: dict[str, Any], certificate: Certificate | None = None, *, draft: Draft) -> None:
        """`draft` holds the checked file; without a `program` it is read from there when it is asked for."""
        self.report = report
        self.certificate = certificate
        self._program = program
        self._draft = draft
        self._opened: Session | None = None

    @property
    def program(self) -> Program:
        """The optimized program as terms."""
        if self._program is None:
            self._program = read_program(self._draft.path)
        return self._program

    def save(self, path: str | Path) -> None:
        """Write the model: a copy of the file that was checked, beside the final name first, then renamed.

        Raises:
            CosetError: nothing can be written there.
        """
        copy_model(self._draft.path, Path(path))

    def __call__(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        """As `run`."""
        return self.run(feed)

    def run(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name on inputs by name: ONNX by ONNX Runtime as the model says, StableHLO by the evaluator."""
        if is_stablehlo(self._draft.path):
            return values_of(self.program, dict(feed))
        if self._opened is None:
            self._opened = running.load(self._draft.path)
        return self._opened.run(dict(feed))

    def __repr__(self) -> str:
        return f"<coset.Optimized: {', '.join(f'{name} {text}' for name, text in self._told())}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the summary as a table, then the rules."""
        rows = [
            *self._told(),
            *((rule["name"], f"{rule['count']} uses, {rule['numerics']}, {rule['assurance']}") for rule in self.report["rules"]),
        ]
        cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
        return f"<table>{cells}</table>"

    def _told(self) -> list[tuple[str, str]]:
        """What matters most, as pairs of a name and a text of one line."""
        nodes, cost, check = self.report["nodes"], self.report["cost"], self.report["check"]
        return [
            ("nodes", f"{nodes['before']} -> {nodes['after']}"),
            ("predicted", f"{cost['input'] * 1e3:.4g} -> {cost['output'] * 1e3:.4g} ms on {self.report['target']}"),
            ("numerics", self.report["numerics"]),
            ("check", f"equal within tolerance on {len(check['inputs'])} inputs, largest difference {check['max_abs']:.3g}"),
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        files = {path.name: path.read_bytes() for path in sorted(self._draft.path.parent.iterdir())}
        return _received, (self._draft.path.name, files, self.report, self.certificate)


def _received(name: str, files: Mapping[str, bytes], report: dict[str, Any], certificate: Certificate | None) -> Optimized:
    """What another process has sent, its files in a folder of this one."""
    draft = Draft(name)
    for each, data in files.items():
        (draft.path.parent / each).write_bytes(data)
    return Optimized(None, report, certificate, draft=draft)
