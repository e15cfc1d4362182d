"""NumPy archives, read without being believed: the one reader of .npz files.

An archive is read without pickle, and only when it says how large it is and that is not
too large: nothing in a file is ever run, and a small file cannot ask for much memory.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from typing import Any

import numpy as np

from .files import write_whole

Array = np.ndarray


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


def write_archive(
    path: str | os.PathLike, arrays: dict[str, Array], about: dict
) -> None:
    """arrays and a JSON description in one .npz, moved into place when complete."""
    buffer = io.BytesIO()
    note = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    contents: dict[str, Any] = {**arrays, "about.json": note}
    np.savez(buffer, **contents)
    write_whole(path, buffer.getbuffer())


def read_archive(
    path: str | os.PathLike, kind: str
) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays and the description that write_archive wrote, checked."""
    try:
        arrays = read_arrays(path, most=os.path.getsize(path))  # it does not compress
        about = json.loads(arrays.pop("about.json").tobytes())
        found, described = about["kind"], about["about"]
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"{path} is not a file written by mklopt ({error})") from None
    if found != kind:
        raise ValueError(f"{path} holds a {str(found)[:40]}, not a {kind}")
    if not isinstance(described, dict) or "columns" in described:
        raise ValueError(f"{path} is not a file written by mklopt (its description)")
    return arrays, about
