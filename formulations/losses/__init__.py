"""The losses V(f, y): a new file with a `Loss` class in it is found by scanning."""

from .base import Loss, Quadratic
from .declared import DeclaredLoss, loss, stripped_loss
from .margin import Hinge, Logistic, OneClass
from .multiclass import MulticlassHinge, Multinomial
from .residual import EpsInsensitive, Huber, Quantile, Squared

__all__ = [
    "DeclaredLoss",
    "EpsInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "MulticlassHinge",
    "Multinomial",
    "OneClass",
    "Quadratic",
    "Quantile",
    "Squared",
    "loss",
    "stripped_loss",
]
