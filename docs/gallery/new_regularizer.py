"""
A new regularizer
=================

Here kernels come in pairs. The penalty of a pair is the larger of its two norms, plus
a small multiple of both. So both kernels of a pair are used together, with similar
weights, or not at all.
"""

import cvxpy as cp
import numpy as np

import mklopt
from mklopt import kernels, plots


@mklopt.formulation
def pairs(u):
    longest = [cp.maximum(u[i], u[i + 1]) for i in range(0, u.size, 2)]
    return cp.sum(cp.hstack(longest)) + 0.1 * cp.sum(u)


rng = np.random.default_rng(0)
y = np.sign(rng.normal(size=120))
views = {
    "shape": y[:, None] + 1.2 * rng.normal(size=(120, 2)),
    "colour": np.abs(y[:, None] + 1) + rng.normal(size=(120, 2)),
    "noise": rng.normal(size=(120, 2)),
}
fitted = kernels.views(kernels.gaussians([1, 3]), views).fit(views, "multiplicative")
problem = mklopt.Problem(fitted.grams(), y, "hinge", pairs, C=0.1)
result = mklopt.solve(problem, tol=1e-6)
print(result)

# %%
# Its unit ball, and the kernel weights: similar within a pair, and zero for the noise.

print(mklopt.inspect(pairs, M=2))
mklopt.inspect(pairs, M=2).draw("pairs-1-ball.png")
plots.weights(result, fitted.names, path="pairs-2-weights.png")
