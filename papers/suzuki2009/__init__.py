"""Suzuki, Tomioka, SpicyMKL, 2009.

MKL with the group lasso by proximal minimization, each step a smooth dual problem in
which only active kernels count.
"""
