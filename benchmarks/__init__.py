"""What the solvers cost, measured. Not part of the package, imported by nobody.

    make bench                              # the flagship: auto beside other solvers
    make bench NAME=spicy ARGS="--largest 1000"
    python -m benchmarks spicy --largest 1000

One file is one benchmark, with a `main()`; `harness` holds what several of them share,
`rivals` other people's solvers. Comparisons that a paper makes are not here but in
papers/<key>/studies.py.

    flagship      auto beside SVC-based wrappers, conic solvers, skglm, celer, EasyMKL
    from_x        from X to a solution: building, solving, the first start
    certificate   what a certificate costs, in passes over the kernels
    wrappers      solvers that call an SVM solver, beside one around scikit-learn's SVC
    spicy         SpicyMKL with up to 6000 kernels, and along a path
    epochs        one epoch of the stochastic solvers, in passes
    multiclass    the multi-class hinge on mfeat for many p and C
    million       up to a million kernels, computed on the fly
    features      MKL on low-rank features: Covertype, LIBLINEAR, growth in n
    exact         bounds for exact kernels from a low-rank solution
    many_samples  60,000 samples with exact kernels, no n × n matrix
    disk          kernels in a file, against the speed of the disk
    cluster       kernels on the workers of a Dask cluster
    streaming     kernels computed on the fly against kernels in memory
    operators     operators derived from a declaration
    digits        OBSCURE on all digits of MNIST, with kernels on the fly
    estimators    how well the estimators predict
    checkers      the two checkers of certificate files: time, tampering, fuzzing
    library       the library of solved problems: time to check all of it, solvers on it
"""
