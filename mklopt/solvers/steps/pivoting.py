"""Quadratic programs in the kernel weights: small, dense, with a good first guess.

    min over z ≥ 0 of ½ zᵀHz + ⟨q, z⟩,    Σ_{k∈j} z_k = 1 for every simplex j, if any

Algorithm. Block principal pivoting (Júdice and Pires 1994). Guess the support; solve
for z on it and for the multipliers y = Hz + q − μ off it; exchange the coordinates with
a wrong sign. All of them are exchanged while their number falls; after a few rounds in
vain one at a time, which ends for every positive definite H. The first guess is the
support of the last weights, so that near the solution one or two linear systems are
enough. If rounding prevents the end, an interior-point method takes over.
"""

import numpy as np
import scipy.sparse as sp

from ...formulations.derive.cones import call_clarabel

Array = np.ndarray
MAX_ROUNDS, PATIENCE = 100, 3  # linear systems; rounds in vain before single exchanges
ZERO = 1e-12  # relative to the largest: a z or y above minus this counts as ≥ 0


def minimum(H: Array, slope: Array, theta: Array, owner: Array | None = None) -> Array:
    """argmin over z ≥ 0 of ⟨slope, z − θ⟩ + ½ (z − θ)ᵀH(z − θ), with exact zeros.

    owner: the simplex that each coordinate belongs to, where there are simplices
    """
    M, q = len(theta), slope - H @ theta
    E = np.zeros((0, M))
    if owner is not None:
        E = (np.unique(owner)[:, None] == owner).astype(float)
    found = _pivoted(H, q, E, theta > 0)
    return _by_cones(H, q, E, theta) if found is None else found


def _pivoted(H: Array, q: Array, E: Array, support: Array) -> Array | None:
    support, fewest, vain = support.copy(), len(q) + 1, PATIENCE
    size = float(np.max(np.abs(q))) + 1e-300
    for _ in range(MAX_ROUNDS):
        _keep_one(support, q, E)
        solved = _on_support(H, q, E, support)
        if solved is None:
            return None
        z, y = solved
        low = ZERO * float(np.max(np.abs(z), initial=0.0))
        wrong = np.where(support, z < -low, y < -ZERO * size)
        count = int(np.count_nonzero(wrong))
        if count == 0:
            z = np.maximum(z, 0.0)
            return z if len(E) == 0 else z / (E.T @ (E @ z))
        if count < fewest:
            fewest, vain = count, PATIENCE
        elif vain > 0:
            vain -= 1
        else:  # exchange one coordinate: the last one
            wrong[: np.flatnonzero(wrong)[-1]] = False
        support ^= wrong
    return None


def _keep_one(support: Array, q: Array, E: Array) -> None:
    """Give every simplex at least one coordinate of the support."""
    for member in E[~np.any(E[:, support], axis=1)] > 0:
        support[np.flatnonzero(member)[np.argmin(q[member])]] = True


def _on_support(
    H: Array, q: Array, E: Array, support: Array
) -> tuple[Array, Array] | None:
    """z on the support, 0 elsewhere, and the multipliers y of z ≥ 0."""
    F, J, z = np.flatnonzero(support), len(E), np.zeros(len(q))
    sums = E[:, F]
    system = np.block([[H[np.ix_(F, F)], sums.T], [sums, np.zeros((J, J))]])
    try:
        found = np.linalg.solve(system, np.append(-q[F], np.ones(J)))
    except np.linalg.LinAlgError:
        return None
    if not np.all(np.isfinite(found)):
        return None
    z[F] = found[: len(F)]
    y = H @ z + q + E.T @ found[len(F) :]
    y[F] = 0.0
    return z, y


def _by_cones(H: Array, q: Array, E: Array, theta: Array) -> Array:
    """The same by an interior-point method; θ itself where that fails."""
    M, J = len(theta), len(E)
    scale = float(np.max(np.abs(q))) or 1.0
    A = sp.vstack([sp.csc_matrix(E), -sp.eye(M)], format="csc")
    b = np.append(np.ones(J), np.zeros(M))
    blocks = [("zero", J, 0.0), ("nonneg", M, 0.0)]
    P = sp.csc_matrix(np.triu(H) / scale)
    found = call_clarabel(P, q / scale, A, b, blocks, 1e-12)
    z = np.maximum(found.z, 0.0)
    z[z < 1e-9 * np.max(z, initial=0.0)] = 0.0
    sums = E @ z
    if not np.all(np.isfinite(z)) or not np.all(sums > 0):
        return theta
    return z if J == 0 else np.asarray(z / (E.T @ sums))
