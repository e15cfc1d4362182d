"""Check a certificate file in exact arithmetic. It needs Python and reading.py alone.

`python checker.py FILE`: the file claims lower ≤ f* ≤ upper for kernels K_m + δ_m I and

    f* = min over w, b   Σ C_i V(f_i, y_i) + Ω(‖w_1‖, …, ‖w_M‖),   f = Σ⟨w_m, ψ_m⟩ + b

K_m is in the file as an upper triangle, or as a factor L_m, K_m = L_m L_mᵀ. Floats are
read as the rational numbers they are. What is proved here:
1. K_m + δ_m I ⪰ 0 for triangles: some Cholesky factor R in floats is rounded to
   integers, and K_m + δ_m I − R Rᵀ, computed exactly, has a dominant diagonal.
2. α is in the domain of V*, with Σα = 0 for a bias; so is s·α, because 0 ≤ s ≤ 1.
3. lower ≤ −Σ C V*(−sα/C) − Ω*(s√(αᵀK_mα)) ≤ f*, by weak duality.
4. upper ≥ Σ C V(f) + Ω(u) ≥ f* at w_m = t θ_m Σα_iψ_m (or t Σβ_miψ_m), bias t·b; for
   factors also at any t w_m, f = Σ L_m w_m, u_m = ‖w_m‖.
Sums and products are exact. Roots, powers and logarithms come from `decimal`, correct
to 60 digits; bounds are then moved outward by 1e-30 of the sum of all magnitudes.

Losses: `_value`. Formulations, from reading.py: GroupLasso Σu, with Ω* = 0 for
max v ≤ 1; all others ½‖(Σ_{k∈j} u_k)_j‖_r², with Ω* = ½‖(max_{k∈j} v_k)_j‖² in the
dual norm, 1/r + 1/r* = 1.
"""

from __future__ import annotations

import math
import sys
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from operator import mul
from typing import Any

if __package__:
    from .reading import Refused, Statement, demand, exact, floats, opened, read
else:  # python checker.py: the file beside it
    from reading import (  # type: ignore[no-redef]
        Refused,
        Statement,
        demand,
        exact,
        floats,
        opened,
        read,
    )

DIGITS = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX)
OUTWARD, SERIES = Decimal(10) ** -30, Decimal(10) ** -12
ZERO, NONE = Decimal(0), Fraction(0)
Grid = tuple[list[int], int]  # integers k and an exponent e: the numbers k · 2^−e


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


def grid(values: list[float]) -> Grid:
    """Floats as integers over one power of two."""
    ratios = [x.as_integer_ratio() for x in values]
    e = max((d.bit_length() - 1 for _, d in ratios), default=0)
    return [k << (e - d.bit_length() + 1) for k, d in ratios], e


def dot(a: Any, b: Any) -> Any:
    """The inner product, as far as the shorter of the two goes."""
    return sum(map(mul, a, b))


def decimal(x: Fraction) -> Decimal:
    """x with 60 digits."""
    return Decimal(x.numerator) / Decimal(x.denominator)


def power(x: Decimal, r: Fraction) -> Decimal:
    """x^r for x ≥ 0 and r > 0."""
    return (x.ln() * r.numerator / r.denominator).exp() if x else ZERO


def norm(x: list[Decimal], r: Fraction | None) -> Decimal:
    """‖x‖_r for x ≥ 0; r = None is ∞."""
    if r is None:
        return max(x)
    return power(sum((power(a, r) for a in x), ZERO), 1 / r)


class Claim(Statement):
    """The problem, the points and the bounds of a file, and the proof of the bounds."""

    def proved(self) -> dict[str, Any]:
        """The bounds and the problem they are for, or Refused."""
        low, high = self.claim["lower"], self.claim["upper"]
        demand(low <= high, f"lower = {low} is above upper = {high}")
        problem, (loss, formulation) = self.digest(), self.described
        same = problem == self.claim["problem"]
        demand(same, "the data are not those of the problem that is named")
        alpha, s = self._dual(**self.claim["dual"])
        theta, beta, bias, t = self._primal(self.claim["primal"])
        quads, squares, f = [], [], [NONE] * self.n
        for m, values in enumerate(self.arrays):
            kernel, shift = self._kernel(m, values), Fraction(self.shift[m])
            image, quad = product(kernel, shift, alpha)
            quads.append(quad)
            if isinstance(kernel, Factor) and "features" in self.claim["primal"]:
                image, quad = kernel.unfolded(grid(beta[m]))
            elif beta:
                image, quad = product(kernel, shift, grid(beta[m]))
            squares.append(theta[m] ** 2 * quad)
            f = [a + theta[m] * b for a, b in zip(f, image)]
        lower = self._lower(alpha, s, quads)
        upper = self._upper([t * (a + bias) for a in f], squares, t)
        proof = f"is not proved: the points show {lower:.20g} and {upper:.20g}"
        demand(Decimal(low) <= lower, f"lower = {low!r} {proof}")
        demand(math.inf > high and Decimal(high) >= upper, f"upper = {high!r} {proof}")
        about = {"n": self.n, "M": self.M, "shift": max(self.shift), "bias": self.bias}
        about |= {"problem": problem, "loss": loss, "formulation": formulation}
        return about | {"statement": str(self), "lower": low, "upper": high}

    def _kernel(self, m: int, values: list[float]) -> Factor | Triangle:
        n = self.n
        if self.factors:
            fits = len(values) > 0 and len(values) % n == 0
            demand(fits, f"factor {m} is not a matrix of {n} rows")
            return Factor(values, n)
        fits = len(values) == n * (n + 1) // 2
        demand(fits, f"kernel {m} is not an upper triangle of {n} rows")
        kernel, shift = Triangle(values, n), Fraction(self.shift[m])
        demand(kernel.positive(shift), f"kernel {m} + δI is not proved ⪰ 0")
        return kernel

    def _dual(self, integers: Any, exponent: int, shrink: float) -> tuple[Grid, Any]:
        """α and s, proved feasible."""
        k, e, s = integers, exponent, exact(shrink)
        whole = (
            len(k) == self.n and max(map(abs, (e, *k))) < 1 << 2200 and abs(e) <= 2200
        )
        demand(whole, "the dual point is not one integer per sample over 2^e")
        if e < 0:
            k, e = [a << -e for a in k], 0
        demand(0 <= s <= 1, f"the dual point is scaled by {s}, outside [0, 1]")
        balanced = not self.bias or sum(k) == 0
        demand(balanced, f"Σα = {sum(k)} · 2^−{e}, not 0 as a bias needs it")
        for i, (a, y, C) in enumerate(zip(k, self.y, self.C)):
            size = a * int(y) if self.signed else abs(a)
            inside = self.loss == "squared" or 0 <= size <= Fraction(C) * (1 << e)
            demand(inside, f"α_{i} lies outside the domain of the dual")
        return (k, e), s

    def _lower(self, alpha: Grid, s: Fraction, quads: list[Fraction]) -> Decimal:
        """−Σ C V*(−sα/C) − Ω*(s v), from below."""
        points = [s * Fraction(k, 1 << alpha[1]) for k in alpha[0]]
        gains = [*map(self._gain, points, map(Fraction, self.y), map(Fraction, self.C))]
        total, size = sum(gains, ZERO), sum(map(abs, gains), ZERO)
        if not self.groups:
            inside = s * s * max(quads) <= 1
            demand(inside, "the dual point has a kernel with αᵀK_mα > 1")
            return total - OUTWARD * size
        v = [decimal(s * s * max(quads[k] for k in g)).sqrt() for g in self.groups]
        dual = Fraction(1) if self.r is None else self.r / (self.r - 1)
        penalty = norm(v, dual) ** 2 / 2
        return total - penalty - OUTWARD * (size + penalty)

    def _gain(self, a: Fraction, y: Fraction, C: Fraction) -> Decimal:
        """−C V*(−a/C); the entropy is at most 1, so that 1e-30 C covers its error."""
        if self.loss == "squared":
            return decimal(a * y - a * a / (2 * C))
        if self.loss != "logistic":
            return decimal(a * y - self.eps * abs(a))
        t = a * y / C
        parts = [decimal(x) for x in (t, 1 - t) if x]
        return -decimal(C) * (sum((x * x.ln() for x in parts), ZERO) + OUTWARD)

    def _primal(self, point: dict[str, Any]) -> tuple[list, list, Fraction, Fraction]:
        """θ_m, the coefficients if there are any, the bias b and the stretch t."""
        bias, t = exact(point["bias"]), exact(point["stretch"])
        demand(self.bias or not bias, "the point has a bias, the problem has none")
        if "weights" in point:
            theta = [Fraction(x) for x in floats(point["weights"])]
            good = len(theta) == self.M and min(theta) >= 0
            demand(good, "the weights are not one number ≥ 0 per kernel")
            return theta, [], bias, t
        if "features" in point:
            beta = [floats(b) for b in point["features"]]
            wide = [len(values) // self.n for values in self.arrays]
            good = self.factors and [*map(len, beta)] == wide
            demand(good, "the features are not one number per column of a factor")
            return [Fraction(1)] * self.M, beta, bias, t
        beta = [floats(b) for b in point["coefficients"]]
        good = len(beta) == self.M and {*map(len, beta)} == {self.n}
        demand(good, "the coefficients are not one number per kernel and sample")
        return [Fraction(1)] * self.M, beta, bias, t

    def _upper(self, f: list, squares: list, t: Fraction) -> Decimal:
        """Σ C V(f) + Ω(u), u = |t| √squares, from above."""
        values = map(self._value, f, map(Fraction, self.y))
        losses = (decimal(Fraction(C)) * value for C, value in zip(self.C, values))
        u = [decimal(t * t * square).sqrt() for square in squares]
        sums = [sum((u[k] for k in group), ZERO) for group in self.groups]
        penalty = norm(sums, self.r) ** 2 / 2 if sums else sum(u, ZERO)
        return (sum(losses, ZERO) + penalty) * (1 + OUTWARD)

    def _value(self, f: Fraction, y: Fraction) -> Decimal:
        if self.loss == "hinge":
            return decimal(max(NONE, 1 - y * f))
        if self.loss == "squared":
            return decimal((f - y) ** 2 / 2)
        if self.loss == "eps_insensitive":
            return decimal(max(NONE, abs(f - y) - self.eps))
        z = y * f  # ln(1 + e^−z) = max(0, −z) + ln(1 + e^−|z|)
        x = decimal(-min(abs(z), Fraction(100))).exp()  # e^−|z| from above
        series = x - x * x / 2 + x * x * x / 3  # ≥ ln(1 + x), where 1 + x has no digits
        return decimal(max(NONE, -z)) + (series if x < SERIES else (1 + x).ln())


class Factor:
    """K = L Lᵀ from the n rows of L."""

    def __init__(self, values: list[float], n: int):
        numbers, self.e = grid(values)
        width = len(values) // n
        self.rows = [numbers[i * width : (i + 1) * width] for i in range(n)]

    def times(self, a: Grid) -> Grid:
        """K a = L (Lᵀ a), exactly."""
        folded = [dot(column, a[0]) for column in zip(*self.rows)]
        return [dot(row, folded) for row in self.rows], 2 * self.e + a[1]

    def unfolded(self, w: Grid) -> tuple[list, Fraction]:
        """L w and ‖w‖², exactly."""
        e = self.e + w[1]
        image = [Fraction(dot(row, w[0]), 1 << e) for row in self.rows]
        return image, Fraction(dot(w[0], w[0]), 1 << 2 * w[1])


class Triangle:
    """K from its upper triangle, row after row."""

    def __init__(self, values: list[float], n: int):
        numbers, self.e = grid(values)
        self.rows, self.floats = square(numbers, n), square(values, n)

    def times(self, a: Grid) -> Grid:
        """K a, exactly."""
        return [dot(row, a[0]) for row in self.rows], self.e + a[1]

    def positive(self, shift: Fraction) -> bool:
        """K + shift·I = R Rᵀ + (a matrix with dominant diagonal), R of integers."""
        n = len(self.rows)
        if not any(map(any, self.rows)):
            return True
        trace = sum(abs(self.floats[i][i]) for i in range(n)) + n * float(shift)
        for part in (0.5, 0.1, 0.9):  # of what Rump's proof in floats would leave
            R = cholesky(self.floats, float(shift) - part * (n + 2) * 2.0**-51 * trace)
            if R is not None and self._dominant(R, shift):
                return True
        return False

    def _dominant(self, R: list[list[float]], shift: Fraction) -> bool:
        bits = 56 - math.frexp(max(abs(x) for row in R for x in row))[1]
        whole = [[scaled(*x.as_integer_ratio(), bits) for x in row] for row in R]
        room = []  # diagonal entry − Σ |others|, in units of 4^−bits
        for i, row in enumerate(whole):
            shifted = Fraction(self.rows[i][i], 1 << self.e) + shift
            room.append(math.floor(shifted * Fraction(4) ** bits) - dot(row, row))
            for j in range(i):
                entry = scaled(self.rows[i][j], 1 << self.e, 2 * bits)
                rest = abs(entry - dot(row, whole[j])) + 1  # 1: entry was rounded
                room[i] -= rest
                room[j] -= rest
        return min(room) >= 0


def square(values: list, n: int) -> list[list]:
    """A symmetric matrix from its upper triangle."""
    starts = [i * n - i * (i + 1) // 2 for i in range(n)]
    return [[values[starts[min(i, j)] + max(i, j)] for j in range(n)] for i in range(n)]


def scaled(k: int, power_of_two: int, bits: int) -> int:
    """k / power_of_two · 2^bits, rounded down."""
    by = bits - power_of_two.bit_length() + 1
    return k << by if by >= 0 else k >> -by


def cholesky(K: list[list[float]], shift: float) -> list[list[float]] | None:
    """The rows of a lower triangle, each up to its diagonal; None: it broke down."""
    R: list[list[float]] = []
    for i, given in enumerate(K):
        row: list[float] = []
        for j, other in enumerate(R):
            row.append((given[j] - dot(row, other)) / other[j])
        pivot = given[i] + shift - dot(row, row)
        if not 0 < pivot < math.inf:
            return None
        R.append([*row, math.sqrt(pivot)])
    return R


def product(kernel: Any, shift: Fraction, a: Grid) -> tuple[list, Fraction]:
    """(K + shift·I)a, and its product with a."""
    k, e = kernel.times(a)
    own = [shift * Fraction(x, 1 << a[1]) for x in a[0]]
    image = [Fraction(x, 1 << e) + y for x, y in zip(k, own)]
    quad = Fraction(dot(k, a[0]), 1 << (e + a[1]))
    return image, quad + shift * Fraction(dot(a[0], a[0]), 1 << 2 * a[1])


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
