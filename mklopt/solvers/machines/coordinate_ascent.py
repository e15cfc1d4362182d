"""Epochs of dual coordinate ascent: how an SVM without a bias may begin.

    max over low ≤ α ≤ high   Σ_i ℓ_iα_i − κ_i|α_i| − ½r_iα_i² − ½‖Zᵀα‖²,
    Z = F diag(√θ)

Each α_i in turn is the best one while all others stay. An epoch does this once for
every sample, in a random order that is the same in every run, and reads F once: with
w = diag(θ) Fᵀα the prediction is Fw. Where C is small, nearly every step ends at a
bound of α_i, few have to be corrected later, and each epoch leaves a small part of the
gap: a few of them are a better start for Newton's method than fewer samples. Where C is
large epochs gain little, and the first steps of the first epoch show it.

Guarantee. The dual value never falls.

Reference: Hsieh et al. (2008), the method of LIBLINEAR.
"""

import numpy as np

from ...grams.factors import Coordinates, Panel
from .dual_terms import Quadratic

Array = np.ndarray
FIRST_STEPS = 16  # one step of so many shows whether epochs pay:
MOSTLY = 0.7  # … they do if this share of them ends at a bound
MAX_EPOCHS = 6
# Epochs end when one gains so little relative to the dual value, or to the one before.
SMALL_GAIN, SLOW = 5e-4, 0.5


def opening(panel: Panel, root: Array, terms: Quadratic) -> tuple[Array, int] | None:
    """α after some epochs, and their number; None where they do not pay."""
    at = beginning(panel, root, terms)
    total, before = 0.0, np.inf
    for epoch in range(MAX_EPOCHS):
        order = np.random.default_rng(epoch).permutation(panel.n)
        gain = 0.0
        if epoch == 0:
            few, order = np.split(order, [-(-panel.n // FIRST_STEPS)])
            gain, bounded = panel.ascend(at, few)
            if bounded < MOSTLY * len(few):
                return None
        gain += panel.ascend(at, order)[0]
        total += gain
        if gain <= SMALL_GAIN * total or gain > SLOW * before:
            break
        before = gain
    return at.alpha, epoch + 1


def beginning(panel: Panel, root: Array, terms: Quadratic) -> Coordinates:
    """α = 0."""
    scale = np.zeros(panel.width)
    scale[panel.places] = root**2
    n, w = panel.n, np.zeros(panel.width)
    return Coordinates(scale, np.array(terms.form), np.zeros(n), w, np.full(n, -1.0))
