"""Words of the command line: known names, errors as sentences, help."""

from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner

from mklopt.cli import MODULES, main
from mklopt.cli.words import (
    check_known,
    echo_json,
    listed,
    problem_options,
    sentence,
    usage_errors,
)


def mklopt_(*words: str):
    return CliRunner().invoke(main, list(words))


def test_help_fits_a_screen_and_every_command_has_an_example():
    assert len(mklopt_("--help").output.split("\n")) <= 24
    for name in MODULES:
        assert "Example" in mklopt_(name, "--help").output, name


@pytest.mark.parametrize(
    "name", ["certify", "check", "paper", "race", "solve", "verify"]
)
def test_help_says_what_exit_codes_mean_and_what_options_do(name):
    shown = " ".join(mklopt_(name, "--help").output.split())
    assert "Exit code 0: " in shown and "usage error" in shown
    for option in main.get_command(None, name).params:
        assert isinstance(option, click.Argument) or option.help, option.name


def test_names_that_are_not_known_are_refused():
    check_known("solver", ("a", "b"), {"a": 1, "b": 2})
    with pytest.raises(click.BadParameter, match="solver 'c' is not known; choose one"):
        check_known("solver", ("a", "c"), {"a": 1, "b": 2})


def test_lists_have_commas():
    assert listed(" a, b,,c ") == ["a", "b", "c"] and listed("") == []


def test_errors_become_one_sentence():
    assert sentence(ValueError("C is -1")) == "C is -1"
    assert sentence(KeyError("no set 'x'")) == "no set 'x'"
    said = sentence(FileNotFoundError(2, "No such file", "x.npz"))
    assert said == "x.npz cannot be read or written (No such file)"
    with pytest.raises(click.UsageError, match="no set"), usage_errors():
        raise KeyError("no set")
    with pytest.raises(KeyError), usage_errors(OSError):
        raise KeyError("no set")


def test_json_keeps_letters(capsys):
    echo_json({"ℓ1": [1.5, None]})
    shown = capsys.readouterr().out
    assert "ℓ1" in shown and json.loads(shown) == {"ℓ1": [1.5, None]}


def test_the_options_of_a_problem_are_the_words_of_it():
    @click.command()
    @problem_options
    def command(**words):
        echo_json(words)

    found = CliRunner().invoke(command, ["--C", "2", "--no-bias", "--samples", "3"])
    assert json.loads(found.output) == {
        "kernels": None,
        "normalize": "spherical",
        "formulation": "lp:p=2",
        "loss": None,
        "C": 2.0,
        "bias": False,
        "samples": 3,
        "labels": None,
        "cluster": None,
    }
