"""`mklopt derive`: a list, a text, or a refusal."""

from __future__ import annotations

import json

from click.testing import CliRunner

from mklopt.cli import main
from mklopt.reference import symbolic


def derive(*words: str):
    return CliRunner().invoke(main, ["derive", *words])


def test_without_a_name_all_are_listed():
    shown = derive().output.splitlines()
    assert [line.split()[0] for line in shown] == list(symbolic.names())


def test_what_is_printed_is_the_derivation():
    name = symbolic.names()[0]
    assert derive(name).output.strip() == symbolic.derive(name).text().strip()
    assert (
        derive(name, "--latex").output.strip() == symbolic.derive(name).latex().strip()
    )
    wrong = derive("nothing")
    assert wrong.exit_code == 2 and "derivation 'nothing' is not known" in wrong.output


def test_what_does_not_hold_is_not_printed(monkeypatch):
    name = symbolic.names()[0]
    slip = symbolic.derive(name, slip=True)
    monkeypatch.setattr(symbolic, "derive", lambda _: slip)
    done = derive(name)
    assert done.exit_code == 1 and "does not hold; please report this" in done.output


def test_json_has_the_same_text():
    name = symbolic.names()[0]
    found = json.loads(derive(name, "--json").output)
    assert found["text"] == symbolic.derive(name).text() and found["name"] == name
    assert list(json.loads(derive("--json").output)) == list(symbolic.names())
