"""The ledger keeps every whole row, whatever happens to the process."""

from __future__ import annotations

import json
import math
import multiprocessing
from dataclasses import asdict, replace

import pytest

from mklopt.campaign.ledger import Ledger, Row
from mklopt.util.files import checksum
from tests.faults import full_disk

ROW = Row(
    id="a1", code="c", cell="small-x", solver="analytic", formulation="LpNorm(p=2)",
    kind="LpNorm", loss="hinge", data="small", n=40, M=6, C=1.0, bias=True, tol=1e-6,
    holds=True, reason="gap 1e-7 ≤ 1e-6", gap=1e-7, seconds=0.25,
    trace={"iteration": [0, 1], "seconds": [0.1, 0.2], "passes": [1.0, 2.0],
           "gap": [0.5, 1e-7]},
)  # fmt: skip
OTHER = replace(ROW, id="b2", solver="spicy", reason="≤ “two”\nlines")


def written(tmp_path, *rows: Row):
    path = tmp_path / "rows.jsonl"
    ledger = Ledger(path)
    for row in rows:
        ledger.append(row)
    return path


def test_rows_come_back_to_the_last_bit(tmp_path):
    path = written(tmp_path, ROW, OTHER)
    assert Ledger(path).rows == {"a1": ROW, "b2": OTHER}
    assert path.read_bytes().count(b"\n") == 2


def test_numbers_that_json_does_not_know_become_none(tmp_path):
    given = replace(ROW, gap=math.inf, above=math.nan)
    (row,) = Ledger(written(tmp_path, given)).rows.values()
    assert row.gap is None and row.above is None


def test_a_row_torn_anywhere_is_cut_off_and_written_again(tmp_path):
    path = written(tmp_path, ROW)
    whole, last = path.read_bytes(), OTHER.line()
    for cut in range(len(last)):
        path.write_bytes(whole + last[:cut])
        ledger = Ledger(path)
        assert ledger.rows == {"a1": ROW} and ledger.torn == (cut > 0)
        if cut % 50 == 0 or cut == len(last) - 1:
            ledger.append(OTHER)
            assert path.read_bytes() == whole + last


def stated(body: dict) -> bytes:
    return json.dumps({"checksum": checksum(body)[:16], **body}).encode() + b"\n"


BODY = asdict(ROW)
DEEP = b'{"checksum":' + b"[" * 100_000 + b"\n"


@pytest.mark.parametrize(
    "line, words",
    [
        (ROW.line().replace(b"0.25", b"0.26"), "its checksum does not fit"),
        (b"\n", "Expecting value"),
        (b"[]\n", "no checksum"),
        (b"null\n", "no checksum"),
        (DEEP, "nested too deeply"),
        (b"x" * 1_100_000 + b"\n", "1100000 bytes"),
        (b"\xff\xfe\n", "can't decode"),
        (b'{"checksum": NaN}\n', "NaN is not JSON"),
        (stated({"id": "a"}), "other columns"),
        (stated(BODY | {"more": 1}), "other columns than a row .more."),
        (stated(BODY | {"n": 1.5}), "its n is not of type int"),
        (stated(BODY | {"n": True}), "its n is not of type int"),
        (stated(BODY | {"holds": 1}), "its holds is not of type bool"),
        (stated(BODY | {"gap": "1"}), "its gap is not"),
        (stated(BODY | {"gap": 10**400}), "its gap is not"),
        (stated(BODY | {"reason": "\ud800"}), "its reason is not"),
        (stated(BODY | {"trace": {"gap": []}}), "its trace is not"),
        (stated(BODY | {"trace": BODY["trace"] | {"gap": [1]}}), "its trace is not"),
    ],
)
def test_a_line_that_is_no_row_gets_one_sentence(tmp_path, line, words):
    path = written(tmp_path, ROW)
    path.write_bytes(path.read_bytes() + line + OTHER.line())
    with pytest.raises(ValueError, match=rf"(?s)line 2 of .*{words}.*--out") as error:
        Ledger(path)
    assert len(str(error.value)) < 500


def test_another_file_is_not_taken_for_a_torn_row(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"my diary")
    with pytest.raises(ValueError, match=r"line 1 of .* is not a row"):
        Ledger(path)
    assert path.read_bytes() == b"my diary"


# ---- faults ---------------------------------------------------------------------


def test_two_writers_after_a_torn_row_lose_none(tmp_path):
    path = written(tmp_path, ROW)
    path.write_bytes(path.read_bytes() + OTHER.line()[:100])
    one, two = Ledger(path), Ledger(path)
    for ledger, name in ((one, "c"), (two, "d"), (one, "e")):
        ledger.append(replace(ROW, id=name))
    assert list(Ledger(path).rows) == ["a1", "c", "d", "e"]


def _write_rows(path, who: str) -> None:
    ledger = Ledger(path)
    for k in range(30):
        ledger.append(replace(ROW, id=f"{who}{k}"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork beside threads
def test_three_processes_write_at_the_same_time(tmp_path):
    path = written(tmp_path, ROW)
    path.write_bytes(path.read_bytes() + OTHER.line()[:-1])
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_rows, args=(path, w)) for w in "xyz"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(20)
        assert writer.exitcode == 0
    assert set(Ledger(path).rows) == {
        "a1",
        *(f"{w}{k}" for w in "xyz" for k in range(30)),
    }


def test_a_row_cut_by_a_full_disk_is_cut_off_by_the_same_ledger(tmp_path):
    path = written(tmp_path, ROW)
    ledger, size = Ledger(path), path.stat().st_size
    for room in (0, 1, 100):
        with full_disk(size + room), pytest.raises(OSError):
            ledger.append(OTHER)
        assert path.stat().st_size == size + room  # it really was cut
    ledger.append(OTHER)
    assert path.read_bytes() == ROW.line() + OTHER.line()
