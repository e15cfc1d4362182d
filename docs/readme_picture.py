"""The picture of the README: a certified race of five solvers.

python docs/readme_picture.py   # writes docs/_static/race.png
"""

from pathlib import Path

import matplotlib.pyplot as plt

import mklopt
from mklopt import data, kernels, plots
from mklopt.formulations import LpNorm

SOLVERS = ["auto", "interleaved", "smo_mkl", "spicy", "silp"]
PICTURE = Path(__file__).resolve().parent / "_static" / "race.png"


def main() -> None:
    """Run the race and draw it."""
    train, _ = data.load("wdbc").standardized().split(300, seed=0)
    grams = kernels.gaussians([1, 3, 10], on="both").fit(train.X).grams()
    problem = mklopt.Problem(grams, train.y, "hinge", LpNorm(p=2))
    race = mklopt.race({"breast cancer": problem}, SOLVERS, tol=1e-8, time_limit=5.0)
    with plots.style("jmlr"):
        figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.2), layout="constrained")
        race.figure(x="seconds", ax=axes[0], legend="none")
        race.figure(x="passes", ax=axes[1], legend="none")
        handles, labels = axes[1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center", frameon=False)
        figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
