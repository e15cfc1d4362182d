"""How sphinx-gallery finds the pictures of an example: the PNG files that it writes."""

from pathlib import Path
from shutil import move
from typing import Any

from sphinx_gallery.scrapers import figure_rst


def drawn_files(block: Any, variables: dict, gallery_conf: dict) -> str:
    """Move what a block drew beside its page; the reST that shows it."""
    folder = Path(variables["src_file"]).parent
    places = variables["image_path_iterator"]
    shown = []
    for file in sorted(folder.glob("*.png"), key=lambda f: f.stat().st_mtime_ns):
        place = next(places)
        move(file, place)
        shown.append(place)
    return figure_rst(shown, gallery_conf["src_dir"])
