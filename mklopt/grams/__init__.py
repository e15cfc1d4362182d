"""Stacks of kernel matrices: the only way to touch them, in memory or not."""

from .stack import GramStack

__all__ = ["GramStack"]
