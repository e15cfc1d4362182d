"""What `solve` returns: the point, its certificate, and how it was reached."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate, certify
from ..certificates.portable import save_certificate
from ..problem import Problem
from ..util.archives import read_archive, write_archive
from ..util.arrays import real_array
from .point import meets, weights_near
from .trace import Trace, read_columns

Array = np.ndarray

STATUS = {
    "converged": "the relative gap is at most tol, all rounding errors counted",
    "max_iter": "the limit on iterations came first",
    "time_limit": "the limit on time came first",
    "stagnated": "the gap stopped falling before it reached tol",
    "finished": "the solver ended by itself before the gap reached tol",
    "rounding": "with all rounding errors counted, the gap cannot be shown to meet tol",
    "stopped": "the callback asked to stop",
    "interrupted": "interrupted from the keyboard",
    "failed": "the solver raised an error",
}


@dataclass(frozen=True, eq=False)
class Result:
    """The best certified point of a run.

    Parameters
    ----------
    problem : Problem
        The problem.
    solver : str
        The name of the solver.
    status : str
        One of converged, max_iter, time_limit, stagnated, finished, rounding, stopped,
        interrupted, failed.
    message : str
        Details of the status, if there are any.
    certificate : Certificate
        The certificate of this point, computed at the end without the solver.
    trace : Trace
        One row per certified iterate.
    choice : str
        For "auto": the solver that it chose, and why.
    """

    problem: Problem = field(repr=False)
    solver: str
    status: str
    message: str
    certificate: Certificate = field(repr=False)
    trace: Trace
    choice: str = ""

    @cached_property
    def weights(self) -> Array:
        """θ of the certified point w_m = θ_m Σ_i α_i ψ_m(x_i); see `point`.

        If `point` is "coefficients" they are weights near the point (run/point.py), and
        the certificate is not theirs.
        """
        found = self.certificate
        return weights_near(found) if found.weights is None else found.weights

    @property
    def point(self) -> str:
        """ "weights": the certified point is (weights, dual, bias). "coefficients" or
        "features": no weights near it meet the tolerance; it is
        certificate.coefficients or certificate.features.
        """
        if self.certificate.weights is not None:
            return "weights"
        return "coefficients" if self.certificate.features is None else "features"

    @property
    def dual(self) -> Array:
        """α, feasible for the dual."""
        return self.certificate.alpha

    @property
    def bias(self) -> Any:
        """The best bias for the primal point."""
        return self.certificate.bias

    @property
    def relative_gap(self) -> float:
        """The certified gap (primal − dual)/|primal|."""
        return self.certificate.relative_gap

    @property
    def converged(self) -> bool:
        """Whether the certified gap is at most tol."""
        return self.status == "converged"

    def decision(self, test_stack: Any) -> Array:
        """The predictions at new points, from their kernels with the training points.

        Parameters
        ----------
        test_stack : array (M, n_test, n) or GramStack
            Kernel m between test points (rows) and training points (columns),
            normalized as the training kernels were.

        Returns
        -------
        array (n_test,) or (n_test, k)
            The predictions.
        """
        n, M = self.problem.grams.n, self.problem.grams.M
        if hasattr(test_stack, "dense"):
            test_stack = test_stack.dense()
        K = real_array(test_stack, "test_stack", "an (M, n_test, n) array of numbers")
        if K.ndim != 3 or K.shape[0] != M or K.shape[2] != n:
            raise ValueError(
                f"test_stack has shape {K.shape}; expected ({M}, n_test, {n}): one "
                "matrix per kernel, test points in rows, training points in columns"
            )
        coefficients = self.certificate.expansion.reshape(M, n, -1)
        f = np.zeros((K.shape[1], coefficients.shape[2]))
        for kernel, part in zip(K, coefficients):
            f += kernel @ part
        return f.reshape(K.shape[1], *self.problem.shape[1:]) + self.bias

    def save(self, path: str | os.PathLike) -> None:
        """Write the result to one NumPy archive without pickles.

        Parameters
        ----------
        path : str or path
            The file. It gets the point, the trace and a hash of the problem.
        """
        found = self.certificate
        point = {"dual": found.alpha}
        for name in ("weights", "coefficients", "features"):
            if getattr(found, name) is not None:
                point[name] = getattr(found, name)
        if "weights" in point:
            point.pop("features", None)  # they follow from the weights
        words = ("solver", "status", "message", "choice")
        about = {"kind": "result", **{word: getattr(self, word) for word in words}}
        about |= {"problem": self.problem.digest(), "about": self.trace.about}
        trace = {f"trace.{k}": v for k, v in self.trace.arrays().items()}
        write_archive(path, {**point, **trace}, about)

    def save_certificate(self, path: str | os.PathLike) -> None:
        """Write a file that proves the bounds; `mklopt verify` checks it.

        Parameters
        ----------
        path : str or path
            The file.
        """
        save_certificate(self.certificate, path)

    @classmethod
    def load(cls, path: str | os.PathLike, problem: Problem) -> Result:
        """Read a saved result, and certify it again.

        Parameters
        ----------
        path : str or path
            The file.
        problem : Problem
            The problem it belongs to.

        Returns
        -------
        Result
            The result, with a new certificate.

        Raises
        ------
        ValueError
            If the file is not a result, or belongs to another problem.
        """
        if not isinstance(problem, Problem):
            raise ValueError(f"load takes a Problem, got {type(problem).__name__}")
        arrays, about = read_archive(path, "result")
        if not problem.is_named(about.get("problem")):
            raise ValueError(
                f"{path} is the result of another problem: kernels, labels, loss, "
                "formulation, C or bias differ"
            )
        status, solver = str(about.get("status")), str(about.get("solver"))
        tol = about["about"].get("tol", 0.0)
        number = isinstance(tol, int | float)
        if "dual" not in arrays or status not in STATUS or not number:
            raise ValueError(f"{path} is not a file written by mklopt")
        theta, B, w = map(arrays.get, ("weights", "coefficients", "features"))
        certificate = certify(
            problem, arrays["dual"], theta, coefficients=B, features=w
        )
        parts = {k[6:]: v for k, v in arrays.items() if k.startswith("trace.")}
        message = str(about.get("message", ""))
        if status == "converged" and not meets(certificate, tol):
            status = "finished"
            message = f"certified on loading, the gap is {certificate.relative_gap:.1e}"
        trace = Trace(read_columns(path, parts), **about["about"])
        points = (certificate, trace, str(about.get("choice", "")))
        return cls(problem, solver, status, message, *points)

    def __repr__(self) -> str:
        return (
            f"Result({self.solver}, {self.status}, relative_gap="
            f"{self.relative_gap:.1e}, {self.trace!r})"
        )

    def __str__(self) -> str:
        found = self.certificate
        choice = f"  {self.choice}\n" if self.choice else ""
        message = f"  {self.message}\n" if self.message else ""
        return (
            f"{self.solver}: {self.status} ({STATUS[self.status]})\n{choice}{message}"
            f"  relative gap {found.relative_gap:.1e}; {found.statement}\n"
            f"  {self.trace}"
        )
