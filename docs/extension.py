"""What Sphinx needs for these pages, as an extension.

Blocks of code are run when a page is read (docs/blocks.py), in a folder of the page
below docs/generated/. Their output stands below them; pictures they draw are shown at
the size at which they are printed. A block that fails is a warning, and so an error.

Pages of the API are made from the names that modules make public. Mathematics becomes
MathML, which browsers show without a script and without a network.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from api import api_pages
from blocks import Broken, expanded, with_outputs
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

GENERATED = "generated"
IMAGE = re.compile(r"(!\[[^\]]*\])\(([\w/-]+\.png)\)")
BARS = re.compile(r"(?<![`|])\|([^|`\n]+)\|(?![`|])")
BACK = re.compile(r'(class="viewcode-back" href="[^"#]*)#[^"]*')
WAIT = 3.0  # seconds for an inventory of another project
say = logging.getLogger(__name__)


# ---- pages --------------------------------------------------------------------------


def read_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Run the blocks of a page and put in what it takes from the source."""
    if app.env.doc2path(docname, base=False).suffix != ".md":
        return
    folder = Path(app.srcdir) / GENERATED / docname
    folder.mkdir(parents=True, exist_ok=True)
    try:
        text = expanded(source[0])
        source[0] = with_outputs(text, folder) if app.config.run_blocks else text
    except (Broken, KeyError) as error:
        say.warning("%s: %s", docname, error, location=docname)
    there = f"{GENERATED}/{docname}"
    source[0] = IMAGE.sub(lambda m: _drawn(m, folder, there), source[0])


def _drawn(found: re.Match, folder: Path, there: str) -> str:
    """A picture that a block of this page drew, as wide as it is printed."""
    file = folder / found[2]
    if not file.is_file():
        return found[0]
    return f"{found[1]}({there}/{found[2]}){{width={_width(file)}px}}"


def _width(file: Path) -> int:
    """The printed width in pixels of the web, 96 an inch."""
    from PIL import Image

    with Image.open(file) as picture:
        return round(96 * picture.width / picture.info.get("dpi", (100, 100))[0])


# ---- the API ------------------------------------------------------------------------


def write_api(app: Sphinx, config: Any) -> None:
    """One file for each section of the API."""
    folder = Path(app.srcdir) / GENERATED / "api"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in api_pages().items():
        (folder / f"{name}.rst").write_text(text, encoding="utf-8")


def keep_bars(app: Sphinx, *what: Any) -> None:
    """|x| in a docstring is an absolute value, no substitution."""
    lines = what[-1]
    lines[:] = [BARS.sub(r"\\|\1\\|", line) for line in lines]


def link_back(app: Sphinx, name: str, template: str, context: dict, tree: Any) -> None:
    """From source code to the page of a name: its place there may have another name."""
    if name.startswith("_modules/"):
        context["body"] = BACK.sub(r"\1", context["body"])


# ---- mathematics --------------------------------------------------------------------


def _mathml(node: Any, display: str) -> str:
    from latex2mathml.converter import convert

    return convert(node.astext(), display=display)


def inline_math(self: Any, node: nodes.math) -> None:
    """A formula in a line."""
    self.body.append(_mathml(node, "inline"))
    raise nodes.SkipNode


def display_math(self: Any, node: nodes.math_block) -> None:
    """A formula of its own."""
    formula = _mathml(node, "block")
    self.body.append(self.starttag(node, "div", CLASS="math", tabindex="0"))
    self.body.append(f"{formula}</div>\n")
    raise nodes.SkipNode


# ---- other projects -----------------------------------------------------------------


def reachable(projects: dict[str, str], folder: Path) -> dict[str, tuple[str, str]]:
    """Projects whose inventories can be read now: without a network none, silently."""
    found = {}
    folder.mkdir(parents=True, exist_ok=True)
    for name, url in projects.items():
        file = folder / f"{name}.inv"
        try:
            with urlopen(f"{url}objects.inv", timeout=WAIT) as answer:
                file.write_bytes(answer.read())
        except (URLError, OSError):
            continue
        found[name] = (url, str(file))
    return found


def setup(app: Sphinx) -> dict[str, bool]:
    """Register all of this with Sphinx."""
    app.add_config_value("run_blocks", True, "env", bool)
    app.connect("source-read", read_page)
    app.connect("config-inited", write_api)
    app.connect("autodoc-process-docstring", keep_bars, priority=100)
    app.connect("html-page-context", link_back, priority=1)
    pair = (inline_math, None)
    app.add_html_math_renderer("mathml", pair, (display_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
