"""Dual values of small linear programs by HiGHS. Its own package loads in 0.02 s, `scipy.optimize` in 0.3 s."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import highspy
import numpy as np

from coset.ir.op import Array


def dual_values(costs: Array, rows: Sequence[int], columns: Sequence[int], values: Sequence[float], limits: Array) -> Array | None:
    """The dual values (<= 0) of `matrix @ x <= limits` where `costs @ x` is least and no x is negative; None where there is no least.

    The matrix has `values` at `rows` and `columns`; where several are at one place, their sum.
    """
    places, at = np.unique(np.array(rows) * len(costs) + np.array(columns), return_inverse=True)  # HiGHS hangs where a place is there twice
    program = highspy.HighsLp()
    matrix: Any = program.a_matrix_  # whose types say f64 of integers, too
    program.num_col_ = matrix.num_col_ = len(costs)
    program.num_row_ = matrix.num_row_ = len(limits)
    matrix.format_ = highspy.MatrixFormat.kRowwise
    matrix.start_ = np.concatenate([[0], np.cumsum(np.bincount(places // len(costs), minlength=len(limits)))])
    matrix.index_ = places % len(costs)
    matrix.value_ = np.bincount(at, weights=values, minlength=len(places))
    program.col_cost_ = costs
    program.col_lower_, program.col_upper_ = np.zeros(len(costs)), np.full(len(costs), highspy.kHighsInf)
    program.row_lower_, program.row_upper_ = np.full(len(limits), -highspy.kHighsInf), limits
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.passModel(program)
    solver.run()
    return np.array(solver.getSolution().row_dual) if solver.getModelStatus() == highspy.HighsModelStatus.kOptimal else None
