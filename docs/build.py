"""The documentation: Markdown with code that is run in, HTML out, no network.

    python docs/build.py [--out docs-out] [PAGE …]

What a page may hold besides Markdown:

    ```python                 run, with its output below. A block that says "import
                              mklopt" starts afresh; any other goes on where the one
                              above it ended. Pictures it writes stand beside the page
                              and are shown at the size at which they are printed
    ```console                lines "$ command", run, each followed by its output
    {{ source FILE [NAME] }}  a file of the repository as it is, or one class of it
    {{ api MODULE }}          its public names with signatures and docstrings
    {{ solvers }}             what each solver takes and guarantees, from the registry

The list of links in index.md is the menu.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MACRO = re.compile(r"^\{\{ (\w+) ?(.*?) \}\}$", re.MULTILINE)
MARK = "\x1e"  # stands between the outputs of two blocks


class Broken(RuntimeError):
    """A page that cannot be built, and why."""


def menu() -> list[str]:
    """The names of all pages, as index.md lists them."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    return ["index", *re.findall(r"\]\(([\w-]+)\.md\)", text)]


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
    outputs = iter([out for p in programs(text) for out in run(p, folder)])

    def shown(found: re.Match) -> str:
        out = next(outputs).rstrip()
        above = f"{found[0]}\n\n" if found[1] == "python" else ""
        return above + (f"````output\n{out}\n````" if out else "")

    return BLOCK.sub(shown, text)


# ---- what is taken from the source ---------------------------------------------------


def source(file: str, name: str = "") -> str:
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


def api(module: str) -> str:
    room = importlib.import_module(module)
    listed = dir(room) if "__dir__" in vars(room) else getattr(room, "__all__", None)
    own = [n for n, x in vars(room).items() if getattr(x, "__module__", "") == module]
    names = [n for n in listed or own if not n.startswith("_")]
    links = ", ".join(f"[{n}](#{module}.{n})" for n in names)
    return "\n\n".join([links, *(_entry(module, n, getattr(room, n)) for n in names)])


def _entry(module: str, name: str, thing: Any) -> str:
    lines = [f"### {module}.{name}"]
    if callable(thing):
        lines.append(f"````signature\n{name}{_signature(thing)}\n````")
    lines.append(f"````doc\n{inspect.getdoc(thing) or ''}\n````")
    for member, part in inspect.getmembers(thing) if inspect.isclass(thing) else []:
        getter = getattr(part, "fget", getattr(part, "func", None))  # of a property
        home = getattr(getter or part, "__module__", None) or ""
        if member[0] != "_" and home.startswith("mklopt") and callable(getter or part):
            head = member if getter else member + _signature(part)
            about = (inspect.getdoc(part) or "").split("\n")[0]
            lines.append(f"* `{head}`" + (f": {escape(about)}" if about else ""))
    return "\n\n".join(lines)


def _signature(thing: Any) -> str:
    try:
        shown = str(inspect.signature(thing))
    except ValueError:
        return "(…)"
    shown = re.sub(r"(: |-> )'([^']*)'", r"\1\2", shown)  # types as they are written
    return re.sub(r"\(self(, )?", "(", shown)


def solvers() -> str:
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


MACROS: dict[str, Any] = {"source": source, "api": api, "solvers": solvers}


# ---- pages --------------------------------------------------------------------------


def page(name: str, out: Path) -> str:
    """Build one page into the folder; returns its HTML."""
    from markdown_it import MarkdownIt

    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    try:
        text = with_outputs(text, out)
        text = MACRO.sub(lambda m: MACROS[m[1]](*m[2].split()), text)
    except (Broken, KeyError) as error:
        raise Broken(f"{name}.md: {error}") from None
    body = (
        MarkdownIt("commonmark", {"highlight": _coloured}).enable("table").render(text)
    )
    body = re.sub(r"<h([1-4])>(.*?)</h\1>", _anchored, body)
    body = re.sub(r'href="([\w-]+)\.md', r'href="\1.html', body)
    body = re.sub(r'<img src="([^"]*\.png)"', lambda m: _true_size(m, out), body)
    body = body.replace("<table>", '<div class="wide"><table>')
    body = body.replace("</table>", "</table></div>")
    links = "".join(_link(other, other == name) for other in menu()[1:])
    html = (DOCS / "page.html").read_text(encoding="utf-8")
    parts = dict(title=escape(title(name)), menu=links, style=_style(), body=body)
    for key, value in parts.items():
        html = html.replace(f"[[{key}]]", value)
    (out / f"{name}.html").write_text(html, encoding="utf-8")
    return html


def title(name: str) -> str:
    first = (DOCS / f"{name}.md").read_text(encoding="utf-8").splitlines()[0]
    return first.removeprefix("# ")


def _link(name: str, here: bool) -> str:
    mark = ' class="here"' if here else ""
    return f'<li><a href="{name}.html"{mark}>{escape(title(name))}</a></li>'


def _anchored(found: re.Match) -> str:
    words = re.sub(r"<[^>]*>", "", found[2])
    place = re.sub(r"[^\w.]+", "-", words).strip("-")
    return f'<h{found[1]} id="{place}">{found[2]}</h{found[1]}>'


def _true_size(found: re.Match, out: Path) -> str:
    """A picture as wide as it is printed: its pixels divided by its resolution."""
    from PIL import Image

    with Image.open(out / found[1]) as picture:
        inches = picture.width / picture.info.get("dpi", (100, 100))[0]
    return f'<img style="width: {inches:.2f}in" src="{found[1]}"'


def _coloured(code: str, language: str, _: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer, TextLexer

    lexer = PythonLexer() if language in ("python", "signature") else TextLexer()
    return highlight(code, lexer, HtmlFormatter(nowrap=True))


def _style() -> str:
    from pygments.formatters import HtmlFormatter

    return HtmlFormatter(style="friendly").get_style_defs("pre code")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the documentation.")
    parser.add_argument("--out", type=Path, default=ROOT / "docs-out")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="by default all")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.pages or menu():
        try:
            page(name, given.out)
        except Broken as error:
            sys.exit(str(error))
        print(given.out / f"{name}.html")


if __name__ == "__main__":
    main()
