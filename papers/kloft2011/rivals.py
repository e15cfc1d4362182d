"""The methods of section 5.5 that are not solvers of ours, with the paper's settings.

    simple_mkl     SimpleMKL as its program has it: steepest descent, a line search to a
                   tenth of the step, finer when the weights stop moving, and an SVM
                   solved to FULL precision at every point that is tried. (Our solver
                   `simple` has conjugate directions and loose SVMs.)
    silp           the semi-infinite program around SVMs solved to FULL precision
    wrapper        algorithm 1 with SVMs solved to FULL precision. (Our `analytic` has a
                   tolerance that follows the gap.)
    chunking       algorithm 2 with chunks of CHUNK variables: the rows of a chunk are
                   all that is read, or computed on the fly, in a round. The step in θ
                   is analytic, or that of the semi-infinite program, from cuts. (Our
                   `interleaved` moves pairs.)

All start from uniform weights, and every SVM from the last α, with our SVM solver. They
are generators for `mklopt.solve`, which certifies them, with one clock for all.

Reference: Kloft et al. (2011), sections 4.1, 4.2 and 5.5; Rakotomamonjy et al. (2008)
and their program, version 1 (tolerances of the line search).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mklopt import GramStack, Problem
from mklopt.formulations.losses.base import Quadratic
from mklopt.problem import quadratic_dual
from mklopt.solvers.base import Iterate, Steps
from mklopt.solvers.machines.factory import machine_for
from mklopt.solvers.machines.machine import Machine
from mklopt.solvers.machines.smo import inner_gap, smo
from mklopt.solvers.simple import descent, edge
from mklopt.solvers.steps.cutting_planes import Cuts
from mklopt.util.compiled import compiled

Array = np.ndarray
INF = np.inf
FULL = 1e-5  # the gap of an SVM, relative to the primal value of the whole problem
GOLD = 0.5 * (np.sqrt(5.0) + 1.0)
COARSE, LONGEST, STILL = 0.1, 0.1, 1e-8  # of SimpleMKL's line search; weights
CHUNK = 32  # variables of a chunk
INNER = 1e-2  # the gap of a chunk, relative to that before it
LOOKED_AT = 10  # rounds between two looks at the gap
SHOWN_EVERY = 40  # n rows: an iterate is yielded, so that time limits are kept
ENOUGH = 0.9  # of the tolerance: a gap computed from F that is worth a certificate


def full_machine(problem: Problem) -> Machine:
    """An SVM solver that starts with a precise solution."""
    machine = machine_for(problem, None)
    worst = problem.costs @ problem.loss.value(np.zeros(problem.grams.n), problem.y)
    machine.tol = FULL * float(worst)
    return machine


def wrapper(problem: Problem) -> Steps:
    """Algorithm 1: an SVM, the analytic step, an SVM, …"""
    machine = full_machine(problem)
    theta = uniform(problem)
    while True:
        machine.solve(theta)
        certificate = yield machine.iterate()
        machine.tol = FULL * certificate.primal
        theta = problem.formulation.weights(theta * machine.v)


def uniform(problem: Problem) -> Array:
    """M^(−1/p) for every kernel."""
    M = problem.grams.M
    return np.full(M, M ** (-1 / problem.formulation.ball))


# ---- SimpleMKL ----------------------------------------------------------------------


def silp(problem: Problem) -> Steps:
    """The semi-infinite program around SVMs: a cut for each of them."""
    machine, theta = full_machine(problem), uniform(problem)
    cuts = Cuts(problem.grams.M, problem.formulation.ball)
    while True:
        machine.solve(theta)
        cuts.add(machine.point, problem.dual_loss(machine.point), machine.v)
        theta, alpha = cuts.minimum(), problem.feasible(cuts.mixture())
        certificate = yield Iterate(alpha, theta, info={"svm_solves": machine.solves})
        machine.tol = FULL * certificate.primal


def simple_mkl(problem: Problem) -> Steps:
    """Reduced gradient descent on the simplex."""
    theta, fine = uniform(problem), COARSE
    machine = full_machine(problem)
    machine.solve(theta)
    while True:
        certificate = yield machine.iterate()
        machine.tol = FULL * certificate.primal
        before, slope = theta, -0.5 * machine.v**2
        base = int(np.argmax(theta))
        direction = descent(theta, slope / np.linalg.norm(slope), base)

        def cost(t: float, at: Array, along: Array) -> float:
            machine.solve(np.maximum(at + t * along, 0.0))
            return machine.J

        value, reach = machine.J, min(edge(theta, direction)[0], LONGEST)
        while 0 < reach < INF and (ahead := cost(reach, theta, direction)) < value:
            theta, value = np.maximum(theta + reach * direction, 0.0), ahead
            direction[(theta <= STILL) & (direction < 0)] = 0.0
            direction[base] = 0.0
            direction[base] = -np.sum(direction)
            reach = edge(theta, direction)[0]
        if 0 < reach < INF:
            step = golden(lambda t: cost(t, theta, direction), value, reach, fine)  # noqa: B023
            theta = np.maximum(theta + step * direction, 0.0)
        theta = theta / np.sum(theta)
        if np.max(np.abs(theta - before)) < STILL:
            fine = max(0.1 * fine, 1e-12)
        machine.solve(theta)


def golden(
    cost: Callable[[float], float], at_0: float, reach: float, fine: float
) -> float:
    """The best step of a golden-section search; two SVMs a round, as in the program."""
    low, high, ends = 0.0, reach, [at_0, cost(reach)]
    while high - low > fine * reach and high > 1e-16:
        right = low + (high - low) / GOLD
        left = low + (right - low) / GOLD
        values = [ends[0], cost(left), cost(right), ends[1]]
        best = int(np.argmin(values))
        if best < 2:
            low, high = (low, left) if best == 0 else (low, right)
            ends = [values[0], values[1 + best]]
        else:
            low = left if best == 2 else right
            ends = [values[best - 1], values[3]]
    return low if ends[0] <= ends[1] else high


# ---- algorithm 2 ---------------------------------------------------------


def chunking(problem: Problem, *, cuts: bool = False, tol: float = 1e-3) -> Steps:
    """Chunks of α, and steps in θ between them; F has all (K_mα)_i.

    It computes the gap from F, and yields when this is small enough: sweeps over all
    entries are left to the certificate. A program of cuts is solved every LOOKED_AT
    chunks, the analytic step is taken after each.
    """
    grams, p = problem.grams, problem.formulation.ball
    theta, alpha, F = uniform(problem), np.zeros(grams.n), np.zeros((grams.M, grams.n))
    master, rows, rounds = Cuts(grams.M, p), rows_of(grams), 0
    while True:
        for _ in range(LOOKED_AT):
            turn(problem, rows, theta, alpha, F)
            v, rounds = np.sqrt(np.maximum(F @ alpha, 0.0)), rounds + 1
            if not cuts:
                theta = problem.formulation.weights(theta * v)
        point, linear = alpha, problem.dual_loss(alpha)
        upper = primal(problem, theta, alpha, F)
        lower = linear - float(problem.formulation.conjugate(v))
        if cuts:
            master.add(alpha, linear, v)
            theta, point = master.minimum(), master.mixture()
            least = master.program.getInfo().objective_function_value
            lower = max(lower, master.scale * least)
        late = rounds * CHUNK % (SHOWN_EVERY * grams.n) < LOOKED_AT * CHUNK
        if upper - lower <= ENOUGH * tol * upper or late:
            yield Iterate(problem.feasible(point), theta, info={"rounds": rounds})


class StoredRows:
    """Rows of kernels in full storage, with the methods of rows that are computed."""

    def __init__(self, grams: GramStack):
        self.grams, self.K = grams, grams.full().uncounted()

    def between(self, which: Array) -> Array:
        """(M, b, b): the kernels between these samples."""
        return np.asarray(self.K[:, which[:, None], which])

    def add(self, which: Array, changes: Array, F: Array) -> None:
        """F[m, 0] += Σ_i changes[0, i] K_m(x_i, ·)."""
        self.grams.count_rows(len(which))
        add_rows(self.K, which, changes[0], F[:, 0])


@compiled()
def add_rows(K, which, change, F):
    """F[m] += Σ_i change_i K[m, which_i], in place."""
    for m in range(len(K)):
        out = F[m]
        for i in range(len(which)):
            c, row = change[i], K[m, which[i]]
            for k in range(len(out)):
                out[k] += c * row[k]


def rows_of(grams: GramStack) -> Any:
    """Rows that are computed, where kernels are not stored."""
    return grams.sample_rows() or StoredRows(grams)


def turn(problem: Problem, rows: Any, theta: Array, alpha: Array, F: Array) -> None:
    """Lines 3 to 5: the chunk that violates most is solved; α and F change in place."""
    dual, g = quadratic_dual(problem), theta @ F - problem.y
    which = most_violating(dual, alpha, g)
    K = np.tensordot(theta, rows.between(which), 1)
    part = tuple(np.ascontiguousarray(x[which]) for x in dual)
    new, own = alpha[which].copy(), g[which].copy()
    before, _ = inner_gap(*part, True, new, own)
    smo(K, *part, True, new, own, INNER * before, 10 * len(which) ** 2)
    change = new - alpha[which]
    moved = np.flatnonzero(change)
    rows.add(which[moved], change[None, moved], F[:, None, :])
    alpha[which] = new


def most_violating(dual: Quadratic, alpha: Array, g: Array) -> Array:
    """Half of the chunk wants to rise most, half to fall most (Joachims 1999)."""
    rising = np.where(alpha < dual.high, g, INF)
    falling = np.where(alpha > dual.low, -g, INF)
    ends = (np.argpartition(x, CHUNK // 2)[: CHUNK // 2] for x in (rising, falling))
    return np.unique(np.concatenate(list(ends)))


def primal(problem: Problem, theta: Array, alpha: Array, F: Array) -> float:
    """The primal value at θ and α, from F = K_mα."""
    f = theta @ F
    _, b = inner_gap(*quadratic_dual(problem), True, alpha, f - problem.y)
    loss = problem.costs @ problem.loss.value(f + b, problem.y)
    v = np.sqrt(np.maximum(F @ alpha, 0.0))
    return float(loss + problem.formulation.value(theta * v))
