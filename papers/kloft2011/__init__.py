"""Kloft, Brefeld, Sonnenburg, Zien, Non-Sparse Regularization for MKL, preprint.

The text is that of "Non-Sparse Regularization for Multiple Kernel Learning", the
preprint of "ℓp-norm multiple kernel learning" (JMLR 12, 2011); numbers of sections,
equations, theorems and figures are those of the preprint. One dual for all losses and
norms of the kernel weights, a closed-form step in the weights inside a wrapper and
inside the SVM itself, and when sparse mixtures pay.
"""
