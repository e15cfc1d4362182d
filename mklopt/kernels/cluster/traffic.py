"""How many bytes move between this process and the workers of a cluster.

The model, for operations on r kernels of n points that W workers hold, with k columns;
T = 8·n(n+1)/2 bytes is the upper triangle of one sum:

    operation     sent                       received      between workers
    quad          8nk·W                      8r
    against       T·W                        8r
    combine       8r                         T             T·(edges of the tree that
                                                           join two workers)
    matvec        8nk·W, or 8nkr: own A_m    8nkr
    rows          8·(rows)·W                 8·(rows)·nr
    diag                                     8nr
    traces                                   8r
    triangles                                T·r, or half of it in float32

The model for factors with s of n rows and R columns that W workers have, k columns:

    unfold        8Rk·W                      8sk
    fold          8sk                        8Rk·W, if each worker has one subtree
    gram          8s                         4(R+1)(R+2)   the same for each edge, too
    rows                                     8sR, or half of it in float32
    diag                                     8nr

With some of the rows only, the smaller of 4s and n/8 bytes says which; each task has 4
bytes per kernel.

Beside that, each task is sent the numbers of its blocks, 2 bytes each, and 4 bytes for
each kernel of a block that is asked in part, and has a HEADER. Dask's own messages
about a task are not counted here; they take about OVERHEAD_SENT and OVERHEAD_RECEIVED
bytes (measured at the sockets, `make bench NAME=cluster`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...util.tables import as_text, plain_table

HEADER = 400  # bytes of one task beside its arrays, about
OVERHEAD_SENT, OVERHEAD_RECEIVED = 1200, 600  # bytes of Dask's own messages about it


@dataclass
class Moved:
    """The bytes of one kind of operation: counted, and by the model."""

    calls: int = 0
    tasks: int = 0
    sent: int = 0
    received: int = 0
    model_sent: int = 0
    model_received: int = 0
    model_between: int = 0  # from worker to worker, which this process does not see

    def add(self, other: Moved) -> None:
        """Add the numbers of some more operations."""
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass
class Traffic:
    """The bytes that moved so far, by operation; `str` shows them as a table."""

    operations: dict[str, Moved] = field(default_factory=dict)

    def add(self, operation: str, moved: Moved) -> None:
        """Count some more operations of one kind."""
        self.operations.setdefault(operation, Moved()).add(moved)

    def clear(self) -> None:
        """Begin to count anew."""
        self.operations.clear()

    @property
    def total(self) -> Moved:
        """The sum over all operations."""
        found = Moved()
        for moved in self.operations.values():
            found.add(moved)
        return found

    def __str__(self) -> str:
        numbers = ("calls", "sent", "model", "received", "model", "between workers")
        table = plain_table("", ["operation"], numbers)
        for name, m in [*self.operations.items(), ("all", self.total)]:
            sizes = (m.sent, m.model_sent, m.received, m.model_received)
            table.add_row(name, str(m.calls), *map(size, (*sizes, m.model_between)))
        return as_text(table, 120)


def model(
    operation: str,
    n: int,
    kernels: int,
    tasks: int,
    *,
    columns: int = 1,
    separate: bool = False,
    itemsize: int = 8,
) -> tuple[int, int]:
    """The bytes sent and received by one operation, by the table above.

    columns: k, or the number of rows; separate: whether each kernel has its own A_m
    """
    vector, triangle = 8 * n * columns, n * (n + 1) // 2
    table = {
        "quad": (vector * tasks, 8 * kernels),
        "against": (8 * triangle * tasks, 8 * kernels),
        "combine": (8 * kernels, 8 * triangle),
        "matvec": (vector * (kernels if separate else tasks), vector * kernels),
        "rows": (8 * columns * tasks, vector * kernels),
        "diag": (0, 8 * n * kernels),
        "triangles": (0, itemsize * triangle * kernels),
        "samples": (
            8 * columns * tasks,
            itemsize * columns * (columns + 1) // 2 * kernels,
        ),
        "root_sizes": (0, 8 * kernels),
        "traces": (0, 8 * kernels),
        "shifts": (0, 8 * kernels),
    }
    return table[operation]


def row_model(
    operation: str,
    *,
    rows: int,
    ranks: int,
    tasks: int,
    kernels: int,
    columns: int = 1,
    chosen: int = 0,
    itemsize: int = 8,
) -> tuple[int, int]:
    """The bytes sent and received by one operation on factors, by the table above.

    rows, ranks: s and R; chosen: n if these are some of n rows, else 0. What is
    received for a fold is that of one subtree.
    """
    vector, weights = 8 * rows * columns, 8 * ranks * columns
    table = {
        "unfold": (weights * tasks, vector),
        "fold": (vector, weights),
        "gram": (8 * rows, 4 * (ranks + 1) * (ranks + 2)),
        "rows": (0, itemsize * rows * ranks),
        "diag": (0, 8 * rows * kernels),
    }
    sent, received = table[operation]
    which = min(4 * rows, -(-chosen // 8))
    return sent + which + (HEADER + 4 * kernels) * tasks, received


def nbytes(found: Iterable[Any]) -> int:
    """The bytes of some arrays."""
    return sum(int(getattr(array, "nbytes", 0)) for array in found)


def size(count: float) -> str:
    """A number of bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
