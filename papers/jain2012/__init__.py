"""Jain, Vishwanathan, Varma, SPG-GMKL: generalized MKL with a million kernels, 2012.

Spectral projected gradient descent over the parameters d of a kernel K(d), with a
non-monotone search and machines (SVMs) as precise as needed.

Methods: SPG is the paper's (spectral step S, at most 10, non-monotone search N, tuned
precision P), SPG* has a metric of our own and steps of any length, PGD is projected
gradient descent with the rule of Armijo and precise machines, PGD+ begins each search
near where the last one ended. W is the objective, f* its optimum. A method is "there"
at a certified relative gap of 1e-3 (sums of kernels) or a projected gradient of 1e-2
(products). It "wins by 2" where it is there and the other needs at least twice as many
SVM evaluations; who is not there within the budget is counted with what it had used.
"""
