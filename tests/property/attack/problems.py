"""Random problems over the whole range that mklopt accepts, from (seed, index) alone.

All formulations and losses with parameters of every NumPy type; kernels stored packed,
full, in float32, as factors (with and without points in feature space), in a file on
disk, computed on demand, streamed from a family, or built from one, exactly or with
low-rank features; C from denormal numbers to 1e300 and kernels scaled from 1e-300 to
1e300 in a share of the problems, ordinary in the rest.

Kernels are L Lᵀ with L on a dyadic grid, times a power of two: their floats are exact
and positive semi-definite. Factors, and kernels that are not quite symmetric, have all
digits (the latter are positive definite by far). Kernels of families are computed by
mklopt from points (points.py): their floats are the kernels.

A case knows the same problem twice, for mklopt (`build`) and for the evaluator
(`exact`); these two share nothing but the floats drawn here.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from tests.property.attack import exact
from tests.property.attack.exact import Exact, Kernels
from tests.property.attack.points import Recipe, a_recipe

Array = np.ndarray
Rng = np.random.Generator
INF = math.inf
GRID = 2.0**-7  # of factors: entries of K are then exact in float32, too
KINDS = ("full", "low", "one", "copy", "zero", "offset")  # offset: αᵀKα cancels

REAL = ("squared", "eps_insensitive", "huber", "quantile")
BINARY = ("hinge", "logistic")
CLASSES = ("multiclass_hinge", "multinomial")
DECLARED = ("steep_hinge", "squared_hinge")
STORAGES = {  # and their shares
    "packed": 20, "full": 12, "float32": 8, "lazy": 6, "skew": 6,
    "factors": 18, "disk": 12, "streamed": 10, "built": 4, "low rank": 4,
}  # fmt: skip
PROVED = {  # how often verify_psd is called first
    "packed": 0.25, "full": 0.25, "skew": 0.25, "disk": 0.25,
    "streamed": 0.7, "built": 0.7,
}  # fmt: skip
FACTORED = ("factors", "low rank")
OF_POINTS = ("streamed", "built", "low rank")
FLOATS = (float, np.float16, np.float32, np.float64, np.longdouble, Fraction, Decimal)
INTEGERS = (int, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.uint64)


def pick(rng: Rng, choices: Any, shares: Any = None) -> Any:
    """One of them."""
    if shares is not None:
        shares = np.array(shares, float) / np.sum(shares)
    return choices[int(rng.choice(len(choices), p=shares))]


# ---- numbers of every type -----------------------------------------------------------


def dressed(rng: Rng, value: float) -> Any:
    """The number in a random type that can hold about this value."""
    if rng.random() < 0.4:
        return float(value)
    if math.isfinite(value) and value == int(value) and 0 <= value <= 100:
        kind = pick(rng, (*FLOATS, *INTEGERS))
        return kind(int(value)) if kind in INTEGERS else kind(value)
    kind = pick(rng, FLOATS)
    if kind is np.float16 and (math.isfinite(value) and not 1e-4 < abs(value) < 6e4):
        kind = np.float32
    if kind is np.float32 and (math.isfinite(value) and not 1e-37 < abs(value) < 1e38):
        kind = np.longdouble
    if kind is Fraction and not math.isfinite(value):
        kind = float
    if kind is np.longdouble and math.isfinite(value):
        return np.longdouble(value) * (1 + np.longdouble(2) ** -60)
    return kind(value)


def dressed_all(rng: Rng, values: Array) -> Any:
    """Numbers as an array of some type, or a list of mixed types."""
    how = rng.integers(0, 4)
    if how == 0:
        return [dressed(rng, float(x)) for x in values]
    if how == 1:
        return tuple(float(x) for x in values)
    safe = np.all((values == 0) | ((values > 1e-4) & (values < 6e4)))
    kinds = [np.float64, np.longdouble]
    if safe:
        kinds += [np.float32, np.float16]
    return values.astype(pick(rng, kinds))


def plain(given: Any) -> Any:
    """What a parameter of any type means: the nearest float64."""
    if isinstance(given, dict):
        return {k: plain(v) for k, v in given.items()}
    if isinstance(given, (list, tuple, np.ndarray)):
        return [plain(x) for x in given]
    return float(given)


def shown(given: Any) -> str:
    """A parameter with its type, for a report."""
    if isinstance(given, np.ndarray):
        return (
            f"{given.dtype.name} array {np.array(given, float).ravel()[:4].tolist()} …"
        )
    if isinstance(given, (list, tuple)):
        rest = ", …" if len(given) > 4 else ""
        return "[" + ", ".join(map(shown, given[:4])) + rest + "]"
    if isinstance(given, dict):
        return ", ".join(f"{k}={shown(v)}" for k, v in given.items())
    if type(given) in (float, int, bool, str):
        return repr(given)
    return f"{type(given).__name__}({given})"


# ---- parameters ----------------------------------------------------------------------


def an_exponent(rng: Rng, largest: float = INF) -> float:
    """An exponent ≥ 1: an end, next to an end, ordinary, or far out."""
    how = rng.random()
    if how < 0.35:
        value = pick(rng, (1.0, 1.5, 2.0, 3.0, 4.0, INF))
    elif how < 0.85:
        value = float(np.round(rng.uniform(1, 4), int(rng.integers(1, 9))))
    elif how < 0.93:
        value = 1 + 10.0 ** rng.uniform(-15.6, -1)
    else:
        value = 10.0 ** rng.uniform(0.5, 6)
    return min(value, largest)


def some_groups(rng: Rng, M: int) -> list[list[int]]:
    """A partition of the kernels."""
    owner = rng.integers(0, 3, size=M)
    return [np.flatnonzero(owner == j).tolist() for j in np.unique(owner)]


def a_scale(rng: Rng) -> float:
    """A positive parameter, mostly ordinary."""
    return 10.0 ** (rng.uniform(-2, 2) if rng.random() < 0.85 else rng.uniform(-30, 30))


def positive_definite(rng: Rng, M: int) -> Array:
    """Random E ≻ 0; half of them with entries ≥ 0."""
    A = rng.normal(size=(M, M + 2))
    A = np.abs(A) if rng.random() < 0.5 else A
    return np.asarray(A @ A.T / M + 0.1 * np.eye(M))


def _within(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)


PARAMETERS: dict[str, Callable[[Rng, int], dict]] = {
    "LpNorm": lambda rng, M: {"p": dressed(rng, an_exponent(rng))},
    "Ivanov": lambda rng, M: {"p": dressed(rng, an_exponent(rng))},
    "WeightedLpNorm": lambda rng, M: {
        "p": dressed(rng, an_exponent(rng)),
        "prior": dressed_all(rng, np.array([a_scale(rng) for _ in range(M)])),
    },
    "BlockNorm": lambda rng, M: {"q": dressed(rng, an_exponent(rng))},
    "BlockL1": lambda rng, M: {},
    "GroupLasso": lambda rng, M: {},
    "BlockPower": lambda rng, M: {"q": dressed(rng, min(an_exponent(rng), 1e4))},
    "ElasticNet": lambda rng, M: {
        "l1_ratio": dressed(rng, pick(rng, (0.0, 1.0, rng.random(), rng.random())))
    },
    "FixedWeights": lambda rng, M: {
        "theta": dressed_all(
            rng, np.array([a_scale(rng) * (rng.random() < 0.8) for _ in range(M)])
        )
    },
    "Tikhonov": lambda rng, M: {
        "p": dressed(rng, an_exponent(rng)),
        "mu": dressed(rng, a_scale(rng)),
    },
    "VSKL": lambda rng, M: {
        "groups": some_groups(rng, M),
        "q": dressed(rng, an_exponent(rng)),
    },
    "Composite": lambda rng, M: {
        "groups": some_groups(rng, M),
        "r": dressed(rng, an_exponent(rng, 2.0)),
        "s": dressed(rng, an_exponent(rng, 2.0)),
    },
    "NonIsotropic": lambda rng, M: {"E": positive_definite(rng, M)},
    "SparseBlockNorm": lambda rng, M: {
        "q": dressed(rng, _within(an_exponent(rng), 1.001, 2.0)),
        "a": dressed(rng, pick(rng, (0.0, a_scale(rng), a_scale(rng)))),
    },
    "owl": lambda rng, M: {
        "lam": dressed_all(rng, -np.sort(-rng.uniform(0.1, 2, size=M)))
    },
    "k_support": lambda rng, M: {"k": dressed(rng, float(rng.integers(1, M + 1)))},
    "sparse_group": lambda rng, M: {
        "groups": some_groups(rng, M),
        "a": dressed(rng, float(rng.uniform(0.05, 0.95))),
    },
    "latent_groups": lambda rng, M: {
        "groups": [*some_groups(rng, M), sorted({0, M - 1})]
    },
    "log_barrier": lambda rng, M: {
        "mu": dressed(rng, float(rng.uniform(0.05, 1))),
        "c": dressed(rng, float(rng.uniform(0.5, 2))),
    },
    "prior_l1": lambda rng, M: {"prior": dressed_all(rng, rng.uniform(0.2, 5, size=M))},
    "tree": lambda rng, M: {
        "groups": [list(range(k, M)) for k in range(M)],
        "lam": float(rng.uniform(0.1, 2)),
    },
    "smooth_elastic": lambda rng, M: {"kappa": float(rng.uniform(0.05, 2))},
    "budget": lambda rng, M: {},
    "plain_sum": lambda rng, M: {},
    "twice": lambda rng, M: {},
}
CLOSED = tuple(PARAMETERS)[:14]
DERIVED = tuple(PARAMETERS)[14:]
LOSS_PARAMETERS: dict[str, Callable[[Rng], dict]] = {
    "eps_insensitive": lambda rng: {
        "eps": dressed(rng, pick(rng, (0.0, rng.random(), a_scale(rng))))
    },
    "huber": lambda rng: {"delta": dressed(rng, a_scale(rng))},
    "quantile": lambda rng: {
        "tau": dressed(rng, pick(rng, (0.0, 0.5, 1.0, rng.random(), rng.random())))
    },
}


# ---- a case --------------------------------------------------------------------------


@dataclass
class Case:
    """One problem and what to do with it."""

    seed: int
    index: int
    M: int
    n: int
    storage: str
    arrays: list[Array] = field(repr=False)  # kernels, or factors
    y: Any
    C: Any
    loss: tuple[str, dict]
    penalty: tuple[str, dict]
    bias: bool
    extreme: str  # which numbers are far from ordinary
    action: str
    solver: str
    tol: Any
    proved: bool  # call verify_psd first
    again: bool  # solve a second time for more points
    seed_of_run: int
    recipe: Recipe | None = field(default=None, repr=False)
    in_feature_space: bool = False  # factors are not made into n × n matrices
    small_memory: bool = False  # of a disk or a stream: hardly anything is kept
    folder: str = "."  # of files on disk

    def __str__(self) -> str:
        return (
            f"({self.seed}, {self.index}) {self.action} {self.solver} "
            f"tol={shown(self.tol)} {self.loss[0]}({shown(self.loss[1])}) "
            f"{self.penalty[0]}({shown(self.penalty[1])}) n={self.n} M={self.M} "
            f"{self.storage}{' in feature space' if self.in_feature_space else ''}"
            f"{' verified' if self.proved else ''} "
            f"C={_brief(self.C)} bias={self.bias} {self.extreme}"
        )

    def plainly(self) -> Case:
        """The same case with every parameter as a float."""
        penalty = self.penalty[0], _meant(self.penalty[1])
        if penalty[0] == "k_support":
            penalty[1]["k"] = int(penalty[1]["k"])
        loss = self.loss[0], _meant(self.loss[1])
        C, tol = plain(self.C), float(self.tol)
        return replace(self, penalty=penalty, loss=loss, C=C, tol=tol)

    def with_penalty(self, name: str, parameters: dict, M: int) -> Case:
        """The same case with another Ω over M kernels."""
        return replace(self, penalty=(name, parameters), M=M)

    @property
    def exact_penalty(self) -> dict:
        """The parameters of Ω as the evaluator takes them."""
        return _meant(self.penalty[1])

    # -- for mklopt --

    def build(self) -> Any:
        """The problem as a user of mklopt makes it."""
        import mklopt

        grams = self._stack(mklopt)
        if self.proved:
            grams.verify_psd()
        loss, penalty = _loss(*self.loss), _penalty(*self.penalty, self.M)
        return mklopt.Problem(grams, self.y, loss, penalty, self.C, self.bias)

    def _stack(self, mklopt: Any) -> Any:
        if self.recipe is not None:
            return self._of_points(mklopt, self.recipe)
        if self.storage == "factors":
            return mklopt.GramStack.from_factors(self.arrays)
        if self.storage == "lazy":
            X = np.hstack(self.arrays)
            ends = np.cumsum([0, *(L.shape[1] for L in self.arrays)])
            kernels = [_linear(a, b) for a, b in pairwise(ends)]
            return mklopt.LazyStack(X, kernels, cache="1MB")
        K = np.stack(self.arrays)
        if self.storage == "disk":
            return self._on_disk(mklopt, K)
        if self.storage == "float32":
            return mklopt.GramStack(K, dtype="float32")
        storage = "full" if self.storage == "full" else "packed"
        return mklopt.GramStack(K, storage=storage)

    def _of_points(self, mklopt: Any, recipe: Recipe) -> Any:
        if self.storage == "streamed":
            cache = 0 if self.small_memory else "1MB"
            return mklopt.LazyStack.of(recipe.fitted(), cache)
        if self.storage == "built":
            return recipe.fitted().grams()
        return recipe.low_rank().grams()

    def _on_disk(self, mklopt: Any, K: Array) -> Any:
        """A stack in a file of mklopt, or in anybody's .npy."""
        path = os.path.join(self.folder, "kernels.npy")
        if self.seed_of_run % 2:
            mklopt.GramStack.write(path, K)
        else:
            np.save(path, K)
        return mklopt.GramStack.open(path, memory=0 if self.small_memory else "1MB")

    # -- for the evaluator --

    def exact(self, grams: Any, shift: Any) -> Exact:
        """The same problem in rationals; of kernels from points `grams` has floats."""
        return self.exact_with(Kernels(self.matrices(grams), shift))

    def exact_with(self, kernels: Kernels) -> Exact:
        """The same problem with these kernels."""
        C = np.broadcast_to(np.array(plain(self.C), float), (self.n,))
        y = [exact.rational(v) for v in np.asarray(self.y, float)]
        if self.loss[0] in CLASSES:
            y = [int(v) for v in y]  # type: ignore[misc]
        penalty = self.penalty[0], _meant(self.penalty[1])
        loss = self.loss[0], _meant(self.loss[1])
        return Exact(
            kernels, y, [exact.rational(c) for c in C], loss, penalty, self.bias
        )

    def matrices(self, grams: Any) -> list[list[list[Fraction]]]:
        """The kernels that the stack holds."""
        if self.storage == "low rank":
            return [exact.gram(L) for L in grams.factors]
        if self.recipe is not None:
            return [exact.matrix(grams.kernel(m)) for m in range(self.M)]
        if self.storage in ("factors", "lazy"):
            return [exact.gram(L) for L in self.arrays]
        if self.storage == "float32":
            return [exact.matrix(np.float32(K)) for K in self.arrays]
        # Two floats that differ by rounding are replaced by their rounded mean.
        return [exact.matrix(0.5 * K + 0.5 * K.T) for K in self.arrays]


def _brief(C: Any) -> str:
    if isinstance(C, (list, tuple, np.ndarray)):
        kinds = "/".join(sorted({type(c).__name__ for c in C}))
        return f"{len(C)} × {kinds}, {min(plain(C))} … {max(plain(C))}"
    return shown(C)


def _meant(parameters: dict) -> dict:
    out = {}
    for name, given in parameters.items():
        out[name] = given if name == "groups" else plain(given)
        if name == "E":
            E = np.array(out[name])
            out[name] = ((E + E.T) / 2).tolist()
    return out


def _linear(start: int, stop: int) -> Callable[[Array, Array], Array]:
    return lambda A, B: A[:, start:stop] @ B[:, start:stop].T


def _loss(name: str, parameters: dict) -> Any:
    import cvxpy as cp

    import mklopt
    from mklopt.formulations import losses_by_name
    from mklopt.formulations.losses import Hinge

    if name == "steep_hinge":

        class SteepHinge(Hinge):
            """Another declaration than that of its parent."""

            def expression(self, f: Any, y: Array) -> Any:
                return 3 * cp.pos(1 - cp.multiply(y, f))

        return SteepHinge()
    if name == "squared_hinge":
        return mklopt.loss(
            lambda f, y: cp.square(cp.pos(1 - cp.multiply(y, f))), labels="binary"
        )
    return losses_by_name()[name](**parameters)


def _penalty(name: str, p: dict, M: int) -> Any:
    import cvxpy as cp

    import mklopt
    from mklopt.formulations import GroupLasso

    if name in CLOSED:
        return getattr(mklopt.formulations, name)(**p)
    if hasattr(mklopt.gallery, name):
        return getattr(mklopt.gallery, name)(**p)
    if name == "twice":

        class Twice(GroupLasso):
            """Another declaration than that of its parent."""

            def penalty(self, u: Any) -> Any:
                return 2 * cp.sum(u)

        return Twice()
    if name == "budget":
        return mklopt.variational(
            lambda theta: (cp.Constant(0.0), [cp.sum(theta) <= 1])
        )
    declared: dict[str, Callable] = {
        "plain_sum": cp.sum,
        "tree": lambda u: (
            cp.sum(u) + p["lam"] * sum(cp.norm(u[list(g)]) for g in p["groups"])
        ),
        "smooth_elastic": lambda u: cp.sum(u) + p["kappa"] * cp.sum_squares(u),
    }
    return mklopt.formulation(declared[name])


# ---- drawing -------------------------------------------------------------------------


def draw(seed: int, index: int) -> Case:
    """The case of this number."""
    rng = np.random.default_rng([seed, index])
    derived = rng.random() < 0.06
    penalty = pick(rng, DERIVED if derived else CLOSED)
    names = (*BINARY, *BINARY, "one_class", *REAL, *CLASSES)
    loss = pick(rng, DECLARED) if rng.random() < 0.02 else pick(rng, names)
    M = int(rng.integers(1, 9))
    n = int(rng.integers(1, 13)) if rng.random() < 0.95 else int(rng.integers(13, 41))
    if loss in CLASSES:
        n = max(n, 3)
    elif loss in (*BINARY, *DECLARED) and rng.random() < 0.99:
        n = max(n, 2)
    extreme = pick(rng, ("", "C", "K", "C K", "y", "mixed K"), (70, 9, 9, 4, 3, 5))
    storage = pick(rng, tuple(STORAGES), tuple(STORAGES.values()))
    if "K" in extreme and storage in ("float32", "lazy") and rng.random() < 0.8:
        storage = "packed"
    recipe, arrays = None, []
    if storage in OF_POINTS:
        n = min(n, 12)
        calm = "" if storage == "low rank" else extreme
        recipe = a_recipe(rng, M, n, calm, storage == "low rank")
    else:
        arrays = kernels(rng, M, n, storage, extreme)
    y = labels(rng, loss, n, extreme)
    action = pick(rng, ("solve", "certify", "path", "save"), (72, 20, 3, 5))
    if storage == "low rank" and rng.random() < 0.6:
        action = "exact"
    tol = 10.0 ** rng.uniform(-9, -2)
    return Case(
        seed=seed,
        index=index,
        M=M,
        n=n,
        storage=storage,
        arrays=arrays,
        y=y,
        C=costs(rng, n, extreme),
        loss=(loss, LOSS_PARAMETERS.get(loss, lambda rng: {})(rng)),
        penalty=(penalty, PARAMETERS[penalty](rng, M)),
        bias=bool(loss != "one_class" and rng.random() < 0.6),
        extreme=extreme,
        action=action,
        solver="auto" if derived or rng.random() < 0.7 else "any",
        tol=pick(rng, (float, np.float32, np.float64))(tol),
        proved=rng.random() < PROVED.get(storage, 0.0),
        again=bool(rng.random() < 0.15),
        seed_of_run=int(rng.integers(2**31)),
        recipe=recipe,
        in_feature_space=bool(storage in FACTORED and rng.random() < 0.5),
        small_memory=bool(rng.random() < 0.5),
    )


def kernels(rng: Rng, M: int, n: int, storage: str, extreme: str) -> list[Array]:
    """Factors on the grid, and their products unless factors are stored."""
    out: list[Array] = []
    power = int(rng.integers(-990, 990)) if "K" in extreme else 0
    if storage == "float32" and abs(power) > 100:
        power = power % 200 - 100
    points = np.arange(n)
    if rng.random() < 0.2:  # some points occur twice
        points = rng.integers(0, max(1, n // 2), size=n)
    for _ in range(M):
        kind = pick(rng, KINDS, (36, 28, 10, 10, 8, 8))
        rank = {"full": n, "low": min(n, 3), "offset": min(n, 3)}.get(kind, 1)
        L = rng.normal(size=(n, rank)) / np.sqrt(rank)
        if storage not in ("factors", "skew") or rng.random() < 0.4:
            L = np.rint(L / GRID) * GRID
        L = L[points]
        if kind == "offset" and storage not in ("float32", "skew"):
            L = np.hstack([L, np.full((n, 1), 2.0 ** int(rng.integers(5, 18)))])
        if storage == "skew":
            L = np.hstack([L, 0.25 * np.eye(n)])  # positive definite by far
        if kind == "zero":
            L = np.zeros((n, 1))
        elif kind == "copy" and out:
            out.append(out[-1])
            continue
        if extreme == "mixed K":
            power = int(rng.integers(-60, 60)) if rng.random() < 0.7 else power
        out.append(scaled(L, power, storage, rng))
    return out


def scaled(L: Array, power: int, storage: str, rng: Rng) -> Array:
    """A factor, or the kernel, times a power of two: the floats stay exact."""
    if storage in ("factors", "lazy"):
        return np.ldexp(L, power // 2)
    K = np.ldexp(L @ L.T, power)
    if storage == "skew":
        return np.asarray(K * (1 + rng.integers(-2, 3, size=K.shape) * 2.0**-52))
    return np.asarray(K)


def labels(rng: Rng, loss: str, n: int, extreme: str) -> Any:
    """Labels of a random type; rarely of a single class."""
    if loss in REAL:
        y = np.round(rng.normal(size=n), int(rng.integers(0, 12)))
        if extreme == "y":
            y = y * 10.0 ** rng.uniform(-300, 300)
        single = rng.random() < 0.1 and np.max(np.abs(y)) < 1e38
        return y.astype(np.float32) if single else y
    if loss == "one_class":
        return np.ones(n, pick(rng, (float, int, np.float32, np.int8)))
    if loss in CLASSES:
        k = int(rng.integers(2, min(n, 4) + 1))
        y = np.append(np.arange(k), rng.integers(0, k, size=n - k))
        return rng.permutation(y).astype(pick(rng, (int, float, np.uint8, np.int16)))
    y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    if n > 1 and rng.random() < 0.99:
        y[:2] = (-1, 1)
    return rng.permutation(y).astype(pick(rng, (float, int, np.float32, np.int8)))


def costs(rng: Rng, n: int, extreme: str) -> Any:
    """C: one number or one per sample, over the range that is asked for."""
    low, high = pick(rng, ((-3, 3), (-1, 1), (-12, 12)), (60, 30, 10))
    if "C" in extreme:
        low, high = -323.3, 300.0
    if rng.random() < 0.7:
        return dressed(rng, 10.0 ** rng.uniform(low, high))
    if "C" in extreme and rng.random() < 0.5:  # near each other, but far out
        middle = rng.uniform(low + 3, high - 3)
        low, high = middle - 3, middle + 3
    return dressed_all(rng, 10.0 ** rng.uniform(low, high, size=n))
