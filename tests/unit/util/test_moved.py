"""Old module names: one finder, a warning, and names for unpickling."""

from __future__ import annotations

import importlib
import sys

import pytest

from mklopt.gmkl import families
from mklopt.kernels import functions
from mklopt.util import moved


def test_installing_twice_adds_one_finder():
    before = list(sys.meta_path)
    moved.install()
    assert sys.meta_path == before
    assert sum(isinstance(f, moved._Finder) for f in sys.meta_path) == 1


def test_an_old_module_warns_and_has_the_new_objects():
    sys.modules.pop("mklopt.families", None)
    with pytest.warns(DeprecationWarning, match="is now mklopt.gmkl.families"):
        old = importlib.import_module("mklopt.families")
    assert old is families and old.__name__ == "mklopt.gmkl.families"


def test_a_renamed_object_has_its_old_name_too():
    for module, names in moved.RENAMED.items():
        sys.modules.pop(module, None)
        with pytest.warns(DeprecationWarning):
            old = importlib.import_module(module)
        for name, new in names.items():
            assert getattr(old, name) is getattr(old, new)


PICKLED = {"formulations": "mklopt.formulations.base"}  # others: the room itself


@pytest.mark.parametrize("home", moved.NAMES)
def test_every_pickled_name_is_found(home):
    room = home.split(".")[1]
    for name in moved.NAMES[home]:
        found = moved.old_name(PICKLED.get(room, f"mklopt.{room}"), name)
        assert found.__module__ == home


def test_a_pickled_class_is_the_one_of_today_and_others_are_unknown():
    assert moved.old_name("mklopt.kernels", "_Gaussian") is functions.Gaussian
    for name in ("nothing", "Bounds"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            moved.old_name("mklopt.kernels", name)
