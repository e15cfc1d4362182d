"""A declaration made of known terms gets closed forms: the table, and the check of it.

`twin_of(declaration, M)` reads the expression tree (derive/structure.py) and looks its
form up here:

    Σ u, ½‖u‖_q², ½Σu^q, ½‖u‖_q² + aΣu,          the formulation of this room
    ½‖(‖u_j‖_r)_j‖_s²
    Σ a u + ½Σ b u², powers of norms,            all closed forms
    norms, sorted sums, sums of powers
    sums of these over disjoint kernels          all closed forms
    sums of Euclidean norms of nested groups     all closed forms
    sums over overlapping kernels, others        value and weights
    any of these with u_m ≤ 0 for some kernels   as without these kernels

and for prices r(θ) of weights: ‖θ‖_p ≤ 1 (Ivanov), μ‖θ‖_p² (Tikhonov), ⟨a, θ⟩, and
θᵀPθ ≤ 1 or ‖Aθ‖₂ ≤ 1 (NonIsotropic); also where ½Σu²/θ + r(θ) is written out
(derive/weight_form.py).

Guarantee. Equal as functions by exact algebra, and once more compared with values of
the declaration at random points, to CLOSE; where they differ, nothing is used. The twin
is `exact`, with the rounding of its closed forms counted as ever, only where no
constant of the tree was rounded on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from .base import Array, Formulation
from .block_norm import BlockL1, BlockNorm
from .block_power import BlockPower
from .derive.declaration import Keyed, declared_at
from .derive.epigraph import DerivationError
from .derive.structure import Atom, Form, Part, form_of, linear_map
from .derive.weight_form import weight_form
from .fixed_weights import FixedWeights
from .group_lasso import GroupLasso
from .ivanov import Ivanov, Tikhonov
from .mixed_norm import VSKL, Composite, SquaredMixedNorm
from .non_isotropic import NonIsotropic
from .norm_terms import (
    AnyNorm,
    LinearSquares,
    PowerNorm,
    PowerSum,
    QuadraticForm,
    UnitNorm,
)
from .norms import INF
from .ordered import OrderedWeightedL1
from .rescaled import Rescaled
from .sparse_block_norm import SparseBlockNorm
from .sums import Forbidden, Sum

CLOSE = 1e-9  # by how much closed form and declaration may differ, relatively …
DERIVED_CLOSE = 1e-6  # … and where values of the declaration are derived
MAX_KERNELS = 2000  # the tree of a larger declaration is not read


@dataclass(frozen=True)
class Twin:
    """A formulation that is equal to a declaration.

    Parameters
    ----------
    formulation : Formulation
        With closed forms.
    exact : bool
        Whether it is the same to the last digit of every constant.
    form : Form, optional
        What was read off the expression tree.
    """

    formulation: Formulation
    exact: bool
    form: Form | None = field(default=None, compare=False)

    @property
    def words(self) -> str:
        """What the formulation is, in one line."""
        return _words(self.formulation)


@dataclass(frozen=True)
class MixedNorm(SquaredMixedNorm):
    """½‖(‖u_j‖_r)_j‖_s², where neither VSKL nor Composite has it.

    Parameters
    ----------
    groups : tuple of tuples of int
        The kernels of each group.
    r, s : float
        The exponents inside groups and across them.
    """

    groups: Any
    r: float
    s: float
    exact: ClassVar[bool] = True
    listed: ClassVar[bool] = False

    @property
    def exponents(self) -> tuple[float, float]:
        """(r, s)."""
        return self.r, self.s


def _words(known: Formulation) -> str:
    """A formulation of this room by its name, others by what they are made of."""
    if isinstance(known, Rescaled):
        stretch = "" if set(known.d) == {1.0} else " of stretched norms"
        return f"{known.c:.4g} times {_words(known.inner)}{stretch}"
    if isinstance(known, Forbidden):
        return "kernels that must not be used"
    if isinstance(known, UnitNorm):
        return f"the norm ‖u‖_{known.q:.4g}"
    if isinstance(known, LinearSquares):
        return _elastic(known)
    if isinstance(known, Sum):
        shared = (
            "disjoint" if known.disjoint else "nested" if known.nested else "shared"
        )
        kinds = ", ".join(dict.fromkeys(_words(term) for _, term in known.terms))
        linear = "a linear term and " if any(known.a) else ""
        return f"{linear}terms over {shared} kernels: {kinds}"
    return repr(known)


def _elastic(known: LinearSquares) -> str:
    """Σ a u + ½Σ b u², a multiple of an elastic net where a and b are the same."""
    if len(set(known.a)) > 1 or len(set(known.b)) > 1:
        return "Σ a u + ½ Σ b u²"
    (a, *_), (b, *_) = known.a, known.b
    inner = "GroupLasso()" if b == 0 else f"ElasticNet(l1_ratio={a / (a + b):.4g})"
    return f"{a + b:.4g} times {inner}"


@lru_cache(maxsize=256)
def twin_of(declaration: Keyed, M: int) -> Twin | None:
    """The twin of a declaration for M kernels; None where the table has none."""
    owner = declaration.owner
    if M > MAX_KERNELS:
        return None
    try:
        found = owner.recognize(M)
    except Exception:  # a mistake in the function: `validate` says which
        return None
    return found if found is not None and _agrees(owner, found.formulation, M) else None


def _agrees(owner: Any, twin: Formulation, M: int) -> bool:
    """Whether the values are those of the declaration, at random points and at 0."""
    rng, epigraph = np.random.default_rng(0), owner.epigraph(M)
    points = [np.zeros(M), *rng.uniform(0.1, 2.0, size=(3, M))]
    points += [10.0 * rng.uniform(0, 1, M) * (rng.random(M) < 0.5)]
    if twin.value(np.ones(M)) == INF:
        allowed = np.isfinite([twin.value(axis) for axis in np.eye(M)])
        points += [u * allowed for u in points]
    close = CLOSE if epigraph.is_explicit else DERIVED_CLOSE
    try:
        pairs = [(twin.value(u), float(epigraph.value(u)[0])) for u in points]
    except DerivationError:
        return False
    return all(a == b or abs(a - b) <= close * (1 + abs(b)) for a, b in pairs)


def read(declare: Any, M: int) -> tuple[Any, Any, list]:
    """x, the expression, and the constraints that are not empty."""
    import cvxpy as cp

    x = cp.Variable(M, nonneg=True)
    expression, constraints = declared_at(declare, x)
    return x, expression, [each for each in constraints if each.size]


def _form(expression: Any, x: Any, zeros: Iterable[int] = ()) -> Form | None:
    """The form of an expression; None: not known."""
    known = hasattr(expression, "is_dcp") and expression.is_dcp()
    return form_of(expression, x, frozenset(zeros)) if known else None


def _bound(constraint: Any, x: Any) -> tuple[Form | Array | None, float]:
    """form(x) ≤ number, of a constraint; P for xᵀPx; None where it is another one."""
    left, right = (*constraint.args, None)[:2]
    if right is None or not right.is_constant() or right.size > 1:
        return None, INF
    if type(constraint).__name__ != "Inequality" or left.size > 1:
        return None, INF
    form, limit = form_of(left, x), float(right.value)
    quadratic = type(left).__name__ == "QuadForm" and left.args[0] is x
    if form is None and quadratic and left.args[1].is_constant():
        return np.asarray(left.args[1].value, float), limit
    euclidean = type(left).__name__ in ("Pnorm", "PnormApprox") and left.p == 2
    if form is None and euclidean and limit > 0:
        A = linear_map(left.args[0], x)
        return (None if A is None else A.T @ A), limit**2
    return form, limit


def _zeros(constraints: list, x: Any) -> list[int] | None:
    """The kernels that must not be used, if constraints say this and nothing else."""
    found: list[int] = []
    for each in constraints:
        left, right = (*each.args, None)[:2]
        upper = type(each).__name__ in ("Inequality", "Equality", "Zero")
        zero = right is None or (right.is_constant() and not np.any(right.value))
        A = linear_map(left, x) if upper and zero else None
        if (
            A is None
            or np.any(A < 0)
            or (right is None and type(each).__name__ != "Zero")
        ):
            return None
        found += np.flatnonzero(np.any(A > 0, axis=0)).tolist()
    return sorted(set(found))


def from_penalty(declare: Any, M: int) -> Twin | None:
    """The twin of Ω(u)."""
    x, expression, constraints = read(declare, M)
    weighted = weight_form(expression, constraints, x)
    if weighted is not None:
        return _from_price(*weighted, M)
    zeros = _zeros(constraints, x)
    form = None if zeros is None else _form(expression, x, zeros)
    if form is None or zeros is None:
        return None
    covered = np.array(form.a) > 0
    for atom in form.atoms:
        covered[[m for p in atom.parts for m, d in zip(p.index, p.d) if d]] = True
    covered[zeros] = True
    if not np.all(covered) or not np.all(np.isfinite(form.a)) or len(zeros) == M:
        return None
    if zeros:
        return Twin(made := _without(form, zeros), form.exact and bool(made.exact))
    made = _whole(form, M) or _sum(form)
    return Twin(made, form.exact and bool(made.exact), form)


def _without(form: Form, zeros: list[int]) -> Formulation:
    """A form where some kernels must not be used."""
    M = len(form.a)
    powers, rest = _split(form.atoms, M)
    if set(powers) == {2.0} and not rest and not np.any(form.a) and not form.constant:
        b = 2 * powers[2.0]
        return FixedWeights(tuple(np.divide(1, b, where=b > 0, out=b).tolist()))
    terms = (*_terms(form.atoms, M), (tuple(zeros), Forbidden()))
    return Sum(terms, tuple(form.a.tolist()), form.constant)


def from_price(declare: Any, M: int) -> Twin | None:
    """The twin of min over θ ≥ 0 of ½Σu²/θ + r(θ), from r."""
    return _from_price(*read(declare, M), M)


def _from_price(theta: Any, price: Any, constraints: list, M: int) -> Twin | None:
    form = _form(price, theta)
    bounds = [_bound(each, theta) for each in constraints]
    if form is None or form.constant:
        return None
    if not bounds and not form.atoms and np.all(form.a > 0):
        a = np.sqrt(2 * form.a)  # min of u²/(2θ) + aθ is √(2a) u
        known = form.exact and bool(np.all(a * a == 2 * form.a) and _short(a))
        made = _whole(Form(a), M)
        return None if made is None else Twin(made, known)
    if not bounds and not np.any(form.a) and form.atoms:
        return _tikhonov(form, M)
    if len(bounds) == 1 and not np.any(form.a) and not form.atoms:
        limited, limit = bounds[0]
        if isinstance(limited, np.ndarray):
            return _ellipsoid(limited, limit)
        return _ivanov(limited, limit, M)
    return None


def _short(values: Array) -> bool:
    """Whether squares of these are floats: at most 26 digits in base 2."""
    return bool(np.all(np.frexp(values)[0] * 2.0**26 % 1 == 0))


def _tikhonov(form: Form, M: int) -> Twin | None:
    """μ‖θ‖_p²; μΣθ² for p = 2."""
    powers, rest = _split(form.atoms, M)
    if not rest and set(powers) == {2.0} and len(set(powers[2.0].tolist())) == 1:
        return Twin(Tikhonov(2.0, float(powers[2.0][0])), form.exact)
    atom, p = form.atoms[0], _plain_norm(form.atoms[0], M)
    if len(form.atoms) > 1 or atom.k != 2 or p is None:
        return None
    return Twin(Tikhonov(p, atom.c), form.exact)


def _ivanov(form: Form | None, bound: float, M: int) -> Twin | None:
    """‖θ‖_p ≤ 1."""
    if form is None or form.constant or not bound > 0:
        return None
    if not form.atoms and np.all(form.a == bound):
        return Twin(Ivanov(1.0), form.exact)
    if np.any(form.a) or len(form.atoms) != 1 or form.atoms[0].k != 1:
        return None
    p = _plain_norm(form.atoms[0], M)
    known = p is not None and form.atoms[0].c == bound
    return Twin(Ivanov(p), form.exact) if known else None  # type: ignore[arg-type]


def _ellipsoid(P: Array, bound: float) -> Twin | None:
    """θᵀPθ ≤ bound; the inverse of P is rounded."""
    try:
        return Twin(NonIsotropic(bound * np.linalg.inv(P)), False)
    except (ValueError, np.linalg.LinAlgError):  # not positive definite
        return None


def _plain_norm(atom: Atom, M: int) -> float | None:
    """The exponent of a norm of all kernels, each with the factor 1."""
    part = atom.parts[0]
    plain = (
        len(atom.parts) == 1 and not atom.lam and not atom.Q and set(part.d) == {1.0}
    )
    return part.r if plain and sorted(part.index) == list(range(M)) else None


# ---- the whole at once: formulations of this room ------------------------------------


def _whole(form: Form, M: int) -> Formulation | None:
    """The formulation of this room that a form is, if it is one."""
    if form.constant:
        return None
    a, powers, rest = form.a, *_split(form.atoms, M)
    same = len(set(a.tolist())) == 1
    if not rest and set(powers) <= {2.0}:
        return _linear_squares(a, 2 * powers.get(2.0, np.zeros(M)))
    if not rest and len(powers) == 1 and not np.any(a):
        ((q, c),) = powers.items()
        return BlockPower(q) if np.all(c == 0.5) else PowerSum(q, tuple(c.tolist()))
    if not same:
        return None
    if rest and a[0] == 0 and set(powers) <= {2.0}:
        return _grouped(list(form.atoms), M)
    if powers:
        return None
    if len(rest) == 1 and rest[0].k == 2 and rest[0].c == 0.5:
        r = _plain_norm(rest[0], M)
        if r is not None and 1 < r <= 2:
            return SparseBlockNorm(r, float(a[0]))
    return None


def _split(atoms: Iterable[Atom], M: int) -> tuple[dict[float, Array], list[Atom]]:
    """Powers of single kernels, Σ c_m u_m^k for each k, and the other atoms."""
    powers: dict[float, Array] = {}
    rest = []
    for atom in atoms:
        part = atom.parts[0]
        if len(atom.parts) == len(part.index) == 1 and not atom.lam and not atom.Q:
            c = powers.setdefault(atom.k, np.zeros(M))
            c[part.index[0]] += atom.c * part.d[0] ** atom.k
        else:
            rest.append(atom)
    return powers, rest


def _linear_squares(a: Array, b: Array) -> Formulation:
    """Σ a u + ½Σ b u²."""
    if np.all(a == 1) and not np.any(b):
        return GroupLasso()
    if not np.any(a):
        if np.all(b == 1):
            return BlockNorm(2.0)
        return FixedWeights(tuple((1 / b).tolist()))
    return LinearSquares(tuple(a.tolist()), tuple(b.tolist()))


def _grouped(atoms: list[Atom], M: int) -> Formulation | None:
    """½‖u‖_q², or ½‖(‖u_j‖_r)_j‖_s²: also ½Σ(Σu)², where s = 2."""
    if any(atom.k != 2 or atom.c != 0.5 or atom.lam or atom.Q for atom in atoms):
        return None
    if len(atoms) == 1 and (q := _plain_norm(atoms[0], M)) is not None:
        return BlockL1() if q == 1 else BlockNorm(q)
    parts = [part for atom in atoms for part in atom.parts]
    s = atoms[0].s if len(atoms) == 1 else 2.0
    if len(atoms) > 1 and any(len(atom.parts) > 1 for atom in atoms):
        return None
    return _mixed(parts, s, M) if all(set(p.d) == {1.0} for p in parts) else None


def _mixed(parts: list[Part], s: float, M: int) -> Formulation | None:
    """½‖(‖u_j‖_r)_j‖_s² over groups that share no kernel."""
    kernels = sorted(m for part in parts for m in part.index)
    exponents = {part.r for part in parts if len(part.index) > 1}
    if kernels != list(range(M)) or len(exponents) > 1 or len(parts) < 2:
        return None
    r, groups = (exponents or {1.0}).pop(), tuple(part.index for part in parts)
    if r == 1 and s >= 2:
        return VSKL(groups, s / 2)
    if max(r, s) <= 2:
        return Composite(groups, r, s)
    return MixedNorm(groups, r, s) if s < INF and r < INF else None


# ---- term by term --------------------------------------------------------------------


def _sum(form: Form) -> Formulation:
    """Σ of terms, with a linear one."""
    M, terms = len(form.a), tuple(_terms(form.atoms, len(form.a)))
    alone = len(terms) == 1 and terms[0][0] == tuple(range(M))
    if alone and not np.any(form.a) and not form.constant:
        return terms[0][1]
    return Sum(terms, tuple(form.a.tolist()), form.constant)


def _terms(atoms: tuple[Atom, ...], M: int) -> Iterator[tuple[tuple, Formulation]]:
    powers, rest = _split(atoms, M)
    for q, c in powers.items():
        used = np.flatnonzero(c)
        factors = c[used]
        squares = FixedWeights(tuple((0.5 / factors).tolist()))
        found = squares if q == 2 else PowerSum(q, tuple(factors.tolist()))
        yield tuple(used.tolist()), found
    for atom in rest:
        yield atom.support, _term(atom)


def _term(atom: Atom) -> Formulation:
    """One atom, over its own kernels, which are numbered anew."""
    support = atom.support
    place = {m: i for i, m in enumerate(support)}
    parts = [replace(p, index=tuple(place[m] for m in p.index)) for p in atom.parts]
    if atom.lam:
        return OrderedWeightedL1(tuple((atom.c * np.array(atom.lam)).tolist()))
    if atom.Q:
        order = np.argsort([place[m] for m in atom.parts[0].index])
        Q = atom.c * np.array(atom.Q)[np.ix_(order, order)]
        return QuadraticForm(tuple(map(tuple, Q.tolist())))
    return _norm_term(atom, parts) or AnyNorm(atom.c, atom.k, atom.s, tuple(parts))


def _norm_term(atom: Atom, parts: list[Part]) -> Formulation | None:
    """c‖…‖^k with all closed forms; None: it has none of its own."""
    M, d = len(atom.support), np.ones(len(atom.support))
    for part in parts:
        d[list(part.index)] = part.d
    if not np.all(d > 0):
        return None
    if len(parts) == 1:
        inner, size = _flat(parts[0].r, atom.k)
    else:
        inner, size = (_mixed(parts, atom.s, M) if atom.k == 2 else None), 0.5
    if inner is None:
        return None
    plain = atom.c == size and np.all(d == 1)
    return inner if plain else Rescaled(inner, atom.c / size, tuple(d.tolist()))


def _flat(q: float, k: float) -> tuple[Formulation | None, float]:
    """A formulation that is size · ‖u‖_q^k, and the size."""
    if k == 1:
        return (UnitNorm(q), 1.0) if q > 1 else (None, 1.0)
    if k == 2:
        return (BlockL1() if q == 1 else BlockNorm(q)), 0.5
    return (PowerNorm(q, k) if k < 2 else None), 1 / k
