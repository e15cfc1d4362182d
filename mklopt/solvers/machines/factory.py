"""Which inner solver suits a loss."""

from ...problem import Problem
from .crammer import CrammerMachine
from .factored import FactoredMachine
from .factored_classes import FactoredClasses
from .machine import Array, Machine
from .smooth import SmoothMachine
from .svm import SVMMachine


def dual_machine(problem: Problem) -> type[Machine] | None:
    """The inner solver for the dual of the loss; None: the dual has another form."""
    if problem.loss.margins(problem.y) is not None:
        return CrammerMachine
    quadratic = problem.loss.quadratic(problem.y, problem.costs) is not None
    return SVMMachine if quadratic else None


def machine_for(
    problem: Problem,
    alpha: Array | None = None,
    sharpness: float = 1e-5,
    second_order: bool = False,
) -> Machine:
    """The inner solver of a problem, for a sequence of kernel weights θ.

    alpha: the first point
    sharpness: its gap relative to the certified gap of the whole problem
    second_order: whether the Hessian of J is needed. Then K_mα is kept, and a loss that
        is twice differentiable is solved by Newton's method, whose factorization also
        gives the Hessian.
    """
    if "features" in problem.kinds:
        return FactoredClasses(problem, alpha, sharpness)
    kind = dual_machine(problem)
    if problem.loss.twice_differentiable and (second_order or kind is None):
        kind = SmoothMachine
    if kind is None:
        raise ValueError(f"there is no inner solver for the {problem.loss.name} loss")
    if problem.grams.in_feature_space and len(problem.shape) == 1:
        return FactoredMachine(problem, alpha, sharpness)
    return kind(problem, alpha, sharpness, keep_products=second_order)
