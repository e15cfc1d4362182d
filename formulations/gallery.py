"""Regularizers from the literature in ten lines each, to use and to start from.

    problem = mklopt.Problem(grams, y, "hinge", mklopt.gallery.k_support(3))

Value, conjugate, weights and prox are derived from what is written here, and every
solver that takes any formulation takes these. One of them, owl, shows what comes later:
closed forms beside the declaration, checked against it (`mklopt.check_formulation`).

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
al. (2009); Bach (2013), Learning with submodular functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..util.checks import real_number
from ..util.parameters import real_numbers
from .base import check_range, integer_groups
from .declared import Declared, formulation, variational
from .ordered import OrderedWeightedL1

Groups = Sequence[Sequence[int]]


def k_support(k: int) -> Declared:
    """½‖u‖² of the k-support norm, as a budget on θ.

    Parameters
    ----------
    k : int
        How many kernels may have the full weight 1.

    Returns
    -------
    Variational

    Examples
    --------
    >>> problem = mklopt.Problem(grams, y, "hinge", k_support(3))
    """
    import cvxpy as cp

    most = _positive("k_support", "k", k)

    @variational
    def k_support_norm(theta: Any) -> Any:
        return cp.Constant(0.0), [theta <= 1, cp.sum(theta) <= most]

    return k_support_norm


def owl(lam: Sequence[float] | np.ndarray) -> OrderedWeightedL1:
    """Σ λ_i u_(i) with u sorted downwards.

    Parameters
    ----------
    lam : sequence of float
        One λ ≥ 0 for each kernel, in decreasing order; not all 0.

    Returns
    -------
    OrderedWeightedL1

    Raises
    ------
    ValueError
        Where lam increases, is negative or vanishes.
    """
    values = real_numbers(lam, "owl: lam", "one number per kernel")
    if (
        values.ndim != 1
        or np.any(np.diff(values) > 0)
        or np.any(values < 0)
        or not np.any(values)
    ):
        raise ValueError(f"lam = {lam!r}: give weights ≥ 0 in decreasing order")
    return OrderedWeightedL1(tuple(values.tolist()))


def sparse_group(groups: Groups, a: float = 0.5) -> Declared:
    """a Σ u + (1 − a) Σ_g ‖u_g‖.

    Parameters
    ----------
    groups : sequence of sequences of int
        The kernels of each group.
    a : float
        The weight of single kernels, 0 ≤ a ≤ 1.

    Returns
    -------
    Declared
    """
    import cvxpy as cp

    groups = integer_groups(groups, "sparse_group")
    a = real_number(a, "sparse_group: a")
    check_range("sparse_group", "a", a, 0.0, 1.0)

    @formulation
    def sparse_group_lasso(u: Any) -> Any:
        across = sum(cp.norm(u[list(group)]) for group in groups)
        return a * cp.sum(u) + (1 - a) * across

    return sparse_group_lasso


def latent_groups(groups: Groups) -> Declared:
    """min Σ_g ‖z_g‖ over Σ_g z_g = u, each z_g living on its group.

    Parameters
    ----------
    groups : sequence of sequences of int
        The kernels of each group; groups may overlap.

    Returns
    -------
    Declared
    """
    import cvxpy as cp

    groups = integer_groups(groups, "latent_groups")
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
    """c Σθ − μ Σ log θ as the price of the kernel weights.

    Parameters
    ----------
    mu : float
        μ > 0: the larger, the more equal the weights.
    c : float
        c > 0: how much weights cost.

    Returns
    -------
    Variational
    """
    import cvxpy as cp

    mu, c = _positive("log_barrier", "mu", mu), _positive("log_barrier", "c", c)

    @variational
    def log_barrier_on_theta(theta: Any) -> Any:
        return c * cp.sum(theta) - mu * cp.sum(cp.log(theta))

    return log_barrier_on_theta


def prior_l1(prior: Sequence[float] | np.ndarray) -> Declared:
    """Σ u_m / prior_m.

    Parameters
    ----------
    prior : sequence of float
        One positive number per kernel: how much it is believed in.

    Returns
    -------
    Declared
    """
    values = real_numbers(prior, "prior_l1: prior", "one number per kernel")
    if values.ndim != 1 or not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError(f"prior = {prior!r}: give one positive number per kernel")
    scale = 1 / values

    @formulation
    def prior_weighted_l1(u: Any) -> Any:
        return scale @ u

    return prior_weighted_l1


def _positive(owner: str, name: str, given: Any) -> float:
    """A parameter as a float; what is not positive and finite is refused."""
    value = real_number(given, f"{owner}: {name}")
    check_range(owner, name, value, 1e-300, 1e300)
    return value
