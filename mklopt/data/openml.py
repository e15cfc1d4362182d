"""Tables from OpenML: fetched and cached by scikit-learn, decoded and checked here."""

import socket
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.error import URLError

import numpy as np

from ..util.extras import need

Array = np.ndarray
TIMEOUT = 10.0  # seconds to wait for an answer


@dataclass(frozen=True)
class Table:
    """Labels in the order −1, +1 or 0 … k−1, and where OpenML has the features."""

    shape: tuple[int, int]
    labels: tuple[str, ...]
    ids: Mapping[str, int] = field(default_factory=lambda: {"": 0})  # by view; "" is X
    target: str = "default-target"
    not_there: str = ""  # why OpenML cannot give it
    test: int = 0  # samples of an official test set: X_test and y_test in the file

    @property
    def kind(self) -> str:
        """The kind of labels: "binary" or "classes"."""
        return "binary" if len(self.labels) == 2 else "classes"


def fetch(table: Table) -> tuple[dict[str, Array], Array]:
    """Features by view, and labels; OSError or ValueError if OpenML fails."""
    parts, labels = {}, []
    for view, number in table.ids.items():
        parts[view], y = _decoded(_fetched(number, table.target), table)
        labels.append(y)
    if any(not np.array_equal(y, labels[0]) for y in labels):
        raise ValueError("its views have different labels")
    shape = (len(y), sum(part.shape[1] for part in parts.values()))
    if shape != table.shape:
        raise ValueError(f"it has shape {shape}, not {table.shape} as expected")
    return parts, y


def _fetched(number: int, target: str) -> Any:
    """A table of OpenML, tried once: scikit-learn alone would wait and try again.

    It has no argument for the time to wait, and any error but URLError makes it try
    again. pooch has a timeout, but reads neither OpenML's index nor its files.
    """
    need("sklearn")
    from sklearn.datasets import fetch_openml

    def stop(message: Any, *_: Any, **__: Any) -> None:
        if "network error" in str(message):
            raise URLError("no connection")

    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = stop
            options = {"as_frame": False, "parser": "liac-arff", "n_retries": 1}
            return fetch_openml(data_id=number, target_column=target, **options)
    finally:
        socket.setdefaulttimeout(before)


def _decoded(bunch: Any, table: Table) -> tuple[Array, Array]:
    """Rows without missing values; categories as numbers, or as indicator columns."""
    keep = np.all(np.isfinite(bunch.data), axis=1)
    columns: list[Array] = []
    for column, feature in zip(bunch.data[keep].T, bunch.feature_names):
        if feature not in (bunch.categories or {}):
            columns.append(column)
            continue
        values = np.array(bunch.categories[feature])[column.astype(int)]
        try:
            columns.append(values.astype(float))
        except ValueError:
            columns += [(values == v).astype(float) for v in np.unique(values)]
    text = [f"{v:g}" if isinstance(v, float) else str(v).strip() for v in bunch.target]
    if not set(text) <= set(table.labels):
        raise ValueError(
            f"it has labels {sorted(set(text))[:5]}, not {table.labels[:5]}"
        )
    index = np.array([table.labels.index(label) for label in text])[keep]
    return np.stack(columns, 1), 2 * index - 1 if table.kind == "binary" else index
