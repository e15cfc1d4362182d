"""Anderson acceleration of a fixed-point iteration x ← g(x), with memory and weights.

Keeps the last few points and residuals g(x) − x and takes the combination whose
linearized residual is smallest in a weighted norm. Reference: Walker and Ni (2011).
"""

from __future__ import annotations

from collections import deque

import numpy as np

Array = np.ndarray


class Anderson:
    def __init__(self, memory: int = 8, ridge: float = 1e-10):
        self.points: deque[Array] = deque(maxlen=memory + 1)
        self.residuals: deque[Array] = deque(maxlen=memory + 1)
        self.ridge = ridge

    def next(self, x: Array, image: Array, weight: Array) -> Array:
        """The next point, from x and g(x); `weight` says which coordinates matter."""
        self.points.append(x)
        self.residuals.append(image - x)
        if len(self.points) < 2:
            return image
        moves = np.diff(np.array(self.points), axis=0)
        bends = np.diff(np.array(self.residuals), axis=0)
        scaled, last = bends * weight, self.residuals[-1] * weight
        system = scaled @ scaled.T
        ridge = self.ridge * np.trace(system) + 1e-300
        system[np.diag_indices_from(system)] += ridge
        gamma = np.linalg.solve(system, scaled @ last)
        return np.asarray(image - gamma @ (moves + bends))
