"""Read a certificate file without believing it. This file needs Python, nothing else.

A file is one line, the format and the SHA-256 of the rest, and then JSON. It has the
keys and types of `CLAIM` and no others, so that everything which the checker prints was
understood. Arrays are little-endian float64 in base64.

What is read is bounded: a regular file, its bytes, its entries, the digits of a number.

`Statement` brings every loss and formulation into one of a few forms, whose rules are
in checker.py. An exponent is the fraction with a denominator up to 1000 that rounds to
its float, if there is one; else, as all other numbers, it is exactly its float.
docs/certificate-format.md has all of this in words.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import stat
import struct
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

FORMAT = b"mklopt certificate 4 "  # and the SHA-256 of all that follows the line
FORMATS = (
    b"mklopt certificate 1 ",
    b"mklopt certificate 2 ",
    b"mklopt certificate 3 ",
    FORMAT,
)  # had less to say
MAX_BYTES = 1 << 27  # of a file
MAX_ENTRIES = 1_000_000  # so that JSON takes little more memory than the file
MAX_DIGITS = 1000  # of a number

# What JSON may be: one of some types, [the same in every entry], or {key: what}.
TEXT, FLAG, WHOLE, NUMBER = (str,), (bool,), (int,), (int, float)
LOSSES: dict[str, dict] = {
    "hinge": {},
    "logistic": {},
    "one_class": {},
    "multiclass_hinge": {},
    "multinomial": {},
    "squared": {},
    "eps_insensitive": {"eps": NUMBER},
    "huber": {"delta": NUMBER},
    "quantile": {"tau": NUMBER},
}
FORMULATIONS: dict[str, dict] = {
    "GroupLasso": {},
    "BlockL1": {},
    "BlockNorm": {"q": NUMBER},
    "LpNorm": {"p": NUMBER},
    "Ivanov": {"p": NUMBER},
    "WeightedLpNorm": {"p": NUMBER, "prior": [NUMBER]},
    "Tikhonov": {"p": NUMBER, "mu": NUMBER},
    "BlockPower": {"q": NUMBER},
    "ElasticNet": {"l1_ratio": NUMBER},
    "SparseBlockNorm": {"q": NUMBER, "a": NUMBER},
    "FixedWeights": {"theta": [NUMBER]},
    "VSKL": {"groups": [[WHOLE]], "q": NUMBER},
    "Composite": {"groups": [[WHOLE]], "r": NUMBER, "s": NUMBER},
    "NonIsotropic": {"E": [[NUMBER]]},
    "Conic": {"A": [[NUMBER]], "b": [NUMBER], "cones": [[NUMBER + TEXT]]},
}
RULES: dict[str, dict] = {  # of kernels; divisors are numbers, or arrays as texts
    "gaussian": {"rate": NUMBER, "columns": [WHOLE], "divisors": [NUMBER + TEXT]},
    "power": {
        "degree": WHOLE,
        "offset": NUMBER,
        "columns": [WHOLE],
        "divisors": [NUMBER + TEXT],
    },
}
MAX_DEGREE = 100
PROBLEM = {
    "problem": TEXT,
    "loss": (list,),  # a name of LOSSES, its parameters
    "formulation": (list,),  # likewise
    "bias": FLAG,
    "factors": FLAG,
    "kernels": [TEXT],
    "shift": TEXT,
    "y": TEXT,
    "C": TEXT,
}
BY_RULES = {**PROBLEM, "kernels": [(list,)], "points": [TEXT]}  # kernels of points
BOUNDS: dict[str, Any] = {
    "lower": NUMBER,
    "upper": NUMBER,
    "dual": (dict,),  # DUAL
    "primal": (dict,),  # PRIMAL with one of POINTS
}
EXPONENTS = ("p", "q", "r", "s")
LARGEST = {"BlockPower": 10**6, "Composite": 2, "SparseBlockNorm": 2}
DUAL: dict[str, Any] = {"integers": [WHOLE], "exponent": WHOLE, "shrink": NUMBER}
PRIMAL: dict[str, Any] = {"bias": (*NUMBER, *TEXT), "stretch": NUMBER}
POINTS = ({"weights": TEXT}, {"coefficients": [TEXT]}, {"features": [TEXT]})
WITNESS: dict[str, dict] = {  # what the two points have beside, for these formulations
    "NonIsotropic": {"dual": {"slack": TEXT}, "primal": {"direction": TEXT}},
    "Conic": {"dual": {"multiplier": [WHOLE]}, "primal": {"epigraph": [WHOLE]}},
}


class Refused(ValueError):
    """The reason why a certificate is invalid."""


def demand(holds: bool, otherwise: str) -> None:
    """Refuse the file for this reason unless the condition holds."""
    if not holds:
        raise Refused(otherwise[:500])


def read(path: str | os.PathLike) -> bytes:
    """The bytes of a regular file of bounded size; a pipe is not waited for."""

    def opener(name: str, how: int) -> int:
        return os.open(name, how | getattr(os, "O_NONBLOCK", 0))

    with open(path, "rb", opener=opener) as file:
        about = os.fstat(file.fileno())
        demand(stat.S_ISREG(about.st_mode), "it is not a regular file")
        demand(about.st_size <= MAX_BYTES, f"it has more than {MAX_BYTES} bytes")
        return file.read(MAX_BYTES + 1)


def opened(content: bytes) -> dict[str, Any]:
    """The claim of a file whose hash, keys and types are right."""
    demand(len(content) <= MAX_BYTES, f"it has more than {MAX_BYTES} bytes")
    head, _, body = content.partition(b"\n")
    known = head[: len(FORMAT)] in FORMATS
    demand(known, f"it does not begin with {FORMAT.decode()!r}, or 1 to 3 in its place")
    same = head[len(FORMAT) :] == hashlib.sha256(body).hexdigest().encode()
    demand(same, "the content does not have the hash in the first line")
    claim = parsed(body)
    known = any(fits(claim, {**some, **BOUNDS}) for some in (PROBLEM, BY_RULES))
    if known:
        name = claim["formulation"][0] if claim["formulation"] else ""
        more = WITNESS.get(name, {}) if type(name) is str else {}
        known = fits(claim["dual"], {**DUAL, **more.get("dual", {})})
        primal = {**PRIMAL, **more.get("primal", {})}
        known &= any(fits(claim["primal"], {**primal, **point}) for point in POINTS)
    demand(known, "it has other keys or types than a certificate")
    return claim


def parsed(body: bytes) -> Any:
    """JSON without long numbers, NaN, −∞ or a key that stands twice."""
    entries = sum(map(body.count, (b"[", b"{", b",")))
    demand(entries <= MAX_ENTRIES, f"it has more than {MAX_ENTRIES} entries")
    return json.loads(
        body.decode(),
        parse_int=partial(_number, int),
        parse_float=partial(_number, float),
        parse_constant=_constant,
        object_pairs_hook=_unique,
    )


def _number(kind: type, text: str) -> Any:
    demand(len(text) <= MAX_DIGITS, f"a number has more than {MAX_DIGITS} digits")
    value = kind(text)
    demand(abs(value) != math.inf, f"{text} is too large")
    return value


def _constant(text: str) -> float:
    demand(text == "Infinity", f"{text} is no number")
    return math.inf


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    demand(len(dict(pairs)) == len(pairs), "a key stands there twice")
    return dict(pairs)


def fits(value: Any, what: Any) -> bool:
    """Whether a value that was read is what it may be."""
    if type(what) is dict:
        same = type(value) is dict and value.keys() == what.keys()
        return same and all(fits(value[key], what[key]) for key in what)
    if type(what) is list:
        return type(value) is list and all(fits(entry, what[0]) for entry in value)
    return type(value) in what


def named(given: list, known: dict[str, dict]) -> tuple[str, dict[str, Any]]:
    """A known name and its parameters, in their own order."""
    name = given[0] if given and type(given[0]) is str else ""
    here = name in known and len(given) == 2
    demand(here, f"{name[:40]!r} is not known here, only {', '.join(known)}")
    good = fits(given[1], known[name])
    demand(good, f"{name} has other parameters or types than {', '.join(known[name])}")
    return name, {key: given[1][key] for key in known[name]}


def floats(text: str) -> list[float]:
    """Little-endian float64 in base64; all finite."""
    found = struct.iter_unpack("<d", base64.b64decode(text, validate=True))
    values = [x for (x,) in found]
    demand(all(map(math.isfinite, values)), "an array holds NaN or infinite numbers")
    return values


def exact(value: float) -> Fraction:
    """A number of the file, which must be finite."""
    demand(abs(value) != math.inf, "a number is infinite")
    return Fraction(value)


def power_of(value: float) -> Fraction | None:
    """The exponent that a number stands for; None is ∞."""
    if value == math.inf:
        return None
    demand(1 <= value <= 10**15, f"an exponent is {value}, neither ∞ nor in [1, 1e15]")
    near = Fraction(value).limit_denominator(1000)
    return near if float(near) == value else Fraction(value)


def shown(key: str, value: Any) -> str:
    """A parameter in the line that is printed; exponents as fractions."""
    exponent = power_of(value) if key in EXPONENTS else None
    short = exponent is not None and exponent.denominator <= 1000
    if key in FORMULATIONS["Conic"]:
        value = f"{len(value)} entries"
    return f"{key}={exponent if short else value}"[:200]


class Norm(NamedTuple):
    """N(u) = ‖(‖(u_k/√prior_k)_{k∈j}‖_r)_j‖_s over groups j of kernels; None is ∞."""

    groups: list[list[int]]
    r: Any  # Fraction | None
    s: Any
    prior: list[Fraction]


class Statement:
    """The problem of a file, every part of it known and valid."""

    def __init__(self, claim: dict[str, Any]):
        what = BY_RULES if "points" in claim else PROBLEM
        stated = {key: claim.get(key) for key in what}
        demand(fits(stated, what), "the problem is not stated in known types")
        self.claim, self.bias, self.factors = claim, claim["bias"], claim["factors"]
        self.loss, self.options = named(claim["loss"], LOSSES)
        self.name, self.terms = named(claim["formulation"], FORMULATIONS)
        self.described: list[list] = [[self.loss, self.options]]
        self.described.append([self.name, self.terms])
        self.y, self.C = floats(claim["y"]), floats(claim["C"])
        self.shift = floats(claim["shift"])
        self.n, self.M = len(self.y), len(self.shift)
        self.points = [floats(a) for a in claim.get("points", ())]
        self.arrays, self.rules, self.stated = [], [], []  # type: ignore[var-annotated]
        if "points" in claim:
            self.rules = [self._rule(given) for given in claim["kernels"]]
        else:
            self.arrays = [floats(a) for a in claim["kernels"]]
        fit = len(claim["kernels"]) == self.M > 0 and len(self.C) == self.n > 0
        demand(fit, "kernels, shifts, C and labels differ in number")
        demand(min(self.C) > 0 and min(self.shift) >= 0, "C ≤ 0, or a shift < 0")
        self._labels()
        self.residual = self._residual(**self.options)
        self._formulation(**self.terms)

    def _rule(self, given: list) -> tuple[str, dict[str, Any]]:
        """The rule of a kernel of points: all entries of K, and K ⪰ 0, follow."""
        name, terms = named(given, RULES)
        same = not self.factors and {*map(len, self.points)} <= {self.n}
        demand(
            same, "the points do not have one number per sample, or there are factors"
        )
        rate = exact(terms["rate"] if "rate" in terms else terms["offset"])
        columns = all(0 <= c < len(self.points) for c in terms["columns"])
        good = rate >= 0 and columns and 1 <= terms.get("degree", 1) <= MAX_DEGREE
        steps = [floats(d) if type(d) is str else exact(d) for d in terms["divisors"]]
        for x in steps:
            rows = x if isinstance(x, list) else [x] * self.n
            good &= len(rows) == self.n and min(rows) > 0
        demand(good, f"a parameter of the kernel {name} is out of its range")
        self.stated.append([name, terms])
        return name, {**terms, "divisors": steps}

    def _labels(self) -> None:
        """k outputs; whether the loss compares them, and whether by a maximum."""
        self.k, self.hinge = 1, "hinge" in self.loss or self.loss == "one_class"
        if self.loss in ("multiclass_hinge", "multinomial"):
            whole = all(y >= 0 and y.is_integer() for y in self.y) and max(self.y) > 0
            demand(whole, f"{self.loss} needs classes 0, 1, …, k − 1")
            self.k = int(max(self.y)) + 1
        elif self.loss == "one_class":
            demand({*self.y} == {1.0}, "one_class needs labels +1")
            demand(not self.bias, "one_class has no bias")
        elif self.loss in ("hinge", "logistic"):
            demand({*self.y} <= {-1.0, 1.0}, f"{self.loss} needs labels −1 and +1")

    def _residual(self, eps: float = 0, delta: float = 1, tau: float = 0) -> Any:
        """(kink, ridge, low, high): V = max of a(y − f) − kink|a| − ½ ridge a² over a.

        low ≤ a ≤ high; None for the losses that compare outputs.
        """
        ε, δ, τ = exact(eps), exact(delta), exact(tau)
        demand(ε >= 0, "ε is negative")
        demand(δ > 0 and 0 <= τ <= 1, "δ ≤ 0, or τ is outside [0, 1]")
        return {
            "squared": (0, 1, -math.inf, math.inf),
            "eps_insensitive": (ε, 0, -1, 1),
            "huber": (0, 1, -δ, δ),
            "quantile": (0, 0, τ - 1, τ),
        }.get(self.loss)

    def _formulation(self, groups: Any = None, **given: Any) -> None:
        """Ω = (c/2) N² + a Σu, but for four that checker.py knows by name."""
        self.a, self.c = exact(given.get("a", 0)), Fraction(1)
        if self.name in ("GroupLasso", "ElasticNet"):
            self.a = exact(given.get("l1_ratio", 1))
            self.c = 1 - self.a
        self.mu = exact(given.get("mu", 1))
        good = self.a >= 0 and self.c >= 0 and self.mu > 0
        demand(good, f"a parameter of {self.name} is out of its range")
        w = [exact(x) for x in given.get("prior", given.get("theta", [1] * self.M))]
        positive = len(w) == self.M and min(w) >= 0 and ("theta" in given or all(w))
        demand(positive, "there is not one positive weight per kernel")
        groups = [[*range(self.M)]] if groups is None else groups
        members = sorted(k for group in groups for k in group)
        partition = members == [*range(self.M)] and min(map(len, groups)) > 0
        demand(partition, "the groups are not a partition of the kernels")
        powers = {key: power_of(given[key]) for key in EXPONENTS if key in given}
        low = all(given[key] <= LARGEST.get(self.name, math.inf) for key in powers)
        demand(low, f"an exponent of {self.name} is above {LARGEST.get(self.name)}")
        r, s = self._exponents(**powers)
        self.norm = Norm(groups, r, s, w)
        if self.name == "BlockPower" and self.norm.r == 1:  # ½Σu
            self.a, self.c = Fraction(1, 2), Fraction(0)
        self.E = [[exact(x) for x in row] for row in given.get("E", ())]
        even = self.name != "NonIsotropic" or len(self.E) == self.M
        even &= [*map(list, zip(*self.E))] == self.E
        demand(even, "E is not a symmetric matrix with one row per kernel")

    def _exponents(self, p: Any = 0, q: Any = 2, r: Any = 0, s: Any = 0) -> tuple:
        """r inside the groups and s across them; of one group, r alone counts."""
        if self.name == "VSKL":
            return Fraction(1), q and 2 * q
        if self.name == "Composite":
            return r, s
        if self.name == "BlockL1":
            return Fraction(1), Fraction(1)
        return (2 * p / (p + 1) if p else q and Fraction(q)), Fraction(1)

    def digest(self) -> str:
        """The hash of the problem, from the data in the file."""
        h = hashlib.sha256()
        version = 3 if self.rules else 1
        parts: list[Any] = [[f"mklopt problem {version}", self.M, self.n, self.bias]]
        for values in self.arrays:
            wide = [self.n, len(values) // self.n]
            shape = wide if self.factors else [len(values)]
            parts += [shape, struct.pack(f"<{len(values)}d", *values)]
        parts += self.stated
        for values in (*self.points, self.shift, self.y, self.C):
            parts.append(struct.pack(f"<{len(values)}d", *values))
        for part in (*parts, *self.described):
            h.update(part if type(part) is bytes else json.dumps(part).encode())
        return h.hexdigest()

    def __str__(self) -> str:
        loss, terms = (
            f"{name}({', '.join(shown(*term) for term in given.items())})"
            for name, given in self.described
        )
        bias, shift = "with" if self.bias else "without", max(self.shift)
        kernels = f"kernels K + δI, δ ≤ {shift}" if shift else "kernels K"
        kernels += " by rules of points" * bool(self.rules)
        size = f"n = {self.n}, M = {self.M}" + f", k = {self.k}" * (self.k > 1)
        return f"{loss.removesuffix('()')}, {terms}, {size}, {bias} bias, {kernels}"
