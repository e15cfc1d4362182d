"""A declared convex function in conic form, and everything that can be derived from it.

Problem. h : R^N → R^m is declared by CVXPY expressions, possibly with auxiliary
variables and constraints. Its epigraph, written in cones,

    epi h = { (x, t) : h(x) ≤ t }  =  { z = (x, t, extras) :  b − A z ∈ K },

is all we keep. From (A, b, K) follow, by conic duality and nothing else,

    support     sup { ⟨g, z⟩ : z ∈ epi h }  =  inf { bᵀy : Aᵀy = g, y ∈ K* }
    conjugate   h*(v)      = support at g = (v, −1)
    scale       sup { s : h*(s v) < ∞ } = inf { t : −A (x, t, ·) ∈ K, ⟨v, x⟩ = 1 }
    value       h(x)       = inf { t : (x, t, ·) ∈ epi h },  with its multipliers
    prox        argmin h(z) + Σ (z − x)² / (2 step)

Each is one small program (cones.py): the matrices are compiled once. Sums of sorted
entries are cheaper in a given order (sorted_sums.py), which is tried first.
`support_program` states the first line as CVXPY constraints, which is how the dual of
a whole learning problem is derived instead of written.

Guarantee. Exact as mathematics (strong duality holds: the epigraphs have interior
points); numerically about 1e-9, checked against every closed form by the tests.
Reference: conic duality as in Ben-Tal and Nemirovski (2001).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
import scipy.sparse as sp

from .cones import Array, Block, Cones, Solution
from .declaration import declared_at, numpy_calls
from .same_trees import same_declaration
from .sorted_sums import UNSETTLED, Ordered, in_order

# What constants may be made with, of NumPy.
HARMLESS = ("np.array", "np.arange", "np.ones", "np.zeros", "np.eye", "np.asarray")
FAR = 1e3  # an entry at which every h that depends on it has grown


class DerivationError(RuntimeError):
    """A quantity could not be derived from a declaration to a trustworthy accuracy."""


@dataclass
class Built:
    """A problem of CVXPY, its variables, and the declaration that it was made of."""

    problem: Any
    x: Any
    t: Any
    s: Any
    expression: Any
    declared: tuple[Any, list]


@dataclass(eq=False)
class Template:
    """A declaration with CVXPY parameters: compiled once for all of their values.

    It is used where CVXPY compiles parameters (DPP), and where for the present values
    the tree is the one that the numbers themselves give: a function may do anything
    with a number.

    Parameters
    ----------
    declare : callable
        As of an epigraph, with parameters in the place of numbers.
    parameters : dict
        These parameters by name.
    """

    declare: Callable
    parameters: dict[str, Any]
    kept: dict[tuple, Built | None] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)

    def at(self, values: dict[str, float]) -> Template:
        """The same template with other values."""
        return replace(self, values=values)

    def built(self, owner: Epigraph, epigraph: bool, ordered: bool) -> Built | None:
        """The problem with the present values; None: it does not fit them."""
        key = owner.shape, owner.heights, epigraph, ordered
        for name, value in self.values.items():
            self.parameters[name].value = value
        if key not in self.kept:
            self.kept[key] = self._build(owner, epigraph, ordered)
        found = self.kept[key]
        if found is None:
            return None
        plain = owner.declared(owner.variable())
        return found if same_declaration(found.declared, plain) else None

    def _build(self, owner: Epigraph, epigraph: bool, ordered: bool) -> Built | None:
        try:
            made = owner.build(self.declare, epigraph, ordered)
        except Exception:  # the function needs numbers
            return None
        return made if made.problem.is_dcp(dpp=True) else None


@dataclass(eq=False)
class Epigraph:
    """What is declared by ``declare(x)``, in conic form; compiled when first needed.

    Parameters
    ----------
    declare : callable
        Takes a CVXPY expression x and returns h(x), or (h(x), [constraints]).
    shape : tuple of int
        The shape of x.
    heights : int
        How many functions of x there are (n for a loss, one per sample).
    nonneg : bool
        Whether x ≥ 0.
    what : str
        What errors call the declaration.
    template : Template, optional
        The same declaration with parameters in the place of numbers.
    """

    declare: Callable
    shape: tuple[int, ...]
    heights: int = 1
    nonneg: bool = False
    what: str = "the declaration"
    template: Template | None = None

    def build(self, declare: Callable, epigraph: bool, ordered: bool) -> Built:
        """The declaration as a problem of CVXPY: of (x, t), or of Σh alone."""
        import cvxpy as cp
        from cvxpy.atoms.affine.wraps import nonneg_wrap

        size = int(np.prod(self.shape))
        # Sign attributes rename variables on the way to the cones: a plain one keeps
        # its columns, and the declaration still sees the sign it needs for DCP.
        plain, t, s = cp.Variable(size), cp.Variable(self.heights), cp.Variable(size)
        x: Any = plain
        if len(self.shape) != 1:
            x = cp.reshape(x, self.shape, order="C")
        if self.nonneg:
            x = nonneg_wrap(x)
            x.name = lambda: "u"  # what errors call it
        expression, constraints = declared = self._declared(x, declare)
        if ordered:  # which keeps s ≥ 0
            expression = in_order(expression, x, s)
            constraints = [in_order(each, x, s) for each in constraints]
        elif self.nonneg:
            constraints = [plain >= 0, *constraints]
        if epigraph:
            height = cp.reshape(expression, (self.heights,), order="C")
            constraints, objective = [height <= t, *constraints], cp.sum(t)
        else:
            objective = cp.sum(expression)
        problem = cp.Problem(cp.Minimize(objective + 0 * cp.sum(plain)), constraints)
        if not problem.is_dcp():
            raise ValueError(
                f"{self.what} is not a convex CVXPY expression (DCP): "
                f"{_blame(expression, declared[1])}; "
                "write it with convex atoms, or with auxiliary variables and "
                "constraints as (expression, [constraints])"
            )
        return Built(problem, plain, t, s, expression, declared)

    def _compile(self, epigraph: bool, ordered: bool = False) -> Cones:
        import cvxpy as cp

        built = self.template and self.template.built(self, epigraph, ordered)
        built = built or self.build(self.declare, epigraph, ordered)
        problem, expression = built.problem, built.expression
        plain, t, s, size = built.x, built.t, built.s, built.x.size
        data, _, _ = problem.get_problem_data(cp.CLARABEL)
        if data.get("lower_bounds") is not None or data.get("upper_bounds") is not None:
            raise DerivationError(f"{self.what}: state bounds as constraints")
        form, n = data["param_prob"], data["A"].shape[1]
        columns, quadratic = form.var_id_to_col, form.P is not None
        offset = float(form.apply_parameters(quad_obj=quadratic)[1 + quadratic])
        cones = Cones(
            P=sp.csc_matrix(data.get("P", sp.csc_matrix((n, n)))),
            q=np.asarray(data["c"], float),
            A=sp.csc_matrix(data["A"]),
            b=np.asarray(data["b"], float),
            blocks=list(_blocks(data["dims"], self.what)),
            x=columns[plain.id] + np.arange(size),
            t=columns.get(t.id, 0) + np.arange(self.heights * epigraph),
            offset=offset,
        )
        numbers = (cones.P.data, cones.q, cones.A.data, [offset])
        if np.isnan(cones.b).any() or not np.isfinite(np.concatenate(numbers)).all():
            raise ValueError(
                f"{self.what} contains numbers that are NaN or infinite: {expression}; "
                "give finite constants and parameters"
            )
        return Ordered.of(cones, columns[s.id] + np.arange(size)) if ordered else cones

    def declared(self, x: Any) -> tuple[Any, list]:
        """The declaration at x: the expression, and its constraints."""
        return self._declared(x, self.declare)

    def _declared(self, x: Any, declare: Callable) -> tuple[Any, list]:
        """The declaration at x, or a sentence that says what it should have been."""
        import cvxpy as cp

        try:
            expression, constraints = declared_at(declare, x)
        except ValueError:
            raise  # a sentence of its own
        except Exception as error:
            said = f"{type(error).__name__}: {error}".replace("\n", " ").strip()
            calls = [c for c in numpy_calls(self.declare) if c not in HARMLESS]
            better = [f"cp.{call.rpartition('.')[2]}" for call in calls]
            instead = ", ".join(better or ["cp.sum and not np.sum"])
            advice = f"write it with CVXPY's functions, {instead}"
            if isinstance(error, IndexError):
                advice = f"its entries have the numbers 0 to {self.shape[0] - 1}"
            raise ValueError(
                f"{self.what} cannot be evaluated at a variable of shape {self.shape} "
                f"({', '.join(calls) + ' is of NumPy' if calls else said}); {advice}"
            ) from error
        if isinstance(expression, int | float | np.ndarray):
            expression = cp.Constant(expression)
        wanted = "one number" if self.heights == 1 else f"{self.heights} numbers"
        if not isinstance(expression, cp.Expression):
            raise ValueError(
                f"{self.what} returned {type(expression).__name__}; return a CVXPY "
                f"expression of {wanted}, or (expression, [constraints])"
            )
        if expression.size != self.heights:
            raise ValueError(
                f"{self.what} returned an expression of shape {expression.shape}; it "
                f"must be {wanted}" + (" (cp.sum?)" if self.heights == 1 else "")
            )
        variables = expression.variables()
        if any(v.attributes["boolean"] or v.attributes["integer"] for v in variables):
            raise ValueError(f"{self.what} has integer variables and is not convex")
        return expression, constraints

    def variable(self) -> Any:
        """A variable x as the declaration sees it."""
        import cvxpy as cp

        return cp.Variable(self.shape, nonneg=self.nonneg)

    @cached_property
    def cones(self) -> Cones:
        """The epigraph itself: for supports, duals and growth at infinity."""
        return self._compile(epigraph=True)

    @cached_property
    def total(self) -> Cones:
        """Σh as an objective, squares kept as squares: sharper numerically."""
        return self._compile(epigraph=False)

    @cached_property
    def _orders(self) -> dict[str, Ordered]:
        """`total` and `cones` in order, where the declaration sorts."""
        if self.heights > 1 or not self.nonneg:
            return {}
        x = self.variable()
        expression, constraints = self.declared(x)
        if all(in_order(node, x, x) is node for node in (expression, *constraints)):
            return {}
        forms = {
            "total": self._compile(epigraph=False, ordered=True),
            "cones": self._compile(epigraph=True, ordered=True),
        }
        return {name: form for name, form in forms.items() if isinstance(form, Ordered)}

    def _solved(
        self, name: str, question: Callable[[Cones], Solution]
    ) -> tuple[Cones, Solution]:
        """The form that answered a question, `total` or `cones`, and its answer."""
        if name in self._orders:
            answer = question(self._orders[name])
            if answer.status != UNSETTLED:
                return self._orders[name], answer
        form = getattr(self, name)
        return form, question(form)

    @cached_property
    def _expression(self) -> tuple[Any, Any] | None:
        """The declaration itself, where it needs no auxiliary variables."""
        x = self.variable()
        expression, constraints = self.declared(x)
        if constraints or any(v.id != x.id for v in expression.variables()):
            return None
        return x, expression

    @property
    def is_explicit(self) -> bool:
        """Whether values are those of an expression, good to rounding errors."""
        return self._expression is not None

    # ---- what is derived ----------------------------------------------------------

    def conjugate(self, v: Array) -> Array:
        """h*(v), one number per height (+inf outside the domain)."""
        form, solution = self._solved(
            self._sharper, lambda form: form.solve(form.q - form.cost(v))
        )
        if "DualInfeasible" in solution.status:
            return np.full(self.heights, np.inf)
        self._trust(solution, "its conjugate")
        # The dual objective: an upper bound wherever y is feasible.
        rows, columns = form.b * solution.y, 0.5 * solution.z * (form.P @ solution.z)
        if self.heights == 1:
            return np.array([np.sum(rows) + np.sum(columns) - form.offset])
        row_owner, column_owner = self._owners
        parts = np.bincount(row_owner, rows, self.heights)
        return parts + np.bincount(column_owner, columns, self.heights)

    @cached_property
    def _sharper(self) -> str:
        """The sharper form, unless constants would have to be split among samples."""
        shared = self.heights > 1 and self.total.offset != 0
        return "cones" if shared else "total"

    @cached_property
    def _owners(self) -> tuple[Array, Array]:
        """Which sample each row and column belongs to: samples share no cone."""
        total = getattr(self, self._sharper)
        # A row may hold a constant alone: it belongs where its cone belongs.
        first = np.cumsum([0] + [size for _, size, _ in total.blocks])
        joined = [
            np.arange(start + 1, start + size)
            for start, (kind, size, _) in zip(first, total.blocks)
            if kind not in ("zero", "nonneg")
        ]
        below = np.concatenate([np.array([], int), *joined])
        n = len(total.b)
        within = sp.csr_matrix((np.ones(len(below)), (below, below - 1)), shape=(n, n))
        bipartite = sp.bmat([[within, total.A], [total.A.T, total.P]])
        _, label = sp.csgraph.connected_components(bipartite, directed=False)
        label_of_x = label[len(total.b) + total.x].reshape(self.heights, -1)
        owner = np.full(label.max() + 1, -1)
        owner[label_of_x] = np.arange(self.heights)[:, None]
        if np.any(owner[label_of_x] != np.arange(self.heights)[:, None]):
            raise DerivationError(
                f"{self.what} couples several samples; a loss is a sum over samples"
            )
        owner = np.maximum(owner[label], 0)  # what belongs to nobody is zero
        return owner[: len(total.b)], owner[len(total.b) :]

    def value(self, x: Array) -> Array:
        """h(x), +inf where the constraints of the declaration exclude x."""
        if self._expression is not None:
            variable, expression = self._expression
            variable.save_value(np.asarray(x, float))
            with np.errstate(all="ignore"):  # outside its domain or far away: inf
                found = np.reshape(np.asarray(expression.value, float), self.heights)
            return np.where(np.isnan(found), np.inf, found)
        point = np.ravel(x).astype(float)
        name = "cones" if self.heights > 1 else "total"
        cones, solution = self._solved(name, lambda form: form.at(point))
        if "PrimalInfeasible" in solution.status:
            return np.full(self.heights, np.inf)
        self._trust(solution, "its value")
        if self.heights > 1:
            return solution.z[cones.t]
        z = solution.z
        return np.array([cones.q @ z + 0.5 * z @ (cones.P @ z) + cones.offset])

    def subgradient(self, x: Array) -> Array:
        """One subgradient of Σh at x: the multipliers of "x is given"."""
        point = np.ravel(x).astype(float)
        _, solution = self._solved("total", lambda form: form.at(point))
        self._trust(solution, "its subgradient")
        return -solution.y[: len(point)].reshape(self.shape)

    def prox(self, x: Array, step: Array | float) -> Array:
        """argmin_z Σ h(z) + Σ (z − x)² / (2 step)."""
        scale = 1.0 / np.broadcast_to(np.asarray(step, float), self.shape).ravel()
        # Relative to the distance from 0: Clarabel's goals are absolute below 1.
        unit = min(float(np.max(scale * np.ravel(x) ** 2, initial=0.0)), 1.0) or 1.0

        def nearest(form: Cones) -> Solution:
            q = form.q - form.cost(scale * np.ravel(x))
            bent = sp.csc_matrix((form.P + sp.diags(form.cost(scale))) / unit)
            return replace(form, P=bent).solve(q / unit)

        form, solution = self._solved("total", nearest)
        self._trust(solution, "its prox")
        return solution.z[form.x].reshape(self.shape)

    def slope_at_infinity(self, direction: Array) -> float:
        """h^∞(direction) from values far away; +inf where h outgrows every line.

        Slopes of a convex function increase towards h^∞, so a finite answer errs, if
        at all, on the small side: the domain of h* it bounds is never too large.
        """
        if self._expression is None:  # auxiliary variables: ask the recession cone
            with contextlib.suppress(DerivationError):
                return self.feasible_scale(direction)
            return np.inf
        near, far = 2.0**30 * direction, 2.0**40 * direction
        first = float(np.sum(self.value(2 * near) - self.value(near))) / 2.0**30
        last = float(np.sum(self.value(2 * far) - self.value(far))) / 2.0**40
        grows = not np.isfinite(last) or last - first > 1e-5 * (1 + abs(first))
        return np.inf if grows else last

    def feasible_scale(self, v: Array) -> float:
        """The largest s with h*(s v) finite: inf { h^∞(x) : ⟨v, x⟩ = 1 }."""
        top = float(np.max(np.abs(v)))
        if top == 0:
            return np.inf

        def least(form: Cones) -> Solution:
            row = sp.csc_matrix(form.cost(v / top)[None, :])
            zero = np.zeros_like(form.b)  # b = 0: the recession cone of the epigraph
            return form.solve(form.cost(0.0, 1.0), row=row, rhs=np.ones(1), b=zero)

        cones, solution = self._solved("cones", least)
        if "PrimalInfeasible" in solution.status:
            return np.inf
        self._trust(solution, "the domain of its conjugate")
        return float(np.sum(solution.z[cones.t])) / top

    def _trust(self, solution: Solution, quantity: str) -> None:
        if solution.status != "Solved":
            raise DerivationError(
                f"{self.what}: {quantity} could not be derived numerically (Clarabel "
                f"says {solution.status}); {self._advice()}"
            )

    def _advice(self) -> str:
        """What may help: kernels that are in no term are a common mistake."""
        free = self._free() if self.nonneg and self.is_explicit else np.zeros(0, int)
        if free.size:
            names = ", ".join(map(str, free))
            return f"no term has u_m for m = {names}: give these kernels a penalty"
        return "give it in closed form, or rescale the data"

    def _free(self) -> Array:
        """The entries of x ≥ 0 on which h does not depend.

        A convex function that increases, and is constant from 0 on along an axis, has
        no slope in this direction anywhere.
        """
        here = self.value(np.zeros(self.shape))
        far = [self.value(FAR * axis) for axis in np.eye(self.shape[0])]
        return np.flatnonzero([np.all(there <= here) for there in far])

    # ---- the same duality as CVXPY constraints ------------------------------------

    def support_program(self, gx: Any, gt: Any) -> tuple[Any, list]:
        """sup { ⟨gx, x⟩ + ⟨gt, t⟩ : (x, t) ∈ epi h } as (expression, constraints).

        gx and gt are CVXPY expressions (or numbers) of the lengths of x and t.
        """
        import cvxpy as cp

        cones = self.cones
        y = cp.Variable(len(cones.b))
        rows = sp.csr_matrix(cones.A.T)
        named = np.concatenate([cones.x, cones.t])
        extras = np.setdiff1d(np.arange(rows.shape[0]), named)
        constraints = [rows[cones.x] @ y == gx, rows[cones.t] @ y == gt]
        if len(extras):
            constraints.append(rows[extras] @ y == 0)
        start = 0
        for (kind, size), same in groupby(cones.blocks, key=lambda block: block[:2]):
            exponents = np.array([block[2] for block in same])
            stop = start + size * len(exponents)
            Y = cp.reshape(y[start:stop], (len(exponents), size), order="C")
            constraints += _in_dual_cones(Y, kind, exponents)
            start = stop
        return cones.b @ y, constraints


def _blame(expression: Any, constraints: list) -> str:
    """The smallest part of a declaration that breaks the rules of DCP."""
    wrong = [each for each in constraints if not each.is_dcp()]
    if expression.is_convex() and wrong:
        return f"its constraint {wrong[0]} is not convex"
    part = expression
    while inner := [arg for arg in part.args if not arg.is_dcp()]:
        part = inner[0]
    kind = "concave" if part.is_concave() else "neither convex nor concave"
    return f"its part {part} is {kind}"


def _blocks(dims: Any, what: str) -> Iterator[Block]:
    """Clarabel's order of rows in CVXPY's data: zero, nonneg, soc, psd, exp, power."""
    if dims.psd or dims.pnd:
        raise DerivationError(
            f"{what} uses semidefinite or n-dimensional power cones, which the derived "
            "dual does not cover; write it with second-order, exponential or 3-d power "
            "cones"
        )
    if dims.zero:
        yield ("zero", dims.zero, 0.0)
    if dims.nonneg:
        yield ("nonneg", dims.nonneg, 0.0)
    yield from (("soc", size, 0.0) for size in dims.soc)
    yield from (("exp", 3, 0.0) for _ in range(dims.exp))
    yield from (("pow", 3, float(a)) for a in dims.p3d)


def _in_dual_cones(Y: Any, kind: str, a: Array) -> list:
    """Every row of Y in K*, in CVXPY; the dual of an equality is free."""
    import cvxpy as cp

    if kind == "nonneg":
        return [Y >= 0]
    if kind == "soc":
        return [cp.SOC(Y[:, 0], Y[:, 1:], axis=1)]
    if kind == "exp":
        return [cp.ExpCone(-Y[:, 1], -Y[:, 0], np.e * Y[:, 2])]
    if kind == "pow":
        scaled = cp.multiply(1 / a, Y[:, 0]), cp.multiply(1 / (1 - a), Y[:, 1])
        return [cp.PowCone3D(*scaled, Y[:, 2], a)]
    return []
