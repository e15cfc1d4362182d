"""Requirements of a test environment: the oldest or the newest versions.

    python tests/requirements.py lowest      every bound >= of pyproject.toml as ==
    python tests/requirements.py latest      as pyproject.toml has them

Both with the tools of the group "test", in their newest versions. `make test-lowest`
and `make test-latest` install them.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def requirements(which: str) -> Iterator[str]:
    """One line for each package."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = settings["project"]["optional-dependencies"]
    lines = [*settings["project"]["dependencies"], *_below("all", extras)]
    for line in dict.fromkeys(lines):
        yield line.replace(">=", "==", 1) if which == "lowest" else line
    tools = settings["dependency-groups"]["test"]
    yield from (line for line in tools if not line.startswith("mklopt["))


def _below(extra: str, extras: dict[str, list[str]]) -> Iterator[str]:
    """The packages of an extra, and of those that it names."""
    for line in extras[extra]:
        if found := re.fullmatch(r"mklopt\[(.*)\]", line):
            for other in found[1].split(","):
                yield from _below(other, extras)
        else:
            yield line


if __name__ == "__main__":
    if sys.argv[1:] not in (["lowest"], ["latest"]):
        sys.exit("usage: python tests/requirements.py lowest|latest")
    print(*requirements(sys.argv[1]), sep="\n")
