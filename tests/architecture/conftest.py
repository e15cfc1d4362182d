"""The wheel, built once for all tests here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """A wheel that is built from a clean copy of the tree."""
    folder = tmp_path_factory.mktemp("wheel")
    leave = shutil.ignore_patterns(".venv*", ".git", "build", "dist", "*.egg-info")
    copy = shutil.copytree(ROOT, folder / "tree", symlinks=True, ignore=leave)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    command = [*build, "--outdir", str(folder), str(copy)]
    subprocess.run(command, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found
