"""Links of built pages: those to pages, files and places on them must be there.

python docs/links.py docs-out          # links to other sites are only listed
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the places that links can go to."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what links and what can be linked to."""
        given = dict(attrs)
        self.links |= {given.get(name) or "" for name in ("href", "src")} - {""}
        self.places |= {given.get(name) or "" for name in ("id", "name")} - {""}


def check(folder: Path) -> tuple[list[str], list[str]]:
    """Dead links as "page: link", and the addresses of other sites."""
    files = [f for f in sorted(folder.rglob("*.html")) if "_static" not in f.parts]
    pages = {file.resolve(): Page(file) for file in files}
    dead, others = [], set()
    for file, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto"):
                others.add(link)
            elif not parts.scheme and not _there(pages, file, parts):
                dead.append(f"{file.relative_to(folder.resolve())}: {link}")
    return dead, sorted(others)


def _there(pages: dict[Path, Page], file: Path, parts: SplitResult) -> bool:
    """Whether the file of a link exists, and the place on it."""
    path, place = unquote(parts.path), unquote(parts.fragment)
    goal = (file.parent / path).resolve() if path else file
    if not goal.is_file():
        return False
    return not place or goal not in pages or place in pages[goal].places


def main() -> None:
    """Print all links to other sites; end with an error if a local one is dead."""
    dead, others = check(Path(sys.argv[1]))
    print(*others, sep="\n")
    if dead:
        sys.exit("dead links:\n" + "\n".join(dead))


if __name__ == "__main__":
    main()
