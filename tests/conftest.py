"""Shared by all tests: quick hypothesis profiles, and the count of contract cells."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "mklopt",
    deadline=None,
    derandomize=True,  # the same examples every time: a red run can be repeated
    max_examples=8,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("mklopt")


@pytest.fixture
def cell_counter(record_property):
    """Contract tests report what became of each cell: run, skipped or unsupported."""

    def count(outcome: str, how_many: int = 1) -> None:
        record_property("contract cells", f"{outcome} {how_many}")

    return count


def pytest_terminal_summary(terminalreporter):
    cells: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") != "call":
                continue
            for name, value in report.user_properties:
                if name == "contract cells":
                    outcome, how_many = value.split()
                    cells[outcome] += int(how_many)
    terminalreporter.write_line(
        "contract cells: "
        + ", ".join(f"{cells[k]} {k}" for k in ("run", "skipped", "unsupported"))
    )
