"""Small tools that every room may use, and that know nothing of kernels."""
