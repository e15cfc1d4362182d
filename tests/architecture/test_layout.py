"""Where things are: sizes of rooms, plug-ins, names, orphans, tests, clocks."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest

import mklopt
from mklopt import cli
from mklopt.formulations import formulations, losses_by_name
from mklopt.solvers import solvers

ROOT = Path(__file__).resolve().parents[2]
TOPS = {"mklopt": "", "formulations": "formulations", "reference": "reference"}

PLUG_INS = {  # rooms in which every other file registers something
    "solvers": {"base", "start"},
    "formulations": {
        *("base", "declared", "gallery", "mixed_prox", "norms", "restricted", "text"),
        "groupings",
        # the terms that declarations are recognized in
        *("recognized", "nested_norms", "norm_terms", "ordered", "rescaled", "sums"),
    },
    "formulations.losses": {
        *("base", "class_terms", "declared", "domains", "face"),
        *("labels", "pointwise"),
    },
}
CLOCKS = (  # who may read one
    *("run", "campaign", "claims.run", "claims.rows", "judge.exam.sandbox", "gmkl"),
    "reference.exact",
)


def rooms() -> dict[str, Path]:
    """Every folder of the package by its dotted name below mklopt."""
    found = {}
    for top, name in TOPS.items():
        for init in sorted((ROOT / top).rglob("__init__.py")):
            parts = init.parent.relative_to(ROOT / top).parts
            if top == "mklopt" and parts[:1] in (("formulations",), ("reference",)):
                continue  # reached through the symlinks
            found[".".join(filter(None, (name, *parts)))] = init.parent
    return found


ROOMS = rooms()
MODULES = {
    ".".join(filter(None, (room, path.stem))): path
    for room, folder in ROOMS.items()
    for path in sorted(folder.glob("*.py"))
    if path.stem != "__init__"
}


def home_of(module: str) -> tuple[str, str]:
    room, _, name = module.rpartition(".")
    return room, name


def registered() -> set[str]:
    """The modules that a solver, a formulation or a loss is registered from."""
    known = [f"mklopt.solvers.{name}" for name in solvers()]
    kinds = (*formulations().values(), *losses_by_name().values())
    known += [kind.__module__ for kind in kinds]
    return {name.removeprefix("mklopt.") for name in known}


def test_the_root_has_rooms_and_few_modules():
    assert {m for m in MODULES if "." not in m} == {"__main__", "plots", "problem"}


@pytest.mark.parametrize("room", sorted(set(ROOMS) - {"solvers", "formulations"}))
def test_no_room_has_more_than_twenty_files(room):
    assert len([m for m in MODULES if home_of(m)[0] == room]) <= 20


@pytest.mark.parametrize("room", PLUG_INS)
def test_every_file_of_a_room_of_plug_ins_registers_something(room):
    files = {home_of(m)[1] for m in MODULES if home_of(m)[0] == room}
    theirs = {home_of(m)[1] for m in registered() if home_of(m)[0] == room}
    assert files - theirs == PLUG_INS[room]


def test_no_room_is_called_like_a_public_function():
    public = {n for n in mklopt.__all__ if inspect.isroutine(getattr(mklopt, n))}
    assert not public & {room.split(".")[0] for room in ROOMS}


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_no_room_exports_a_name_of_one_of_its_modules(room):
    tree = ast.parse((ROOMS[room] / "__init__.py").read_text())
    taken = [
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    ]
    modules = {home_of(m)[1] for m in MODULES if home_of(m)[0] == room}
    assert not modules & set(taken)


def test_no_module_is_an_orphan():
    """Each is imported by another, public, registered, or an entry point."""
    texts = {m: p.read_text() for m, p in MODULES.items()}
    texts |= {room: (ROOMS[room] / "__init__.py").read_text() for room in ROOMS}
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    points = [
        *settings["scripts"].values(),
        *settings["entry-points"]["pytest11"].values(),
    ]
    kept = {point.split(":")[0].removeprefix("mklopt.") for point in points}
    kept |= {"__main__"}  # python -m mklopt
    kept |= {home.removeprefix("mklopt.") for home in mklopt.HOMES.values()}
    kept |= registered() | {f"cli.{module}" for module in cli.MODULES.values()}
    orphans = []
    for module in set(MODULES) - kept:
        room, name = home_of(module)
        used = re.compile(
            rf"from [.\w]*\b{name} import|from [.\w]*\b{room.split('.')[-1]} import"
            rf"[^\n]*\b{name}\b|from \.+ import( \([^)]*|[^\n]*)\b{name}\b"
        )
        if not any(used.search(t) for m, t in texts.items() if m != module):
            orphans.append(module)
    assert not orphans


def test_every_module_has_a_test_file_of_its_own():
    missing = []
    for module in sorted(set(MODULES) - registered()):
        room, name = home_of(module)
        path = ROOT.joinpath("tests", "unit", *room.split("."), f"test_{name}.py")
        if not path.is_file():
            missing.append(str(path.relative_to(ROOT)))
    assert not missing


def test_every_test_file_has_a_module():
    """So that a module that goes takes its tests along."""
    lost = []
    for path in sorted((ROOT / "tests" / "unit").rglob("test_*.py")):
        parts = path.relative_to(ROOT / "tests" / "unit").parts
        module = ".".join((*parts[:-1], parts[-1][5:-3]))
        if module not in MODULES and parts[0] != "compatibility":
            lost.append(module)
    assert not lost


def test_few_read_a_clock():
    clock = re.compile(r"^\s*(import|from) (time|datetime)\b", re.MULTILINE)
    wrong = [
        module
        for module, path in MODULES.items()
        if clock.search(path.read_text())
        and not any(module == room or module.startswith(f"{room}.") for room in CLOCKS)
    ]
    assert not wrong


def test_every_public_name_lives_where_it_is_said_to_live():
    for name, home in mklopt.HOMES.items():
        found = getattr(mklopt, name)
        if inspect.ismodule(found):
            assert found is importlib.import_module(home)
        else:
            assert vars(importlib.import_module(home))[name] is found
