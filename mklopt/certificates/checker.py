"""Check a certificate file. It needs Python and the three files beside it alone.

`python checker.py FILE`: the file claims lower ≤ f* ≤ upper for kernels K_m + δ_m I and

    f* = min over w, b   Σ C_i V(f_i, y_i) + Ω(‖w_1‖, …, ‖w_M‖),   f = Σ⟨w_m, ψ_m⟩ + b

K_m is in the file as an upper triangle, as a factor L_m, K_m = L_m L_mᵀ, or as a rule
of points (matrices.py). Ω has a name, or a conic form (conic.py). Floats are read as
the rational numbers they are. What is proved here:
1. K_m + δ_m I ⪰ 0. Factors and rules are. For triangles, some Cholesky factor R in
   floats is rounded to integers, and K_m + δ_m I − R Rᵀ, computed exactly, has a
   dominant diagonal.
2. s·α is in the domain of V*, 0 ≤ s ≤ 1, with Σα = 0 for a bias.
3. lower ≤ −Σ C V*(−sα/C) − Ω*(s√(tr αᵀK_mα)) ≤ f*, by weak duality.
4. upper ≥ Σ C V(f) + Ω(u) ≥ f* at w_m = t θ_m Σα_iψ_m (or t Σβ_miψ_m), bias t·b; for
   factors also at any t w_m, f = Σ L_m w_m, u_m = ‖w_m‖.
With k classes α_i, β_mi, b and f_i have k entries each. Sums and products are exact.
Roots, powers and logarithms come from `decimal` with 60 digits; then the bounds are
moved outward by 1e-30 of the sum of all magnitudes. docs/certificate-format.md has
every rule, and why this is enough.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Any

if __package__:
    from .conic import Conic
    from .matrices import Factor, Grid, Rule, Triangle, dot, grid, product
    from .reading import Refused, Statement, demand, exact, floats, opened, read
else:  # python -I checker.py: the files beside it
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    from conic import Conic  # type: ignore[no-redef]
    from matrices import Factor, Grid, Rule, Triangle, dot, grid, product  # type: ignore[no-redef]
    from reading import Refused, Statement, demand, exact, floats, opened, read  # type: ignore[no-redef]

DIGITS = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX)
OUTWARD, SERIES, UP = (Decimal(f"1e-{digits}") for digits in (30, 12, 50))
LEAST = Decimal("1e-400000000")  # above what underflows, also with 32 bits
ZERO, NONE = Decimal(0), Fraction(0)


def check(content: bytes) -> dict[str, Any]:
    """What the bytes of a file prove; Refused if the certificate is invalid."""
    try:
        with localcontext(DIGITS):
            return Claim(opened(content)).proved()
    except Refused:
        raise
    except Exception as error:  # whatever a damaged file leads to
        what = ascii(f"{type(error).__name__}: {error}"[:200])
        raise Refused(f"the file is not well-formed ({what})") from None


def decimal(x: Fraction) -> Decimal:
    """x with 60 digits."""
    return Decimal(x.numerator) / Decimal(x.denominator)


def above(x: Fraction) -> Decimal:
    """A little more than √x."""
    return decimal(x).sqrt() * (1 + UP)


def power(x: Decimal, r: Fraction) -> Decimal:
    """x^r for x ≥ 0 and r > 0."""
    return (x.ln() * r.numerator / r.denominator).exp() + LEAST if x else ZERO


def norm(x: list[Decimal], r: Fraction | None) -> Decimal:
    """‖x‖_r for x ≥ 0; r = None is ∞."""
    top = max(x)
    if r is None or not top:
        return top
    return top * power(sum((power(a / top, r) for a in x), ZERO), 1 / r)


def mixed(x: list[Decimal], groups: Any, r: Any, s: Any) -> Decimal:
    """‖(‖x_j‖_r)_j‖_s over groups j."""
    return norm([norm([x[k] for k in g], r) for g in groups], s)


def dual(r: Fraction | None) -> Fraction | None:
    """The exponent of the dual norm."""
    return Fraction(1) if r is None else r / (r - 1) if r > 1 else None


class Claim(Statement):
    """The problem, the points and the bounds of a file, and the proof of the bounds."""

    def proved(self) -> dict[str, Any]:
        """The bounds and the problem they are for, or Refused."""
        low, high = self.claim["lower"], self.claim["upper"]
        demand(low <= high, f"lower = {low} is above upper = {high}")
        problem, (loss, formulation) = self.digest(), self.described
        same = problem == self.claim["problem"]
        demand(same, "the data are not those of the problem that is named")
        lower, upper = self.bounds(*self.measured())
        proof = f"is not proved: the points show {lower:.20g} and {upper:.20g}"
        demand(Decimal(low) <= lower, f"lower = {low!r} {proof}")
        demand(math.inf > high and Decimal(high) >= upper, f"upper = {high!r} {proof}")
        about = {"n": self.n, "M": self.M, "shift": max(self.shift), "bias": self.bias}
        about |= {"problem": problem, "loss": loss, "formulation": formulation}
        return about | {"statement": str(self), "lower": low, "upper": high}

    def measured(self) -> tuple[list, list, list, Fraction, list]:
        """−CV* of the samples, v², the predictions and their error, and u²."""
        alpha, s = self._dual(self.claim["dual"])
        gains = self._gains(alpha, s)
        theta, beta, bias, t = self._primal(self.claim["primal"])
        quads, squares, f = [], [], [[b] * self.n for b in bias]
        errors = [NONE] * self.k  # of f, by entries that are known to a radius
        for m in range(self.M):
            kernel, shift = self._kernel(m), Fraction(self.shift[m])
            found = [product(kernel, shift, a) for a in alpha]
            quads.append(s * s * sum(quad for _, quad, _ in found))
            if beta:
                own = [grid(beta[m][j :: self.k]) for j in range(self.k)]
                if "features" in self.claim["primal"]:
                    found = [(*kernel.unfolded(w), NONE) for w in own]  # type: ignore[union-attr]
                else:
                    found = [product(kernel, shift, b) for b in own]
            squares.append((t * theta[m]) ** 2 * sum(quad for _, quad, _ in found))
            for j, (image, _, error) in enumerate(found):
                f[j] = [a + theta[m] * b for a, b in zip(f[j], image)]
                errors[j] += theta[m] * error
        rows = [[t * a for a in row] for row in zip(*f)]
        return gains, quads, rows, abs(t) * max(errors), squares

    def bounds(
        self, gains: list, quads: list, f: list, error: Fraction, squares: list
    ) -> tuple[Decimal, Decimal]:
        """What the points show."""
        return self._lower(gains, quads), self._upper(f, error, squares)

    @cached_property
    def conic(self) -> Conic | None:
        """Ω by its conic form, if it has no name."""
        return Conic(self.terms, self.M) if self.name == "Conic" else None

    def _kernel(self, m: int) -> Factor | Triangle | Rule:
        n = self.n
        if self.rules:
            name, terms = self.rules[m]
            return Rule(name, terms, [self.points[c] for c in terms["columns"]], n)
        values = self.arrays[m]
        if self.factors:
            fits = len(values) > 0 and len(values) % n == 0
            demand(fits, f"factor {m} is not a matrix of {n} rows")
            return Factor(values, n)
        fits = len(values) == n * (n + 1) // 2
        demand(fits, f"kernel {m} is not an upper triangle of {n} rows")
        kernel, shift = Triangle(values, n), Fraction(self.shift[m])
        demand(kernel.positive(shift), f"kernel {m} + δI is not proved ⪰ 0")
        return kernel

    def _dual(self, point: dict[str, Any]) -> tuple[list[Grid], Fraction]:
        """The columns of α, and s."""
        k, e, s = point["integers"], point["exponent"], exact(point["shrink"])
        whole = len(k) == self.n * self.k and abs(e) <= 2200
        whole = whole and max(map(abs, k)) < 1 << 2200
        demand(whole, "the dual point is not one integer per sample and class over 2^e")
        if e < 0:
            k, e = [a << -e for a in k], 0
        demand(0 <= s <= 1, f"the dual point is scaled by {s}, outside [0, 1]")
        columns = [k[j :: self.k] for j in range(self.k)]
        for a in map(sum, columns) if self.bias else ():
            demand(a == 0, f"Σα = {a} · 2^−{e}, not 0 as a bias needs it")
        return [(column, e) for column in columns], s

    def _gains(self, alpha: list[Grid], s: Fraction) -> list[Decimal]:
        """−C V*(−sα/C) of every sample, with s·α proved feasible."""
        gains = []
        for i, (y, C) in enumerate(zip(map(Fraction, self.y), map(Fraction, self.C))):
            a = [s * Fraction(k[i], 1 << e) / C for k, e in alpha]
            gain = self._gain(a, y, C)
            demand(gain is not None, f"α_{i} lies outside the domain of the dual")
            gains.append(gain or ZERO)
        return gains

    def _gain(self, a: list[Fraction], y: Fraction, C: Fraction) -> Decimal | None:
        """−C V*(−a), None outside the domain; a sum of entropies is good to 1e-30."""
        if self.residual:
            kink, ridge, low, high = self.residual
            value = a[0] * y - kink * abs(a[0]) - ridge * a[0] ** 2 / 2
            return decimal(C * value) if low <= a[0] <= high else None
        moved = [a[0] * y] if self.k == 1 else [-x for j, x in enumerate(a) if j != y]
        g = [1 - sum(moved, NONE), *moved]  # −a + e_y, in the simplex
        if min(g) < 0 or (self.k > 1 and sum(a) != 0):
            return None
        if self.hinge:
            return decimal(C * sum(moved, NONE))
        parts = [decimal(x) for x in g if x]
        return -decimal(C) * (sum((x * x.ln() for x in parts), ZERO) + OUTWARD)

    def _value(self, f: Sequence[Fraction], y: Fraction) -> Decimal:
        """V(f, y), from above but for the last digits."""
        if self.residual:
            kink, ridge, low, high = self.residual
            r = y - f[0]
            if not ridge:
                return decimal(max(NONE, low * (r + kink), high * (r - kink)))
            a = min(max(r, low), high)
            return decimal(a * r - a * a / 2)
        rest = [-y * f[0]]  # f_j − f_y of the other outputs
        if self.k > 1:
            rest = [x - f[int(y)] for j, x in enumerate(f) if j != y]
        if self.hinge:
            return decimal(max(NONE, 1 + max(rest)))
        *others, top = sorted([NONE, *rest])
        small = (decimal(max(d - top, Fraction(-100))).exp() for d in others)
        x = sum(small, ZERO)  # ln Σ e^d = top + ln(1 + x)
        series = x - x * x / 2 + x * x * x / 3  # ≥ ln(1 + x), where 1 + x has no digits
        return decimal(top) + (series if x < SERIES else (1 + x).ln())

    def _lower(self, gains: list[Decimal], squares: list[Fraction]) -> Decimal:
        """The dual value from below; v = √squares."""
        penalty = self._conjugate(squares)
        size = sum(map(abs, gains), ZERO) + abs(penalty)
        return sum(gains, ZERO) - penalty - OUTWARD * size

    def _upper(self, f: list, error: Fraction, squares: list[Fraction]) -> Decimal:
        """The primal value from above, at every f within `error`; u = √squares."""
        values = (self._worst(a, error, Fraction(y)) for a, y in zip(f, self.y))
        losses = (decimal(Fraction(C)) * value for C, value in zip(self.C, values))
        loss, penalty = sum(losses, ZERO), self._penalty(squares)
        return loss + penalty + OUTWARD * (loss + abs(penalty))

    def _worst(self, f: Sequence[Fraction], error: Fraction, y: Fraction) -> Decimal:
        """V from above: convex in one output, of slope ‖∂V‖₁ ≤ 2 in several."""
        if self.k > 1 or not error:
            return self._value(f, y) + 2 * decimal(error) * (1 + UP)
        return max(self._value([f[0] + a], y) for a in (-error, error))

    def _penalty(self, squares: list[Fraction]) -> Decimal:
        """Ω(√squares)."""
        if self.conic:
            point = self.claim["primal"]["epigraph"]
            return decimal(self.conic.penalty(squares, point))
        if self.name == "NonIsotropic":
            z = self._witness("primal", "direction")
            theta = [dot(row, z) for row in self.E]
            good = min(theta) >= 0 and all(w or not x for x, w in zip(squares, theta))
            demand(good, "a weight E z is negative, or 0 where a kernel is used")
            parts = (x / w for x, w in zip(squares, theta) if x)
            return above(dot(z, theta)) * decimal(sum(parts, NONE)) / 2
        used = all(w or not x for x, w in zip(squares, self.norm.prior))
        demand(used, "a kernel with weight 0 is used")
        u = [above(x / w) if w else ZERO for x, w in zip(squares, self.norm.prior)]
        if self.name == "BlockPower":
            return sum((power(x, self.norm.r) for x in u), ZERO) / 2
        N = mixed(u, *self.norm[:3])
        if self.name == "Tikhonov":
            return power(decimal(27 * self.mu / 16) * N**4, Fraction(1, 3))
        linear = sum(map(above, squares), ZERO)
        return decimal(self.c) * N * N / 2 + decimal(self.a) * linear

    def _conjugate(self, squares: list[Fraction]) -> Decimal:
        """Ω*(√squares)."""
        if self.conic:
            y = self.claim["dual"]["multiplier"]
            return decimal(self.conic.conjugate(squares, y))
        if self.name == "NonIsotropic":
            slack = self._witness("dual", "slack")
            demand(min(slack) >= 0, "the slack has an entry < 0")
            E = [x for m, row in enumerate(self.terms["E"]) for x in row[m:]]
            good = Triangle(E, self.M).positive(NONE) and all(map(any, self.E))
            demand(good, "E is not proved positive definite")
            x = [a + b for a, b in zip(squares, slack)]
            return above(dot(x, [dot(row, x) for row in self.E])) / 2
        if not self.c:
            inside = max(squares) <= self.a**2
            demand(inside, f"the dual point has a kernel with αᵀK_mα > {self.a}²")
            return ZERO
        groups, r, s, prior = self.norm
        v = [above(x) - decimal(self.a) for x in squares]
        if self.name == "BlockPower":
            parts = (power(x * 2 / decimal(r), r / (r - 1)) for x in v)
            return decimal(r - 1) / 2 * sum(parts, ZERO)
        v = [max(x, ZERO) * above(w) for x, w in zip(v, prior)]
        N = mixed(v, groups, dual(r), dual(s))
        if self.name == "Tikhonov":
            return N**4 / decimal(16 * self.mu)
        return N * N / decimal(2 * self.c)

    def _witness(self, point: str, name: str) -> list[Fraction]:
        """A vector of the file that a bound with E needs."""
        found = [Fraction(x) for x in floats(self.claim[point][name])]
        demand(len(found) == self.M, f"{name} is not one number per kernel")
        return found

    def _primal(self, point: dict[str, Any]) -> tuple[list, list, list, Fraction]:
        """θ_m, the coefficients if there are any, the biases b and the stretch t."""
        given, t, theta = point["bias"], exact(point["stretch"]), [Fraction(1)] * self.M
        bias = [exact(x) for x in (floats(given) if self.k > 1 else [given])]
        demand(len(bias) == self.k, "the bias is not one number per output")
        demand(self.bias or not any(bias), "the point has a bias, the problem has none")
        if "weights" in point:
            theta = [Fraction(x) for x in floats(point["weights"])]
            good = len(theta) == self.M and min(theta) >= 0
            demand(good, "the weights are not one number ≥ 0 per kernel")
            return theta, [], bias, t
        beta = [floats(b) for b in point.get("features") or point["coefficients"]]
        if "features" in point:
            wide = [len(values) // self.n * self.k for values in self.arrays]
            good = self.factors and [*map(len, beta)] == wide
            demand(good, "the features are not one number per column of a factor")
        else:
            good = [*map(len, beta)] == [self.n * self.k] * self.M
            demand(good, "the coefficients are not one number per kernel and sample")
        return theta, beta, bias, t


def main(arguments: list[str]) -> int:
    """Check one file and print the result; 0 if it is proved, 2 if not."""
    try:
        demand(len(arguments) == 1, "give the name of one file")
        found = check(read(arguments[0]))
    except (Refused, OSError) as reason:
        say(f"refused: {getattr(reason, 'strerror', None) or reason}")
        return 2
    say(f"proved: {found['lower']} ≤ f* ≤ {found['upper']}")
    say(f"for {found['statement']}")
    say(f"problem {found['problem']}")
    return 0


def say(line: str) -> None:
    """Print a line, in ASCII where nothing else can be printed."""
    try:
        print(line)
    except UnicodeEncodeError:
        line = line.replace("≤", "<=").replace("δ", "delta")
        print(line.encode("ascii", "backslashreplace").decode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
