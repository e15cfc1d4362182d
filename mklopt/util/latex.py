r"""Text and figures for LaTeX: any LaTeX accepts them, plain pdflatex included.

    escaped("5% of ‖w_1‖²")   special characters escaped, mathematics in \ensuremath
    pgf(figure, path)         a figure as PGF: \usepackage{pgf}, \input{path}

Matplotlib writes PGF with the letters it was given, an undefined \mathdefault, and the
folders of its fonts; here letters are escaped first, the rest is corrected afterwards.

pylatexenc 2.11 is not used: it leaves the accent of θ̂ as it is, which pdflatex refuses.
"""

import re
import shutil
import unicodedata
from pathlib import Path
from typing import Any

from .messages import say

SPECIAL = {
    **{c: "\\" + c for c in "_&%#${}"},
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "–": "--", "—": "---", "…": r"\ldots{}", "’": "'", "“": "``", "”": "''",
    "\xa0": "~", "<": r"\ensuremath{<}", ">": r"\ensuremath{>}", "|": r"\ensuremath{|}",
}  # fmt: skip
SIGNS = {
    "ℓ": r"\ell", "‖": r"\|", "≤": r"\le", "≥": r"\ge", "≠": r"\ne", "≈": r"\approx",
    "·": r"\cdot", "×": r"\times", "±": r"\pm", "−": "-", "∞": r"\infty", "√": r"\surd",
    "∈": r"\in", "⊂": r"\subset", "∂": r"\partial", "∇": r"\nabla", "→": r"\to",
    "⟨": r"\langle", "⟩": r"\rangle", "∗": "*", "°": r"^\circ", "∑": r"\sum",
    "∏": r"\prod", "⪰": r"\succeq", "′": "'", "∘": r"\circ",
}  # fmt: skip
ACCENTS = {"\u0302": r"\hat", "\u0303": r"\tilde", "\u0304": r"\bar", "\u0307": r"\dot"}
# Greek capitals that look Latin have no command of their own.
CAPITALS = (
    "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi",
    "Omega",
)  # fmt: skip
TEX = ("pdflatex", "xelatex", "lualatex")


def escaped(text: str) -> str:
    """Text with LaTeX commands for special characters; unknown ones become "?"."""
    parts = re.findall(".[\u0300-\u036f]?", unicodedata.normalize("NFC", text))
    return "".join(_letter(part) for part in parts)


def _letter(part: str) -> str:
    letter, accent = part[0], part[1:]
    if accent in ACCENTS:
        return rf"\ensuremath{{{ACCENTS[accent]}{{{_sign(letter)}}}}}"
    if letter in SPECIAL:
        return SPECIAL[letter]
    # Latin letters with accents: pdflatex reads them from UTF-8 without packages.
    known = letter.isascii() or (letter.isalpha() and 0xC0 <= ord(letter) < 0x180)
    return letter if known else rf"\ensuremath{{{_sign(letter)}}}"


def _sign(letter: str) -> str:
    """One character inside mathematics."""
    if letter in SIGNS or letter.isascii():
        return SIGNS.get(letter, letter)
    name = unicodedata.name(letter, "")
    if found := re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (\w+)", name):
        word = found[2].lower().replace("lamda", "lambda")
        word = word if found[1] == "SMALL" else word.capitalize()
        return "\\" + word if found[1] == "SMALL" or word in CAPITALS else word[0]
    kind, _, codes = unicodedata.decomposition(letter).partition(" ")
    plain = [_sign(chr(int(code, 16))) for code in codes.split()]
    if kind == "<fraction>":
        return rf"\frac{{{plain[0]}}}{{{plain[-1]}}}"
    lifted = {"<super>": "^", "<sub>": "_"}.get(kind)
    return rf"{lifted}{{{''.join(plain)}}}" if lifted else "?"


def pgf(figure: Any, path: Path) -> bool:
    """Write a figure as PGF; False if no TeX is installed that can measure its text.

    A small TeX cannot: Matplotlib needs the packages underscore and fontspec.
    """
    there = [name for name in TEX if shutil.which(name)]
    if not any(_drawn(figure, path, name) for name in there):
        if there:
            say(f"no {path.name}: {there[0]} lacks the package underscore or fontspec")
        return False
    lines = path.read_text(encoding="utf-8").replace(
        r"\begingroup%", "\\begingroup%\n\\providecommand{\\mathdefault}[1]{#1}%", 1
    )
    path.write_text(lines, encoding="utf-8")
    return True


def _drawn(figure: Any, path: Path, system: str) -> bool:
    """Whether this TeX could measure the text; then the figure is written."""
    import matplotlib
    from matplotlib.backends.backend_pgf import LatexError
    from matplotlib.text import Text

    before = [(text, text.get_text()) for text in figure.findobj(Text)]
    # A figure with a layout of its own keeps its size.
    box = "tight" if figure.get_layout_engine() is None else "standard"
    settings: Any = {"pgf.texsystem": system, "pgf.rcfonts": False}
    try:
        for text, words in before:
            text.set_text(_outside_mathematics(words))
        with matplotlib.rc_context({**settings, "savefig.bbox": box}):
            figure.savefig(path, backend="pgf")
    except (LatexError, BrokenPipeError):  # it ended before it was asked
        path.unlink(missing_ok=True)
        return False
    finally:
        for text, words in before:
            text.set_text(words)
    return True


def _outside_mathematics(text: str) -> str:
    r"""Escape text outside of $…$; Matplotlib translates what is inside."""
    parts = re.split(r"(\$[^$]*\$)", text)
    return "".join(part if k % 2 else escaped(part) for k, part in enumerate(parts))
