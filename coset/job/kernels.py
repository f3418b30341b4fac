"""`kernel .. on TARGET`: what is said of a target in a rule file, against what the target itself says."""

from __future__ import annotations

from collections.abc import Container, Sequence
from pathlib import Path

from coset.ir.errors import CosetError
from coset.ir.op import Op
from coset.rules.definition import kernels, target_name
from coset.rules.library import rule_files
from coset.rules.syntax import RuleError
from coset.targets.target import EVERY, Target, get_target, target_names


def kernel_errors(paths: Sequence[Path] | None = None) -> list[RuleError]:
    """Kernels of targets that there are not, or that have no price for them: such a kernel would never be chosen. Those of the files of
    `paths`, or all that were read."""
    return errors_of_kernels(None if paths is None else {str(path) for path in rule_files(path for path in paths if path.exists())})


def errors_of_kernels(files: Container[str] | None) -> list[RuleError]:
    """As `kernel_errors`, for files by name, which need not be there."""
    errors: list[RuleError] = []
    for kernel in kernels():
        if files is not None and kernel.entry.place.file not in files:
            continue
        for name in kernel.entry.targets:
            try:
                target = get_target(target_name(name))
            except CosetError:
                known = ", ".join(each.replace("-", "_") for each in target_names())
                errors.append(RuleError(f"there is no target `{name.value}`", place=name.place, help=f"there are: {known}"))
                continue
            if not prices(target, kernel.op):
                file = target.file or f"targets/{target.name}.toml"
                help = f'add {{ ops = "{kernel.op}", kernel = ".." }} to legal.forms in {file}: what it takes there'
                errors.append(RuleError(f"the target `{name.value}` has no price for `{kernel.op}`", place=name.place, help=help))
    return errors


def prices(target: Target, op: Op) -> bool:
    """Whether the target says what the op takes: in a form of its own, or in that of its whole dialect."""
    return bool(target.forms.get(op.name, target.dialect in (op.dialect, EVERY)))
