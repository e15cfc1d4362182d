"""Makes what the contract problems are stored as: kernels, and their references.

    python tests/contract/make_references.py            # `make contract`

solves the references that are missing or too wide, removes those of no problem, and
packs them: reference/stored has one archive for each of the data sets.
With --data the kernels are drawn anew first. This changes every hash, so that all
references are solved again: a decision, not a routine.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_breast_cancer
from sklearn.metrics.pairwise import rbf_kernel

from mklopt.reference import polish, solve
from mklopt.reference.contract_problems import FOLDER, GRID, STORE, Cell, cells

Array = np.ndarray
Data = tuple[list[Array], Array, Array]  # factors, a real score, labels −1/+1
WIDEST = 1e-8  # the relative gap of a reference, at most


# ---- kernels -------------------------------------------------------------------------


def draw_small() -> Data:
    """Six random kernels, two of which carry the score."""
    rng = np.random.default_rng(2011)
    factors = [rng.normal(size=(40, 4 + m)) / np.sqrt(4 + m) for m in range(6)]
    score = factors[0][:, 0] + factors[2] @ rng.normal(size=6) / 2
    score = score + 0.4 * rng.normal(size=40)
    return factors, score, np.where(score > np.median(score), 1.0, -1.0)


def draw_wdbc() -> Data:
    """100 samples of the Wisconsin breast cancer data, Gaussian kernels."""
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rows = np.random.default_rng(2011).permutation(len(X))[:100]
    X, y = X[rows], y[rows]
    views = [(X, s) for s in (1.0, 2.0, 5.0, 10.0, 20.0)]
    views += [(X[:, [j]], s) for j in range(5) for s in (0.5, 1.0, 2.0)]
    return gaussian_factors(views, 24), X[:, 0] + 0.5 * X[:, 1], 2.0 * y - 1


def draw_twonorm() -> Data:
    """Breiman's twonorm: two unit Gaussians in R²⁰ at ±(a, …, a), a = 2/√20."""
    rng = np.random.default_rng(1996)
    y = np.where(np.arange(60) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(60, 20)) + (2 / np.sqrt(20)) * y[:, None]
    views = [(X, s) for s in (2.0, 4.0, 8.0, 16.0)]
    views += [(X[:, [j]], s) for j in range(8) for s in (1.0, 3.0)]
    return gaussian_factors(views, 20), X @ np.ones(20) / np.sqrt(20), y


def gaussian_factors(views: list, rank: int) -> list[Array]:
    """Factors of Gaussian kernels, one per (features, width): leading eigenvectors."""
    factors = []
    for Z, width in views:
        values, vectors = np.linalg.eigh(rbf_kernel(Z, gamma=0.5 / width**2))
        keep = np.argsort(-values)[:rank]
        keep = keep[values[keep] > 1e-6]
        factors.append(vectors[:, keep] * np.sqrt(values[keep]))
    return factors


def save(path: Path, data: Data) -> None:
    """Factors and score on the grid, and a target for each kind of label."""
    factors, score, binary = data
    whole = np.hstack([np.rint(L / GRID) for L in factors]).astype(np.int16)
    np.savez_compressed(
        path,
        factors=whole,
        ranks=np.array([L.shape[1] for L in factors]),
        y_real=np.rint(score / GRID) * GRID,
        y_binary=binary,
        y_ones=np.ones(len(score)),
        y_classes=np.digitize(score, np.quantile(score, [1 / 3, 2 / 3])),
    )


DRAWN = {"small": draw_small, "wdbc": draw_wdbc, "twonorm": draw_twonorm}


# ---- references ----------------------------------------------------------------------


def is_good(cell: Cell) -> bool:
    """Whether a narrow reference is stored."""
    found = STORE.load(cell.problem())
    return found is not None and 0 <= found.relative_gap <= WIDEST


def solve_and_save(cell: Cell, tol: float) -> tuple[str, float]:
    """Solve one cell; its name and its gap."""
    problem = cell.problem()
    reference = solve(problem, tol=tol)
    if reference.relative_gap > WIDEST:
        reference = polish(problem, reference)
    STORE.save(problem, reference)
    return cell.name, reference.relative_gap


def remove_stale() -> tuple[int, int]:
    """Remove loose references of no problem: how many problems, how many went."""
    known = {STORE.path(cell.problem()) for cell in cells()}
    stale = [path for path in STORE if path not in known]
    for path in stale:
        path.unlink()
    return len(known), len(stale)


def pack() -> None:
    """One archive of references for each of the data sets, without stale ones."""
    names: dict[str, list[str]] = {}
    for cell in cells():
        names.setdefault(cell.data, []).append(STORE.path(cell.problem()).name)
    for data, some in names.items():
        STORE.pack(f"{data}.zip", STORE.names().intersection(some))


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", action="store_true", help="draw the kernels anew")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tol", type=float, default=2e-9)
    options = parser.parse_args(arguments)
    for name, draw in DRAWN.items() if options.data else ():
        save(FOLDER / f"{name}.npz", draw())
    todo = [cell for cell in cells() if not is_good(cell)]
    done = Parallel(n_jobs=options.jobs, return_as="generator_unordered")(
        delayed(solve_and_save)(cell, options.tol) for cell in todo
    )
    worst = ("", 0.0)
    for count, (name, gap) in enumerate(done, 1):
        worst = max(worst, (name, gap), key=lambda pair: pair[1])
        print(f"{count}/{len(todo)}  {gap:.1e}  {name}", flush=True)
    known, stale = remove_stale()
    pack()
    print(f"{known} references, {stale} stale removed, worst gap {worst}")


if __name__ == "__main__":
    main()
