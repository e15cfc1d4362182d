"""J. Aflalo, A. Ben-Tal, C. Bhattacharyya, J. S. Nath and S. Raman, "Variable sparsity
kernel learning", JMLR 12 (2011): kernels in groups, ℓ1 inside them and ℓ2q across, and
mirror descent over a product of simplices with block coordinate ascent as its oracle.
"""
