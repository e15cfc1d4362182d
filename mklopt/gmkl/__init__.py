"""Generalized MKL: kernels K(d) with parameters d, products of Gaussians among them."""

from .problem import Envelope, FamilyResult, KernelFamilyProblem, solve

__all__ = ["Envelope", "FamilyResult", "KernelFamilyProblem", "solve"]
