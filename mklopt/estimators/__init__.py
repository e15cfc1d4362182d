"""scikit-learn estimators: MKL with a certificate, in pipelines and grid searches.

    MKLClassifier(["gaussian(1)", "linear"], p=4/3, C=10).fit(X, y).predict(X_new)
    MKLRegressor(loss="eps_insensitive")     MKLOneClass(contamination=0.1)
    MKLClassifierCV(Cs=7)                    # the path of C, warm-started, in each fold

What is solved is C Σ_i s_i V(f_i, y_i) + Ω(‖w_1‖, …, ‖w_M‖), s_i being the sample
weights. Samples that are equal in X and y are solved as one with their weights added,
and those of weight 0 are left out: a weight of 2 and a copy are the same problem.

kernels: None for the usual family (kernels/text.py), a list of strings, functions and
    (columns, kernel) pairs, a family of mklopt.kernels, or "precomputed". A precomputed
    X is (n, n_train, M), X[i, j, m] = k_m(x_i, x_j), that is np.moveaxis(K, 0, -1) of
    the (M, n, n_train) stack K: samples come first, so that cross-validation can slice
    both of their axes (it does so for estimators that say they are pairwise).
normalize: how kernels are normalized, see mklopt.kernels ("spherical": k(x, x) = 1);
    learned from the samples, whatever their weights
formulation: an instance, or text such as "lp", "group_lasso", "tikhonov:p=1.5,mu=2"
p: replaces the p of the formulation, for grid searches
loss: a name or an instance, as in mklopt.Problem
C: the weight of the loss;  bias: whether f has a constant term
solver, tol: as in mklopt.solve;  options: its other arguments, {"time_limit": 10}

After fit: `weights_`, one per kernel (a row per class from one against the rest);
`n_active_kernels_`, those with coefficients, and only they are evaluated at prediction;
`kernel_names_`; `certificate_`, the bounds that enclose the optimum (a tuple of them,
one per class, from one against the rest); `n_iter_`; and `result_`, all that
mklopt.solve returned, kernel matrices included, and therefore not pickled.
"""

from __future__ import annotations

from typing import Any

from ..util.moved import old_name
from .classifier import MKLClassifier
from .cv import MKLClassifierCV
from .one_class import MKLOneClass
from .regressor import MKLRegressor

__all__ = ["MKLClassifier", "MKLClassifierCV", "MKLOneClass", "MKLRegressor"]


def __getattr__(name: str) -> Any:
    return old_name(__name__, name)
