"""The bytes that move: counted and by the model."""

import pytest

from mklopt.kernels.cluster.traffic import (
    HEADER,
    Moved,
    Traffic,
    model,
    nbytes,
    row_model,
    size,
)


@pytest.mark.parametrize(
    "operation, more, sent, received",
    [
        ("quad", {}, 8 * 10 * 3, 8 * 40),
        ("quad", {"columns": 2}, 8 * 20 * 3, 8 * 40),
        ("against", {}, 8 * 55 * 3, 8 * 40),
        ("combine", {}, 8 * 40, 8 * 55),
        ("matvec", {}, 8 * 10 * 3, 8 * 10 * 40),
        ("matvec", {"separate": True}, 8 * 10 * 40, 8 * 10 * 40),
        ("rows", {"columns": 4}, 8 * 4 * 3, 8 * 4 * 10 * 40),
        ("diag", {}, 0, 8 * 10 * 40),
        ("triangles", {"itemsize": 4}, 0, 4 * 55 * 40),
        ("samples", {"columns": 4}, 8 * 4 * 3, 8 * 10 * 40),
    ],
)
def test_the_model(operation, more, sent, received):
    assert model(operation, 10, 40, 3, **more) == (sent, received)


def test_operations_are_counted():
    traffic = Traffic()
    traffic.add("quad", Moved(1, 2, 100, 10, 90, 10))
    traffic.add("quad", Moved(1, 2, 100, 10, 90, 10))
    traffic.add("combine", Moved(1, 3, 1, 5000, 1, 5000, 10**7))
    assert traffic.operations["quad"] == Moved(2, 4, 200, 20, 180, 20)
    assert traffic.total.received == 5020 and traffic.total.tasks == 7
    shown = str(traffic)
    assert "5.0 kB" in shown and "10.0 MB" in shown and "combine" in shown
    traffic.clear()
    assert traffic.total == Moved()


def test_sizes_for_people():
    assert [size(x) for x in (7, 1500, 2.5e6, 3e9)] == [
        *("7 B", "1.5 kB", "2.5 MB", "3.0 GB"),
    ]
    assert nbytes([None]) == 0


def test_the_model_of_rows_is_its_table():
    """s = 600 of n = 8000 rows, R = 50 columns of 3 kernels, two workers, k = 4."""
    about = dict(rows=600, ranks=50, tasks=2, kernels=3, columns=4, chosen=8000)
    head = 2 * (HEADER + 12)
    assert row_model("unfold", **about) == (2 * 1600 + 1000 + head, 19200)
    assert row_model("fold", **about) == (19200 + 1000 + head, 1600)
    assert row_model("gram", **about) == (4800 + 1000 + head, 4 * 51 * 52)
    assert row_model("rows", **about, itemsize=4) == (1000 + head, 4 * 600 * 50)
    assert row_model("diag", **about | {"chosen": 0}) == (head, 8 * 600 * 3)
    few = about | {"rows": 10}
    assert row_model("rows", **few) == (40 + head, 4000)
