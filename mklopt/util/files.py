"""Files that are written completely or not at all, and checksums of JSON objects.

A write goes to a temporary file that is flushed to disk and then renamed, so that a
crash leaves the old file or the new one, never half of one.
"""

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from .checks import check_path


def write_whole(path: str | os.PathLike[str], content: bytes | memoryview) -> None:
    """Replace the file at this path by content; missing folders are made."""
    check_path(path)
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
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(scratch)
        if isinstance(error, OSError) and error.errno:
            error.filename = str(target)  # a full disk does not say where
        raise


def checksum(body: dict[str, Any]) -> str:
    """The SHA-256 of a JSON object, the same for any order of its keys."""
    canonical = json.dumps(body, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()
