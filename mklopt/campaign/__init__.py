"""The main job, `mklopt certify`: every solver on every problem, and its report."""
