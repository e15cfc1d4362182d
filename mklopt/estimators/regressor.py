"""MKLRegressor: regression with several kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from ..run.loop import solve
from .base import MKLEstimator, keep_parameters, loss_of

Array = np.ndarray


class MKLRegressor(RegressorMixin, MKLEstimator):
    """Multiple kernel learning for real targets.

    See mklopt.estimators for the parameters that all estimators share.

    loss: "squared", "eps_insensitive", "huber", "quantile", or an instance with its
        parameters, such as EpsInsensitive(0.01)
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        normalize: Any = "spherical",
        formulation: Any = "lp",
        p: float | None = None,
        loss: Any = "squared",
        C: float = 1.0,
        bias: bool = True,
        solver: str = "auto",
        tol: float = 1e-6,
        options: dict | None = None,
    ):
        keep_parameters(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MKLRegressor:
        X, y = self._checked(X, y, y_numeric=True)
        loss = loss_of(self.loss)
        if loss.labels != "real":
            raise ValueError(
                f"loss = {loss.name!r} is for classes; choose 'squared', "
                "'eps_insensitive', 'huber' or 'quantile'"
            )
        sample = self._sample(X, np.asarray(y, float), sample_weight)
        fitted = self._fitted_kernels(sample)
        problem = self._problem(sample, fitted, loss, sample.y)
        self._settle([solve(problem, **self._solve_options())], sample, fitted)
        return self

    def predict(self, X: Any) -> Array:
        return self._outputs(X)[:, 0]
