"""`python -m mklopt` is the command `mklopt`."""

import atexit
import gc
import sys

from .util.extras import MissingExtra


def main() -> None:
    """Run the command; without a package that it needs, say which, exit code 2."""
    atexit.register(gc.freeze)  # else Python looks for garbage at its end, for a second
    try:
        from .cli import main as command

        command(prog_name="mklopt")
    except MissingExtra as error:
        print(f"mklopt: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
