"""Notebooks of the three jobs, made from their pages and run.

    python docs/notebooks.py        # writes docs/generated/notebooks/

Text becomes cells of text, blocks become cells of code, and a picture becomes a cell
that shows it. A cell that fails ends the build.
"""

from __future__ import annotations

import re
import tempfile

import nbformat
from blocks import DOCS
from nbclient import NotebookClient
from nbformat.notebooknode import NotebookNode

JOBS = ("checking", "regularizer", "figures")
FOLDER = DOCS / "generated" / "notebooks"
PIECE = re.compile(
    r"^```(?P<kind>python|console)\n(?P<block>.*?)^```$|^!\[.*?\]\((?P<file>.*?)\)$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"\[([^\]]*)\]\((?!http)[^)]*\)")
SECONDS = 300  # for one cell


def notebook(text: str) -> NotebookNode:
    """The page as a notebook that has not run."""
    cells, end = [], 0
    for piece in PIECE.finditer(text):
        cells += _words(text[end : piece.start()])
        cells.append(nbformat.v4.new_code_cell(_code(piece)))
        end = piece.end()
    cells += _words(text[end:])
    for place, cell in enumerate(cells):
        cell.id = f"cell-{place}"  # the same in every build
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    return nbformat.v4.new_notebook(cells=cells, metadata=about)


def _words(text: str) -> list[NotebookNode]:
    """A cell of text: links to other pages are words, this page's own link goes."""
    plain = LINK.sub(r"\1", re.sub(r"^\*\[This page as .*\n", "", text, flags=re.M))
    return [nbformat.v4.new_markdown_cell(plain.strip())] if plain.strip() else []


def _code(piece: re.Match) -> str:
    if piece["file"]:
        return f"from IPython.display import Image\n\nImage({piece['file']!r})"
    if piece["kind"] == "console":
        return re.sub(r"^\$ ", "!", piece["block"], flags=re.M).rstrip()
    return piece["block"].rstrip()


def run(made: NotebookNode) -> NotebookNode:
    """The notebook with its outputs; it runs in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        where = {"metadata": {"path": folder}}
        return NotebookClient(made, timeout=SECONDS, resources=where).execute()


def main() -> None:
    """Make and run the notebooks of all jobs."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in JOBS:
        text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        nbformat.write(run(notebook(text)), FOLDER / f"{name}.ipynb")
        print(FOLDER / f"{name}.ipynb")


if __name__ == "__main__":
    main()
