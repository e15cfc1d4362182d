"""`python -m mklopt` is the command `mklopt`."""

from .cli import main

if __name__ == "__main__":
    main(prog_name="mklopt")
