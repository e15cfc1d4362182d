"""What structured outputs are: a protocol, and sequences with Viterbi as their oracle.

An output gives one of k labels to every part of a sample. Z stands for one output (T,),
or for several of them (…, T).
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

Array = np.ndarray


class Structure(Protocol):
    """The four functions that make a structured loss; see Chain for an example."""

    @property
    def labels(self) -> int:
        """The number k of labels."""

    def features(self, Z: Array) -> Array:
        """g, (…, D), features of outputs alone; D may be 0.

        Parameters
        ----------
        Z : array of shape (…, T)
            One output, or several.

        Returns
        -------
        array of shape (…, D)
        """

    def delta(self, y: Array, Z: Array) -> Array:
        """Δ(y, z) ≥ 0, and Δ(y, y) = 0.

        Parameters
        ----------
        y : array of shape (T,)
            The truth.
        Z : array of shape (…, T)
            One output, or several.

        Returns
        -------
        array of shape (…)
        """

    def argmax(self, scores: Array, weights: Array, truth: Array | None) -> Array:
        """The y with the largest Σ_t scores[t, y_t] + ⟨weights, g(y)⟩ + Δ(truth, y).

        Parameters
        ----------
        scores : array of shape (T, k)
        weights : array of shape (D,)
        truth : array of shape (T,), or None
            None: without Δ.

        Returns
        -------
        array of shape (T,)
        """

    def outputs(self, T: int) -> Array | None:
        """All outputs of T parts, (…, T), or None where they are too many to list.

        Parameters
        ----------
        T : int

        Returns
        -------
        array of shape (…, T), or None
        """


@dataclass(frozen=True)
class Chain:
    """Sequences: g counts neighbours, k² kinds of them, and Δ counts wrong labels.

    Parameters
    ----------
    labels : int
        k.
    most : int, default=4096
        The outputs of a sequence are listed when they are not more than this.
    """

    labels: int
    most: int = 4096

    def features(self, Z: Array) -> Array:
        """g(Z), (…, k²): how often each label follows each other one.

        Parameters
        ----------
        Z : array of shape (…, T)

        Returns
        -------
        array of shape (…, k²)
        """
        pairs = Z[..., :-1] * self.labels + Z[..., 1:]
        return np.sum(pairs[..., None] == np.arange(self.labels**2), axis=-2)

    def delta(self, y: Array, Z: Array) -> Array:
        """The number of wrong labels.

        Parameters
        ----------
        y, Z
            As in `Structure.delta`.

        Returns
        -------
        array of shape (…)
        """
        return np.sum(y != Z, axis=-1)

    def argmax(self, scores: Array, weights: Array, truth: Array | None) -> Array:
        """Viterbi: the best way to every label, part after part, and back.

        Parameters
        ----------
        scores, weights, truth
            As in `Structure.argmax`.

        Returns
        -------
        array of shape (T,)
        """
        if truth is not None:
            scores = scores + (np.arange(self.labels) != truth[:, None])
        step = weights.reshape(self.labels, self.labels)
        best, back = scores[0], []
        for now in scores[1:]:
            through = best[:, None] + step
            back.append(np.argmax(through, axis=0))
            best = np.max(through, axis=0) + now
        y = [int(np.argmax(best))]
        for come in reversed(back):
            y.append(int(come[y[-1]]))
        return np.array(y[::-1])

    def outputs(self, T: int) -> Array | None:
        """All k^T outputs, (k^T, T), or None where they are more than `most`.

        Parameters
        ----------
        T : int

        Returns
        -------
        array of shape (…, T), or None
        """
        if self.labels**T > self.most:
            return None
        return np.indices((self.labels,) * T).reshape(T, -1).T
