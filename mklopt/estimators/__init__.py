"""scikit-learn estimators: MKL with a certificate, in pipelines and grid searches.

    MKLClassifier(["gaussian(1)", "linear"], p=4/3, C=10).fit(X, y).predict(X_new)
    MKLRegressor(loss="eps_insensitive")     MKLOneClass(contamination=0.1)
    MKLClassifierCV(Cs=7)                    # the path of C, warm-started, in each fold

What is solved is C Σ_i s_i V(f_i, y_i) + Ω(‖w_1‖, …, ‖w_M‖), s_i being the sample
weights. Samples that are equal in X and y are solved as one with their weights added,
and those of weight 0 are left out: a weight of 2 and a copy are the same problem.

A precomputed X is (n, n_train, M), X[i, j, m] = k_m(x_i, x_j), that is
np.moveaxis(K, 0, -1) of the (M, n, n_train) stack K: samples come first, so that
cross-validation can slice both of their axes (it does so for pairwise estimators).
"""

from typing import TYPE_CHECKING, Any

from ..util.extras import MissingExtra, missing
from ..util.moved import old_name

if said := missing("sklearn"):
    raise MissingExtra(said)

from .classifier import MKLClassifier
from .cv import MKLClassifierCV
from .one_class import MKLOneClass
from .regressor import MKLRegressor

__all__ = ["MKLClassifier", "MKLClassifierCV", "MKLOneClass", "MKLRegressor"]


if not TYPE_CHECKING:  # to type checkers, names that are not here are errors

    def __getattr__(name: str) -> Any:
        return old_name(__name__, name)
