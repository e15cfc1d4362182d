"""A library of solved problems: names, recipes, certified intervals around f*.

    problem = mklopt.library.get("wdbc-l1-hinge")     # a Problem, computed here
    problem.reference.lower, problem.reference.upper  # certified afresh
    mklopt.race(mklopt.library.problems("real"), ["auto", "spicy"])
    mklopt.check_solver(my_solver, problems=mklopt.library.problems())
    mklopt.library.write_problem(problem, "wdbc.txt") # for other languages
    mklopt.library.submit("mine.json")                # a claimed solution, judged

Kernels have the same bits on every machine where possible, and every problem has a
hash, so that an optimum which is cited is that of one problem (docs/library.md).
"""

from .instance import Instance, LibraryProblem
from .listing import get, instances, names, problems
from .problem_file import read_problem, write_problem
from .stored_records import Record, Run, records
from .submissions import Verdict, submit

__all__ = [
    "Instance",
    "LibraryProblem",
    "Record",
    "Run",
    "Verdict",
    "get",
    "instances",
    "names",
    "problems",
    "read_problem",
    "records",
    "submit",
    "write_problem",
]
