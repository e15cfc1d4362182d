"""Configuration of Sphinx. `make docs` builds; docs/extension.py runs the code."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from extension import GENERATED, reachable  # noqa: E402
from pictures import drawn_files  # noqa: E402

import mklopt  # noqa: E402

project = "mklopt"
author = "mklopt contributors"
copyright = author
version = release = mklopt.__version__
language = "en"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "extension",
]
exclude_patterns = ["gallery/*.rst", f"{GENERATED}/*.md"]
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]  # functions below cannot be pickled

# ---- Markdown and mathematics ----
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
default_role = "py:obj"  # `solve` in a docstring is a link

# ---- API ----
autosummary_generate = True
autosummary_imported_members = True
# Names that differ in case alone are one file on some systems.
autosummary_filename_map = {
    f"{module}.{name}": f"{module}.{name}-function"
    for module, name in (
        ("mklopt.formulations", "formulation"),
        ("mklopt.formulations", "loss"),
        ("mklopt.formulations", "variational"),
        ("mklopt.formulations.losses", "loss"),
        ("mklopt.solvers", "solver"),
        ("mklopt.reference.equivalences", "equivalence"),
    )
}
autodoc_typehints = "none"  # docstrings have the types
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # templates list them

# ---- other projects: plain text where there is no network ----
PROJECTS = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "sklearn": "https://scikit-learn.org/stable/",
    "cvxpy": "https://www.cvxpy.org/",
    "matplotlib": "https://matplotlib.org/stable/",
    "pandas": "https://pandas.pydata.org/docs/",
}
intersphinx_mapping = reachable(PROJECTS, HERE / GENERATED / "inventories")

# ---- gallery ----
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": f"{GENERATED}/gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__\.py",
    "image_scrapers": (drawn_files,),
    "doc_module": ("mklopt",),
    "backreferences_dir": f"{GENERATED}/examples",
    "inspect_global_variables": False,
    "show_memory": False,
    "capture_repr": (),  # a figure that is the last line is no output
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "download_all_examples": True,
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
}

# ---- how it looks ----
# pydata-sphinx-theme: the theme of NumPy and SciPy, with all that is needed offline.
html_theme = "pydata_sphinx_theme"
html_title = f"mklopt {release}"
html_static_path = ["_static"]
html_css_files = ["mklopt.css"]
html_show_sourcelink = False
html_sidebars: dict[str, list[str]] = {"index": [], "get-started": [], "papers": []}
html_theme_options = {
    "logo": {"text": "mklopt"},
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_end": ["version", "theme-switcher"],
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc", "sg_download_links"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_selector = "div:not(.output) > div.highlight > pre"
copybutton_exclude = ".linenos, .gp, .go"

os.environ.setdefault("COLUMNS", "88")  # width of what commands print
