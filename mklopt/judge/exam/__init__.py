"""The exam for solvers: anybody's solver on graded problems, with a diagnosis."""
