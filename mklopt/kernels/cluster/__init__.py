"""Kernels, or rows of factors, on the workers of a Dask cluster: ClusterStack."""
