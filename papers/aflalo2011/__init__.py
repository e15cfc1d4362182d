"""Aflalo, Ben-Tal, Bhattacharyya, Nath, Raman, Variable sparsity kernel learning, 2011.

Kernels in groups, ℓ1 inside them and ℓ2q across, and mirror descent over a product of
simplices with block coordinate ascent as its oracle.

Notation: VSKL_q is ½ (Σ_j (Σ_k ‖w_jk‖)^{2q})^{1/q} + C Σ hinge, kernel k of group j, n
groups, 1/q + 1/q* = 1. Its partial dual (D) is the minimum over λ, one simplex per
group, of G(λ), the maximum over α and γ in Δ_{n,q*} = {γ ≥ 0, ‖γ‖_q* ≤ 1} of f_λ(α, γ)
= 1ᵀα − ½ Σ_j D_j/γ_j, D_j = Σ_k λ_jk D_jk, D_jk = αᵀQ_jkα. Φ is the entropy of λ, B_Φ
its divergence, σ = 1/n, Γ the largest B_Φ; L bounds ‖G'‖∞.
"""
