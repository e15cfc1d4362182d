"""Read a certificate file without believing it. This file needs Python, nothing else.

A file is one line, the format and the SHA-256 of the rest, and then JSON. It has the
keys and types of `CLAIM` and no others, so that everything which the checker prints was
understood. Arrays are little-endian float64 in base64.

What is read is bounded: a regular file, its bytes, its entries, the digits of a number.

Formulations are GroupLasso, or groups j of kernels and an exponent r, which stand for
½‖(Σ_{k∈j} u_k)_j‖_r²: BlockL1 one group, r = 2; LpNorm(p) single kernels, r = 2p/(p+1),
p as the nearest fraction of a denominator up to 1000; VSKL(q) r = 2q.
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
from typing import Any

FORMAT = b"mklopt certificate 1 "  # and the SHA-256 of all that follows the line
MAX_BYTES = 1 << 27  # of a file
MAX_ENTRIES = 1_000_000  # so that JSON takes little more memory than the file
MAX_DIGITS = 1000  # of a number

# What JSON may be: one of some types, [the same in every entry], or {key: what}.
TEXT, FLAG, WHOLE, NUMBER = (str,), (bool,), (int,), (int, float)
LOSSES: dict[str, dict] = {
    "hinge": {},
    "logistic": {},
    "squared": {},
    "eps_insensitive": {"eps": NUMBER},
}
FORMULATIONS: dict[str, dict] = {
    "GroupLasso": {},
    "BlockL1": {},
    "LpNorm": {"p": NUMBER},
    "VSKL": {"groups": [[WHOLE]], "q": NUMBER},
}
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
CLAIM = {
    **PROBLEM,
    "lower": NUMBER,
    "upper": NUMBER,
    "dual": {"integers": [WHOLE], "exponent": WHOLE, "shrink": NUMBER},
    "primal": (dict,),  # one of PRIMALS
}
PRIMALS = (
    {"bias": NUMBER, "stretch": NUMBER, "weights": TEXT},
    {"bias": NUMBER, "stretch": NUMBER, "coefficients": [TEXT]},
    {"bias": NUMBER, "stretch": NUMBER, "features": [TEXT]},
)


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
    demand(head.startswith(FORMAT), f"it does not begin with {FORMAT.decode()!r}")
    same = head == FORMAT + hashlib.sha256(body).hexdigest().encode()
    demand(same, "the content does not have the hash in the first line")
    claim = parsed(body)
    known = fits(claim, CLAIM) and any(fits(claim["primal"], what) for what in PRIMALS)
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
    name = given[0] if len(given) == 2 and type(given[0]) is str else ""
    demand(name in known, f"{name!r} is not known here, only {', '.join(known)}")
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


class Statement:
    """The problem of a file, every part of it known and valid."""

    def __init__(self, claim: dict[str, Any]):
        stated = {key: claim.get(key) for key in PROBLEM}
        demand(fits(stated, PROBLEM), "the problem is not stated in known types")
        self.claim, self.bias, self.factors = claim, claim["bias"], claim["factors"]
        self.loss, given = named(claim["loss"], LOSSES)
        self.name, self.terms = named(claim["formulation"], FORMULATIONS)
        self.described = [[self.loss, given], [self.name, self.terms]]
        self.y, self.C = floats(claim["y"]), floats(claim["C"])
        self.arrays = [floats(a) for a in claim["kernels"]]
        self.shift = floats(claim["shift"])
        self.n, self.M = len(self.y), len(self.shift)
        fit = len(self.arrays) == self.M > 0 and len(self.C) == self.n > 0
        demand(fit, "kernels, shifts, C and labels differ in number")
        demand(min(self.C) > 0 and min(self.shift) >= 0, "C ≤ 0, or a shift < 0")
        self.signed = self.loss in ("hinge", "logistic")
        labels = {*self.y} if self.signed else set()
        demand(labels <= {-1.0, 1.0}, f"{self.loss} needs labels −1 and +1")
        self.eps = exact(given.get("eps", 0))
        demand(self.eps >= 0, "ε is negative")
        self.groups, self.r = self._formulation(**self.terms)

    def _formulation(
        self, p: float = 1, q: float = 1, groups: Any = ()
    ) -> tuple[list, Fraction | None]:
        """Groups of kernels, and r; GroupLasso has no groups."""
        everyone = list(range(self.M))
        if self.name == "GroupLasso":
            return [], None
        if self.name == "VSKL":
            members = sorted(k for group in groups for k in group)
            partition = members == everyone and min(map(len, groups)) > 0
            demand(partition, "the groups are not a partition of the kernels")
            demand(q in (1, 2, math.inf), f"q = {q} is not 1, 2 or ∞")
            return groups, None if q == math.inf else Fraction(int(2 * q))
        if p == 1:  # BlockL1, too
            return [everyone], Fraction(2)
        single = [[m] for m in everyone]
        if p == math.inf:
            return single, Fraction(2)
        near = Fraction(p).limit_denominator(1000)
        rational = float(near) == p and 1 < near <= 10**6
        demand(rational, f"p = {p} is no rational number ≥ 1 that is known here")
        self.terms = {"p": near}  # which the proof is for
        return single, 2 * near / (near + 1)

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
        for part in (*parts, *self.described):
            h.update(part if type(part) is bytes else json.dumps(part).encode())
        return h.hexdigest()

    def __str__(self) -> str:
        terms = ", ".join(f"{key}={value}" for key, value in self.terms.items())
        loss = f"{self.loss}(eps={float(self.eps)})" if self.eps else self.loss
        bias, shift = "with" if self.bias else "without", max(self.shift)
        kernels = f"kernels K + δI, δ ≤ {shift}" if shift else "kernels K"
        size = f"n = {self.n}, M = {self.M}"
        return f"{loss}, {self.name}({terms}), {size}, {bias} bias, {kernels}"
