"""One against the rest: the baseline of multi-class learning, k binary problems.

For each class c a problem of its own, with labels +1 for c and −1 for all others, on
the same kernels; a point gets the class whose decision is largest. Each problem finds
its own kernel weights, so that together they keep at least as many kernels as one of
them, and mostly more than the joint problem (loss "multiclass_hinge"), whose classes
share one set of weights: Orabona et al. (2012), section 5.2 and figure 1.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate
from ..formulations import Loss
from ..problem import Problem, loss_from
from ..run.loop import solve
from ..run.result import Result
from ..util.checks import short

Array = np.ndarray


def kept(weights: Array, share: float = 1e-3) -> Array:
    """The numbers of the kernels with more than this share of all the weight.

    weights: (M,), or (k, M) for k sets of weights: kept by any of them
    """
    sets = np.atleast_2d(weights)
    total = np.sum(sets, axis=1, keepdims=True)
    return np.flatnonzero(np.any(sets > share * total, axis=0))


@dataclass(frozen=True)
class OneVsRest:
    """k solved binary problems, one per class.

    Parameters
    ----------
    results : tuple of Result
        In the order of the classes.
    """

    results: tuple[Result, ...]

    @property
    def weights(self) -> Array:
        """(k, M): the kernel weights of each class."""
        return np.array([found.weights for found in self.results])

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """The certificate of each class."""
        return tuple(found.certificate for found in self.results)

    @property
    def relative_gap(self) -> float:
        """The largest of the k certified gaps."""
        return max(found.relative_gap for found in self.results)

    @property
    def converged(self) -> bool:
        """Whether all k problems were solved to the tolerance."""
        return all(found.converged for found in self.results)

    def decision(self, test_stack: Any) -> Array:
        """What each class says of new points.

        Parameters
        ----------
        test_stack : array of shape (M, n_test, n)
            As in Result.decision.

        Returns
        -------
        array of shape (n_test, k)
        """
        return np.stack([found.decision(test_stack) for found in self.results], axis=1)

    def predict(self, test_stack: Any) -> Array:
        """The class with the largest decision.

        Parameters
        ----------
        test_stack : array of shape (M, n_test, n)
            As in Result.decision.

        Returns
        -------
        array of shape (n_test,)
            Numbers 0 … k−1.
        """
        return np.argmax(self.decision(test_stack), axis=1)

    def __repr__(self) -> str:
        return (
            f"OneVsRest({len(self.results)} classes, relative_gap="
            f"{self.relative_gap:.1e}, {len(kept(self.weights))} kernels)"
        )


def one_vs_rest(
    problem: Problem, solver: str = "auto", *, loss: Any = "hinge", **options: Any
) -> OneVsRest:
    """Solve one binary problem per class of a multi-class problem.

    Parameters
    ----------
    problem : Problem
        With classes 0 … k−1 as labels. Its kernels (shared, not copied), formulation, C
        and bias are used.
    solver : str, default="auto"
        As in `solve`, for each of the k problems.
    loss : str or Loss, default="hinge"
        A loss of −1/+1 labels in place of the multi-class one.
    **options
        Other arguments of `solve`.

    Returns
    -------
    OneVsRest

    Raises
    ------
    ValueError
        Where the problem has no classes, or the loss is for many classes at once.

    Examples
    --------
    >>> import numpy as np, mklopt
    >>> y = np.arange(30) % 3
    >>> L = np.random.default_rng(0).normal(size=(4, 30, 2)) + y[:, None]
    >>> lasso = mklopt.formulations.GroupLasso()
    >>> grams = mklopt.GramStack.from_factors(L)
    >>> problem = mklopt.Problem(grams, y, "multiclass_hinge", lasso)
    >>> mklopt.one_vs_rest(problem).weights.shape
    (3, 4)
    """
    if not isinstance(problem, Problem) or problem.loss.labels != "classes":
        raise ValueError(
            f"one_vs_rest takes a multi-class Problem first, such as "
            f"Problem(grams, y, 'multiclass_hinge', …) with y in 0 … k−1, got "
            f"{short(problem)}"
        )
    given = loss_from(loss)
    if given.labels == "classes":
        raise ValueError(
            f"loss = {short(loss)} is for many classes at once; choose one for −1/+1 "
            "labels, such as 'hinge' or 'logistic'"
        )
    binary = binary_problems(problem, given)
    return OneVsRest(tuple(solve(one, solver, **options) for one in binary))


def binary_problems(problem: Problem, loss: Loss) -> list[Problem]:
    """One problem per class: +1 for its samples, −1 for all others; kernels shared."""
    signs = [np.where(problem.y == c, 1.0, -1.0) for c in range(problem.shape[1])]
    return [problem.with_(y=sign, loss=loss) for sign in signs]
