"""The conformance kit: anybody's solver on graded problems, with a diagnosis."""
