"""The sections of the API: each is a page with a table of names."""

from __future__ import annotations

import importlib
import inspect
from typing import Any, NamedTuple


class Section(NamedTuple):
    """A page of the API.

    names: modules, each with the names to show, or none for all that it makes public
    """

    file: str
    title: str
    about: str
    names: tuple[tuple[str, tuple[str, ...]], ...]


SECTIONS = (
    Section(
        "main",
        "mklopt",
        "Problems, solutions, certificates, checks and estimators.",
        (("mklopt", ()),),
    ),
    Section(
        "results",
        "Results",
        "What functions of mklopt return, beside `mklopt.Result`, `mklopt.Trace` and "
        "`mklopt.Certificate`.",
        (
            ("mklopt.tasks.path", ("Path",)),
            ("mklopt.tasks.epsilon_path", ("EpsilonPath",)),
            ("mklopt.tasks.choose_C", ("Choice",)),
            ("mklopt.tasks.race", ("Race", "Run")),
            ("mklopt.tasks.estimate", ("Estimate",)),
            ("mklopt.tasks.one_vs_rest", ("OneVsRest",)),
            ("mklopt.tasks.certify_exact", ("ExactBounds",)),
            ("mklopt.certificates.minimizer", ("MinimizerFacts", "Interval")),
            ("mklopt.judge.inspection", ("Inspection",)),
            ("mklopt.judge.closed_forms", ("FormulationReport",)),
            ("mklopt.judge.worst_case_table", ("WorstCases",)),
            ("mklopt.judge.exam.one_point", ("Diagnosis",)),
            ("mklopt.judge.exam.report", ("SolverReport",)),
            ("mklopt.estimators.base", ("Bounds",)),
        ),
    ),
    Section(
        "formulations",
        "Formulations",
        "What is minimized: every regularizer Ω, and what helps to declare one.",
        (("mklopt.formulations", ()),),
    ),
    Section(
        "losses",
        "Losses",
        "A problem takes a loss by its name in lower case, such as `eps_insensitive`, "
        "or as an instance with its parameters.",
        (("mklopt.formulations.losses", ()),),
    ),
    Section(
        "gallery",
        "Gallery of regularizers",
        "Regularizers from the literature, about ten lines each.",
        (("mklopt.formulations.gallery", ()),),
    ),
    Section(
        "kernels",
        "Kernels",
        "Families of kernels, and what they are after fitting.",
        (("mklopt.kernels", ()),),
    ),
    Section("data", "Data sets", "Data sets by name.", (("mklopt.data", ()),)),
    Section(
        "library",
        "Library of solved problems",
        "Problems by name, with what is proved of each.",
        (("mklopt.library", ()),),
    ),
    Section(
        "solvers",
        "Solvers",
        "What a solver is, and which ones there are.",
        (("mklopt.solvers", ()),),
    ),
    Section(
        "reference",
        "Reference solutions",
        "What the answer is: primal and dual programs, intervals around the optimum, "
        "problems that are the same in another form.",
        (("mklopt.reference", ()), ("mklopt.reference.equivalences", ())),
    ),
    Section(
        "rates",
        "Convergence rates",
        "Claimed rates are inequalities, compared with every certified iterate.",
        (("mklopt.judge.rates", ()),),
    ),
    Section("plots", "Plots", "Pictures of results.", (("mklopt.plots", ()),)),
    Section(
        "gmkl",
        "Kernels with parameters",
        "K(d): products, polynomials and sums.",
        (
            ("mklopt.gmkl", ()),
            ("mklopt.gmkl.families", ()),
            ("mklopt.gmkl.regularizers", ()),
        ),
    ),
    Section(
        "structured",
        "Structured outputs",
        "Samples that consist of parts.",
        (("mklopt.structured", ()),),
    ),
    Section(
        "checker",
        "The checker of certificate files",
        "It imports only the standard library.",
        (("mklopt.certificates.checker", ("check", "main")),),
    ),
)


def public_names(module: str) -> list[str]:
    """The names that a module makes public, without modules."""
    room = importlib.import_module(module)
    listed = dir(room) if "__dir__" in vars(room) else getattr(room, "__all__", None)
    own = [n for n, x in vars(room).items() if getattr(x, "__module__", "") == module]
    names = [n for n in listed or own if not n.startswith("_")]
    return [n for n in names if not inspect.ismodule(getattr(room, n))]


def api_pages() -> dict[str, str]:
    """The pages in reST, by file. What is public under two names is shown once."""
    shown: list[Any] = []
    return {section.file: _page(section, shown) for section in SECTIONS}


def _page(section: Section, shown: list[Any]) -> str:
    lines = [section.title, "=" * len(section.title), "", section.about, ""]
    for module, names in section.names:
        table = _new(module, names or public_names(module), shown)
        lines += [f".. currentmodule:: {module}", "", ".. autosummary::"]
        lines += ["   :toctree: .", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in table] + [""]
    return "\n".join(lines)


def _new(module: str, names: Any, shown: list[Any]) -> list[str]:
    """The names whose objects have no page yet; from now on they have one."""
    room, found = importlib.import_module(module), []
    for name in names:
        thing = getattr(room, name)
        if not any(thing is other for other in shown):
            found.append(name)
        shown.append(thing)
    return found
