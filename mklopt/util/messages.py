"""Messages of a long run, through the logger "mklopt".

    logging.getLogger("mklopt").setLevel("WARNING")     # no messages
    logging.getLogger("mklopt").addHandler(handler)     # also to a file of your own

They go to the standard error output, and not to the handlers of other libraries:
`propagate` is off. Nothing is said unless somebody asked for it, with verbose=True or
on the command line, or waits for a compiler at a terminal.
"""

import logging
import sys
from typing import Any

LOGGER = logging.getLogger("mklopt")


class _Stderr(logging.StreamHandler):
    """Writes to what sys.stderr is now, which notebooks and tests replace."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(logging.Formatter("%(message)s"))

    @property
    def stream(self) -> Any:  # type: ignore[override]
        """The standard error output of this moment."""
        return sys.stderr


if not LOGGER.handlers:
    LOGGER.addHandler(_Stderr())
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False


def say(text: object) -> None:
    """One line for the user, now."""
    LOGGER.info("%s", text)
