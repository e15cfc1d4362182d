"""Kloft, Brefeld, Sonnenburg, Zien, ℓp-norm multiple kernel learning, 2011.

One dual for all losses and norms of the kernel weights, a closed-form step in the
weights inside a wrapper and inside the SVM itself, and when sparse mixtures pay.
"""
