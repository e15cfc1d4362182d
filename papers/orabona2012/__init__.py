"""Orabona, Jie, Caputo, Multi kernel learning with online-batch optimization, 2012.

OBSCURE, two stages of stochastic subgradients for squared block norms
λ/2 ‖w‖²_{2,p} + (1/N) Σ ℓ, with a rate that depends on p through its dual q.

The paper's F is the number of kernels, M that of classes, N that of samples; the
canonical C is 1/(λN).
"""
