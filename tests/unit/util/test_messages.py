"""Messages go through one logger to the standard error output."""

from __future__ import annotations

import io
import logging

import pytest

from mklopt.util.messages import LOGGER, say


@pytest.fixture
def logger():
    handlers, level = list(LOGGER.handlers), LOGGER.level
    yield LOGGER
    LOGGER.handlers[:] = handlers
    LOGGER.setLevel(level)


def test_messages_go_to_the_error_output_of_the_moment(capsys):
    say("half done")
    say(3.5)
    assert capsys.readouterr() == ("", "half done\n3.5\n")


def test_the_logger_silences_them(logger, capsys):
    logger.setLevel(logging.WARNING)
    say("half done")
    assert capsys.readouterr().err == ""


def test_a_handler_of_the_user_gets_them_and_the_root_does_not(logger):
    screen = io.StringIO()
    logger.addHandler(logging.StreamHandler(screen))
    say("100 % of 5")
    assert screen.getvalue() == "100 % of 5\n" and not logger.propagate
