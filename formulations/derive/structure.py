"""What can be seen in the expression tree of a declaration: sums of norms and powers.

`form_of` reads a CVXPY expression in x ≥ 0 and writes it as

    h(x) = constant + ⟨a, x⟩ + Σ_i c_i ‖(‖d_j ∘ x_j‖_{r_j})_j‖_{s_i}^{k_i} + sorted sums
           + quadratic forms

with a, c, d ≥ 0. Each rule is an identity of exact algebra, such as ‖x‖_q^q = Σ x^q or
‖(x, ‖y‖_q)‖_q = ‖(x, y)‖_q on x, y ≥ 0. None: a part of the tree has no rule.

Guarantee. `exact` says that also the numbers are those of the tree: no product or sum
of its constants was rounded. Every such h is convex and increases in each x_m.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

Array = np.ndarray
INF = float("inf")
# Atoms that only move the entries of their arguments.
MOVES = ["index", "special_index", "reshape", "Hstack", "Vstack", "Concatenate"]
MOVES += ["transpose", "Promote"]


class NoRule(Exception):
    """A part of an expression tree that none of the rules describes."""


@dataclass(frozen=True)
class Part:
    """‖d ∘ x_index‖_r; r = 1 also stands for weighted sums and single entries."""

    r: float
    index: tuple[int, ...]
    d: tuple[float, ...]


@dataclass(frozen=True)
class Atom:
    """c ‖(‖d_j ∘ x_j‖_{r_j})_j‖_s^k, or c Σ lam_i x_(i), or c xᵀQx."""

    c: float
    k: float
    s: float
    parts: tuple[Part, ...]
    lam: tuple[float, ...] = ()
    Q: tuple[tuple[float, ...], ...] = ()

    @property
    def support(self) -> tuple[int, ...]:
        """The entries of x that it depends on."""
        return tuple(sorted({m for part in self.parts for m in part.index}))

    @property
    def is_norm(self) -> bool:
        """Whether it is a multiple of a norm, and nothing else."""
        return self.k == 1 and not self.lam and not self.Q

    def has_kink(self, m: int, zeros: frozenset[int]) -> bool:
        """Whether it grows at first order in x_m from a point with these zeros."""
        if m not in self.support:
            return False
        if set(self.support) <= zeros and self.k > 1:
            return False  # the power of a norm is flat at 0
        if self.lam:
            left = sum(index not in zeros for index in self.support)
            return self.lam[left] > 0  # the next place in the order
        if self.Q:
            row = self.Q[self.parts[0].index.index(m)]
            others = zip(row, self.parts[0].index)
            return any(q > 0 and other not in zeros for q, other in others)
        empty = [set(part.index) <= zeros for part in self.parts]
        return any(
            self._part_has_kink(part, m, gone, all(empty))
            for part, gone in zip(self.parts, empty)
        )

    def _part_has_kink(self, part: Part, m: int, gone: bool, all_gone: bool) -> bool:
        if m not in part.index or not part.d[part.index.index(m)] > 0:
            return False
        if self.s == INF and len(self.parts) > 1:
            return all_gone  # another group may be the largest one
        if gone:  # ‖x_j‖ = 0: a kink, unless a norm of other groups smooths it
            return all_gone or self.s == 1 or len(self.parts) == 1
        return part.r == 1


@dataclass(frozen=True)
class Form:
    """constant + ⟨a, x⟩ + Σ atoms."""

    a: Array
    constant: float = 0.0
    atoms: tuple[Atom, ...] = ()
    exact: bool = True

    def scaled(self, c: float) -> Form:
        """c times this, c ≥ 0."""
        if not 0 <= c < INF:
            raise NoRule(f"the factor {c}")
        kept = _powers_of_2([c]) or self.is_unit
        atoms = tuple(replace(atom, c=c * atom.c) for atom in self.atoms if c)
        return Form(c * self.a, c * self.constant, atoms, self.exact and kept)

    @property
    def is_zero(self) -> bool:
        """Whether it is 0 everywhere."""
        return not (self.atoms or self.constant or np.any(self.a))

    @property
    def is_unit(self) -> bool:
        """Whether all its factors are powers of 2: products with them are exact."""
        return _powers_of_2([*self.a, self.constant, *(atom.c for atom in self.atoms)])

    def __add__(self, other: Form) -> Form:
        exact = self.exact and other.exact and _sums_exactly(self.a, other.a)
        exact = exact and _sums_exactly(
            np.array([self.constant]), np.array([other.constant])
        )
        atoms = self.atoms + other.atoms
        return Form(self.a + other.a, self.constant + other.constant, atoms, exact)

    def has_kink(self, m: int, zeros: frozenset[int]) -> bool:
        """Whether h grows at first order in x_m from a point with exactly these zeros.

        m is one of the zeros. By the rules of the atoms: no differences are taken.
        """
        return self.a[m] > 0 or any(atom.has_kink(m, zeros) for atom in self.atoms)

    @property
    def norm(self) -> Atom:
        """This as a multiple of one norm: a weighted sum, or one atom."""
        used = np.flatnonzero(self.a)
        only = self.constant == 0 and len(used) == 0 and len(self.atoms) == 1
        if only and self.atoms[0].is_norm:
            return self.atoms[0]
        if self.constant == 0 and len(used) and not self.atoms:
            part = Part(1.0, tuple(used.tolist()), tuple(self.a[used].tolist()))
            return Atom(1.0, 1.0, 1.0, (part,))
        parts = [atom.parts[0] for atom in self.atoms if atom.is_norm]
        single = all(len(atom.parts) == 1 and atom.c == 1 for atom in self.atoms)
        if self.constant == 0 and single and 0 < len(parts) == len(self.atoms):
            alone = [Part(1.0, (m,), (float(self.a[m]),)) for m in used.tolist()]
            return Atom(1.0, 1.0, 1.0, (*alone, *parts))  # a sum is a norm, too
        raise NoRule("it is no multiple of a norm")


@dataclass
class Reader:
    """Reads trees over one variable x of M entries, some of which are known to be 0."""

    x: Any
    M: int
    zeros: frozenset[int] = frozenset()
    rules: dict[str, Callable] = field(init=False)

    def __post_init__(self) -> None:
        self.rules = dict.fromkeys(MOVES, self._moved)
        self.rules |= {
            "multiply": self._product, "DivExpression": self._quotient,
            "MulExpression": self._matrix, "AddExpression": self._added,
            "Sum": self._sum, "abs": lambda node: self.entries(node.args[0]),
            "norm1": lambda node: self._norm(node, 1.0),
            "norm_inf": lambda node: self._norm(node, INF),
            "max": lambda node: self._norm(node, INF),
            "Pnorm": lambda node: self._norm(node, node.p),
            "PnormApprox": lambda node: self._norm(node, node.p),
            "maximum": self._largest, "Power": self._power,
            "PowerApprox": self._power, "quad_over_lin": self._squares,
            "QuadForm": self._quadratic, "sum_largest": self._sorted,
            "dotsort": self._sorted,
        }  # fmt: skip

    def entries(self, node: Any) -> list[Form]:
        """The entries of a node, one form each, in C order."""
        if node is self.x:
            used = [float(m not in self.zeros) for m in range(self.M)]
            return [Form(row) for row in np.diag(used)]
        if node.is_constant():
            values = np.ravel(_dense(node.value))
            return [Form(np.zeros(self.M), float(value)) for value in values]
        rule = self.rules.get(type(node).__name__)
        if rule is None:
            raise NoRule(type(node).__name__)
        return rule(node)

    def _moved(self, node: Any) -> list[Form]:
        entries: list[Form] = []
        labels: list[Array] = []
        for part in node.args:
            labels.append(len(entries) + np.arange(part.size).reshape(part.shape))
            entries += self.entries(part)
        places = np.ravel(np.asarray(node.numeric(labels)))
        return [entries[int(place)] for place in places]

    def _product(self, node: Any) -> list[Form]:
        """An entrywise product with a constant."""
        constant, other = sorted(node.args, key=lambda arg: not arg.is_constant())
        factors = np.broadcast_to(_dense(constant.value), node.shape)
        found = self.entries(other)
        if len(found) < node.size:
            found = found * node.size
        return [f.scaled(float(c)) for f, c in zip(found, np.ravel(factors))]

    def _quotient(self, node: Any) -> list[Form]:
        top, bottom = node.args
        if not bottom.is_constant():
            raise NoRule("a quotient")
        values = np.ravel(np.broadcast_to(_dense(bottom.value), node.shape))
        found = self.entries(top)
        return [
            replace(f.scaled(1 / float(c)), exact=f.exact and _powers_of_2([c]))
            for f, c in zip(found, values)
        ]

    def _matrix(self, node: Any) -> list[Form]:
        """A constant matrix times a vector."""
        left, right = node.args
        if right.is_constant():
            left, right, matrix = right, left, _dense(right.value).T
        elif left.is_constant():
            matrix = _dense(left.value)
        else:
            raise NoRule("a product")
        if matrix.ndim == 0 or right.ndim > 1:
            raise NoRule("a product with a matrix")
        found = self.entries(right)
        rows = matrix.reshape(-1, len(found))
        return [_total([f.scaled(float(c)) for f, c in zip(found, row) if c] or [
            Form(np.zeros(self.M))]) for row in rows]  # fmt: skip

    def _added(self, node: Any) -> list[Form]:
        parts = [self.entries(part) for part in node.args]
        parts = [part * node.size if len(part) < node.size else part for part in parts]
        return [_total(entry) for entry in zip(*parts)]

    def _groups(self, node: Any) -> list[list[Form]]:
        """The entries that an atom with an axis puts together."""
        inner, axis = node.args[0], getattr(node, "axis", None)
        entries = self.entries(inner)
        if axis is None:
            return [entries]
        if not isinstance(axis, int | np.integer):
            raise NoRule("several axes")
        places = np.moveaxis(np.arange(inner.size).reshape(inner.shape), int(axis), -1)
        return [
            [entries[i] for i in row] for row in places.reshape(-1, places.shape[-1])
        ]

    def _sum(self, node: Any) -> list[Form]:
        return [_total(group) for group in self._groups(node)]

    def _norm(self, node: Any, p: Any) -> list[Form]:
        q = float(p)
        if not q >= 1:
            raise NoRule(f"the exponent {q}")
        known = p == q  # a rational exponent may be no float
        groups = self._groups(node)
        return [replace(f, exact=f.exact and known) for f in map(_norm_by(q), groups)]

    def _largest(self, node: Any) -> list[Form]:
        parts = [self.entries(part) for part in node.args]
        parts = [part * node.size if len(part) < node.size else part for part in parts]
        return [_norm_by(INF)(list(entry)) for entry in zip(*parts)]

    def _power(self, node: Any) -> list[Form]:
        p = node.p_used if getattr(node, "p_used", None) is not None else node.p
        p = p.value if hasattr(p, "value") else p
        k = float(p)
        if not k >= 1:
            raise NoRule(f"the power {k}")
        return [
            replace(f, exact=f.exact and p == k)
            for f in (_raised(entry, k) for entry in self.entries(node.args[0]))
        ]

    def _squares(self, node: Any) -> list[Form]:
        bottom = node.args[1]
        if not bottom.is_constant() or not float(bottom.value) > 0:
            raise NoRule("a quotient")
        c = float(bottom.value)
        found = [
            _total([_raised(f, 2.0) for f in group]) for group in self._groups(node)
        ]
        kept = _powers_of_2([c])
        return [replace(f.scaled(1 / c), exact=f.exact and kept) for f in found]

    def _quadratic(self, node: Any) -> list[Form]:
        inner, matrix = node.args
        if not matrix.is_constant():
            raise NoRule("a quadratic form")
        found, Q = self.entries(inner), _dense(matrix.value)
        if any(form.atoms or form.constant for form in found):
            raise NoRule("a quadratic form of norms")
        A = np.array([form.a for form in found])
        Q = A.T @ (0.5 * (Q + Q.T)) @ A
        used = np.flatnonzero(np.diag(Q))
        rest = Q[np.ix_(used, used)]
        if np.any(Q < 0) or np.linalg.eigvalsh(rest)[0] < -1e-12 * np.trace(rest):
            raise NoRule("a quadratic form with negative entries")
        if np.count_nonzero(rest) == len(used):
            squares = zip(used.tolist(), np.diag(rest).tolist())
            atoms = tuple(
                Atom(c, 2.0, 1.0, (Part(1.0, (m,), (1.0,)),)) for m, c in squares
            )
            return [
                Form(np.zeros(self.M), 0.0, atoms, np.array_equal(A, np.eye(self.M)))
            ]
        part = Part(1.0, tuple(used.tolist()), (1.0,) * len(used))
        nested = tuple(map(tuple, rest.tolist()))
        atom = Atom(1.0, 2.0, 1.0, (part,), Q=nested)
        return [Form(np.zeros(self.M), 0.0, (atom,), False)]

    def _sorted(self, node: Any) -> list[Form]:
        found = [f.norm for f in self.entries(node.args[0]) if not f.is_zero]
        parts = [atom.parts[0] for atom in found]
        if any(len(p.index) > 1 or p.d != (1.0,) for p in parts):
            raise NoRule("a sorted sum of other things than entries")
        index = [p.index[0] for p in parts]
        if len(set(index)) < len(index) or getattr(node, "axis", None) is not None:
            raise NoRule("a sorted sum of equal entries")
        if type(node).__name__ == "sum_largest":
            lam = np.clip(node.k - np.arange(len(index)), 0.0, 1.0)
        else:
            given = np.ravel(_dense(node.args[1].value))
            more = np.zeros(max(0, len(index) - len(given)))
            lam = np.sort(np.append(given, more))[::-1][: len(index)]
        if np.any(lam < 0):
            raise NoRule("a sorted sum with negative weights")
        part = Part(1.0, tuple(index), (1.0,) * len(index))
        atom = Atom(1.0, 1.0, 1.0, (part,), lam=tuple(lam.tolist()))
        return [Form(np.zeros(self.M), 0.0, (atom,), False)]


def form_of(
    expression: Any, x: Any, zeros: frozenset[int] = frozenset()
) -> Form | None:
    """A tree of CVXPY over x ≥ 0 in the form above; None where a part has no rule.

    zeros: entries of x that are 0
    """
    try:
        found = Reader(x, x.size, zeros).entries(expression)
    except (NoRule, OverflowError):
        return None
    return found[0] if len(found) == 1 else None


def linear_map(expression: Any, x: Any) -> Array | None:
    """A, where an expression is Ax; None for others."""
    alone = all(variable is x for variable in expression.variables())
    if not alone or not expression.is_affine() or expression.is_constant():
        return None
    columns, before = [], x.value
    for point in (np.zeros(x.size), *np.eye(x.size)):
        x.value = point
        columns.append(np.ravel(_dense(expression.value)))
    x.value = before
    return None if np.any(columns[0]) else np.array(columns[1:]).T


def _total(forms: Iterable[Form]) -> Form:
    forms = list(forms)
    if len(forms) < 3:
        return forms[0] if len(forms) == 1 else forms[0] + forms[1]
    a, constant = np.array([f.a for f in forms]), [f.constant for f in forms]
    once = np.max(np.count_nonzero(a, axis=0)) <= 1 and np.count_nonzero(constant) <= 1
    if not once:
        half = len(forms) // 2
        return _total(forms[:half]) + _total(forms[half:])
    atoms = tuple(atom for f in forms for atom in f.atoms)
    exact = all(f.exact for f in forms)
    return Form(a.sum(axis=0), float(sum(constant)), atoms, exact)


def _norm_by(q: float) -> Callable[[list[Form]], Form]:
    """‖(entries)‖_q of entries that are norms."""

    def of(entries: list[Form]) -> Form:
        entries = [entry for entry in entries if not entry.is_zero] or entries[:1]
        if q == 1 or len(entries) == 1:
            return _total(entries)
        atoms = [entry.norm for entry in entries]
        exact = all(entry.exact for entry in entries)
        parts: list[Part] = []
        for atom in atoms:
            if len(atom.parts) > 1 and atom.s != q:
                raise NoRule("norms on three levels")
            exact = exact and (_powers_of_2([atom.c]) or _powers_of_2(
                [d for part in atom.parts for d in part.d]))  # fmt: skip
            parts += [
                replace(part, d=tuple((atom.c * np.array(part.d)).tolist()))
                for part in atom.parts
            ]
        if all(len(part.index) == 1 or part.r == q for part in parts):
            index = tuple(m for part in parts for m in part.index)
            if len(set(index)) == len(index):
                d = tuple(x for part in parts for x in part.d)
                parts = [Part(q, index, d)]
        zero = np.zeros(len(entries[0].a))
        return Form(zero, 0.0, (Atom(1.0, 1.0, q, tuple(parts)),), exact)

    return of


def _raised(form: Form, k: float) -> Form:
    """The power k of a form that is a norm; ‖x‖_k^k is a sum."""
    if k == 1 or form.is_zero:
        return form
    zero = np.zeros(len(form.a))
    powered = len(form.atoms) == 1 and not np.any(form.a) and form.constant == 0
    if powered and form.atoms[0].k > 1 and not form.atoms[0].Q:
        atom = form.atoms[0]
        atom = replace(atom, c=atom.c**k, k=atom.k * k)
        return Form(zero, 0.0, (atom,), form.exact and atom.c == 1)
    atom = form.norm
    exact = form.exact and (atom.c == 1 or (k == 2 and _powers_of_2([atom.c])))
    c = atom.c**k
    flat = len(atom.parts) == 1 and (
        atom.parts[0].r == k or len(atom.parts[0].index) == 1
    )
    if flat:
        d = np.array(atom.parts[0].d)
        ones = _powers_of_2(d) and k == round(k)
        atoms = tuple(
            Atom(c * float(x) ** k, k, 1.0, (Part(1.0, (m,), (1.0,)),))
            for m, x in zip(atom.parts[0].index, d)
        )
        return Form(zero, 0.0, atoms, exact and (ones or bool(np.all(d == 1))))
    if atom.s == k and len(atom.parts) > 1:
        atoms = tuple(Atom(c, k, 1.0, (part,)) for part in atom.parts)
        return _total([
            _raised(Form(zero, 0.0, (replace(a, c=1.0, k=1.0),)), k).scaled(c)
            for a in atoms
        ])  # fmt: skip
    return Form(zero, 0.0, (replace(atom, c=c, k=k),), exact)


def _dense(value: Any) -> Array:
    return np.asarray(value.toarray() if sp.issparse(value) else value, float)


def _powers_of_2(values: Any) -> bool:
    """Whether all numbers are 0 or powers of 2: products with them are not rounded."""
    mantissa = np.frexp(np.asarray(values, float))[0]
    return bool(np.all((mantissa == 0) | (np.abs(mantissa) == 0.5)))


def _sums_exactly(a: Array, b: Array) -> bool:
    """Whether a + b is not rounded (the error term of Knuth's sum vanishes)."""
    total = a + b
    back = total - a
    return bool(np.all((a - (total - back)) + (b - back) == 0))
