"""Run a benchmark by its name: `python -m benchmarks NAME [options]`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

SHARED = {"harness", "rivals"}


def names() -> list[str]:
    """The benchmarks there are: every other file of this folder."""
    files = {path.stem for path in Path(__file__).parent.glob("*.py")}
    return sorted(name for name in files - SHARED if not name.startswith("_"))


def main() -> None:
    """Run the benchmark that the first argument names."""
    name, *options = sys.argv[1:] or [""]
    if name not in names():
        given = f"there is no benchmark {name!r}" if name else "no benchmark was named"
        raise SystemExit(f"{given}; choose one of {', '.join(names())}")
    sys.argv = [f"python -m benchmarks {name}", *options]
    import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
