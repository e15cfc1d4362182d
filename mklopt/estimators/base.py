"""What all estimators share: kernels, one certified solve, prediction."""

import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from ..formulations import Loss
from ..formulations.text import formulation_from
from ..kernels.fitted import FittedKernels
from ..kernels.low_rank import (
    MOST_MONOMIALS,
    WAYS,
    LowRankFamily,
    LowRankKernels,
    dense,
)
from ..kernels.text import columns_in_use, family_of, usual_family
from ..problem import Problem, loss_from
from ..run.loop import solve
from ..run.result import STATUS, Result
from ..util.checks import check_choice, real_number, short
from ..util.rounding import interval

Array = np.ndarray
# How parameters that never change are made of what was given.
READ: dict[str, Callable] = {"formulation": formulation_from, "loss": loss_from}
MAX_DOUBLES = 2 * 10**8  # numbers in factors of double precision
SINGLE = re.compile(r" on x(\d+)$")  # the name of a kernel on one feature
Estimator = TypeVar("Estimator", bound="MKLEstimator")


@dataclass(frozen=True)
class Bounds:
    """lower ≤ f* ≤ upper in exact arithmetic, under the assumptions listed."""

    lower: float
    upper: float
    relative_gap: float
    status: str
    assumptions: tuple[str, ...]

    @classmethod
    def of(cls, result: Result) -> Self:
        """What the certificate of a result says."""
        found = result.certificate
        ends = (found.lower, found.upper, found.relative_gap)
        return cls(*ends, result.status, tuple(found.assumptions))

    def __str__(self) -> str:
        return (
            f"{self.status}, relative gap {self.relative_gap:.1e}, "
            f"{interval(self.lower, self.upper, self.assumptions)}"
        )


class Sample(NamedTuple):
    """What is solved: distinct samples of positive weight."""

    X: Array
    y: Array
    weight: Array
    place: Array  # of each sample given; −1: it had no weight


@dataclass(frozen=True)
class Decision:
    """f of new points from the kernels in use alone.

    coefficients: (kernels in use, n, outputs); bias: one number per output
    kernels: those in use; None where X holds kernel values, and then `active` and
        `columns` say which of them are meant
    """

    coefficients: Array
    bias: Array
    active: Array
    columns: Array
    kernels: FittedKernels | None

    def __call__(self, X: Array) -> Array:
        if self.kernels is None:
            K = np.moveaxis(X[:, :, self.active][:, self.columns], -1, 0)
            return self._of(K)
        return np.concatenate([self._of(K) for K in self.kernels.cross_blocks(X)])

    def _of(self, K: Array) -> Array:
        f = np.tile(self.bias, (K.shape[1], 1))
        for kernel, part in zip(K, self.coefficients):
            f += kernel @ part
        return f


@dataclass(frozen=True)
class WeightedDecision:
    """f of new points from weights θ and α: no coefficients of all kernels.

    weights: (runs, kernels in use); alphas: (n, outputs) of each run
    The other fields are as in Decision.
    """

    weights: Array
    alphas: list[Array]
    bias: Array
    active: Array
    columns: Array
    kernels: FittedKernels | None

    def __call__(self, X: Array) -> Array:
        runs = zip(self.weights, self.alphas)
        parts = [self._products(X, theta, alpha) for theta, alpha in runs]
        return np.concatenate(parts, axis=1) + self.bias

    def _products(self, X: Array, theta: Array, alpha: Array) -> Array:
        """Σ θ_m K_m α of one run."""
        if self.kernels is None:
            return (X[:, :, self.active][:, self.columns] @ theta) @ alpha
        return np.concatenate([K @ alpha for K in self.kernels.cross_sums(X, theta)])


@dataclass(frozen=True)
class FeatureDecision:
    """f of new points from the features in use: no product with training points."""

    w: Array  # (features in use, outputs)
    bias: Array
    kernels: LowRankKernels

    def __call__(self, X: Array) -> Array:
        blocks = (
            self.kernels.cross_blocks(X) if len(self.w) else [np.zeros((len(X), 0))]
        )
        return np.concatenate([F @ self.w + self.bias for F in blocks])


def _fit_together(starts: list, problems: list[Problem]) -> bool:
    """Whether results are of problems of these sizes."""
    if None in starts or len(starts) != len(problems):
        return False
    size = lambda problem: (problem.grams.M, problem.grams.n)  # noqa: E731
    return all(size(r.problem) == size(p) for r, p in zip(starts, problems))


def _with_names(listed: list[str], features: Any) -> list[str]:
    """Names of kernels on single features, with the names of these."""
    if features is None:
        return listed
    named = lambda m: f" on {features[int(m[1])]}"  # noqa: E731
    return [name if ": " in name else SINGLE.sub(named, name) for name in listed]


def _is_text(column: Any) -> bool:
    """Whether a column of a data frame has entries that are no numbers."""
    if getattr(column.dtype, "kind", "O") in "biufc":
        return False
    try:
        column.astype(float)
    except (TypeError, ValueError):
        return True
    return False


def _stack(fitted: Any) -> Any:
    """The kernels as a stack, lazy if large; large factors in single precision."""
    if not isinstance(fitted, LowRankKernels):
        return fitted.stack()
    large = fitted.n * fitted.R > MAX_DOUBLES
    return fitted.grams(dtype="float32") if large else fitted.grams()


def decision_of(
    results: list[Result], bias: Array, sample: Sample, fitted: FittedKernels | None
) -> Decision | WeightedDecision:
    """What predicts: from weights if all runs have them, else from coefficients."""
    columns = np.flatnonzero(sample.place >= 0)
    found = [r.certificate for r in results]
    if all(one.weights is not None for one in found):
        alphas = [one.alpha.reshape(len(one.alpha), -1) for one in found]
        live = [np.asarray(one.weights) * bool(np.any(one.alpha)) for one in found]
        active = np.flatnonzero(np.any(np.array(live) != 0, axis=0))
        kernels = None if fitted is None else fitted.subset(active)
        weights, bias = np.array(live)[:, active], _spread(bias, alphas)
        return WeightedDecision(weights, alphas, bias, active, columns, kernels)
    M, n = found[0].problem.grams.M, found[0].problem.grams.n
    B = np.concatenate([one.expansion.reshape(M, n, -1) for one in found], axis=2)
    active = np.flatnonzero(np.any(B != 0, axis=(1, 2)))
    kernels = None if fitted is None else fitted.subset(active)
    bias = np.broadcast_to(bias, B.shape[2:])
    return Decision(B[active], bias, active, columns, kernels)


def _spread(bias: Array, alphas: list[Array]) -> Array:
    """One bias per output, where one number was given for all."""
    return np.broadcast_to(bias, (sum(alpha.shape[1] for alpha in alphas),))


# scikit-learn wants an __init__ that keeps its parameters and does nothing else.
@dataclass(eq=False, repr=False)
class MKLEstimator(BaseEstimator):
    """What all estimators share: kernels, formulation, C, and one certified solve.

    Parameters
    ----------
    kernels : list, dict, Family, "precomputed" or None, default=None
        A list of strings such as "gaussian(1)" or "rbf" (with scikit-learn's gamma),
        functions k(A, B), and (columns, kernel) pairs; a dict of these, with names of
        views; or a family of mklopt.kernels. Columns are numbers, or names where X is a
        data frame; columns that no kernel uses may be text. None: the usual family, of
        linear and Gaussian kernels with widths chosen from X. "precomputed": X holds
        kernel values, X[i, j, m] = k_m(x_i, x_j), of shape (n, n_train, M). Otherwise X
        may be sparse; it is made dense.
    normalize : str, callable or None, default="spherical"
        How kernels are normalized, see mklopt.kernels; "spherical": k(x, x) = 1. It is
        learned from the training samples, whatever their weights.
    formulation : str or Formulation, default="lp"
        Ω: an instance, or text such as "group_lasso" or "tikhonov:p=1.5,mu=2".
    p : float or None, default=None
        Replaces the p of the formulation, for grid searches.
    C : float, default=1.0
        The weight of the loss.
    bias : bool, default=True
        Whether f has a constant term.
    solver : str, default="auto"
        The solver, as in mklopt.solve.
    tol : float, default=1e-6
        The certified relative gap to stop at.
    options : dict or None, default=None
        Other arguments of mklopt.solve, such as {"time_limit": 10}. "stack" is a
        function of fitted kernels that makes their stack, such as FittedKernels.lazy or
        lambda fitted: mklopt.ClusterStack(client, fitted).
    approximation : "nystroem", "random_features", "explicit" or None, default=None
        How kernels are replaced by features, see mklopt.kernels, for many samples: the
        problem with these features is what is solved and certified.
    rank : int, default=500
        The number of features of each kernel, for "nystroem" and "random_features".
    warm_start : bool, default=False
        Whether `fit` starts at the solution of the last one, if there are as many
        samples and kernels. The certified gap is the same.

    Attributes
    ----------
    weights_ : array of shape (M,) or (n_classes, M)
        The kernel weights; a row per class from one against the rest. They are those
        of the certified point if `result_.point` is "weights".
    certificate_ : Bounds or tuple of Bounds
        The bounds that enclose the optimum; one per class from one against the rest.
    n_active_kernels_ : int
        The kernels with coefficients. Only they are evaluated at prediction.
    kernel_names_ : list of str
        The names of all M kernels, with names of columns and views.
    ranks_, lost_trace_ : arrays of shape (M,), or None
        With an approximation: the number of features of each kernel, and the share of
        its trace that they do not have (it says nothing of random features).
    n_iter_ : int
        The iterations of the solver, the largest number where there are several runs.
    result_ : Result or list of Result
        What mklopt.solve returned, kernel matrices included, so it is not pickled.
    """

    kernels: Any = None
    _: KW_ONLY
    normalize: Any = "spherical"
    formulation: Any = "lp"
    p: float | None = None
    C: float = 1.0
    solver: str = "auto"
    tol: float = 1e-6
    options: dict | None = None
    approximation: str | None = None
    rank: int = 500
    warm_start: bool = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.three_d_array = self._precomputed
        tags.input_tags.sparse = not self._precomputed
        return tags

    def set_params(self, **params: Any) -> Any:
        """Set parameters of the estimator, of its formulation and of its loss.

        Parameters
        ----------
        **params
            Parameters by name. `formulation__p` sets p of the formulation: as it never
            changes, another one takes its place.

        Returns
        -------
        self
        """
        inner: dict[str, dict[str, Any]] = {name: {} for name in READ}
        for name in list(params):
            owner, mark, parameter = name.partition("__")
            if mark and owner in inner:
                inner[owner][parameter] = params.pop(name)
        super().set_params(**params)
        for owner, changes in inner.items():
            if changes:
                made = READ[owner](getattr(self, owner))
                super().set_params(**{owner: made.with_(**changes)})
        return self

    def __getstate__(self) -> dict:
        return {k: v for k, v in super().__getstate__().items() if k != "result_"}

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    # ---- before solving -------------------------------------------------------------

    def _checked(self, X: Any, y: Any = "no_validation", **how: Any) -> Any:
        """X, or X and y, as numbers; `how` is for scikit-learn's validate_data."""
        how |= {"dtype": np.float64, "allow_nd": self._precomputed}
        how |= {} if self._precomputed else {"accept_sparse": ["csr", "csc"]}
        if isinstance(X, Mapping) and not hasattr(X, "shape"):
            raise ValueError(
                "X is a dict of views; join them to one matrix, and give the columns "
                "of each view in kernels, such as {'blood': (slice(0, 4), ['linear'])}"
            )
        try:
            found = validate_data(self, self._numbers_in_use(X), y, **how)
        except OverflowError:
            raise ValueError("X or y has a number that is too large") from None
        except ValueError as error:
            if "Input X contains NaN" not in str(error):
                raise
            raise ValueError(
                "X has missing values (NaN); fill them in first, with a pipeline such "
                f"as make_pipeline(SimpleImputer(), {type(self).__name__}())"
            ) from None
        several = isinstance(found, tuple)
        found = (dense(found[0]), *found[1:]) if several else dense(found)
        X = found[0] if isinstance(found, tuple) else found
        square = X.ndim == 3 and (len(X) == X.shape[1] or how.get("reset") is False)
        if self._precomputed and not square:
            raise ValueError(
                f"X has shape {X.shape}; with kernels='precomputed' it is (n, n, M), "
                "samples first: np.moveaxis(K, 0, -1) of an (M, n, n) stack"
            )
        return found

    def _numbers_in_use(self, X: Any) -> Any:
        """A data frame with zeros in columns of text that no kernel uses."""
        if not all(hasattr(X, name) for name in ("dtypes", "columns", "isetitem")):
            return X
        text = {i for i in range(X.shape[1]) if _is_text(X.iloc[:, i])}
        names = [str(name) for name in X.columns]
        if not text or self._precomputed:
            return X
        used = columns_in_use(self.kernels, X.shape[1], names)
        if read := [names[place] for place in sorted(text & used)]:
            raise ValueError(
                f"kernels read columns of text: {', '.join(read[:5])}; encode them as "
                "numbers, such as with OneHotEncoder, or give the kernels other columns"
            )
        X = X.copy(deep=False)
        for place in text - used:
            X.isetitem(place, 0.0)
        return X

    def _sample(self, X: Array, y: Array, sample_weight: Any) -> Sample:
        """Copies merged, samples without weight left out."""
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if np.any(weight < 0):
            raise ValueError("a sample weight is negative; give numbers ≥ 0")
        used = np.flatnonzero(weight)
        if len(used) == 0:
            raise ValueError("all sample weights are zero; give some that are positive")
        place = np.full(len(X), -1)
        if self._precomputed:
            place[used] = np.arange(len(used))
            return Sample(X[np.ix_(used, used)], y[used], weight[used], place)
        rows = np.column_stack([X[used], y[used]])
        kept, first = np.unique(rows, axis=0, return_inverse=True)
        place[used] = np.ravel(first)
        total = np.bincount(place[used], weight[used], len(kept))
        return Sample(kept[:, :-1], kept[:, -1], total, place)

    def _fitted_kernels(self, sample: Sample) -> FittedKernels | LowRankKernels | None:
        """The kernels on the samples; None where X holds their values."""
        if self.approximation is not None:
            check_choice(self.approximation, "approximation", WAYS)
            if self._precomputed:
                raise ValueError("precomputed kernels have no features to approximate")
        if self._precomputed:
            return None
        names = getattr(self, "feature_names_in_", None)
        if self.kernels is None:
            family = usual_family(sample.X, sample.weight)
        else:
            X, weight = sample.X, sample.weight
            family = family_of(self.kernels, X.shape[1], names, X, weight)
        if self.approximation is None:
            return family.fit(sample.X, self.normalize)
        rank = MOST_MONOMIALS if self.approximation == "explicit" else self.rank
        way = LowRankFamily(family, self.approximation, rank)
        return way.fit(sample.X, self.normalize)

    def _problem(
        self, sample: Sample, loss: Loss, y: Array
    ) -> tuple[FittedKernels | LowRankKernels | None, Problem]:
        """The kernels on the samples, and the problem with them."""
        fitted = self._fitted_kernels(sample)
        make = self._options().get("stack", _stack)
        stack: Any = np.moveaxis(sample.X, -1, 0) if fitted is None else make(fitted)
        formulation = formulation_from(self.formulation, self.p)
        C = real_number(self.C, "C", "a positive number") * sample.weight
        bias = getattr(self, "bias", False)
        same = np.ptp(C) == 0
        return fitted, Problem(stack, y, loss, formulation, C[0] if same else C, bias)

    def _solved(self, problems: list[Problem]) -> list[Result]:
        """Each problem solved, with `warm_start` from the last solution."""
        options = {"start": None} | self._solve_options()
        last = getattr(self, "result_", None)
        starts = list(last) if isinstance(last, list) else [last]
        if not self.warm_start or not _fit_together(starts, problems):
            return [solve(one, **options) for one in problems]
        pairs = zip(problems, starts)
        return [solve(one, **(options | {"start": start})) for one, start in pairs]

    def _options(self) -> dict[str, Any]:
        if not isinstance(self.options, dict | None):
            raise ValueError(f"options = {short(self.options)}; give a dict, or None")
        return self.options or {}

    def _solve_options(self) -> dict[str, Any]:
        found = {"solver": self.solver, "tol": self.tol, **self._options()}
        found.pop("stack", None)
        return found

    # ---- after solving --------------------------------------------------------------

    def _store(self, results: list[Result], sample: Sample, fitted: Any) -> None:
        """Keep what prediction needs, and the attributes of the docstring."""
        bias = np.concatenate([np.ravel(np.asarray(r.bias, float)) for r in results])
        self.n_iter_ = max(1, *(int(r.trace.last("iteration")) + 1 for r in results))
        self.ranks_ = self.lost_trace_ = None
        if isinstance(fitted, LowRankKernels):
            self.ranks_, self.lost_trace_ = fitted.ranks, fitted.lost_trace
            w = np.concatenate([r.features for r in results], axis=1)
            ends = zip(fitted.ends[:-1], fitted.ends[1:])
            used = [bool(np.any(w[i:j])) for i, j in ends]
            active = np.flatnonzero(used)
            w = w[np.repeat(used, fitted.ranks)]
            bias = np.broadcast_to(bias, w.shape[1:])
            self._decision: Any = FeatureDecision(w, bias, fitted.compact(active))
            self.kernel_names_, self.n_active_kernels_ = (
                self._named(fitted),
                len(active),
            )
            self._describe(results)
            return
        self._decision = decision_of(results, bias, sample, fitted)
        active, M = self._decision.active, results[0].problem.grams.M
        self.kernel_names_ = (
            [f"kernel {m}" for m in range(M)] if fitted is None else self._named(fitted)
        )
        self.n_active_kernels_ = len(active)
        self._describe(results)

    def _named(self, fitted: Any) -> list[str]:
        return _with_names(fitted.names, getattr(self, "feature_names_in_", None))

    def _describe(self, results: list[Result]) -> None:
        bounds = tuple(Bounds.of(r) for r in results)
        weights = np.array([r.weights for r in results])
        several = len(results) > 1
        self.result_: Any = results if several else results[0]
        self.certificate_: Any = bounds if several else bounds[0]
        self.weights_ = weights if several else weights[0]
        for result in results:
            if not result.converged:
                gap, said = result.relative_gap, STATUS[result.status]
                warnings.warn(
                    f"{type(self).__name__} ended at a relative gap of {gap:.1e}, not "
                    f"tol = {self.tol:g}: {said}; raise tol, or the limits in options",
                    ConvergenceWarning,
                    stacklevel=4,
                )

    def _outputs(self, X: Any) -> Array:
        """f of new points, (n, outputs)."""
        check_is_fitted(self, "_decision")
        return self._decision(self._checked(X, reset=False))


def share_parameters(estimator: type[Estimator]) -> type[Estimator]:
    """Fill in {name} and {first to last} with entries of MKLEstimator's docstring."""
    shared = inspect.cleandoc(MKLEstimator.__doc__ or "")
    entries = re.findall(r"^(\w+)( : .*(?:\n    .*)*)", shared, re.MULTILINE)
    names = [name for name, _ in entries]

    def filled(found: re.Match[str]) -> str:
        first, last = names.index(found[1]), names.index(found[2] or found[1])
        return "\n".join(name + rest for name, rest in entries[first : last + 1])

    text = inspect.cleandoc(estimator.__doc__ or "")
    estimator.__doc__ = re.sub(r"\{(\w+)(?: to (\w+))?\}", filled, text)
    return estimator
