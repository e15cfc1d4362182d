"""Check a certificate file in exact arithmetic. This file needs Python, nothing else.

`python checker.py FILE`: the file claims lower ≤ f* ≤ upper for kernels K_m + δ_m I and

    f* = min over w, b   Σ C_i V(f_i, y_i) + Ω(‖w_1‖, …, ‖w_M‖),   f = Σ⟨w_m, ψ_m⟩ + b

K_m is in the file as an upper triangle, or as a factor L_m, K_m = L_m L_mᵀ. Floats are
read as the rational numbers they are. What is proved here:
1. K_m + δ_m I ⪰ 0 for triangles: some Cholesky factor R in floats is rounded to
   integers, and K_m + δ_m I − R Rᵀ, computed exactly, has a dominant diagonal.
2. α is in the domain of V*, with Σα = 0 for a bias; so is s·α, because 0 ≤ s ≤ 1.
3. lower ≤ −Σ C V*(−sα/C) − Ω*(s√(αᵀK_mα)) ≤ f*, by weak duality.
4. upper ≥ Σ C V(f) + Ω(u) ≥ f* at w_m = t θ_m Σα_iψ_m (or t Σβ_miψ_m), bias t·b.
Sums and products are exact. Roots, powers and logarithms come from `decimal`, correct
to 60 digits; bounds are then moved outward by 1e-30 of the sum of all magnitudes.

Losses: `_value`. Formulations: GroupLasso Σu, with Ω* = 0 for max v ≤ 1; all others
½‖(Σ_{k∈j} u_k)_j‖_r², with Ω* = ½‖(max_{k∈j} v_k)_j‖² in the dual norm 1/r + 1/r* = 1:
BlockL1 one group, r = 2; LpNorm(p) single kernels, r = 2p/(p+1), p as the nearest
fraction of a denominator up to 1000; VSKL(q) r = 2q.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import struct
import sys
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from operator import mul
from typing import Any

FORMAT = b"mklopt certificate 1 "  # and the SHA-256 of all that follows the line
DIGITS = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX)
OUTWARD = Decimal(10) ** -30
ZERO, NONE = Decimal(0), Fraction(0)
Grid = tuple[list[int], int]  # integers k and an exponent e: the numbers k · 2^−e


class Refused(ValueError):
    """The reason why a certificate is invalid."""


def check(content: bytes) -> dict[str, Any]:
    """What the bytes of a file prove; Refused if the certificate is invalid."""
    head, _, body = content.partition(b"\n")
    demand(head.startswith(FORMAT), f"it does not begin with {FORMAT.decode()!r}")
    same = head == FORMAT + hashlib.sha256(body).hexdigest().encode()
    demand(same, "the content does not have the hash in the first line")
    try:
        with localcontext(DIGITS):
            return Claim(json.loads(body)).proved()
    except Refused:
        raise
    except Exception as error:  # whatever a damaged file leads to
        what = f"{type(error).__name__}: {error}"[:200]
        raise Refused(f"the file is not well-formed ({what})") from None


def demand(holds: bool, otherwise: str) -> None:
    """Refuse the file for this reason unless the condition holds."""
    if not holds:
        raise Refused(otherwise)


def floats(text: str) -> list[float]:
    """Little-endian float64 in base64; all finite."""
    found = struct.iter_unpack("<d", base64.b64decode(text, validate=True))
    values = [x for (x,) in found]
    demand(all(map(math.isfinite, values)), "an array holds NaN or infinite numbers")
    return values


def number(value: Any) -> float:
    """A finite number of the file as a float."""
    plain = type(value) in (int, float) and math.isfinite(value)
    demand(plain, f"{value!r} is not a finite number")
    return float(value)


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


class Claim:
    """The problem, the points and the bounds of a file, and the proof of the bounds."""

    def __init__(self, claim: dict[str, Any]):
        self.claim, self.bias, self.factors = claim, claim["bias"], claim["factors"]
        self.y, self.C = floats(claim["y"]), floats(claim["C"])
        self.arrays = [floats(a) for a in claim["kernels"]]
        self.shift = floats(claim["shift"])
        self.n, self.M = len(self.y), len(self.shift)
        fit = len(self.arrays) == self.M > 0 and len(self.C) == self.n > 0
        demand(fit, "kernels, shifts, C and labels differ in number")
        demand(min(self.C) > 0 and min(self.shift) >= 0, "C ≤ 0, or a shift < 0")
        demand(
            {self.bias, self.factors} <= {True, False},
            "bias or factors is not true or false",
        )
        self.groups, self.r = self._formulation(*claim["formulation"])
        self.loss, given = claim["loss"]
        known = ("hinge", "logistic", "squared", "eps_insensitive")
        demand(self.loss in known, f"the loss {self.loss!r} is not known here")
        self.signed = self.loss in ("hinge", "logistic")
        labels = {*self.y} if self.signed else set()
        demand(labels <= {-1.0, 1.0}, f"{self.loss} needs labels −1 and +1")
        tube = self.loss == "eps_insensitive"
        self.eps = Fraction(number(given["eps"])) if tube else NONE
        demand(self.eps >= 0, "ε is negative")

    def _formulation(self, name: str, given: dict) -> tuple[list, Fraction | None]:
        """Groups of kernels, and r; GroupLasso has no groups."""
        everyone = list(range(self.M))
        if name == "GroupLasso":
            return [], None
        if name == "BlockL1":
            return [everyone], Fraction(2)
        if name == "LpNorm":
            p, single = given["p"], [[m] for m in everyone]
            if p in (1, math.inf):
                return [everyone] if p == 1 else single, Fraction(2)
            exact = Fraction(number(p)).limit_denominator(1000)
            rational = float(exact) == p and 1 < exact <= 10**6
            demand(rational, f"p = {p} is no rational number ≥ 1 that is known here")
            return single, 2 * exact / (exact + 1)
        demand(name == "VSKL", f"the formulation {name!r} is not known here")
        q, groups = given["q"], [list(group) for group in given["groups"]]
        members = sorted(k for group in groups for k in group)
        partition = members == everyone and min(map(len, groups)) > 0
        demand(partition, "the groups are not a partition of the kernels")
        demand(q in (1, 2, math.inf), f"q = {q} is not 1, 2 or ∞")
        return groups, None if q == math.inf else Fraction(int(2 * q))

    def proved(self) -> dict[str, Any]:
        """The bounds and the problem they are for, or Refused."""
        same = self.digest() == self.claim["problem"]
        demand(same, "the data are not those of the problem that is named")
        alpha, s = self._dual()
        theta, beta, bias, t = self._primal()
        quads, squares, f = [], [], [NONE] * self.n
        for m, values in enumerate(self.arrays):
            kernel, shift = self._kernel(m, values), Fraction(self.shift[m])
            image, quad = product(kernel, shift, alpha)
            quads.append(quad)
            if beta:
                image, quad = product(kernel, shift, grid(beta[m]))
            squares.append(theta[m] ** 2 * quad)
            f = [a + theta[m] * b for a, b in zip(f, image)]
        lower = self._lower(alpha, s, quads)
        upper = self._upper([t * (a + bias) for a in f], squares, t)
        low, high = number(self.claim["lower"]), number(self.claim["upper"])
        proof = f"is not proved: the points show {lower:.20g} and {upper:.20g}"
        demand(Decimal(low) <= lower, f"lower = {low!r} {proof}")
        demand(Decimal(high) >= upper, f"upper = {high!r} {proof}")
        names = ("problem", "loss", "formulation", "bias", "lower", "upper")
        about = {"n": self.n, "M": self.M, "shift": max(self.shift)}
        return about | {name: self.claim[name] for name in names}

    def digest(self) -> str:
        """The hash of the problem, from the data in the file."""
        h = hashlib.sha256()
        parts: list[Any] = [["mklopt problem 1", self.M, self.n, self.bias]]
        for values in self.arrays:
            wide = [self.n, len(values) // self.n]
            shape = wide if self.factors else [len(values)]
            parts += [shape, struct.pack(f"<{len(values)}d", *values)]
        for values in (self.shift, self.y, self.C):
            parts.append(struct.pack(f"<{len(values)}d", *values))
        for part in (*parts, self.claim["loss"], self.claim["formulation"]):
            h.update(part if type(part) is bytes else json.dumps(part).encode())
        return h.hexdigest()

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

    def _dual(self) -> tuple[Grid, Fraction]:
        """α and s, proved feasible."""
        k, e = self.claim["dual"]["integers"], self.claim["dual"]["exponent"]
        s = Fraction(number(self.claim["dual"]["shrink"]))
        whole = type(e) is int and abs(e) <= 2200 and len(k) == self.n
        whole = whole and all(type(a) is int and abs(a) < 1 << 2200 for a in k)
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

    def _primal(self) -> tuple[list[Fraction], list[list[float]], Fraction, Fraction]:
        """θ_m, the coefficients if there are any, the bias b and the stretch t."""
        point = self.claim["primal"]
        bias, t = Fraction(number(point["bias"])), Fraction(number(point["stretch"]))
        demand(self.bias or not bias, "the point has a bias, the problem has none")
        if "weights" in point:
            theta = [Fraction(x) for x in floats(point["weights"])]
            good = len(theta) == self.M and min(theta) >= 0
            demand(good, "the weights are not one number ≥ 0 per kernel")
            return theta, [], bias, t
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
        small = decimal(-min(abs(z), Fraction(100))).exp()  # e^−|z| from above
        return decimal(max(NONE, -z)) + (1 + small).ln()


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
        with open(arguments[0], "rb") as file:
            found = check(file.read())
    except (Refused, OSError) as reason:
        print(f"refused: {getattr(reason, 'strerror', None) or reason}")
        return 2
    (loss, _), (name, given) = found["loss"], found["formulation"]
    terms = ", ".join(f"{k}={v}" for k, v in given.items())
    bias, shift = "with" if found["bias"] else "without", found["shift"]
    print(f"proved: {found['lower']!r} ≤ f* ≤ {found['upper']!r}")
    print(f"for {loss}, {name}({terms}), n = {found['n']}, M = {found['M']}, ", end="")
    print(f"{bias} bias, kernels K{f' + {shift:.1e} I' if shift else ''}")
    print(f"problem {found['problem']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
