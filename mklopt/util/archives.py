"""NumPy archives, read without being believed: the one reader of .npz files.

An archive is read without pickle, and only when it says how large it is and that is not
too large: nothing in a file is ever run, and a small file cannot ask for much memory.
"""

import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from .arrays import Array, finite_matrix, real_array
from .checks import check_path, short
from .files import write_whole

Path = str | os.PathLike[str]
MAX_ARRAYS = 1000  # in one archive
MAX_LABELS = 10_000_000
HEADERS = 1 << 20  # bytes, beside the numbers of a user's file


def read_arrays(path: Path, max_bytes: int) -> dict[str, Array]:
    """The arrays of a NumPy archive that takes at most so many bytes, unpacked.

    FileNotFoundError where there is no file, ValueError with the reason for any other.
    """
    check_path(path)
    try:
        with open(path, "rb") as file:
            _check_size(file, max_bytes)
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise
    except Exception as error:  # whatever a broken archive may raise
        text = str(error).strip() or type(error).__name__
        raise ValueError(text.split("\n")[0][:200]) from None
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise ValueError("it holds other things than arrays")
    return arrays


def _check_size(file: Any, max_bytes: int) -> None:
    archive = zipfile.ZipFile(file)
    parts = archive.infolist()
    size = sum(part.file_size for part in parts)
    if len(parts) > MAX_ARRAYS or size > max_bytes:
        raise ValueError(
            f"unpacked it would take {size} bytes; at most {max_bytes} are allowed"
        )
    for part in parts:
        if part.filename.endswith(".npy"):
            _check_shape(archive, part)
    file.seek(0)


def _check_shape(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    """Refuse an array whose header states another size than the array has."""
    with archive.open(part) as file:
        headers = np.lib.format
        first = headers.read_magic(file) == (1, 0)
        read = headers.read_array_header_1_0 if first else headers.read_array_header_2_0
        shape, _, dtype = read(file)
        stated = file.tell() + math.prod(shape) * dtype.itemsize
    if stated != part.file_size and not dtype.hasobject:  # pickles are refused later
        raise ValueError(
            f"the header of {part.filename[:40]} states the shape {short(shape)}, "
            "which does not fit its size"
        )


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.split("\n")[0][:200]


# ---- a user's own data ---------------------------------------------------------------


def read_labelled(path: Path, max_numbers: int) -> dict[str, Array]:
    """A user's own data: labels y (n,) with features X (n, d) or kernels K (M, n, n).

    max_numbers: of all arrays together; the caller knows how many it can work with
    returns: "y", and "X" or "K" or both; the shapes fit, X and y are finite numbers
    ValueError: one sentence about the file
    """
    try:
        arrays = read_arrays(path, 8 * max_numbers + HEADERS)
        return _labelled(arrays)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"{path} cannot be used: {reason}") from None


def _labelled(arrays: dict[str, Array]) -> dict[str, Array]:
    if "y" not in arrays or not {"X", "K"} & set(arrays):
        raise ValueError(
            f"it has the arrays {', '.join(arrays) or 'none'}; write labels y (n,) and "
            "features X (n, d) or kernels K (M, n, n) with numpy.savez"
        )
    y = real_array(arrays["y"], "y", "one number per sample")
    n, X, K = y.size, arrays.get("X"), arrays.get("K")
    if y.shape != (n,) or n < 2 or not np.all(np.isfinite(y)):
        raise ValueError("y must hold two labels or more, all of them finite")
    found = {"y": y}
    if X is not None:
        found["X"] = finite_matrix(X, "X", n)
    if K is not None:
        if K.ndim != 3 or K.shape[1:] != (n, n):
            raise ValueError(f"K is {K.shape} for {n} labels y; it must be (M, n, n)")
        found["K"] = K  # as it is: a stack of kernels checks its numbers itself
    return found


def read_labels(path: Path) -> Array:
    """Labels y (n,) from a .npy, from y of a .npz, or from text with one per line.

    ValueError: one sentence about the file
    """
    check_path(path)
    kind = os.path.splitext(path)[1]
    try:
        if kind == ".npz":
            arrays = read_arrays(path, 8 * MAX_LABELS + HEADERS)
            if "y" not in arrays:
                raise ValueError("it has no array y")
            y = arrays["y"]
        elif os.path.getsize(path) > 32 * MAX_LABELS:
            raise ValueError("it is too large for labels")
        elif kind == ".npy":
            y = np.load(path, allow_pickle=False)
        else:
            y = np.loadtxt(path, ndmin=1)
        y = real_array(y, "y", "one number per sample")
        if y.ndim != 1 or len(y) < 2 or not np.all(np.isfinite(y)):
            raise ValueError("y must hold two labels or more, all of them finite")
        return y
    except Exception as error:  # whatever a broken file may raise
        reason = getattr(error, "strerror", None) or _first_line(error)
        raise ValueError(f"{path} cannot be used: {reason}") from None


# ---- files of our own ----------------------------------------------------------------


def write_archive(path: Path, arrays: dict[str, Array], about: dict) -> None:
    """Arrays and a JSON description in one .npz, moved into place when complete."""
    buffer = io.BytesIO()
    note = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    contents: dict[str, Any] = {**arrays, "about.json": note}
    np.savez(buffer, **contents)
    write_whole(path, buffer.getbuffer())


def read_archive(path: Path, kind: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays and the description that write_archive wrote, checked."""
    check_path(path)
    try:
        arrays = read_arrays(path, os.path.getsize(path))  # it does not compress
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


# ---- many small files in one ---------------------------------------------------------

FIRST_DATE = (1980, 1, 1, 0, 0, 0)  # of every file: the same content has the same bytes


def write_members(path: Path, members: Mapping[str, bytes]) -> None:
    """Files by name in one archive, compressed by bzip2, which suits decimal digits."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_BZIP2) as archive:
        for name in sorted(members):
            about = zipfile.ZipInfo(name, FIRST_DATE)
            about.compress_type = zipfile.ZIP_BZIP2
            archive.writestr(about, members[name])
    write_whole(path, buffer.getbuffer())


def members_of(path: Path) -> list[str]:
    """The names of the files in an archive."""
    return _archive(path).namelist()


def read_member(path: Path, name: str) -> bytes | None:
    """The bytes of one file of an archive; None if it is not there."""
    try:
        return _archive(path).read(name)
    except KeyError:
        return None


def _archive(path: Path) -> zipfile.ZipFile:
    about = os.stat(path)
    return _opened(os.fspath(path), about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=16)
def _opened(path: str, *_changed: int) -> zipfile.ZipFile:
    """An archive in memory, read again when the file has changed."""
    with open(path, "rb") as file:
        return zipfile.ZipFile(io.BytesIO(file.read()))
