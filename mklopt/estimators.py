"""scikit-learn estimators: MKL with a certificate, in pipelines and grid searches.

    MKLClassifier(["gaussian(1)", "linear"], p=4/3, C=10).fit(X, y).predict(X_new)
    MKLRegressor(loss="eps_insensitive")     MKLOneClass(contamination=0.1)
    MKLClassifierCV(Cs=7)                    # the path of C, warm-started, in each fold

What is solved is C Σ_i s_i V(f_i, y_i) + Ω(‖w_1‖, …, ‖w_M‖), s_i being the sample
weights. Samples that are equal in X and y are solved as one with their weights added,
and those of weight 0 are left out: a weight of 2 and a copy are the same problem.

kernels: None for the usual family (kernel_lists.py), a list of strings, functions and
    (columns, kernel) pairs, a family of mklopt.kernels, or "precomputed". A precomputed
    X is (n, n_train, M), X[i, j, m] = k_m(x_i, x_j), that is np.moveaxis(K, 0, -1) of
    the (M, n, n_train) stack K: samples come first, so that cross-validation can slice
    both of their axes (it does so for estimators that say they are pairwise).
normalize: how kernels are normalized, see mklopt.kernels ("spherical": k(x, x) = 1);
    learned from the samples, whatever their weights
formulation: an instance, or text such as "lp", "group_lasso", "tikhonov:p=1.5,mu=2"
p: replaces the p of the formulation, for grid searches
loss: a name or an instance, as in mklopt.Problem
C: the weight of the loss;  bias: whether f has a constant term
solver, tol: as in mklopt.solve;  options: its other arguments, {"time_limit": 10}

After fit: `weights_`, one per kernel (a row per class from one against the rest);
`n_active_kernels_`, those with coefficients, and only they are evaluated at prediction;
`kernel_names_`; `certificate_`, the bounds that enclose the optimum (a tuple of them,
one per class, from one against the rest); `n_iter_`; and `result_`, all that
mklopt.solve returned, kernel matrices included, and therefore not pickled.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    OutlierMixin,
    RegressorMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from .formulations import Loss, losses_by_name
from .kernel_lists import family_of, usual_family
from .kernels import FittedKernels
from .multiclass import one_vs_rest
from .paths import path
from .problem import Problem
from .result import STATUS, Result
from .run import solve
from .specs import formulation_from

Array = np.ndarray
JOINT = {"hinge": "multiclass_hinge", "logistic": "multinomial"}  # of several classes
PROBABLE = {"logistic", "multinomial"}  # losses that are negative log-likelihoods


@dataclass(frozen=True)
class Bounds:
    """lower ≤ f* ≤ upper in exact arithmetic, under the assumptions listed."""

    lower: float
    upper: float
    relative_gap: float
    status: str
    assumptions: tuple[str, ...]

    @classmethod
    def of(cls, result: Result) -> Bounds:
        found = result.certificate
        ends = (found.lower, found.upper, found.relative_gap)
        return cls(*ends, result.status, tuple(found.assumptions))

    def __str__(self) -> str:
        return (
            f"{self.lower:.10g} ≤ f* ≤ {self.upper:.10g}, relative gap "
            f"{self.relative_gap:.1e}, {self.status}"
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
        return np.concatenate([self._of(block) for block in self._blocks(X)])

    def _of(self, K: Array) -> Array:
        f = np.tile(self.bias, (K.shape[1], 1))
        for kernel, part in zip(K, self.coefficients):
            f += kernel @ part
        return f

    def _blocks(self, X: Array) -> Iterator[Array]:
        if self.kernels is not None and len(self.active):
            yield from self.kernels.cross_blocks(X)
        elif self.kernels is not None:
            yield np.empty((0, len(X), 0))
        else:
            yield np.moveaxis(X[:, :, self.active][:, self.columns], -1, 0)


def _keep(estimator: BaseEstimator, given: dict[str, Any]) -> None:
    """Parameters as they are given: scikit-learn wants nothing else of __init__."""
    for name, value in given.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)


class _MKL(BaseEstimator):
    """What all estimators share: kernels, formulation, C, and one certified solve."""

    kernels: Any
    normalize: Any
    formulation: Any
    p: float | None
    C: float
    solver: str
    tol: float
    options: dict | None
    result_: Any
    certificate_: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._given
        tags.input_tags.three_d_array = self._given
        return tags

    def __getstate__(self) -> dict:
        return {k: v for k, v in super().__getstate__().items() if k != "result_"}

    @property
    def _given(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    # ---- before solving -------------------------------------------------------------

    def _checked(self, X: Any, y: Any = "no_validation", **how: Any) -> Any:
        """X, or X and y, as numbers; `how` is for scikit-learn's validate_data."""
        how |= {"dtype": np.float64, "allow_nd": self._given}
        X, *rest = _as_tuple(validate_data(self, X, y, **how))
        square = X.ndim == 3 and (len(X) == X.shape[1] or how.get("reset") is False)
        if self._given and not square:
            raise ValueError(
                f"X has shape {X.shape}; with kernels='precomputed' it is (n, n, M), "
                "samples first: np.moveaxis(K, 0, -1) of an (M, n, n) stack"
            )
        return (X, *rest) if rest else X

    def _sample(self, X: Array, y: Array, sample_weight: Any) -> Sample:
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if np.any(weight < 0):
            raise ValueError("a sample weight is negative; give numbers ≥ 0")
        used = np.flatnonzero(weight)
        if len(used) == 0:
            raise ValueError("all sample weights are zero; give some that are positive")
        place = np.full(len(X), -1)
        if self._given:
            place[used] = np.arange(len(used))
            return Sample(X[np.ix_(used, used)], y[used], weight[used], place)
        rows = np.column_stack([X[used], y[used]])
        kept, first = np.unique(rows, axis=0, return_inverse=True)
        place[used] = np.ravel(first)
        total = np.bincount(place[used], weight[used], len(kept))
        return Sample(kept[:, :-1], kept[:, -1], total, place)

    def _fitted_kernels(self, sample: Sample) -> FittedKernels | None:
        """The kernels on the samples; None where X holds their values."""
        if self._given:
            return None
        names = getattr(self, "feature_names_in_", None)
        if self.kernels is None:
            family = usual_family(sample.X, sample.weight)
        else:
            family = family_of(self.kernels, sample.X.shape[1], names)
        return family.fit(sample.X, self.normalize)

    def _problem(self, sample: Sample, fitted: Any, loss: Loss, y: Array) -> Problem:
        stack: Any = np.moveaxis(sample.X, -1, 0) if fitted is None else fitted.grams()
        formulation = formulation_from(self.formulation, self.p)
        C = float(self.C) * sample.weight
        same = np.ptp(C) == 0
        bias = getattr(self, "bias", False)
        return Problem(stack, y, loss, formulation, C[0] if same else C, bias)

    def _solve_options(self) -> dict[str, Any]:
        return {"solver": self.solver, "tol": self.tol, **(self.options or {})}

    # ---- after solving --------------------------------------------------------------

    def _settle(self, results: list[Result], sample: Sample, fitted: Any) -> None:
        """Keep what prediction needs, and what people want to know."""
        parts = [r.certificate.expansion for r in results]
        M, n = parts[0].shape[:2]
        B = np.concatenate([part.reshape(M, n, -1) for part in parts], axis=2)
        bias = np.concatenate([np.ravel(np.asarray(r.bias, float)) for r in results])
        bias = np.broadcast_to(bias, B.shape[2:])
        active = np.flatnonzero(np.any(B != 0, axis=(1, 2)))
        kernels = None if fitted is None else fitted.subset(active)
        columns = np.flatnonzero(sample.place >= 0)
        self._decision = Decision(B[active], bias, active, columns, kernels)
        self.kernel_names_ = (
            [f"kernel {m}" for m in range(M)] if fitted is None else fitted.names
        )
        self.n_active_kernels_ = len(active)
        self.n_iter_ = max(1, *(int(r.trace.last("iteration")) + 1 for r in results))
        self._describe(results)

    def _describe(self, results: list[Result]) -> None:
        bounds = tuple(Bounds.of(r) for r in results)
        several = len(results) > 1
        self.result_ = results if several else results[0]
        self.certificate_ = bounds if several else bounds[0]
        weights = np.array([r.weights for r in results])
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
        check_is_fitted(self, "_decision")
        return self._decision(self._checked(X, reset=False))


def _as_tuple(found: Any) -> tuple:
    return found if isinstance(found, tuple) else (found,)


def _loss(given: Any) -> Loss:
    known = losses_by_name()
    if isinstance(given, str) and given in known:
        return known[given]()
    if isinstance(given, Loss):
        return given
    raise ValueError(f"loss = {given!r}; choose one of {', '.join(known)}")


def _probable(self: Any) -> bool:
    """Whether the loss of an estimator says how likely a class is."""
    name = getattr(self.loss, "name", self.loss)
    if name in PROBABLE:
        return True
    raise AttributeError(
        f"predict_proba needs loss='logistic'; loss = {self.loss!r} has no likelihood"
    )


class MKLClassifier(ClassifierMixin, _MKL):
    """Multiple kernel learning for two or more classes, with any labels.

    See mklopt.estimators for the parameters that all estimators share.

    loss: "hinge", "logistic", or another loss of −1/+1 labels for one against the rest
    multi_class: "joint", all classes with one set of kernel weights, or "ovr", a binary
        problem with weights of its own for each class; two classes are one problem
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        normalize: Any = "spherical",
        formulation: Any = "lp",
        p: float | None = None,
        loss: Any = "hinge",
        C: float = 1.0,
        bias: bool = True,
        multi_class: str = "joint",
        solver: str = "auto",
        tol: float = 1e-6,
        options: dict | None = None,
    ):
        _keep(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MKLClassifier:
        X, y = self._labelled(X, y)
        sample, fitted, problem = self._task(X, y, sample_weight)
        self._settle(self._solved(problem), sample, fitted)
        return self

    def _labelled(self, X: Any, y: Any) -> tuple[Array, Array]:
        X, y = self._checked(X, y)
        check_classification_targets(y)
        return X, y

    def _task(
        self, X: Array, y: Array, sample_weight: Any
    ) -> tuple[Sample, Any, Problem]:
        """The samples, the kernels on them and the problem; sets classes_."""
        _, places = np.unique(y, return_inverse=True)
        sample = self._sample(X, places, sample_weight)
        used = np.unique(sample.y).astype(int)
        self.classes_ = np.unique(y)[used]
        if len(used) < 2:
            raise ValueError(
                f"y has one class, {self.classes_[0]}; a classifier needs at least 2 "
                "classes"
            )
        labels = np.searchsorted(used, sample.y)
        fitted = self._fitted_kernels(sample)
        loss, labels = self._coded(labels)
        return sample, fitted, self._problem(sample, fitted, loss, labels)

    def _coded(self, labels: Array) -> tuple[Loss, Array]:
        """The loss for this number of classes, and labels as it needs them."""
        loss = _loss(self.loss)
        if self.multi_class not in ("joint", "ovr"):
            raise ValueError(
                f"multi_class = {self.multi_class!r}; choose 'joint' or 'ovr'"
            )
        if loss.labels == "classes" or (len(self.classes_) > 2 and self._rest):
            joint = loss if loss.labels == "classes" else _loss("multiclass_hinge")
            return joint, labels
        if len(self.classes_) == 2:
            return loss, 2.0 * labels - 1
        if loss.name not in JOINT:
            raise ValueError(
                f"loss = {loss.name!r} has no joint form for {len(self.classes_)} "
                f"classes; choose one of {', '.join(JOINT)}, or multi_class='ovr'"
            )
        return _loss(JOINT[loss.name]), labels

    @property
    def _rest(self) -> bool:
        return self.multi_class == "ovr" and _loss(self.loss).labels != "classes"

    def _solved(self, problem: Problem) -> list[Result]:
        if len(self.classes_) > 2 and self._rest:
            loss = _loss(self.loss)
            return [*one_vs_rest(problem, loss=loss, **self._solve_options()).results]
        return [solve(problem, **self._solve_options())]

    def decision_function(self, X: Any) -> Array:
        """f: one number per sample for two classes, one per class for more."""
        f = self._outputs(X)
        if len(self.classes_) > 2:
            return f
        return f[:, 0] if f.shape[1] == 1 else f[:, 1] - f[:, 0]

    def predict(self, X: Any) -> Array:
        f = self.decision_function(X)
        places = (f > 0).astype(int) if f.ndim == 1 else np.argmax(f, axis=1)
        return self.classes_[places]

    @available_if(_probable)
    def predict_proba(self, X: Any) -> Array:
        """What the logistic or multinomial model says of each class."""
        f = self.decision_function(X)
        if f.ndim == 1:
            return np.column_stack([expit(-f), expit(f)])
        if not self._rest:
            return softmax(f, axis=1)
        alone = expit(f)
        return alone / np.maximum(alone.sum(axis=1, keepdims=True), 1e-300)

    @available_if(_probable)
    def predict_log_proba(self, X: Any) -> Array:
        return np.log(self.predict_proba(X))


class MKLClassifierCV(MKLClassifier):
    """MKLClassifier with C chosen by cross-validation along a warm-started path.

    In each fold the kernels are computed once, and each C starts from the solution of
    the one before it: the same scores as a grid search, in less time.

    Cs: values of C, or how many of them from 1e-3 to 1e3
    cv, scoring, n_jobs: as in scikit-learn; scores are weighted when samples are

    After fit also `C_`, the smallest C with the best mean score; `Cs_`; and `scores_`,
    (folds, Cs).
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        normalize: Any = "spherical",
        formulation: Any = "lp",
        p: float | None = None,
        loss: Any = "hinge",
        Cs: Any = 10,
        cv: Any = None,
        scoring: Any = None,
        bias: bool = True,
        multi_class: str = "joint",
        solver: str = "auto",
        tol: float = 1e-6,
        options: dict | None = None,
        n_jobs: int | None = None,
    ):
        _keep(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MKLClassifierCV:
        X, y = self._labelled(X, y)
        self.Cs_ = _values(self.Cs)
        folds = list(check_cv(self.cv, y, classifier=True).split(X, y))
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        scores = Parallel(n_jobs=self.n_jobs)(
            delayed(_path_scores)(self._at(1.0), self.Cs_, self.scoring, fold,
                                  X, y, sample_weight)
            for fold in folds
        )  # fmt: skip
        self.scores_ = np.array(scores)
        self.C_ = float(self.Cs_[np.argmax(np.mean(self.scores_, axis=0))])
        best = self._at(self.C_)
        task = best._task(X, y, sample_weight)
        self.classes_ = best.classes_
        self._settle(best._solved(task[2]), *task[:2])
        return self

    def _at(self, C: float) -> MKLClassifier:
        """The estimator for one C."""
        same = MKLClassifier().get_params(deep=False)
        chosen = {k: getattr(self, k) for k in same if k != "C"}
        found = MKLClassifier(**chosen, C=C)
        if hasattr(self, "feature_names_in_"):
            found.feature_names_in_ = self.feature_names_in_
        return found


def _values(Cs: Any) -> Array:
    if isinstance(Cs, int | np.integer) and not isinstance(Cs, bool) and Cs > 0:
        return np.geomspace(1e-3, 1e3, Cs)
    found = np.unique(np.asarray(Cs, float)) if np.ndim(Cs) == 1 else np.empty(0)
    if not len(found) or not np.all(np.isfinite(found) & (found > 0)):
        raise ValueError(f"Cs = {Cs!r}; give a number of values, or positive numbers")
    return found


def _path_scores(
    model: MKLClassifier, Cs: Array, scoring: Any, fold: tuple, X: Array, y: Array,
    sample_weight: Any,
) -> list[float]:  # fmt: skip
    """The score of each C on the samples held out, from kernels computed once."""
    train, test = fold
    rows = np.ix_(train, train) if model._given else train
    weight = None if sample_weight is None else sample_weight[train]
    sample, fitted, problem = model._task(X[rows], y[train], weight)
    if fitted is None:
        held_out = X[np.ix_(test, train[sample.place >= 0])]
    else:
        held_out = np.moveaxis(fitted.cross(X[test]), 0, -1)
    weighing = {} if sample_weight is None else {"sample_weight": sample_weight[test]}
    scorer = check_scoring(model, scoring)
    given = Sample(held_out, sample.y, sample.weight, np.arange(len(sample.y)))
    model.kernels = "precomputed"  # from here on: its kernels are in held_out
    model.n_features_in_ = len(sample.y)
    scores = []
    for results in _along(model, problem, Cs):
        model._settle(results, given, None)
        scores.append(float(scorer(model, held_out, y[test], **weighing)))
    return scores


def _along(model: MKLClassifier, problem: Problem, Cs: Array) -> Iterator[list[Result]]:
    """The results of each C, one against the rest or in one problem."""
    scale = float(np.max(problem.costs))
    problems = [problem]
    if len(model.classes_) > 2 and model._rest:
        loss, k = _loss(model.loss), len(model.classes_)
        signs = [np.where(problem.y == c, 1.0, -1.0) for c in range(k)]
        problems = [problem.with_(y=sign, loss=loss) for sign in signs]
    paths = [path(one, scale * Cs, **model._solve_options()) for one in problems]
    return (list(results) for results in zip(*paths))


class MKLRegressor(RegressorMixin, _MKL):
    """Multiple kernel learning for real targets.

    See mklopt.estimators for the parameters that all estimators share.

    loss: "squared", "eps_insensitive", "huber", "quantile", or an instance with its
        parameters, such as EpsInsensitive(0.01)
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        normalize: Any = "spherical",
        formulation: Any = "lp",
        p: float | None = None,
        loss: Any = "squared",
        C: float = 1.0,
        bias: bool = True,
        solver: str = "auto",
        tol: float = 1e-6,
        options: dict | None = None,
    ):
        _keep(self, locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MKLRegressor:
        X, y = self._checked(X, y, y_numeric=True)
        loss = _loss(self.loss)
        if loss.labels != "real":
            raise ValueError(
                f"loss = {loss.name!r} is for classes; choose 'squared', "
                "'eps_insensitive', 'huber' or 'quantile'"
            )
        sample = self._sample(X, np.asarray(y, float), sample_weight)
        fitted = self._fitted_kernels(sample)
        problem = self._problem(sample, fitted, loss, sample.y)
        self._settle([solve(problem, **self._solve_options())], sample, fitted)
        return self

    def predict(self, X: Any) -> Array:
        return self._outputs(X)[:, 0]


def _lower_end(f: Array, weight: Array, share: float) -> float:
    """The largest of the values f below which lies at most this share of the weight."""
    order = np.argsort(f, kind="stable")
    below = np.cumsum(weight[order])
    return float(f[order][np.argmax(below > share * below[-1] * (1 + 1e-12))])


class MKLOneClass(OutlierMixin, _MKL):
    """The smallest Ω(‖w_1‖, …, ‖w_M‖) with f ≥ 1 on most samples: what is unusual?

    See mklopt.estimators for the parameters that all estimators share. There is no
    bias: with one the problem is trivial.

    contamination: the share of outliers among the samples, which sets `offset_`, or
        "auto": a sample is an outlier where f < 1 − √tol (at f = 1 lies the margin,
        and the samples on it are found within √tol)

    After fit also `nu_`, Σα / ΣC: at most this share of the weight lies below f = 1.
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        normalize: Any = "spherical",
        formulation: Any = "lp",
        p: float | None = None,
        C: float = 0.1,
        contamination: Any = "auto",
        solver: str = "auto",
        tol: float = 1e-6,
        options: dict | None = None,
    ):
        _keep(self, locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MKLOneClass:
        X = self._checked(X)
        share = self._share()
        sample = self._sample(X, np.ones(len(X)), sample_weight)
        fitted = self._fitted_kernels(sample)
        loss, ones = _loss("one_class"), np.ones(len(sample.y))
        problem = self._problem(sample, fitted, loss, ones)
        result = solve(problem, **self._solve_options())
        self._settle([result], sample, fitted)
        self.nu_ = float(np.sum(result.dual) / np.sum(problem.costs))
        self.offset_ = 1.0 - float(np.sqrt(self.tol))
        if share is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
            end = _lower_end(self._decision(X)[:, 0], weight, share)
            # Samples on the margin are equal but for rounding: all of them are in.
            self.offset_ = end - 1e-8 * max(1.0, abs(end))
        return self

    def _share(self) -> float | None:
        if isinstance(self.contamination, str) and self.contamination == "auto":
            return None
        number = isinstance(self.contamination, float | int | np.number)
        if not number or not 0 < self.contamination <= 0.5:
            raise ValueError(
                f"contamination = {self.contamination!r}; give 'auto', or a share "
                "between 0 and 0.5"
            )
        return float(self.contamination)

    def score_samples(self, X: Any) -> Array:
        """f: the larger, the more usual."""
        return self._outputs(X)[:, 0]

    def decision_function(self, X: Any) -> Array:
        """f − offset_: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Array:
        """+1 for usual samples, −1 for outliers."""
        return np.where(self.decision_function(X) >= 0, 1, -1)
