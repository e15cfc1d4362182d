"""Where runs, rates, solvers, and formulations with their closed forms are judged."""
