"""The code on the pages of the documentation: how it is run, and what stands below it.

    ```python                 run, with its output below. A block that says "import
                              mklopt" starts afresh; any other goes on where the one
                              above it ended
    ```console                lines "$ command", run, each followed by its output
    {{ source FILE [NAME] }}  a file of the repository as it is, or one class of it
    {{ solvers }}             what each solver takes and guarantees, from the registry
    {{ guide FILE }}          CONTRIBUTING.md and others, with links that work here

The tests and the build of the documentation (docs/extension.py) both run blocks here.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MACRO = re.compile(r"^\{\{ (\w+) ?(.*?) \}\}$", re.MULTILINE)
MARK = "\x1e"  # stands between the outputs of two blocks
OUTPUT = "````{{code-block}} text\n:class: output\n\n{}\n````"  # below a block


class Broken(RuntimeError):
    """A page that cannot be built, and why."""


def pages() -> list[str]:
    """The names of all pages."""
    return sorted(path.stem for path in DOCS.glob("*.md"))


# ---- blocks -------------------------------------------------------------------------


def programs(text: str) -> list[list[str]]:
    """The blocks of a page as Python, in lists that are one program each."""
    found: list[list[str]] = []
    for kind, block in BLOCK.findall(text):
        if not found or (kind == "python" and "\nimport mklopt\n" in f"\n{block}"):
            found.append([])
        found[-1].append(block if kind == "python" else _commands(block))
    return found


def _commands(block: str) -> str:
    """A console block as Python: each command and, below it, what it says."""
    shown = "print({0!r}, flush=True); __import__('subprocess').run({1!r}, **HOW)"
    lines = [shown.format(x, x.removeprefix("$ ")) for x in block.splitlines() if x]
    how = "HOW = dict(shell=True, stderr=-2, check=True)"  # errors into the output
    return "\n".join([how, *lines])


def run(program: list[str], folder: Path) -> list[str]:
    """What each block of a program prints; the program runs in the folder, alone."""
    code = f"\nprint({MARK!r}, flush=True)\n".join(program)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "COLUMNS": "88"}
    command = [sys.executable, "-c", code]
    how: dict[str, Any] = dict(capture_output=True, text=True, encoding="utf-8")
    done = subprocess.run(command, cwd=folder, env=environment, **how)
    if done.returncode:
        place = done.stdout.count(MARK)
        raise Broken(f"this block fails:\n{program[place]}\n{done.stderr}")
    return done.stdout.split(f"{MARK}\n")


def with_outputs(text: str, folder: Path) -> str:
    """The page with what its blocks print below them; they run in the folder."""
    outputs = iter([out for p in programs(text) for out in run(p, folder)])

    def shown(found: re.Match) -> str:
        out = next(outputs).rstrip()
        above = f"{found[0]}\n\n" if found[1] == "python" else ""
        return above + (OUTPUT.format(out) if out else "")

    return BLOCK.sub(shown, text)


# ---- what is taken from the source ---------------------------------------------------


def source(file: str, name: str = "") -> str:
    """A file of the repository as a block, or one class or function of it."""
    path = ROOT / file
    if not path.is_file():
        raise Broken(f"there is no file {file}")
    text = path.read_text(encoding="utf-8")
    if name:
        nodes: list[Any] = list(ast.parse(text).body)
        here = [n for n in nodes if getattr(n, "name", "") == name]
        if not here:
            raise Broken(f"{file} has no {name}")
        first = min([here[0].lineno, *(d.lineno for d in here[0].decorator_list)])
        text = "\n".join(text.splitlines()[first - 1 : here[0].end_lineno]) + "\n"
    language = "python" if path.suffix == ".py" else "text"
    return f"*{file}*\n\n````{language}\n{text}````"


def solvers() -> str:
    """The table of all solvers, from the registry."""
    from mklopt.solvers import base, solvers

    columns = ("solver", "formulations", "losses", "to", "guarantee")
    rows = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for name, s in solvers().items():
        needs = " and ".join(map(base._in_words, sorted(s.needs))) or "all"
        losses = ", ".join(sorted(s.losses))
        losses += "" if True in s.bias else "; without a bias"
        to = "it depends" if callable(s.accuracy) else f"{s.accuracy:.0e}"
        about = (s.guarantee or "its certificate").replace("|", "\\|")
        rows.append(f"| `{name}` | {needs} | {losses} | {to} | {about} |")
    return "\n".join(rows)


def guide(file: str) -> str:
    """A guide at the top of the repository, with links to these pages."""
    text = (ROOT / file).read_text(encoding="utf-8")
    links = {"CONTRIBUTING": "contributing", "ARCHITECTURE": "architecture"}
    for there, here in links.items():
        text = text.replace(f"]({there}.md)", f"]({here}.md)")
    return text.replace("](docs/", "](")


MACROS: dict[str, Any] = {"source": source, "solvers": solvers, "guide": guide}


def expanded(text: str) -> str:
    """The page with what is taken from the source in place of its macros."""
    return MACRO.sub(lambda m: MACROS[m[1]](*m[2].split()), text)
