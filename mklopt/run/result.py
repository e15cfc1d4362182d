"""What `solve` returns: the point, its certificate, and how it was reached."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..certificates.certificate import Certificate, certify
from ..certificates.minimizer import MinimizerFacts, minimizer_facts
from ..certificates.optimality import Interval
from ..certificates.portable import save_certificate
from ..kernels.fitted import FittedKernels
from ..problem import Problem
from ..util.archives import read_archive, write_archive
from ..util.arrays import real_array
from ..util.checks import check_kernels
from ..util.tables import facts
from .point import meets, weights_near
from .trace import Trace, read_columns

Array = np.ndarray
NEARLY_ALL = 0.95  # of the largest sum of dual variables: the problem is trivial
CLOSE = 1e-2  # a point with a larger gap says nothing about this

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

    @property
    def hint(self) -> str:
        """A sentence if C is so small that nearly all α_i are at C; else "".

        It is for losses with 0 ≤ α_i y_i ≤ C. It compares Σ|α_i| with the largest sum
        that C allows; with a bias that is twice the sum of C over the smaller class.
        """
        problem = self.problem
        dual = problem.loss.quadratic(problem.y, problem.costs)
        if dual is None or not self.relative_gap <= CLOSE:
            return ""
        if not np.all((dual.low == 0) != (dual.high == 0)):  # α has both signs
            return ""
        above, below = float(np.sum(dual.high)), -float(np.sum(dual.low))
        most = 2 * min(above, below) if problem.bias else above + below
        share = float(np.sum(np.abs(self.dual))) / most if most > 0 else 0.0
        if 2 * most < above + below or share < NEARLY_ALL:
            return ""
        return (
            f"the dual variables have {100 * share:.0f} % of the largest sum that C "
            "allows, so that the problem is nearly trivial: try a larger C"
        )

    def decision(self, test_stack: Any, X_new: Any = None) -> Array:
        """The predictions at new points, from their kernels with the training points.

        Parameters
        ----------
        test_stack : array (M, n_test, n) or GramStack; or array (n_test, R)
            Kernel m between test points (rows) and training points (columns),
            normalized as the training kernels were. For factors: the features of test
            points, as `cross_features` of low-rank kernels gives them. With X_new: the
            fitted kernels themselves.
        X_new : array (n_test, d), or a list or dict of such arrays, optional
            The test points. Their kernels are computed and not stored, for any number
            of kernels.

        Returns
        -------
        array (n_test,) or (n_test, k)
            The predictions.

        Examples
        --------
        >>> result.decision(fitted.cross(X_test))  # doctest: +SKIP
        >>> result.decision(fitted, X_test)  # doctest: +SKIP
        """
        if X_new is not None:
            return self._at(test_stack, X_new)
        n, M = self.problem.grams.n, self.problem.grams.M
        if hasattr(test_stack, "dense"):
            test_stack = test_stack.dense()
        K = real_array(test_stack, "test_stack", "an (M, n_test, n) array of numbers")
        if K.ndim == 2 and self.problem.grams.storage == "factors":
            return self._of_features(K)
        if K.ndim != 3 or K.shape[0] != M or K.shape[2] != n:
            raise ValueError(
                f"test_stack has shape {K.shape}; expected ({M}, n_test, {n}): one "
                "matrix per kernel, test points in rows, training points in columns"
            )
        f = np.zeros((K.shape[1], int(np.prod(self.problem.shape[1:], dtype=int))))
        for m, kernel in enumerate(K):  # never coefficients of all kernels
            part = self.certificate.expansion_of(slice(m, m + 1))
            f += kernel @ part.reshape(n, -1)
        return self._biased(f)

    def _at(self, fitted: Any, X_new: Any) -> Array:
        """Predictions at new points, from fitted kernels."""
        grams, found = self.problem.grams, self.certificate
        known = (getattr(fitted, "M", 0), getattr(fitted, "n", 0))
        if known != (grams.M, grams.n) or not hasattr(fitted, "cross_sums"):
            raise ValueError(
                f"with X_new give the {grams.M} fitted kernels on the {grams.n} "
                "training points, such as gaussians([1, 3]).fit(X)"
            )
        if found.weights is None:
            pieces = [self.decision(K) for K in fitted.cross_blocks(X_new)]
            return np.concatenate(pieces)
        alpha = found.alpha.reshape(grams.n, -1)
        sums = fitted.cross_sums(X_new, np.asarray(found.weights))
        return self._biased(np.concatenate([K @ alpha for K in sums]))

    def _biased(self, f: Array) -> Array:
        """Predictions (n_test, k) in their shape, with the bias."""
        return f.reshape(len(f), *self.problem.shape[1:]) + self.bias

    @cached_property
    def features(self) -> Array:
        """(R, k): w of the certified point, one coefficient per feature of a factor.

        For problems with factors alone: w_m = L_mᵀB_m for the coefficients B_m.
        """
        grams, found = self.problem.grams, self.certificate
        if grams.storage != "factors":
            raise ValueError("only problems with factors have coefficients of features")
        w = getattr(found, "features", None)
        if w is not None:
            return np.asarray(w.reshape(len(w), -1))
        if found.weights is not None:
            folded = grams.fold(found.alpha.reshape(grams.n, -1))
            return np.repeat(found.weights, grams.ranks)[:, None] * folded
        B = found.expansion.reshape(grams.M, grams.n, -1)
        each = [grams.subset(np.array([m])) for m in range(grams.M)]
        return np.concatenate([one.fold(part) for one, part in zip(each, B)])

    def _of_features(self, F: Array) -> Array:
        """Predictions from features of test points: no product with training points."""
        w = self.features
        if F.shape[1] != len(w):
            raise ValueError(
                f"test_stack has shape {F.shape}; expected (n_test, {len(w)}): the "
                "features of all kernels"
            )
        return (F @ w).reshape(len(F), *self.problem.shape[1:]) + self.bias

    def intervals(self) -> MinimizerFacts:
        """What the certified gap proves of every minimizer; computed once.

        Returns
        -------
        MinimizerFacts
            Intervals of ‖w_m*‖, θ_m*, predictions and α_i*, and which kernels are used.

        Examples
        --------
        >>> print(result.intervals())  # doctest: +SKIP
        """
        return self._facts

    @cached_property
    def _facts(self) -> MinimizerFacts:
        return minimizer_facts(self.certificate)

    def proves(
        self, *, support: Any = None, used: Any = None, unused: Any = None
    ) -> bool:
        """Whether the certified gap proves which kernels every minimizer uses.

        `mklopt.prove_used` proves more, by solving the problem without a kernel.

        Parameters
        ----------
        support : sequence of int, optional
            Exactly these kernels are used.
        used, unused : sequence of int, optional
            These kernels have ‖w_m*‖ > 0, or w_m* = 0.

        Returns
        -------
        bool
            False does not mean that the claim is wrong.
        """
        facts, M = self.intervals(), self.problem.grams.M
        if support is not None:
            used = check_kernels(support, "support", M)
            unused = np.setdiff1d(np.arange(M), used)
        pairs = (("used", used, facts.used), ("unused", unused, facts.unused))
        said = [
            found[check_kernels(given, name, M)]
            for name, given, found in pairs
            if given is not None
        ]
        if not said:
            raise ValueError("proves takes support=, used= or unused=: kernel numbers")
        return bool(all(np.all(part) for part in said))

    def prediction_intervals(
        self, test_stack: Any, diagonals: Any, X_new: Any = None
    ) -> Interval:
        """Intervals that contain the predictions of every minimizer at new points.

        Parameters
        ----------
        test_stack, X_new
            As for `decision`.
        diagonals : array (M, n_test)
            k_m(x, x) of every kernel at every test point; normalized as the kernels.

        Returns
        -------
        Interval
            Its arrays are `lower` and `upper`; infinite where the gap proves nothing.
        """
        f = self.decision(test_stack, X_new) - self.bias
        shape = f"an array ({self.problem.grams.M}, {len(f)})"
        found = real_array(diagonals, "diagonals", shape)
        if found.shape != (self.problem.grams.M, len(f)):
            raise ValueError(f"diagonals has shape {found.shape}; expected {shape}")
        return self.intervals().predictions_at(f, found)

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

    def save_certificate(
        self, path: str | os.PathLike, kernels: FittedKernels | None = None
    ) -> None:
        """Write a file that proves the bounds; `mklopt verify` checks it.

        docs/certificate-format.md specifies it.

        Parameters
        ----------
        path : str or path
            The file.
        kernels : FittedKernels, optional
            The fitted family that the kernels of the problem come from. The file then
            has its points and rules, not n² numbers for each kernel, and bounds for the
            kernels in exact arithmetic. Gaussians, linear and polynomial kernels only.

        Raises
        ------
        ValueError
            If a file cannot state the problem: a declared loss or formulation, infinite
            bounds, too many numbers, or other kernels by rules.
        """
        save_certificate(self.certificate, path, kernels)

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

    def _repr_html_(self) -> str:
        used, M = int(np.sum(self.certificate.norms > 0)), self.problem.grams.M
        known = {
            "problem": repr(self.problem),
            "solver": f"{self.solver}: {self.status} ({STATUS[self.status]})",
            **self.certificate.facts(),
            "kernels": f"{used} of {M} in use",
            "run": str(self.trace),
        }
        said = (self.choice, self.message, self.hint)
        return facts(known, *(remark for remark in said if remark))

    def __str__(self) -> str:
        found = self.certificate
        choice = f"  {self.choice}\n" if self.choice else ""
        message = f"  {self.message}\n" if self.message else ""
        hint = f"\n  {self.hint}" if self.hint else ""
        return (
            f"{self.solver}: {self.status} ({STATUS[self.status]})\n{choice}{message}"
            f"  relative gap {found.relative_gap:.1e}; {found.statement}\n"
            f"  {self.trace}{hint}"
        )
