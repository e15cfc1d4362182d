"""Suzuki and Tomioka (2009), SpicyMKL: MKL with the group lasso by proximal
minimization, each step a smooth dual problem in which only active kernels count.
"""
