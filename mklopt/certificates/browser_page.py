"""One HTML page that checks certificate files in a browser, without a server.

The page has the sources of the checker inside, and runs them with Pyodide: Python
compiled to WebAssembly. With a folder of Pyodide's files (its npm package, 19 MB in the
page) it needs no network and can be opened as a file. Without, it loads Pyodide from
the address `CDN`.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

from ..util.files import write_whole

HERE = Path(__file__).parent
SOURCES = ("checker.py", "conic.py", "matrices.py", "reading.py")
ASSETS = (
    "pyodide.js",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)
CDN = "https://cdn.jsdelivr.net/npm/pyodide@314.0.7/"


def write_page(
    path: str | os.PathLike, pyodide: str | os.PathLike | None = None
) -> None:
    """Write the page.

    Parameters
    ----------
    path : str or path
        The HTML file.
    pyodide : str or path, optional
        A folder with Pyodide's files, which go into the page.

    Raises
    ------
    ValueError
        If the folder lacks one of them.
    """
    sources = {name: (HERE / name).read_text(encoding="utf-8") for name in SOURCES}
    assets = {} if pyodide is None else _assets(Path(pyodide))
    page = (HERE / "page.html").read_text(encoding="utf-8")
    folder = "https://inside.invalid/" if assets else CDN
    for name, value in (("SOURCES", sources), ("ASSETS", assets), ("FOLDER", folder)):
        page = page.replace(f"@{name}@", json.dumps(value).replace("</", "<\\/"), 1)
    write_whole(path, page.encode())


def _assets(folder: Path) -> dict[str, str]:
    missing = [name for name in ASSETS if not (folder / name).is_file()]
    if missing:
        raise ValueError(
            f"{folder} has no {', '.join(missing)}; give the folder of Pyodide's npm "
            "package (npm pack pyodide, unpacked: package/)"
        )
    return {
        name: base64.b64encode((folder / name).read_bytes()).decode() for name in ASSETS
    }
