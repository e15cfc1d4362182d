"""Data sets by name: data.load("pima"), data.names()."""

from .datasets import DataNotFound, Dataset, load, names

__all__ = ["DataNotFound", "Dataset", "load", "names"]
