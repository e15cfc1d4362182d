"""Files: written whole or not at all, read without being believed.

A write goes to a temporary file that is flushed to disk and then renamed, so that a
crash leaves the old file or the new one, never half of one. A NumPy archive is read
without pickle, and only when it says how large it is and that is not too large: nothing
in a file is ever run, and a small file cannot ask for much memory or time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray


def write_whole(path: str | os.PathLike[str], content: bytes | memoryview) -> None:
    """Put content in place of whatever the path holds, folders included."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=target.parent, prefix=".writing-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(scratch, 0o644)  # mkstemp makes private files
        os.replace(scratch, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(scratch)
        raise


def read_arrays(path: str | os.PathLike[str], most: int) -> dict[str, Array]:
    """The arrays of a NumPy archive of at most so many bytes, unpacked.

    FileNotFoundError where there is no file, ValueError with the reason for any other.
    """
    try:
        with open(path, "rb") as file:
            _check_size(file, most)
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise
    except Exception as error:  # whatever a broken archive may raise
        raise ValueError(_first_line(error)) from None
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise ValueError("it holds other things than arrays")
    return arrays


def _check_size(file: Any, most: int) -> None:
    parts = zipfile.ZipFile(file).infolist()
    size = sum(part.file_size for part in parts)
    if len(parts) > 1000 or size > most:
        raise ValueError(f"unpacked it would take {size} bytes; {most} are expected")
    file.seek(0)


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.split("\n")[0][:200]


def checksum(body: dict[str, Any]) -> str:
    """Of a JSON object, whatever the order of its keys."""
    canonical = json.dumps(body, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()
