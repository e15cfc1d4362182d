"""What kernels have learned on the training points, in arrays.

    means     (M,)        of t, where a width depends on it
    a step    a number per kernel, or n numbers where they differ

A trace or a variance is one number. The roots √k(x, x) of a spherical normalization and
the means of rows of a centring are n; where all are equal, as for Gaussians, only one
of them is kept: 10⁶ Gaussians take 8 MB a step for any number of points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..util.arrays import Array

ROWS = {"spherical", "centre"}  # steps that learn a number for each point


class CompactRows:
    """A row of n numbers for each of M kernels; equal numbers are kept once.

    Attributes
    ----------
    numbers : array (M,)
        The number of a row whose numbers are equal.
    place : array of int32 (M,)
        The row in `rows`; −1 where one number is enough.
    rows : array (R, n)
        The other rows.
    """

    def __init__(self, M: int, n: int):
        self.numbers, self.place = np.zeros(M), np.full(M, -1, np.int32)
        self._memory, self._used = np.empty((0, n)), 0

    @property
    def rows(self) -> Array:
        """(R, n): the rows whose numbers differ."""
        return self._memory[: self._used]

    def __getitem__(self, m: int) -> Array:
        place, n = self.place[m], self._memory.shape[1]
        return self.rows[place] if place >= 0 else np.full(n, self.numbers[m])

    def __setitem__(self, m: int, row: Array) -> None:
        if np.all(row == row[0]):
            self.numbers[m], self.place[m] = row[0], -1
            return
        if self.place[m] < 0:
            self.place[m] = self._new()
        self._memory[self.place[m]] = row

    def _new(self) -> int:
        """Room for one more row."""
        if self._used == len(self._memory):
            more = min(max(16, self._used), len(self.numbers))
            n = self._memory.shape[1]
            self._memory = np.concatenate([self.rows, np.empty((more, n))])
        self._used += 1
        return self._used - 1

    def put(self, index: Array, part: CompactRows) -> None:
        """Take over the rows of kernels that have none yet."""
        self.numbers[index] = part.numbers
        self.place[index] = np.where(part.place < 0, -1, part.place + self._used)
        self._memory = np.concatenate([self.rows, part.rows])
        self._used = len(self._memory)

    def least(self) -> Array:
        """(M,): the smallest number of each row."""
        return np.where(
            self.place < 0,
            self.numbers,
            np.append(np.min(self.rows, axis=1, initial=np.inf), 0.0)[self.place],
        )

    def take(self, index: Array) -> CompactRows:
        """The rows of these kernels."""
        part = CompactRows(len(index), self._memory.shape[1])
        part.numbers, part.place = self.numbers[index], self.place[index]
        used, place = np.unique(part.place[part.place >= 0], return_inverse=True)
        part.place[part.place >= 0] = place
        part._memory, part._used = self.rows[used], len(used)
        return part


class Learned:
    """Means, and what each normalization has learned, by kernel.

    It reads and writes like {m: {0: mean, 1: what step 1 learned, …}}, for kernels that
    have learned.

    Parameters
    ----------
    M, n : int
        The numbers of kernels and of training points.
    steps : sequence of str
        The normalizations.
    """

    def __init__(self, M: int, n: int, steps: Sequence[str]):
        self.known, self.means = np.zeros(M, bool), np.zeros(M)
        self.steps: list[Any] = [
            CompactRows(M, n) if step in ROWS else np.zeros(M) for step in steps
        ]

    def __len__(self) -> int:
        return int(np.count_nonzero(self.known))

    def __getitem__(self, m: int) -> dict[int, Any]:
        if not self.known[m]:
            raise KeyError(m)
        found = [step[m] for step in self.steps]
        numbers = [x if isinstance(x, np.ndarray) else float(x) for x in found]
        return {0: float(self.means[m]), **dict(enumerate(numbers, 1))}

    def get(self, m: int) -> dict[int, Any] | None:
        """What kernel m has learned; None if nothing yet."""
        return self[m] if self.known[m] else None

    def __setitem__(self, m: int, found: Mapping[int, Any]) -> None:
        self.means[m] = found[0]
        for i, step in enumerate(self.steps, 1):
            step[m] = found[i]
        self.known[m] = True

    def update(self, found: Mapping[int, Mapping[int, Any]]) -> None:
        """Take over what some kernels have learned."""
        for m, numbers in found.items():
            self[m] = numbers

    def set_all(self, index: Array, found: Mapping[int, Any], means: Array) -> None:
        """Kernels that learned the same, but for means; rows are constant."""
        for i, step in enumerate(self.steps, 1):
            if isinstance(step, CompactRows):
                step.numbers[index], step.place[index] = found[i][0], -1
            else:
                step[index] = found[i]
        self.means[index], self.known[index] = means, True

    def put(self, index: Array, part: Learned, last: Array) -> None:
        """Take over what kernels learned in all steps but the last, and that one."""
        for step, found in zip(self.steps, part.steps):
            if isinstance(step, CompactRows):
                step.put(index, found)
            else:
                step[index] = found
        self.steps[-1][index] = last
        self.means[index], self.known[index] = part.means, True

    def take(self, index: Array) -> Learned:
        """What some of the kernels have learned."""
        part = Learned(0, 0, ())
        part.known, part.means = self.known[index], self.means[index]
        part.steps = [
            step.take(index) if isinstance(step, CompactRows) else step[index]
            for step in self.steps
        ]
        return part

    def divisors(self, steps: Sequence[str]) -> tuple[Array, Array, Array]:
        """What entries are divided by, step after step, for compiled loops.

        Step s divides entry (i, j) of kernel m by numbers[s, m] where place[s, m] < 0,
        else by r_i r_j with r = rows[place[s, m]]. There is at least one step. Not for
        centring, which divides by nothing.
        """
        shape = max(len(steps), 1), len(self.known)
        numbers, place = np.ones(shape), np.full(shape, -1, np.int32)
        rows: list[Array] = []
        for s, (step, found) in enumerate(zip(steps, self.steps)):
            if step not in ROWS:
                numbers[s] = found
                continue
            numbers[s] = found.numbers * found.numbers
            before = sum(map(len, rows))
            place[s] = np.where(found.place < 0, -1, found.place + before)
            rows.append(found.rows)
        return numbers, place, np.concatenate(rows) if rows else np.empty((0, 0))
