"""What a certificate costs: `make bench NAME=certificate`.

Times are ratios to one pass over the kernels (harness.py), measured in turns; medians
of several rounds. At fixed weights the points are optimal to machine precision: what
`enclosed` shows there is the width between lower and upper bound that is left to
rounding alone.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.linalg

from benchmarks import harness
from mklopt.certificates.certificate import certify
from mklopt.certificates.enclosure import enclose
from mklopt.formulations.fixed_weights import FixedWeights
from mklopt.formulations.group_lasso import GroupLasso
from mklopt.formulations.lp_norm import LpNorm
from mklopt.grams.stack import GramStack
from mklopt.problem import Problem
from mklopt.util.tables import plain_table

Array = np.ndarray
SIZE = (500, 50)  # n, M


def ridge_point(K: Array, y: Array, C: float) -> Array:
    """The exact dual of the squared loss at fixed kernel K, with a bias."""
    n = len(y)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = K + np.eye(n) / C
    system[:n, n] = system[n, :n] = 1.0
    return np.asarray(scipy.linalg.solve(system, np.append(y, 0.0))[:n])


def hinge_point(K: Array, y: Array, C: float) -> Array:
    """The exact dual of the hinge at fixed kernel: libsvm's active set, one solve."""
    from sklearn.svm import SVC

    found = SVC(C=C, kernel="precomputed", tol=1e-9).fit(K, y)
    alpha = np.zeros(len(y))
    alpha[found.support_] = found.dual_coef_[0]
    size = np.abs(alpha)
    free = np.flatnonzero((size > 1e-7 * C) & (size < C * (1 - 1e-7)))
    alpha[size >= C * (1 - 1e-7)] = (C * y)[size >= C * (1 - 1e-7)]
    alpha[size <= 1e-7 * C] = 0.0
    bound = alpha.copy()
    bound[free] = 0.0
    k = len(free)
    system = np.zeros((k + 1, k + 1))
    system[:k, :k] = K[np.ix_(free, free)]
    system[:k, k] = system[k, :k] = 1.0
    right = np.append(y[free] - K[free] @ bound, -np.sum(bound))
    alpha[free] = scipy.linalg.solve(system, right)[:k]
    return alpha


def main() -> None:
    """Certify fixed points of several problems, and build and prove one stack."""
    harness.parser(__doc__).parse_args()
    n, M = SIZE
    K, y = harness.subset_gaussians(n, M)
    grams, once = GramStack(K), harness.one_pass(K)
    theta = np.full(M, 1 / M)
    mixed = grams.combine(theta)
    numbers = ("gap", "enclosed", "enclose", "certify")
    table = plain_table(f"n = {n}, M = {M}; costs in passes", ("problem",), numbers)
    for C in (1.0, 100.0):
        points = {
            "squared": ridge_point(mixed, y, C),
            "hinge": hinge_point(mixed, y, C),
        }
        for loss, formulation in (
            ("squared", FixedWeights(theta)),
            ("hinge", FixedWeights(theta)),
            ("hinge", LpNorm(2.0)),
            ("hinge", GroupLasso()),
        ):
            problem = Problem(grams, y, loss, formulation, C)
            alpha = points[loss]
            found = certify(problem, alpha, theta)
            one, cost, plain = harness.medians(
                once, partial(enclose, found), partial(certify, problem, alpha, theta)
            )
            table.add_row(
                f"{loss}, {formulation.name}, C={C:g}",
                f"{found.relative_gap:.1e}",
                f"{found.width:.1e}",
                f"{cost / one:.2f}",
                f"{plain / one:.2f}",
            )
    one, built = harness.medians(once, partial(GramStack, K))
    delta, proof = harness.timed(grams.verify_psd)
    line = f"building the stack: {built / one:.0f} passes; proof of positive semi-"
    line += f"definiteness: {proof / one:.0f} passes, largest δ {np.max(delta):.1e}"
    harness.report(harness.console(), "certificate", __doc__, [table], [line])


if __name__ == "__main__":
    main()
