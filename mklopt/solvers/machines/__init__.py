"""Inner solvers, at fixed kernel weights: SVM, multi-class SVM, smooth losses."""
