"""
A decision boundary
===================

A scikit-learn estimator with a certificate, on two half-moons with four kernels.
"""

from sklearn.datasets import make_moons

import mklopt
from mklopt import plots

X, label = make_moons(120, noise=0.25, random_state=0)
some = ["gaussian(0.3)", "gaussian(1)", "polynomial(3)", "linear"]
model = mklopt.MKLClassifier(some, p=1, C=10.0, tol=1e-4).fit(X, label)
print(model.certificate_)
print(dict(zip(model.kernel_names_, model.weights_.round(3).tolist())))
plots.boundary(model, X, label, path="boundary.png")
