"""Jain, Vishwanathan, Varma, SPG-GMKL: generalized MKL with a million kernels, 2012.

Spectral projected gradient descent (SPG) over the parameters d of a kernel K(d), with a
non-monotone search and SVMs as precise as needed, beside projected gradient descent
(PGD) with the rule of Armijo and precise SVMs.

W is the objective, f* its optimum. SPG and PGD are written anew from the authors'
released program, which says more than the paper; in tables both stand beside what the
paper prints. They end as the paper does: at an absolute gap of 1e-3 for sums of
kernels, at a projected gradient below 0.04 for products. Seconds are CPU seconds of one
thread. What we would improve is in an appendix and in no verdict.
"""
