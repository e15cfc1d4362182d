"""Tables of OpenML: decoded, checked, and what happens without a network."""

from __future__ import annotations

import itertools
import socket
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from mklopt.data import datasets
from mklopt.data.datasets import DataNotFound, load
from mklopt.data.openml import TIMEOUT, Table, fetch


@pytest.fixture
def no_folder(monkeypatch):
    monkeypatch.delenv("MKLOPT_DATA", raising=False)


def openml(monkeypatch, answers):
    asked = []

    def fetch(*, data_id, target_column, **options):
        asked.append((data_id, target_column, socket.getdefaulttimeout()))
        X, y, categories = answers[data_id]
        features = [f"f{j}" for j in range(np.shape(X)[1])]
        return SimpleNamespace(
            data=np.asarray(X, float), target=np.array(y, dtype=object),
            feature_names=features, categories=categories,
        )  # fmt: skip

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    return asked


def shapes(monkeypatch, name, shape):
    table = datasets._TABLES[name]
    monkeypatch.setitem(datasets._TABLES, name, replace(table, shape=shape))


def test_openml_labels_and_missing_rows(no_folder, monkeypatch):
    X = [[1.0, 2.0], [np.nan, 1.0], [3.0, 4.0]]
    asked = openml(monkeypatch, {15: (X, ["malignant", "benign", "benign"], {})})
    shapes(monkeypatch, "breast-w", (2, 2))
    d = load("breast-w")
    np.testing.assert_array_equal(d.X, [[1, 2], [3, 4]])
    assert d.y.tolist() == [1, -1] and d.source == "OpenML [15]"
    assert asked == [(15, "default-target", TIMEOUT)]
    assert socket.getdefaulttimeout() is None


def test_openml_categories_become_indicators_or_numbers(no_folder, monkeypatch):
    codes = [[0, 1], [2, 0], [0, 2]]
    categories = {"f0": ["T", "C", "A"], "f1": ["6", "0", "3"]}
    openml(monkeypatch, {46: (codes, ["N", "EI", "IE"], categories)})
    shapes(monkeypatch, "splice", (3, 3))
    d = load("splice")  # f0 is T, A, T: indicators of A and T, the values that occur
    np.testing.assert_array_equal(d.X, [[0, 1, 0], [1, 0, 6], [0, 1, 3]])
    assert d.y.tolist() == [2, 0, 1]


def test_openml_views_and_numeric_targets(no_folder, monkeypatch):
    views = {14: 1, 12: 2, 16: 1, 20: 3, 22: 1, 18: 2}
    answers: dict = {
        i: (np.full((2, k), float(i)), ["10", "1"], {}) for i, k in views.items()
    }
    openml(monkeypatch, answers)
    shapes(monkeypatch, "mfeat", (2, 10))
    d = load("mfeat")
    assert d.y.tolist() == [9, 0] and d.kind == "classes"
    assert {v: A[0, 0] for v, A in d.views.items()} == datasets._MFEAT
    answers[18] = (np.ones((2, 2)), ["1", "10"], {})
    with pytest.raises(DataNotFound, match="views have different labels"):
        load("mfeat")
    asked = openml(monkeypatch, {8: (np.eye(3, 6), [1.0, 2.0, 2.0], None)})
    shapes(monkeypatch, "liver", (3, 6))
    assert load("liver").y.tolist() == [1, -1, -1] and asked[0][1] == "selector"


def test_openml_that_has_changed_is_noticed(no_folder, monkeypatch):
    openml(monkeypatch, {59: (np.eye(2), ["g", "b"], {})})
    with pytest.raises(DataNotFound, match=r"shape \(2, 2\), not \(351, 34\)"):
        load("ionosphere")
    openml(monkeypatch, {59: (np.eye(2), ["good", "b"], {})})
    with pytest.raises(DataNotFound, match=r"labels \['b', 'good'\], not \('b', 'g'\)"):
        load("ionosphere")


@pytest.fixture
def proxy(no_folder, monkeypatch, tmp_path):
    """Really no network: all requests go to a port where we decide what happens."""
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))  # and nothing is cached
    monkeypatch.setattr("urllib.request._opener", None)  # it remembers proxies
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{server.getsockname()[1]}")
    yield server
    server.close()


def test_offline_is_one_sentence_at_once(proxy, monkeypatch):
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)  # before another attempt
    with pytest.raises(DataNotFound) as caught:  # nobody listens: refused
        load("pima")
    assert not waits
    words = str(caught.value)
    assert "pima was not found: MKLOPT_DATA is not set" in words and "37" in words
    assert "put pima.npz into a folder and set MKLOPT_DATA to it" in words


def attempts(server: socket.socket) -> int:
    """How many have tried to connect."""
    server.setblocking(False)
    for count in itertools.count():
        try:
            server.accept()[0].close()
        except BlockingIOError:
            return count
    raise AssertionError


def test_a_silent_server_is_left_after_the_timeout_without_retries(proxy, monkeypatch):
    proxy.listen()
    monkeypatch.setattr("mklopt.data.openml.TIMEOUT", 0.3)
    start = time.perf_counter()
    with pytest.raises(DataNotFound, match="no connection"):
        load("sonar")
    assert time.perf_counter() - start > 0.25
    assert attempts(proxy) == 1
    assert socket.getdefaulttimeout() is None


def test_a_table_knows_the_kind_of_its_labels():
    assert Table((4, 2), ("no", "yes")).kind == "binary"
    assert Table((4, 2), ("a", "b", "c")).kind == "classes"


def test_fetching_gives_views_and_labels_in_the_order_of_the_table(monkeypatch):
    answers: dict = {7: ([[1.0]], ["yes"], {}), 9: ([[2.0, 3.0]], ["yes"], {})}
    openml(monkeypatch, answers)
    table = Table((1, 3), ("no", "yes"), {"left": 7, "right": 9})
    parts, y = fetch(table)
    assert {view: part.tolist() for view, part in parts.items()} == {
        "left": [[1.0]],
        "right": [[2.0, 3.0]],
    }
    assert y.tolist() == [1]
    with pytest.raises(ValueError, match=r"shape \(1, 3\), not \(2, 3\) as expected"):
        fetch(replace(table, shape=(2, 3)))
