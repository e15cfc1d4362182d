"""Jain, Vishwanathan and Varma, *SPG-GMKL: generalized multiple kernel learning with a
million kernels*, KDD 2012: spectral projected gradient descent over the parameters d of
a kernel K(d), with a non-monotone search and machines (SVMs) as precise as needed."""
