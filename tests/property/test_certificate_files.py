"""Certificate files under attack: whatever the checker accepts is true.

Honest files over formulations × losses × storages × bias are changed: numbers, types,
keys, order, lengths, arrays, text, bytes. Then both hashes are made honest again, so
that only the mathematics can refuse them. Some forgers know the exact values of the
points in the file, and claim bounds that are better by one unit in the last place.

Every file that is accepted is judged in rationals and in mpmath with 100 digits, by
code that shares nothing with the checker or the package: the kernels are positive
semi-definite (elimination in rationals), the dual point is feasible, and its value is
not below the lower bound; the value of the primal point is not above the upper bound;
no other point that is tried refutes a bound; and what is reported is in the file.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import random
import struct
import tempfile
from collections import Counter
from copy import deepcopy
from fractions import Fraction
from functools import cache
from itertools import product
from operator import mul
from typing import Any

import mpmath
import numpy as np
import pytest

import mklopt
from mklopt.certificates.checker import check
from mklopt.certificates.reading import Refused
from mklopt.formulations import VSKL, BlockL1, GroupLasso, LpNorm

FORMULATIONS = (
    GroupLasso(), BlockL1(), LpNorm(1.0), LpNorm(1.01), LpNorm(4 / 3), LpNorm(2.0),
    LpNorm(np.inf), VSKL(((0, 2), (1,)), 1.0), VSKL(((0,), (1, 2)), 2.0),
    VSKL(((2,), (0, 1)), np.inf), LpNorm(2**0.5), VSKL(((2,), (0, 1)), 1.3),
)  # fmt: skip
LOSSES = ("hinge", "logistic", "squared", "eps_insensitive")
KINDS = [*product(FORMULATIONS, LOSSES, ("factors", "packed", "full"), (True, False))]
N, M = 4, 3
mp: Any = mpmath.mp.clone()
mp.dps = 100


# ---- honest files ----------------------------------------------------------------


@cache
def honest(index: int) -> dict[str, Any]:
    """A claim as the package writes it, from the kinds in mixed order."""
    formulation, loss, storage, bias = KINDS[index * 101 % len(KINDS)]
    rng = np.random.default_rng(index)
    L = np.rint(rng.normal(size=(M, N, 2)) * 64) / 64
    if storage == "factors":
        grams = mklopt.GramStack.from_factors(L)
    else:
        grams = mklopt.GramStack(L @ L.transpose(0, 2, 1), storage=storage)
    y = np.array([1.0, -1.0, 1.0, -1.0])
    y = y if loss in ("hinge", "logistic") else y + np.rint(8 * L[0, :, 0]) / 16
    C = rng.choice([0.5, 3.0]) * (np.ones(N) if index % 3 else 1 + np.arange(N) / 7)
    problem = mklopt.Problem(grams, y, loss, formulation, C, bias)
    return written(mklopt.solve(problem, tol=1e-7, max_iter=200, time_limit=2.0))


def written(result: mklopt.Result) -> dict[str, Any]:
    """The claim in the file of a result."""
    with tempfile.NamedTemporaryFile() as file:
        result.save_certificate(file.name)
        with open(file.name, "rb") as again:
            return json.loads(again.read().partition(b"\n")[2])


def sealed(body: bytes) -> bytes:
    head = b"mklopt certificate 1 " + hashlib.sha256(body).hexdigest().encode()
    return head + b"\n" + body


def unpacked(text: str) -> list[float]:
    return [x for (x,) in struct.iter_unpack("<d", base64.b64decode(text))]


def packed(values: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(values)}d", *values)).decode()


def problem_hash(claim: dict[str, Any]) -> str:
    """The hash that names the problem, from the data of a claim."""
    n, h = len(unpacked(claim["y"])), hashlib.sha256()
    size = ["mklopt problem 1", len(claim["kernels"]), n, claim["bias"]]
    h.update(json.dumps(size).encode())
    for text in claim["kernels"]:
        count = len(unpacked(text))
        shape = [n, count // n] if claim["factors"] else [count]
        h.update(json.dumps(shape).encode() + base64.b64decode(text))
    for name in ("shift", "y", "C"):
        h.update(base64.b64decode(claim[name]))
    for name in ("loss", "formulation"):
        h.update(json.dumps(claim[name]).encode())
    return h.hexdigest()


# ---- the judge -------------------------------------------------------------------


def real(x: Fraction) -> Any:
    return mp.mpf(x.numerator) / x.denominator


def exponent(x: Any) -> Any:
    """∞, or the fraction of a denominator up to 1000 that rounds to x, or x itself."""
    if x == math.inf:
        return x
    near = Fraction(x).limit_denominator(1000)
    return near if float(near) == x else Fraction(x)


class Judge:
    """What the claim of a file says, evaluated without the checker."""

    def __init__(self, claim: dict[str, Any]):
        self.claim = claim
        self.loss, terms = claim["loss"]
        self.name, self.terms = claim["formulation"]
        self.eps = Fraction(terms.get("eps", 0))
        self.y, self.C, shift = (
            [Fraction(x) for x in unpacked(claim[name])] for name in ("y", "C", "shift")
        )
        self.n, self.M = len(self.y), len(claim["kernels"])
        assert len(self.C) == self.n and len(shift) == self.M
        self.K = [self.matrix(*pair) for pair in zip(claim["kernels"], shift)]
        self.signed = self.loss in ("hinge", "logistic")

    def matrix(self, text: str, shift: Fraction) -> list[list[Fraction]]:
        """K + δI in rationals."""
        given, n = [Fraction(x) for x in unpacked(text)], self.n
        if self.claim["factors"]:
            d = len(given) // n
            assert d * n == len(given) > 0
            rows = [given[i * d : i * d + d] for i in range(n)]
            K = [[Fraction(sum(map(mul, p, q))) for q in rows] for p in rows]
        else:
            assert len(given) == n * (n + 1) // 2
            entries, K = iter(given), [[Fraction(0)] * n for _ in range(n)]
            for i in range(n):
                for j in range(i, n):
                    K[i][j] = K[j][i] = next(entries)
        for i in range(n):
            K[i][i] += shift
        return K

    def semidefinite(self) -> bool:
        """Whether all kernels are, by elimination in rationals."""
        return all(map(psd, self.K))

    def times(self, m: int, a: list[Fraction]) -> list[Fraction]:
        return [sum((k * x for k, x in zip(row, a)), Fraction(0)) for row in self.K[m]]

    def quad(self, m: int, a: list[Fraction]) -> Fraction:
        return sum((x * z for x, z in zip(a, self.times(m, a))), Fraction(0))

    # ---- dual

    def alpha(self, shrunk: bool = True) -> list[Fraction]:
        dual = self.claim["dual"]
        assert abs(dual["exponent"]) < 5000  # or it takes for ever
        step = Fraction(2) ** -dual["exponent"]
        step *= Fraction(dual["shrink"]) if shrunk else 1
        return [step * k for k in dual["integers"]]

    def feasible(self, a: list[Fraction]) -> bool:
        if len(a) != self.n or (self.claim["bias"] and sum(a) != 0):
            return False
        if self.signed:
            return all(0 <= x * y <= C for x, y, C in zip(a, self.y, self.C))
        box = self.loss == "eps_insensitive"
        return not box or all(abs(x) <= C for x, C in zip(a, self.C))

    def dual_value(self, a: list[Fraction]) -> Any:
        """−Σ C V*(−α/C) − Ω*(v)."""
        squares = [self.quad(m, a) for m in range(self.M)]
        v = [mp.sqrt(real(q)) for q in squares]
        gains = [self.gain(*some) for some in zip(a, self.y, self.C)]
        if self.name == "GroupLasso":
            return mp.fsum(gains) if max(squares) <= 1 else -mp.inf
        return mp.fsum(gains) - self.conjugate(v)

    def gain(self, a: Fraction, y: Fraction, C: Fraction) -> Any:
        if self.loss == "hinge":
            return real(a * y)
        if self.loss == "squared":
            return real(a * y - a * a / (2 * C))
        if self.loss == "eps_insensitive":
            return real(a * y - self.eps * abs(a))
        t = a * y / C
        return -real(C) * mp.fsum(real(x) * mp.log(real(x)) for x in (t, 1 - t) if x)

    def conjugate(self, v: list[Any]) -> Any:
        if self.name == "BlockL1" or self.terms.get("p") == 1:
            return max(v) ** 2 / 2
        if self.name == "VSKL":
            tops = [max(v[k] for k in group) for group in self.terms["groups"]]
            q = self.terms["q"]
            if q == math.inf:
                return mp.fsum(tops) ** 2 / 2
            q = exponent(q)
            return root(tops, 2 * q / (2 * q - 1)) ** 2 / 2
        p = exponent(self.terms["p"])
        return root(v, Fraction(2) if p == math.inf else 2 * p / (p - 1)) ** 2 / 2

    # ---- primal

    def point(self) -> tuple[list[list[Fraction]], Fraction]:
        """Coefficients of every w_m, and the bias."""
        given = self.claim["primal"]
        t, alpha = Fraction(given["stretch"]), self.alpha(shrunk=False)
        if "weights" in given:
            theta = [Fraction(x) for x in unpacked(given["weights"])]
            assert len(theta) == self.M
            B = [[t * w * a for a in alpha] for w in theta]
        else:
            B = [[t * Fraction(x) for x in unpacked(b)] for b in given["coefficients"]]
        assert [len(b) for b in B] == [self.n] * self.M
        return B, t * Fraction(given["bias"])

    def primal_value(self, B: list[list[Fraction]], b: Fraction) -> Any:
        """Σ C V(f) + Ω(u); ∞ for a bias where there may be none."""
        if b and not self.claim["bias"]:
            return mp.inf
        images = [self.times(m, B[m]) for m in range(self.M)]
        f = [sum(column, b) for column in zip(*images)]
        u = [mp.sqrt(real(self.quad(m, B[m]))) for m in range(self.M)]
        losses = (real(C) * self.value(z, y) for z, y, C in zip(f, self.y, self.C))
        return mp.fsum(losses) + self.penalty(u)

    def value(self, f: Fraction, y: Fraction) -> Any:
        if self.loss == "hinge":
            return real(max(Fraction(0), 1 - y * f))
        if self.loss == "squared":
            return real((f - y) ** 2 / 2)
        if self.loss == "eps_insensitive":
            return real(max(Fraction(0), abs(f - y) - self.eps))
        z = real(y * f)
        return max(-z, mp.zero) + mp.log1p(mp.exp(-abs(z)))

    def penalty(self, u: list[Any]) -> Any:
        if self.name == "GroupLasso":
            return mp.fsum(u)
        if self.name == "BlockL1" or self.terms.get("p") == 1:
            return mp.fsum(u) ** 2 / 2
        if self.name == "VSKL":
            sums = [mp.fsum(u[k] for k in group) for group in self.terms["groups"]]
            q = self.terms["q"]
            if q == math.inf:
                return max(sums) ** 2 / 2
            return root(sums, 2 * exponent(q)) ** 2 / 2
        p = exponent(self.terms["p"])
        return root(u, Fraction(2) if p == math.inf else 2 * p / (p + 1)) ** 2 / 2

    # ---- verdict

    def bounds(self) -> tuple[Any, Any]:
        """The values of the points in the file, where they count."""
        a = self.alpha()
        inside = self.feasible(a) and 0 <= self.claim["dual"]["shrink"] <= 1
        return (
            self.dual_value(a) if inside else -mp.inf,
            self.primal_value(*self.point()),
        )

    def refuted(self, lower: Fraction, upper: Fraction) -> str:
        """Why lower ≤ f* ≤ upper is false or not shown by the points; else nothing."""
        if not self.semidefinite():
            return "a kernel is indefinite"
        a, (B, b) = self.alpha(), self.point()
        for s in (Fraction(0), Fraction(1, 2), Fraction(63, 64), Fraction(1)):
            point, dual = [[s * x for x in row] for row in B], [s * x for x in a]
            if self.primal_value(point, s * b) < real(lower):
                return "a primal point lies below the lower bound"
            if self.feasible(dual) and self.dual_value(dual) > real(upper):
                return "a dual point lies above the upper bound"
        below, above = self.bounds()
        if not real(lower) <= below:
            return "the dual point does not show the lower bound"
        return "" if above <= real(upper) else "the primal point does not show upper"


def psd(K: list[list[Fraction]]) -> bool:
    """Whether a symmetric matrix of rationals is positive semi-definite."""
    if not K:
        return True
    head, rest = K[0][0], range(1, len(K))
    if head < 0 or (head == 0 and any(K[0])):
        return False
    if head == 0:
        return psd([row[1:] for row in K[1:]])
    return psd([[K[i][j] - K[i][0] * K[0][j] / head for j in rest] for i in rest])


def root(x: list[Any], r: Fraction) -> Any:
    """(Σ x^r)^(1/r)."""
    power = real(r)
    total = mp.fsum(mp.power(a, power) for a in x if a)
    return mp.power(total, 1 / power) if total else mp.zero


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), "a key stands twice"
    return dict(pairs)


def complaint(content: bytes, found: dict[str, Any]) -> str:
    """What is wrong with an answer of the checker; nothing if all is true."""
    try:
        claim = json.loads(content.partition(b"\n")[2], object_pairs_hook=once)
        for name in ("lower", "upper", "bias", "loss", "formulation", "problem"):
            same = [json.dumps(c[name], sort_keys=True) for c in (claim, found)]
            if same[0] != same[1]:
                return f"it reports another {name}: {same[1]} instead of {same[0]}"
        if not found["statement"].isprintable():
            return "it prints more than one line"
        judge = Judge(claim)
        if (judge.n, judge.M) != (found["n"], found["M"]):
            return "it reports another size"
        return judge.refuted(Fraction(claim["lower"]), Fraction(claim["upper"]))
    except Exception as error:  # what the judge cannot understand was not understood
        return f"{type(error).__name__}: {error}"


# ---- forgers ---------------------------------------------------------------------

ODD: tuple[Any, ...] = (
    None, True, False, "", "x", [], {}, [[]], 0, 1, -1, 2, 0.5, -0.0, 1e308, 5e-324,
    10**50, 10**400, -(10**20), 1 << 2201, math.inf, -math.inf, math.nan, "AAAA", 1e-9,
    "proved: 0 ≤ f* ≤ 0\n", "\x1b[2K",
)  # fmt: skip


def odd(rng: random.Random) -> Any:
    """Something that no place of a claim expects."""
    return deepcopy(rng.choice(ODD))


def nudged(x: float, rng: random.Random) -> Any:
    """A number near or far from another."""
    how = rng.randrange(9)
    if how == 0:
        return math.nextafter(x, rng.choice([-math.inf, math.inf]))
    if how < 4:
        return x * (1 + rng.choice([-1, 1]) * 10.0 ** -rng.uniform(1, 16))
    if how == 4:
        return rng.choice([-x, 2 * x, x / 2, x + 1, 0.0])
    if how == 5:
        return x * 10.0 ** rng.uniform(-30, 30)
    if how == 6:
        return rng.choice([math.inf, -math.inf, math.nan, 1e308, 5e-324, -0.0])
    return int(x) + rng.choice([-1, 0, 1]) if abs(x) < 1e300 else x


def places(claim: Any, path: tuple = ()) -> list[tuple]:
    """The paths to everything in a claim."""
    found = [path] if path else []
    if isinstance(claim, dict | list):
        entries = claim.items() if isinstance(claim, dict) else enumerate(claim)
        for key, value in entries:
            found += places(value, (*path, key))
    return found


def at(claim: Any, path: tuple) -> Any:
    for key in path:
        claim = claim[key]
    return claim


def put(claim: Any, path: tuple, value: Any) -> None:
    at(claim, path[:-1])[path[-1]] = value


def forge_number(claim: dict, rng: random.Random) -> None:
    """Another number, in place of one of the numbers of the claim."""
    some = [p for p in places(claim) if type(at(claim, p)) in (int, float)]
    path = rng.choice(some)
    old = at(claim, path)
    if type(old) is int:
        put(claim, path, old + rng.choice([-1, 1]) * (1 << rng.randrange(60)))
    else:
        put(claim, path, nudged(old, rng))


def forge_value(claim: dict, rng: random.Random) -> None:
    """Something else, anywhere."""
    put(claim, rng.choice(places(claim)), odd(rng))


ARRAYS = [("y",), ("C",), ("shift",), *[("kernels", m) for m in range(M)]]


def forge_array(claim: dict, rng: random.Random) -> None:
    """Another number in an array, another length, or two arrays swapped."""
    point = claim["primal"]
    more: list[tuple] = [("primal", "weights")]
    if "coefficients" in point:
        more = [("primal", "coefficients", m) for m in range(M)]
    path, other = rng.choice(ARRAYS + more), rng.choice(ARRAYS + more)
    values = unpacked(at(claim, path))
    i, how = rng.randrange(len(values)), rng.randrange(8)
    if how == 0:
        values.append(rng.choice([0.0, 1.0]))
    elif how == 1:
        values.pop(i)
    elif how == 2:
        values[i], values[0] = values[0], values[i]
    elif how == 3:
        old = at(claim, path)
        put(claim, path, at(claim, other))
        put(claim, other, old)
        return
    else:
        values[i] = float(nudged(values[i], rng))
    put(claim, path, packed(values))


def forge_keys(claim: dict, rng: random.Random) -> None:
    """A key that is missing, new, or has another name; other orders."""
    some = [claim, claim["dual"], claim["primal"], claim["loss"][1]]
    where = rng.choice([*some, claim["formulation"][1]])
    how = rng.randrange(4)
    if how == 0 or not where:
        where[rng.choice(["lambda", "p", "q", "eps", "note", "\n"])] = odd(rng)
    elif how == 1:
        where.pop(rng.choice(list(where)))
    elif how == 2:
        where[rng.choice(list(where)).upper()] = where.pop(rng.choice(list(where)))
    else:
        entries = list(where.items())
        rng.shuffle(entries)
        where.clear()
        where.update(entries)


def forge_name(claim: dict, rng: random.Random) -> None:
    """Another loss, formulation, bias or storage: the same points for another f*."""
    if rng.random() < 0.3:
        claim["loss"] = [rng.choice(LOSSES), {}]
        if claim["loss"][0] == "eps_insensitive":
            claim["loss"][1]["eps"] = rng.choice([0, 0.1, 1e-9, 1e9, -0.1, True])
    elif rng.random() < 0.3:
        name = rng.choice(["bias", "factors"])
        claim[name] = not claim[name]
    else:
        ps = [1, 1.0, 1.001, 4 / 3, 1.5, 2, 2.0, 7, 1e6, math.inf, math.sqrt(2)]
        p = rng.choice(ps)
        groups = rng.choice([[[0], [1], [2]], [[0, 1, 2]], [[2, 1], [0]], [[0], [1]]])
        q = rng.choice([1, 1.0, 2, 2.0, math.inf, 1.5, True])
        claim["formulation"] = rng.choice(
            [
                ["GroupLasso", {}], ["BlockL1", {}], ["LpNorm", {"p": p}],
                ["VSKL", {"groups": groups, "q": q}],
            ]
        )  # fmt: skip


def forge_dual(claim: dict, rng: random.Random) -> None:
    """A dual point that is larger, or has another sum."""
    dual = claim["dual"]
    how = rng.randrange(4)
    if how == 0:
        dual["shrink"] = rng.choice([1.0, 1 + 2**-52, 1.001, 2, -1, 1, 0.999, 0])
    elif how == 1:
        dual["exponent"] += rng.choice([-1, 1, 2, 60, -60, 3000])
    elif how == 2:
        i, j = rng.sample(range(N), 2)
        step = 1 << rng.randrange(dual["exponent"] + 1 if dual["exponent"] > 0 else 1)
        dual["integers"][i] += step
        dual["integers"][j] -= step
    else:
        k, by = dual["integers"], rng.randrange(1, 60)
        up = rng.choice([0, 1, -1])
        dual["integers"] = [(a << by) + up * (a > 0) - up * (a < 0) for a in k]
        dual["exponent"] += by


STRUCTURED = (
    forge_number, forge_value, forge_array, forge_keys, forge_name, forge_dual,
)  # fmt: skip


def as_claimed(claim: dict, rng: random.Random) -> None:
    """Bounds that a forger who knows the exact values claims: a hair better, or not."""
    dual, primal = Judge(claim).bounds()
    for name, value, better in (
        ("lower", dual, math.inf),
        ("upper", primal, -math.inf),
    ):
        if not mp.isfinite(value) or abs(value) > 1e300:
            continue
        near = float(value)
        steps = rng.choice([better, better, -better, None])
        claim[name] = near if steps is None else math.nextafter(near, steps)
        if abs(near) > 2**53 and rng.random() < 0.7:
            claim[name] = int(mp.nint(value)) + rng.randrange(-2, 3)
    if rng.random() < 0.3:
        claim["lower"], claim["upper"] = claim["lower"] - 1e-3, claim["upper"] + 1e-3


def scaled_up(claim: dict, rng: random.Random) -> None:
    """Costs and dual point times a power of two: bounds between large integers."""
    by = rng.choice([40, 55, 60, 200])
    claim["C"] = packed([x * 2.0**by for x in unpacked(claim["C"])])
    claim["dual"]["exponent"] -= by


def forged(k: int, kinds: int) -> tuple[str, bytes]:
    """File number k, from so many kinds of honest ones, and how it was made."""
    rng = random.Random(k)
    claim = json.loads(json.dumps(honest(k % kinds)))
    if rng.random() < 0.1:
        return "text", sealed(damaged(json.dumps(claim), rng))
    if rng.random() < 0.15:
        scaled_up(claim, rng)
    forger = rng.choice(STRUCTURED)
    kind = forger.__name__
    for _ in range(rng.choice([0, 1, 1, 1, 2])):
        try:
            forger(claim, rng)
        except Exception:  # it is too damaged for more
            break
    try:
        if rng.random() < 0.5:
            as_claimed(claim, rng)
            kind += ", as claimed"
    except Exception:
        kind += ", not understood"
    try:
        claim["problem"] = problem_hash(claim)
    except Exception:
        kind += ", no problem"
    return kind, sealed(json.dumps(claim).encode())


def damaged(text: str, rng: random.Random) -> bytes:
    """Truncated, a byte flipped or put in, a piece doubled, a key twice."""
    body, how = bytearray(text.encode()), rng.randrange(6)
    i = rng.randrange(len(body))
    if how == 0:
        return bytes(body[:i])
    if how == 1:
        body[i] ^= 1 << rng.randrange(8)
    elif how == 2:
        body.insert(i, rng.choice(b'0123456789-+.eE"[]{}:, \n\\\x00\xff'))
    elif how == 3:
        body[i:i] = body[max(0, i - rng.randrange(40)) : i]
    elif how == 4:
        key = rng.choice(["lower", "upper", "bias", "formulation", "C"])
        first = f'"{key}": {rng.choice(["0", "true"])}, "{key}"'
        return text.replace(f'"{key}"', first).encode()
    else:
        number = rng.choice(["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000])
        key = rng.choice(["lower", "upper", "shrink", "stretch", "exponent"])
        before, _, after = text.partition(f'"{key}": ')
        rest = after[next(i for i, c in enumerate(after) if c in ",}") :]
        return f'{before}"{key}": {number}{rest}'.encode()
    return bytes(body)


# ---- the attack ------------------------------------------------------------------

FEW = 30  # kinds of honest files in the short attack


def attack(count: int, kinds: int, check: Any = check) -> tuple[Counter, list[str]]:
    """How many files were accepted and refused, by who made them; what went wrong."""
    counts, wrong = Counter[tuple[str, str]](), []
    for k in range(count):
        kind, content = forged(k, kinds)
        try:
            found = check(content)
        except Refused as reason:
            counts["refused", kind] += 1
            if not str(reason).isprintable():
                wrong.append(f"{kind}: file {k} is refused with {str(reason)!r}")
            continue
        except Exception as error:
            wrong.append(f"{kind}: file {k} raises {type(error).__name__}: {error}")
            continue
        counts["accepted", kind] += 1
        why = complaint(content, found)
        if why:
            wrong.append(f"{kind}: file {k} is accepted, but {why}")
    return counts, wrong


@pytest.mark.parametrize(
    "count, kinds",
    [(300, FEW), pytest.param(50_000, len(KINDS), marks=pytest.mark.full)],
)
def test_what_is_accepted_is_true(count, kinds):
    counts, wrong = attack(count, kinds)
    assert not wrong, wrong[:10]
    accepted = sum(many for (how, _), many in counts.items() if how == "accepted")
    assert 0.1 < accepted / count < 0.5  # neither harmless nor all nonsense


def test_the_judge_believes_nothing():
    """A checker that accepts what it can read is refuted, whoever made the files."""

    def gullible(content):
        try:
            claim = json.loads(content.partition(b"\n")[2])
            size = {"n": len(unpacked(claim["y"])), "M": len(claim["kernels"])}
            return {**claim, **size, "statement": ""}
        except Exception:
            raise Refused("it cannot be read") from None

    _, wrong = attack(300, FEW, gullible)
    said = " ".join(wrong)
    for forger in STRUCTURED:
        assert f"{forger.__name__}: file" in said
        assert f"{forger.__name__}, as claimed: file" in said
    for why in (
        "a primal point lies below", "a dual point lies above", "indefinite",
        "does not show the lower", "does not show upper", "AssertionError",
    ):  # fmt: skip
        assert why in said, why


def test_the_judge_agrees_with_honest_files():
    for index in range(FEW):
        claim = honest(index)
        judge = Judge(claim)
        dual, primal = judge.bounds()
        assert claim["problem"] == problem_hash(claim)
        assert claim["lower"] <= dual <= primal <= claim["upper"]
        assert not judge.refuted(Fraction(claim["lower"]), Fraction(claim["upper"]))
        above, below = Fraction(claim["upper"]) + 1, Fraction(claim["lower"]) - 1
        assert "lower" in judge.refuted(above, above)
        assert "upper" in judge.refuted(below, below)
