"""A path: one certified result per C, as a list, as a table, as arrays of weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..run.result import Result
from ..util.arrays import Array
from ..util.extras import need
from ..util.tables import html, plain_table


@dataclass(frozen=True, eq=False)
class Path:
    """One certified result per C, in increasing order.

    It has a length, is iterated over, and indexed by number, like a list of results.

    Parameters
    ----------
    results : list of Result
    """

    results: list[Result]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __getitem__(self, which: int) -> Result:
        return self.results[which]

    @cached_property
    def C(self) -> Array:
        """(points,): C, the largest where there is one per sample."""
        return np.array([float(np.max(r.problem.costs)) for r in self.results])

    @cached_property
    def weights(self) -> Array:
        """(points, M): the kernel weights."""
        return np.array([r.weights for r in self.results])

    @property
    def converged(self) -> bool:
        """Whether every point was solved to the tolerance."""
        return all(r.converged for r in self.results)

    def to_frame(self, intervals: bool = False) -> Any:
        """The path as a table.

        Parameters
        ----------
        intervals : bool, default=False
            Also how many kernels are proved to be used, and not to be used, by every
            minimizer: `used` and `unused`. It takes up to three passes per point.

        Returns
        -------
        pandas.DataFrame
            One row per point: C, status, lower, upper, gap, active (the kernels in
            use), seconds, passes.
        """
        need("pandas")
        import pandas as pd

        rows = [
            {
                "C": C,
                "status": result.status,
                "lower": result.certificate.lower,
                "upper": result.certificate.upper,
                "gap": result.relative_gap,
                "active": int(np.sum(result.certificate.norms > 0)),
                "seconds": result.trace.last("seconds"),
                "passes": result.trace.last("passes"),
            }
            for C, result in zip(self.C, self.results)
        ]
        if intervals:
            for row, result in zip(rows, self.results):
                row["used"], row["unused"] = result.intervals().counts
        return pd.DataFrame(rows)

    def _repr_html_(self) -> str:
        rows = self.to_frame()
        table = plain_table("", ["status"], [c for c in rows.columns if c != "status"])
        for _, row in rows.iterrows():
            digits = {"lower": 6, "upper": 6}  # of the others 3
            cells = row.drop("status").items()
            numbers = [f"{v:.{digits.get(name, 3)}g}" for name, v in cells]
            table.add_row(row["status"], *numbers)
        return html(table, repr(self))

    def __repr__(self) -> str:
        worst = max(r.relative_gap for r in self.results)
        ends = f"C = {self.C[0]:.3g} … {self.C[-1]:.3g}"
        return f"Path({len(self)} points, {ends}, worst relative gap {worst:.1e})"
