"""The identities the solvers rely on, proved by SymPy, each with a slip that must fail.

A derivation is a list of steps "left = right"; it holds when SymPy reduces every
left − right to 0, for symbolic exponents where the identity has them. Kinked losses
have no symbolic supremum; there Fenchel–Young is checked with 50 digits at every kink.

`slip=True` builds the twin with one deliberate mistake (a wrong exponent, a lost ½,
where there is one the slip printed in the paper): a proof that cannot fail proves
nothing. `mklopt derive NAME` prints the steps as text or LaTeX.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..util.extras import MissingExtra, missing

if said := missing("sympy"):
    raise MissingExtra(said)

import sympy as sp


@dataclass(frozen=True)
class Step:
    """left = right, and why. `shown` is what left was before SymPy evaluated it."""

    text: str
    left: Any
    right: Any
    shown: Any = None

    @property
    def start(self) -> Any:
        """The left side as it is shown."""
        return self.left if self.shown is None else self.shown

    def holds(self) -> bool:
        """Whether SymPy reduces left − right to 0."""
        return _vanishes(sp.sympify(self.left) - sp.sympify(self.right))


@dataclass(frozen=True)
class Derivation:
    """A named identity as a chain of steps."""

    name: str
    title: str
    steps: list[Step] = field(repr=False)

    def holds(self) -> bool:
        """Whether every step holds."""
        return all(step.holds() for step in self.steps)

    def text(self) -> str:
        """The steps for a terminal."""
        lines = [self.title, ""]
        for number, step in enumerate(self.steps, 1):
            lines.append(f"{number}. {step.text}")
            lines.append(f"       {sp.sstr(step.start)}")
            lines.append(f"     = {sp.sstr(step.right)}")
        return "\n".join(lines)

    def latex(self) -> str:
        """The steps as an align environment."""
        lines = [f"% {self.title}", r"\begin{align*}"]
        for step in self.steps:
            lines.append(rf"  &\text{{{step.text}}}\\")
            lines.append(rf"  &\quad {sp.latex(step.start)} = {sp.latex(step.right)}\\")
        return "\n".join([*lines, r"\end{align*}"])


_PROOFS: dict[str, Callable[..., Derivation]] = {}


def _vanishes(difference: sp.Expr) -> bool:
    """True when SymPy reduces it to 0, by the cheapest way that works.

    A value away from 0 at one point is a refutation, and quicker found.
    """
    symbols = sorted(difference.free_symbols, key=str)
    point = {x: sp.Rational(3 + 2 * i, 2 + i) + i for i, x in enumerate(symbols)}
    value = sp.N(difference.subs(point), 30)
    if value.is_number and abs(value) > sp.Float("1e-15"):
        return False
    ways: tuple[Callable[[Any], Any], ...] = (
        sp.simplify,
        lambda e: sp.simplify(sp.powdenest(sp.expand_power_base(e), force=True)),
        lambda e: sp.simplify(sp.expand_log(sp.logcombine(e, force=True), force=True)),
        lambda e: sp.simplify(sp.together(sp.powsimp(sp.expand(e), force=True))),
    )
    return any(way(difference) == 0 for way in ways)


def names() -> list[str]:
    """All derivations by name."""
    return sorted(_PROOFS)


def derive(name: str, *, slip: bool = False) -> Derivation:
    """The derivation by name; slip=True for its wrong twin."""
    if name not in _PROOFS:
        raise ValueError(f"{name!r} is not known; choose one of {', '.join(names())}")
    return _PROOFS[name](slip)


def _proof(build: Callable[[bool], list[Step]]) -> Callable[[bool], list[Step]]:
    """Register a derivation; the first line of its docstring is its title."""
    name = build.__name__
    title = str(build.__doc__).split("\n")[0].rstrip(".")
    _PROOFS[name] = lambda slip: Derivation(name, title, build(slip))
    return build


def _stationary(objective: Any, variable: Any, point: Any) -> Step:
    shown = sp.Subs(sp.Derivative(objective, variable), variable, point)
    slope = sp.diff(objective, variable).subs(variable, point)
    return Step(f"stationary in {variable}", slope, 0, shown)


def _optimum(objective: Any, variable: Any, point: Any, value: Any) -> list[Step]:
    shown, found = sp.Subs(objective, variable, point), objective.subs(variable, point)
    optimal = Step("optimal value", found, value, shown)
    return [_stationary(objective, variable, point), optimal]


def _positive(names: str) -> Any:
    return sp.symbols(names, positive=True)


# ---- exponents and norms -----------------------------------------------------


@_proof
def dual_exponents(slip: bool) -> list[Step]:
    """Dual exponents: q = 2p/(p+1), 1/q + 1/q* = 1 and q* = 2p* (Kloft, sec. 3)."""
    p = _positive("p")
    q = 2 * p / (p + (2 if slip else 1))
    dual = 2 * p / (p - 1)
    return [
        Step("the exponents are dual", 1 / q + 1 / dual, 1),
        Step("q* is twice the dual of p", dual, 2 * (p / (p - 1))),
        Step("p is recovered from q", q / (2 - q), p),
    ]


@_proof
def holder(slip: bool) -> list[Step]:
    """Hölder is an equality at v = u^(q−1)."""
    q, a, b = _positive("q u_1 u_2")
    dual = q / (q - 1)
    v = [x ** (q - (2 if slip else 1)) for x in (a, b)]
    inner, total = a * v[0] + b * v[1], a**q + b**q
    plain = partial(sp.powdenest, force=True)
    return [
        Step("the inner product is the sum of powers", inner, total),
        Step("v to the power q* is u to the power q", plain(v[0] ** dual), a**q),
        Step("so the norms multiply to it", total ** (1 / q + 1 / dual), total),
    ]


@_proof
def theta_update(slip: bool) -> list[Step]:
    """The ℓp update of θ and its optimal value ½‖u‖_q² (Kloft, eq. 17)."""
    p, a, b = _positive("p u_1 u_2")
    e = 2 / (p + (2 if slip else 1))
    Z = (a ** (p * e) + b ** (p * e)) ** (1 / p)
    theta = [x**e / Z for x in (a, b)]
    multipliers = [x**2 / (2 * t ** (p + 1)) for x, t in zip((a, b), theta)]
    q = 2 * p / (p + 1)
    value = sp.Rational(1, 2) * sum(x**2 / t for x, t in zip((a, b), theta))
    return [
        Step("stationarity has one multiplier for all m", *multipliers),
        Step("θ lies on the unit sphere", sum(t**p for t in theta), 1),
        Step("the value is the block norm", value, (a**q + b**q) ** (2 / q) / 2),
    ]


@_proof
def tikhonov(slip: bool) -> list[Step]:
    """Tikhonov's size t, its value and its dual (Kloft, eq. 4 in closed form)."""
    N, mu, t, D = _positive("N mu t D")
    objective = N**2 / (2 * t) + mu * t**2
    best = (N**2 / ((2 if slip else 4) * mu)) ** sp.Rational(1, 3)
    value = 3 * sp.Rational(1, 2) ** sp.Rational(4, 3) * mu ** sp.Rational(1, 3)
    value *= N ** sp.Rational(4, 3)
    dual = t * D**2 / 2 - mu * t**2
    steps = _optimum(dual, t, D**2 / (4 * mu), D**4 / (16 * mu))
    return _optimum(objective, t, best, value) + steps


@_proof
def block_power(slip: bool) -> list[Step]:
    """BlockNorm(q) with C meets BlockPower(q) with (q/2) N^(q−2) C (Kloft, prop. 5)."""
    q, a, b = _positive("q u_1 u_2")
    N = (a**q + b**q) ** (1 / q)
    ratio = (1 if slip else q / 2) * N ** (q - 2)  # the slip is the paper's own
    power, square = (a**q + b**q) / 2, N**2 / 2
    return [
        Step("∂ of the power is a multiple of ∂ of the square",
             sp.diff(power, x), ratio * sp.diff(square, x))
        for x in (a, b)
    ]  # fmt: skip


@_proof
def group_lasso_square(slip: bool) -> list[Step]:
    """Group lasso and its square: C' = C/S (Suzuki, eq. 13 corrected)."""
    C, a, b, x, y = _positive("C u_1 u_2 x y")
    S = a + b
    other = C * S if slip else C / S  # the paper multiplies
    slope = C * sp.diff(x + y, x)
    square = sp.diff(other / 2 * (x + y) ** 2, x).subs({x: a, y: b})
    return [Step("stationarity of C Σu is that of C'/2 (Σu)²", slope, square)]


@_proof
def jain_sum(slip: bool) -> list[Step]:
    """Jain's r(d) = Σd leaves √2 Σu: GroupLasso with C/√2."""
    u, d = _positive("u d")
    objective = u**2 / (2 * d) + d
    best = u / (2 if slip else sp.sqrt(2))
    return _optimum(objective, d, best, sp.sqrt(2) * u)


# ---- losses ------------------------------------------------------------------


@_proof
def squared_conjugate(slip: bool) -> list[Step]:
    """Conjugate of the squared loss: V*(a) = ½a² + a y."""
    a, y, f = sp.symbols("a y f", real=True)
    objective = a * f - (f - y) ** 2 / 2
    half = 1 if slip else sp.Rational(1, 2)
    return _optimum(objective, f, y + a, half * a**2 + a * y)


@_proof
def logistic_conjugate(slip: bool) -> list[Step]:
    """Conjugate of the logistic loss: t log t + (1−t) log(1−t), t = −a y."""
    s = _positive("s")  # t = s/(1+s) runs through (0, 1)
    m = sp.symbols("m", real=True)
    t = s / (1 + s)
    objective = -t * m - sp.log(1 + sp.exp(-m))
    at = sp.log((1 - t) / t) if not slip else sp.log(t / (1 - t))
    entropy = t * sp.log(t) + (1 - t) * sp.log(1 - t)
    value = objective.subs(m, sp.simplify(at))
    return [
        _stationary(objective, m, sp.simplify(at)),
        Step("value there", sp.expand_log(value, force=True),
             sp.expand_log(sp.simplify(entropy), force=True)),
    ]  # fmt: skip


@_proof
def kinked_losses(slip: bool) -> list[Step]:
    """Kinked losses: Fenchel–Young with 50 digits at every kink.

    sup over f of a f − V(f), over kinks and a fine grid around them, is V*(a).
    """
    y, tau, delta, eps = map(sp.Rational, ("0.7", "0.2", "1.5", "0.1"))

    def huber(f: Any) -> Any:
        inner = sp.Min(sp.Abs(f - y), delta)
        return inner * (sp.Abs(f - y) - inner / 2)

    losses: dict[str, tuple[Any, Any, tuple, Any]] = {  # V, kinks at a, domain, V*
        "hinge": (lambda f: sp.Max(0, 1 - f), lambda a: [1], (-1, 0), lambda a: a),
        "ε-insensitive": (
            lambda f: sp.Max(0, sp.Abs(f - y) - eps), lambda a: [y - eps, y + eps],
            (-1, 1), lambda a: a * y + (0 if slip else eps) * abs(a),
        ),
        "quantile": (
            lambda f: sp.Max(tau * (y - f), (tau - 1) * (y - f)), lambda a: [y],
            (-tau, 1 - tau), lambda a: a * y,
        ),
        "Huber": (
            huber, lambda a: [y + a], (-delta, delta), lambda a: a * y + a**2 / 2
        ),
    }  # fmt: skip
    steps = []
    for name, (V, kinks, (low, high), conjugate) in losses.items():
        for part in range(5):  # the ends of the domain included
            a = low + (high - low) * sp.Rational(part, 4)
            points = [k + sp.Rational(j, 7) for k in kinks(a) for j in range(-21, 22)]
            attained = max(sp.N(a * f - V(f), 50) for f in points)
            known = sp.N(conjugate(a), 50)
            steps.append(Step(f"{name}: the supremum at a = {a}", attained, known))
    return steps


# ---- VSKL, mirror descent, SpicyMKL, OBSCURE ---------------------------------


@_proof
def vskl_gamma(slip: bool) -> list[Step]:
    """VSKL's γ update and its optimal value (Aflalo, lemma 2.2 and prop. 3.3)."""
    r, a, b = _positive("r D_1 D_2")  # r is q*, (a, b) the D_j
    e = 1 / (r + (0 if slip else 1))
    Z = (a ** (r * e) + b ** (r * e)) ** (1 / r)
    gamma = [x**e / Z for x in (a, b)]
    value = sum(x / g for x, g in zip((a, b), gamma))
    s = r / (r + 1)
    return [
        Step("one multiplier for all groups",
             a / gamma[0] ** (r + 1), b / gamma[1] ** (r + 1)),
        Step("γ lies on the sphere of q*", sum(g**r for g in gamma), 1),
        Step("optimal value", value, (a**s + b**s) ** (1 + 1 / r)),
    ]  # fmt: skip


@_proof
def vskl_gradient(slip: bool) -> list[Step]:
    """The gradient of G (Aflalo, appendix A; the printed exponent is 1/q*)."""
    r, x, d, b = _positive("r x d b")  # D_1 = x d with λ = x, D_2 = b
    s = r / (r + 1)
    total = (x * d) ** s + b**s
    G = -(total ** (1 + 1 / r)) / 2
    exponent = 1 / r if slip else 1 / (r + 1)
    printed = -d / 2 * total ** (1 / r) / (x * d) ** exponent
    return [Step("derivative along λ_jk", sp.diff(G, x), printed)]


@_proof
def entropy_mirror(slip: bool) -> list[Step]:
    """The entropy mirror map: ∇Φ = log λ + 1, its inverse the softmax."""
    a, b = _positive("a b")
    x, y = a / (a + b), b / (a + b)
    grow = [sp.log(z) + 1 for z in (x, y)]
    scale = 2 if slip else 1
    weights = [sp.exp(scale * g) for g in grow]
    z = _positive("z")
    return [
        Step("gradient", sp.diff(z * sp.log(z), z), sp.log(z) + 1),
        Step("Hessian", sp.diff(z * sp.log(z), z, 2), 1 / z),
        Step("softmax of the gradient gives λ back", weights[0] / sum(weights), x),
    ]


@_proof
def spicy(slip: bool) -> list[Step]:
    """SpicyMKL's gradient and Hessian on an active block (Suzuki, eqs. 8 and 9)."""
    g, C = _positive("gamma C")
    k11, k12, k22, a1, a2, r1, r2 = sp.symbols("k11 k12 k22 a1 a2 r1 r2", real=True)
    K = sp.Matrix([[k11, k12], [k12, k22]])
    v = sp.Matrix([a1 + g * r1, a2 + g * r2])
    size = sp.sqrt((v.T * K * v)[0])
    phi = (size - g * C) ** 2 / (2 * g)
    gradient = K * v * (1 - g * C / size)
    share = g * C / size
    unit = v / size
    half = 2 if slip else 1
    hessian = g * ((1 - share) * K + half * share * K * unit * unit.T * K)
    return [
        Step("gradient, first entry", sp.diff(phi, r1), gradient[0]),
        Step("Hessian, first row", sp.diff(gradient[0], r1), hessian[0, 0]),
        Step("Hessian, off the diagonal", sp.diff(gradient[0], r2), hessian[0, 1]),
    ]


@_proof
def orabona_lemma(slip: bool) -> list[Step]:
    """The gradient of h = q/2 ‖w‖_p², its inverse and its norm (Orabona, lemma 1)."""
    p, a, b = _positive("p u_1 u_2")
    q = p / (p - 1)
    N = (a**p + b**p) ** (1 / p)
    lost = sp.Rational(1, 2) if slip else 1
    grad = [lost * q * (x / N) ** (p - 2) * x for x in (a, b)]
    size = q * N  # ‖∇h‖_q
    back = (grad[0] / size) ** (q - 2) * grad[0] / q
    return [
        Step("gradient", sp.diff(q / 2 * N**2, a), grad[0]),
        Step("its q-norm is q‖w‖_p", sum((x / size) ** q for x in grad), 1),
        Step("∇h* inverts ∇h", sp.powdenest(back, force=True), a),
    ]
