"""What is done with solvers: paths along C, one against the rest, races."""
