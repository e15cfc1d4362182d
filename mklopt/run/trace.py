"""The trace of a run: one row per certified iterate, with time, passes and bounds."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..util.archives import read_archive, write_archive
from ..util.extras import need

Array = np.ndarray
COLUMNS = {
    "iteration": "number of the iterate, from 0; not all are certified",
    "seconds": "time since the start, certificates included",
    "solver_seconds": "time spent inside the solver",
    "passes": "passes over the kernels, certificates included",
    "svm_solves": "inner problems solved so far, as the solver reports",
    "rounds": "rounds of the oracle, or epochs, so far, as the solver reports",
    "primal": "C Σ V + Ω at this iterate",
    "dual": "the dual value at this iterate",
    "gap": "(best primal − best dual so far) / |best primal|",
    "active": "kernels with more than 1e-6 of the largest weight",
}
WHOLE = ("iteration", "svm_solves", "rounds", "active")


class Trace:
    """One row per certified iterate; columns are arrays: trace.seconds, trace.gap.

    Parameters
    ----------
    columns : dict, optional
        The first entries of each column; COLUMNS lists the columns.
    **about
        A description of the run: solver, problem, tol.
    """

    def __init__(self, columns: dict[str, Any] | None = None, **about: Any):
        self._rows = {name: list((columns or {}).get(name, [])) for name in COLUMNS}
        self.about = about

    def append(self, **row: float) -> None:
        """Add one row.

        Parameters
        ----------
        **row : float
            A number for every column.
        """
        for name in COLUMNS:
            self._rows[name].append(float(row[name]))

    def last(self, name: str, back: int = 0) -> float:
        """The newest entry of a column, or one before it.

        Parameters
        ----------
        name : str
            The column.
        back : int
            How many rows before the newest.

        Returns
        -------
        float
            The entry.
        """
        return float(self._rows[name][-1 - back])

    def __len__(self) -> int:
        return len(self._rows["iteration"])

    def __getitem__(self, name: str) -> Array:
        return np.array(self._rows[name], dtype=int if name in WHOLE else float)

    def __getattr__(self, name: str) -> Array:
        if name in COLUMNS:
            return self[name]
        raise AttributeError(f"a trace has no column {name!r}; it has {list(COLUMNS)}")

    def __str__(self) -> str:
        if not len(self):
            return "no iterates"
        count = "1 iterate" if len(self) == 1 else f"{len(self)} iterates"
        passes, seconds = self.last("passes"), self.last("seconds")
        return f"{count}, {seconds:.2f} s, {passes:.1f} passes"

    def __repr__(self) -> str:
        return f"Trace({self})"

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row per iterate."""
        need("pandas")
        import pandas as pd

        return pd.DataFrame(self.arrays())

    def arrays(self) -> dict[str, Array]:
        """All columns by name."""
        return {name: self[name] for name in COLUMNS}

    def save(self, path: str | os.PathLike) -> None:
        """Write one NumPy archive without pickles. A failure leaves no partial file.

        Parameters
        ----------
        path : str or path
            The file.
        """
        write_archive(path, self.arrays(), {"kind": "trace", "about": self.about})

    @classmethod
    def load(cls, path: str | os.PathLike) -> Trace:
        """Read a trace that `save` wrote.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        Trace
            The trace.
        """
        arrays, about = read_archive(path, "trace")
        return cls(read_columns(path, arrays), **about["about"])


def read_columns(path: str | os.PathLike, arrays: dict[str, Array]) -> dict[str, list]:
    """The columns of a trace from the arrays of a file; all must have one length."""
    missing = [name for name in COLUMNS if name not in arrays]
    if missing:
        raise ValueError(f"{path} has no column {', '.join(missing)} of a trace")
    shapes = {arrays[name].shape for name in COLUMNS}
    numbers = all(arrays[name].dtype.kind in "fiu" for name in COLUMNS)
    if len(shapes) > 1 or len(shapes.pop()) != 1 or not numbers:
        raise ValueError(f"{path} has columns that are not those of one trace")
    whole = [arrays[name] for name in WHOLE]
    if not all(np.all(np.abs(column) < 2.0**53) for column in whole):
        raise ValueError(f"{path} has counts in its trace that are not whole numbers")
    return {name: arrays[name].tolist() for name in COLUMNS}
