"""From data X to kernels: families, fitted kernels, normalizations, streaming stacks.

family = kernels.rakotomamonjy() + kernels.constant()
fitted = family.fit(X, normalize="unit_trace")      # names, len, iteration
grams, test = fitted.grams(), fitted.cross(X_test)  # a stack, and (M, n_test, n)
grams = fitted.lazy(cache="500MB")                  # computed on demand
"""

from typing import TYPE_CHECKING, Any

from ..util.moved import old_name
from .alignments import alignment, target_alignment
from .family import (
    Family,
    constant,
    function,
    gaussians,
    kloft,
    laplacians,
    linear,
    polynomials,
    rakotomamonjy,
    subset_gaussians,
    suzuki,
    views,
)
from .fitted import FittedKernels, from_distances
from .low_rank import (
    LowRankFamily,
    LowRankKernels,
    explicit,
    nystroem,
    random_features,
)

__all__ = [
    "Family",
    "FittedKernels",
    "LowRankFamily",
    "LowRankKernels",
    "alignment",
    "constant",
    "explicit",
    "from_distances",
    "function",
    "gaussians",
    "kloft",
    "laplacians",
    "linear",
    "nystroem",
    "polynomials",
    "rakotomamonjy",
    "random_features",
    "subset_gaussians",
    "suzuki",
    "target_alignment",
    "views",
]


if not TYPE_CHECKING:  # to type checkers, names that are not here are errors

    def __getattr__(name: str) -> Any:
        return old_name(__name__, name)
