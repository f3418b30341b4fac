"""HiGHS as scipy holds it: dual values of small linear programs without the 0.3 s that `scipy.optimize` takes to load."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

import numpy as np

from coset.ir.op import Array

CORE = "scipy.optimize._highspy._core"  # scipy 1.15 and later; private, so that `linprog` stands in where it is not as expected


def dual_values(costs: Array, rows: Sequence[int], columns: Sequence[int], values: Sequence[float], limits: Array) -> Array | None:
    """The dual values (<= 0) of `matrix @ x <= limits` where `costs @ x` is least and no x is negative; None where there is no least.

    The matrix has `values` at `rows` and `columns`; where several are at one place, their sum.
    """
    places, at = np.unique(np.array(rows) * len(costs) + np.array(columns), return_inverse=True)  # HiGHS hangs where a place is there twice
    starts = np.concatenate([[0], np.cumsum(np.bincount(places // len(costs), minlength=len(limits)))])
    matrix = starts, places % len(costs), np.bincount(at, weights=values, minlength=len(places))
    core = _core()
    return _by_linprog(costs, matrix, limits) if core is None else _by_core(core, costs, matrix, limits)


def _core() -> Any:
    """The extension module itself; None where scipy has it not."""
    if CORE not in sys.modules:
        spec, path = None, None
        for end in ("scipy", "scipy.optimize", "scipy.optimize._highspy", CORE):
            spec = PathFinder.find_spec(end, path)
            if spec is None or spec.loader is None:
                return None
            path = spec.submodule_search_locations
        assert spec is not None and spec.loader is not None
        sys.modules[CORE] = module = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except ImportError:
            del sys.modules[CORE]
            return None
    return sys.modules[CORE] if hasattr(sys.modules[CORE], "_Highs") else None


def _by_core(core: Any, costs: Array, matrix: tuple[Array, Array, Array], limits: Array) -> Array | None:
    program = core.HighsLp()
    program.num_col_ = program.a_matrix_.num_col_ = len(costs)
    program.num_row_ = program.a_matrix_.num_row_ = len(limits)
    program.a_matrix_.format_ = core.MatrixFormat.kRowwise
    program.a_matrix_.start_, program.a_matrix_.index_, program.a_matrix_.value_ = matrix
    program.col_cost_ = costs
    program.col_lower_, program.col_upper_ = np.zeros(len(costs)), np.full(len(costs), core.kHighsInf)
    program.row_lower_, program.row_upper_ = np.full(len(limits), -core.kHighsInf), limits
    solver = core._Highs()
    options = core.HighsOptions()
    options.output_flag = False
    solver.passOptions(options)
    solver.passModel(program)
    solver.run()
    return np.array(solver.getSolution().row_dual) if solver.getModelStatus() == core.HighsModelStatus.kOptimal else None


def _by_linprog(costs: Array, matrix: tuple[Array, Array, Array], limits: Array) -> Array | None:
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    starts, columns, values = matrix
    held = csr_array((values, columns, starts), shape=(len(limits), len(costs)))
    result = linprog(costs, A_ub=held, b_ub=limits, bounds=(0, None), method="highs")
    return None if result.status else np.array(result.ineqlin.marginals)
