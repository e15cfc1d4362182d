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
from .trace import Trace, read_columns

Array = np.ndarray
DUAL_SHARE = 0.75  # of α in the geometric mean of weights from α and from w

STATUS = {
    "converged": "the certified relative gap is at most tol",
    "max_iter": "the limit on iterations came first",
    "time_limit": "the limit on time came first",
    "stagnated": "the gap stopped falling before it reached tol",
    "finished": "the solver ended by itself before the gap reached tol",
    "rounding": "the gap was below tol in the loop, but not when certified again",
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
        """The kernel weights at this point: θ_m = ‖w_m‖ / ‖α‖_{K_m} at the optimum.

        They are a function of the primal point, u / ∂Ω(u) with u_m = ‖w_m‖. Where Ω*
        is smooth they are also a function of α, ∂Ω*(v)/v. The gap bounds the sum of the
        squared errors of w and α, so that a mean of both is safer than either alone.
        For ℓp norms it is the geometric mean, three parts α, which usually converges
        first. For other formulations it is one of the two. (For q > 2 it is α, because
        ½‖u‖_q² is too flat to determine θ from w.) The last θ of the solver is
        certificate.weights.
        """
        formulation, found = self.problem.formulation, self.certificate
        traits = formulation.traits
        if "smooth_dual" in traits:
            v = self.problem.grams.norms(found.alpha)
            theta = formulation.dual_weights(v)
            if "ball" in traits:
                other = formulation.weights(found.norms)
                theta = theta**DUAL_SHARE * other ** (1 - DUAL_SHARE)
        else:
            theta = formulation.weights(found.norms)
        given = found.weights  # an unused kernel may have no finite weight
        return np.where(np.isfinite(theta), theta, 0.0 if given is None else given)

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
        for name in ("weights", "coefficients"):
            if getattr(found, name) is not None:
                point[name] = getattr(found, name)
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
        if about.get("problem") != problem.digest():
            raise ValueError(
                f"{path} is the result of another problem: kernels, labels, loss, "
                "formulation, C or bias differ"
            )
        status, solver = str(about.get("status")), str(about.get("solver"))
        tol = about["about"].get("tol", 0.0)
        number = isinstance(tol, int | float)
        if "dual" not in arrays or status not in STATUS or not number:
            raise ValueError(f"{path} is not a file written by mklopt")
        theta, B = arrays.get("weights"), arrays.get("coefficients")
        certificate = certify(problem, arrays["dual"], theta, coefficients=B)
        parts = {k[6:]: v for k, v in arrays.items() if k.startswith("trace.")}
        message = str(about.get("message", ""))
        if status == "converged" and not within(certificate, tol):
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
        return (
            f"{self.solver}: {self.status} ({STATUS[self.status]})\n{choice}"
            f"  {found.dual:.10g} ≤ f* ≤ {found.primal:.10g}, relative gap "
            f"{found.relative_gap:.1e}\n"
            f"  {self.trace}"
        )


def within(found: Certificate, tol: float) -> bool:
    """Whether the relative gap is at most tol, up to rounding."""
    return found.relative_gap <= tol * (1 + 1e-6) + 1e-15
