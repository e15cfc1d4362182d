"""Generalized MKL: the parameters d of a kernel family K(d), products included.

Problem. min over d in a convex set of

    W(d) = r(d) + max over α   −C Σ V*(−α_i/C) − ½ αᵀK(d)α

For sums with a convex r this is an ordinary Problem, and solvers/spg.py solves and
certifies it. For products it is not convex: what can be said of a d is how far it is
from stationary, and how well the SVM at d was solved. descent.py solves it.

`Envelope` is W with its gradient, ∇W = ∇r − ½∂(αᵀKα)/∂d at the α of the SVM (Danskin).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..formulations.fixed_weights import FixedWeights
from ..formulations.group_lasso import GroupLasso
from ..grams.stack import GramStack
from ..problem import Array, Problem
from ..reference import equivalences as maps
from ..solvers.machines import svm
from ..solvers.steps.spectral_descent import Point
from ..util.checks import short
from .families import Sum
from .regularizers import Given, Regularizer, SquaredNorm, Total


def nonnegative(d: Array) -> Array:
    """The projection onto d ≥ 0.

    Parameters
    ----------
    d : array of shape (M,)

    Returns
    -------
    array of shape (M,)
    """
    return np.maximum(d, 0.0)


@dataclass(frozen=True, eq=False)
class KernelFamilyProblem:
    """One learning problem over a kernel family, checked when it is made.

    Parameters
    ----------
    family : KernelFamily
        Sum, Product or Polynomial of mklopt.families, or anything with M, n, combine(d)
        and gradient(d, α).
    y : array of shape (n,)
        Labels, as the loss needs them.
    loss : str or Loss, default="hinge"
        As in Problem; its dual must be quadratic: hinge, squared, eps_insensitive,
        huber or quantile.
    regularizer : Regularizer or pair of functions, default=Total()
        r(d), one of mklopt.regularizers, or (r, its gradient).
    C : float or array of shape (n,), default=1.0
        The weight of the loss.
    bias : bool, default=True
        Whether f has a constant term.
    project : callable, optional
        The projection d -> the nearest d of the set; onto d ≥ 0 by default.

    Raises
    ------
    ValueError
        Where a part is of the wrong kind or shape.

    Examples
    --------
    >>> import numpy as np, mklopt
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> y = np.sign(X[:, 0] * X[:, 1])
    >>> product = mklopt.families.Product.from_features(X)
    >>> problem = mklopt.KernelFamilyProblem(product, y, C=10.0)
    >>> mklopt.gmkl.solve(problem, tol=1e-2).status
    'stationary'
    """

    family: Any
    y: Array
    loss: Any = "hinge"
    regularizer: Any = field(default_factory=Total)
    C: Any = 1.0
    bias: bool = True
    project: Callable[[Array], Array] = nonnegative
    shell: Problem = field(init=False, repr=False)  # loss, labels, C of the SVM

    def __post_init__(self) -> None:
        for name in ("M", "n", "combine", "gradient"):
            if not hasattr(self.family, name):
                raise ValueError(
                    f"{short(self.family)} is no kernel family: it has no {name}; give "
                    "mklopt.families.Product(distances) or the like"
                )
        if isinstance(self.regularizer, tuple) and len(self.regularizer) == 2:
            object.__setattr__(self, "regularizer", Given(*self.regularizer))
        if not isinstance(self.regularizer, Regularizer):
            raise ValueError(
                f"regularizer = {short(self.regularizer)}; give one of "
                "mklopt.regularizers, or a pair of functions (r, its gradient)"
            )
        self.regularizer.validate(self.family.M)
        if not callable(self.project):
            raise ValueError(
                f"project = {short(self.project)}; give a function d -> the nearest d "
                "of the set"
            )
        ones = GramStack.from_factors([np.ones((self.family.n, 1))])
        shell = Problem(ones, self.y, self.loss, FixedWeights([1.0]), self.C, self.bias)
        if shell.loss.quadratic(shell.y, shell.costs) is None:
            raise ValueError(
                f"the dual of {shell.loss.name} is not quadratic; choose hinge, "
                "squared, eps_insensitive, huber or quantile"
            )
        object.__setattr__(self, "shell", shell)
        object.__setattr__(self, "y", shell.y)

    def machine(self, d: Array) -> Problem:
        """The SVM at d, as an ordinary problem with one kernel.

        Parameters
        ----------
        d : array of shape (M,)

        Returns
        -------
        Problem
        """
        K = np.asarray(self.family.combine(d))
        return self.shell.with_(grams=GramStack.of_symmetric(K[None]))

    def as_problem(self) -> Problem:
        """The convex Problem with the same d, for sums with r(d) = wΣd or (w/2)‖d‖_p².

        Returns
        -------
        Problem
            Its kernel weights are d. With r(d) = wΣd, W is √(2w) times its objective.

        Raises
        ------
        ValueError
            For other families, sets and regularizers.
        """
        if not isinstance(self.family, Sum) or self.project is not nonnegative:
            raise ValueError(
                f"{self!r} is no ordinary Problem: only sums of kernels over d ≥ 0 "
                "are; solve it with mklopt.gmkl.solve"
            )
        plain = self.shell.with_(grams=self.family.stack, formulation=GroupLasso())
        r = self.regularizer
        if type(r) is Total:
            return maps.jain_l1(plain, weight=r.weight)
        if type(r) is SquaredNorm:
            return maps.jain_lp(plain, r.p, weight=r.weight)
        raise ValueError(
            f"there is no map for r(d) = {type(r).__name__}: Total and SquaredNorm "
            "have one; solve it with mklopt.gmkl.solve"
        )

    def __repr__(self) -> str:
        kind, loss = type(self.regularizer).__name__, self.shell.loss.name
        return f"KernelFamilyProblem({loss}, {self.family!r}, {kind}, C={self.C})"


class Envelope:
    """W(d) by one SVM, warm-started; ∇W by Danskin. The objective of `descend`.

    Parameters
    ----------
    problem : KernelFamilyProblem
    tune : bool
        Whether the SVM is only as precise as the next step needs; otherwise it is
        precise from the start.

    Attributes
    ----------
    noise : float
        How far a value may be off.
    worst : float
        C Σ V(0), what the loss costs without any kernel: the scale of W.
    solves, work : int, float
        How many SVMs were solved, and how much work they were.
    """

    def __init__(self, problem: KernelFamilyProblem, tune: bool):
        self.problem, self.tune, self.bias = problem, tune, 0.0
        self.solves, self.work = 0, 0.0
        shell = problem.shell
        losses = shell.loss.value(np.zeros(shell.shape), shell.y)
        self.worst = float(shell.costs @ losses)
        self.noise = (1e-3 if tune else 1e-9) * self.worst
        self.alpha: Array | None = None

    def value(self, d: Array) -> float:
        """W(d), up to `noise`.

        Parameters
        ----------
        d : array of shape (M,)

        Returns
        -------
        float
        """
        problem, shell, self.d = self.problem, self.problem.shell, d
        K = problem.family.combine(d)
        found = svm.solve(shell, K, self.alpha, tol=self.noise)
        self.alpha, self.bias = shell.feasible(found.alpha), found.bias
        self.solves, self.work = self.solves + 1, self.work + found.work
        inner = shell.dual_loss(self.alpha) - 0.5 * float(self.alpha @ K @ self.alpha)
        return problem.regularizer.value(d) + inner

    def gradient(self) -> Array:
        """∇W where `value` was asked last.

        Returns
        -------
        array of shape (M,)
        """
        bend = self.problem.family.gradient(self.d, self.alpha)
        return np.asarray(self.problem.regularizer.gradient(self.d) - 0.5 * bend)

    def project(self, d: Array) -> Array:
        """The nearest d of the set.

        Parameters
        ----------
        d : array of shape (M,)

        Returns
        -------
        array of shape (M,)
        """
        return np.asarray(self.problem.project(d), float)

    def sharpen(self) -> None:
        """Ten times the precision, down to rounding."""
        self.noise = max(0.1 * self.noise, 1e-14 * self.worst)

    def set_tolerance(self, point: Point) -> None:
        """P: an SVM is as precise as the decrease that the next step promises.

        Parameters
        ----------
        point : Point
            Where the descent is, and the move that it tries next.
        """
        if self.tune:
            low, high = 1e-12 * self.worst, self.noise
            self.noise = float(np.clip(0.1 * point.falls, low, high))

    def stationarity(self, d: Array, slope: Array) -> float:
        """‖d − P(d − ∇W)‖∞; for d ≥ 0 it is min(d, ∇W), where nothing cancels.

        Parameters
        ----------
        d : array of shape (M,)
        slope : array of shape (M,)
            ∇W(d).

        Returns
        -------
        float
        """
        if self.problem.project is nonnegative:
            gone = np.minimum(d, slope)
        else:
            gone = d - self.project(d - slope)
        return float(np.max(np.abs(gone)))

    def precisely(self, d: Array) -> tuple[float, Array, float]:
        """W, ∇W and the projected gradient at d, the SVM solved to rounding.

        Parameters
        ----------
        d : array of shape (M,)

        Returns
        -------
        value : float
            W(d).
        slope : array of shape (M,)
            ∇W(d).
        size : float
            ‖d − P(d − ∇W)‖∞.
        """
        self.noise = 1e-11 * self.worst
        value, slope = self.value(d), self.gradient()
        return value, slope, self.stationarity(d, slope)
