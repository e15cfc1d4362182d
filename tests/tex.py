"""Whether a TeX is installed that can do what the tests ask of it."""

from __future__ import annotations

import shutil
import subprocess

NEEDED = {  # by Matplotlib, to measure text, and by the pages of the tests
    "pdflatex": ("underscore.sty", "booktabs.sty", "pgf.sty"),
    "xelatex": ("underscore.sty", "fontspec.sty", "pgf.sty"),
    "lualatex": ("underscore.sty", "luaotfload.sty", "fontspec.sty", "pgf.sty"),
}


def has_tex(system: str) -> bool:
    """A small TeX has some programs, but not all packages."""
    if shutil.which(system) is None or shutil.which("kpsewhich") is None:
        return False
    command = ["kpsewhich", *NEEDED[system]]
    done = subprocess.run(command, capture_output=True, text=True)
    return len(done.stdout.split()) == len(NEEDED[system])
