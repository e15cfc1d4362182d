"""`python -m mklopt` is the command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_module_is_the_command():
    command = [sys.executable, "-m", "mklopt", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and done.stdout.startswith("Usage: mklopt [OPTIONS]")
    wrong = subprocess.run([*command[:3], "lst"], capture_output=True, cwd=ROOT)
    assert wrong.returncode == 2
