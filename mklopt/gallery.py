"""Regularizers from the literature in ten lines each, to use and to start from.

    problem = mklopt.Problem(grams, y, "hinge", mklopt.gallery.k_support(3))

None has a closed form: value, conjugate, weights and prox are derived from what is
written here, and every solver that takes any formulation takes these.

    k_support     min ½ Σ u²/θ over 0 ≤ θ ≤ 1, Σθ ≤ k: half the square of the norm whose
                  unit ball is the hull of unit vectors with k kernels at most
    owl           Σ λ_i u_(i), u_(1) ≥ u_(2) ≥ …, λ decreasing: like kernels get the
                  same weight; λ = (1, …, 1) is the group lasso
    sparse_group  a Σ u + (1 − a) Σ_g ‖u_g‖: groups, and kernels inside them, drop out
    latent_groups min Σ_g ‖z_g‖ over Σ_g z_g = u: groups may overlap, and what is used
                  is a union of groups
    log_barrier   min ½ Σ u²/θ + c Σθ − μ Σ log θ: no kernel is ever dropped
    prior_l1      Σ u_m / prior_m: kernels that are believed in are cheaper

References: Argyriou et al. (2012); Bogdan et al. (2015); Simon et al. (2013); Jacob et
al. (2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .formulations.base import Declared, formulation, variational

Groups = Sequence[Sequence[int]]


def k_support(k: int) -> Declared:
    """½‖u‖² of the k-support norm, as a budget on θ."""
    import cvxpy as cp

    @variational
    def k_support_norm(theta: Any) -> Any:
        return cp.Constant(0.0), [theta <= 1, cp.sum(theta) <= k]

    return k_support_norm


def owl(lam: Sequence[float] | np.ndarray) -> Declared:
    """Σ λ_i u_(i) with u sorted downwards: sums of the largest, one for each step of λ.

    Steps are what it costs: equal neighbours in λ make it quick.
    """
    import cvxpy as cp

    price = np.array(lam, float)
    if np.any(np.diff(price) > 0) or np.any(price < 0) or not np.any(price):
        raise ValueError(f"lam = {lam!r}: give weights ≥ 0 in decreasing order")
    steps = price - np.append(price[1:], 0.0)

    @formulation
    def ordered_weighted_l1(u: Any) -> Any:
        places = np.flatnonzero(steps)
        return sum(steps[k] * cp.sum_largest(u, k + 1) for k in places)

    return ordered_weighted_l1


def sparse_group(groups: Groups, a: float = 0.5) -> Declared:
    """a Σ u + (1 − a) Σ_g ‖u_g‖."""
    import cvxpy as cp

    @formulation
    def sparse_group_lasso(u: Any) -> Any:
        across = sum(cp.norm(u[list(group)]) for group in groups)
        return a * cp.sum(u) + (1 - a) * across

    return sparse_group_lasso


def latent_groups(groups: Groups) -> Declared:
    """min Σ_g ‖z_g‖ over Σ_g z_g = u, each z_g living on its group."""
    import cvxpy as cp

    members = np.array([m for group in groups for m in group])
    ends = np.cumsum([0, *map(len, groups)])

    @formulation
    def latent_group_lasso(u: Any) -> Any:
        z = cp.Variable(len(members), nonneg=True)
        parts = [z[start:stop] for start, stop in pairwise(ends)]
        owner = (members == np.arange(u.size)[:, None]).astype(float)
        return sum(cp.norm(part) for part in parts), [owner @ z == u]

    return latent_group_lasso


def log_barrier(mu: float = 0.1, c: float = 1.0) -> Declared:
    """c Σθ − μ Σ log θ as the price of the kernel weights."""
    import cvxpy as cp

    @variational
    def log_barrier_on_theta(theta: Any) -> Any:
        return c * cp.sum(theta) - mu * cp.sum(cp.log(theta))

    return log_barrier_on_theta


def prior_l1(prior: Sequence[float] | np.ndarray) -> Declared:
    """Σ u_m / prior_m."""

    price = 1 / np.array(prior, float)

    @formulation
    def prior_weighted_l1(u: Any) -> Any:
        return price @ u

    return prior_weighted_l1
