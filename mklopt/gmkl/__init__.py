"""Generalized MKL: kernels K(d) with parameters d, products of Gaussians among them."""

from .descent import FamilyResult, solve
from .problem import Envelope, KernelFamilyProblem

__all__ = ["Envelope", "FamilyResult", "KernelFamilyProblem", "solve"]
