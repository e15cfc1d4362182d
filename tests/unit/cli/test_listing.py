"""`mklopt list`: every name, with one line."""

from __future__ import annotations

import json

from click.testing import CliRunner

from mklopt import data
from mklopt.claims import items
from mklopt.cli import main
from mklopt.cli.listing import catalogue


def mklopt_(*words: str):
    return CliRunner().invoke(main, list(words))


def test_list_names_everything():
    found = json.loads(mklopt_("list", "--json").output)
    assert set(data.names()) == set(found["data sets"])
    assert {"auto", "spicy"} <= set(found["solvers"])
    assert {"LpNorm", "VSKL"} <= set(found["formulations"])
    assert "kloft2011" in found["papers"] and "hinge" in found["losses"]
    assert all(line for room in found.values() for line in room.values())


def test_tables_and_json_say_the_same():
    shown = mklopt_("list").output
    for title, known in catalogue().items():
        assert title in shown
        assert all(name in shown for name in known), title


def test_without_a_checkout_papers_are_known_by_their_solvers(tmp_path, monkeypatch):
    monkeypatch.setattr(items, "ROOT", tmp_path)
    found = catalogue()["papers"]
    assert "obscure" in found["orabona2012"] and "mirror" in found["aflalo2011"]


def test_one_kind_is_listed_alone():
    found = json.loads(mklopt_("list", "solvers", "--json").output)
    assert list(found) == ["solvers"] and "auto" in found["solvers"]
    assert json.loads(mklopt_("list", "data", "--json").output)["data sets"]["wdbc"]
    wrong = mklopt_("list", "solver")
    assert wrong.exit_code == 2 and "did you mean 'solvers'?" in wrong.output
