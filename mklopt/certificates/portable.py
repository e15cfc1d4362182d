"""Portable certificates: one file from which anyone can prove lower ≤ f* ≤ upper.

The file holds the problem (kernels or factors with their shift δ, labels, C, loss and
formulation by name and parameters), a dual point in integers over a power of two, a
primal point, and the two bounds. `checker.py`, which needs Python and nothing else,
verifies it in exact arithmetic; it does not rely on anything computed here.

Floats are little-endian float64 in base64, so that no digit is lost.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from typing import Any

import numpy as np

from ..formulations.losses.domains import grid_of
from ..problem import Problem, describe
from ..util.files import write_whole
from .certificate import Certificate, certify
from .checker import FORMAT, Claim, Refused

Array = np.ndarray


def save_certificate(certificate: Certificate, path: str | os.PathLike) -> None:
    """Write a certificate as a file that `mklopt verify` checks.

    If the kernels are not yet proved positive semi-definite, this is done first, and
    the points are certified again for K + δI with the δ that the proof needs. The file
    is about K + δI then; the problem at hand stays what it is.
    """
    problem = certificate.problem
    if not certificate.proof:
        problem = problem.with_(grams=problem.grams.apart())
        problem.grams.verify_psd()
        points = (certificate.alpha, certificate.weights)
        certificate = certify(problem, *points, coefficients=certificate.coefficients)
    stated = statement(problem)
    try:
        Claim(stated)
    except Refused as reason:
        raise ValueError(
            f"a portable certificate cannot state {problem!r}: {reason}"
        ) from None
    write_whole(path, seal({**stated, **points_of(certificate)}))


def seal(claim: dict[str, Any]) -> bytes:
    """The bytes of a file: one line with format and hash, then the claim."""
    body = json.dumps(claim).encode()
    return FORMAT + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def statement(problem: Problem) -> dict[str, Any]:
    """The problem of a file: data, loss and formulation, and the hash of all."""
    return {
        "problem": problem.digest(),
        "loss": describe(problem.loss, problem),
        "formulation": describe(problem.formulation, problem),
        "bias": problem.bias,
        "factors": problem.grams.storage == "factors",
        "kernels": [_text(part) for part in problem.grams.content()],
        "shift": _text(problem.grams.shift),
        "y": _text(problem.y),
        "C": _text(problem.costs),
    }


def points_of(certificate: Certificate) -> dict[str, Any]:
    """The bounds, and the two points that show them."""
    found = certificate.enclosure
    if not np.isfinite([found.lower, found.upper]).all():
        raise ValueError(
            f"{found.lower} ≤ f* ≤ {found.upper} is infinite: a file cannot prove it; "
            "certify better candidates"
        )
    grid = grid_of(found.alpha)
    return {
        "lower": found.lower,
        "upper": found.upper,
        "dual": {
            "integers": [int(a / grid) for a in found.alpha.tolist()],
            "exponent": int(-np.log2(grid)),
            "shrink": found.shrink,
        },
        "primal": _primal(certificate, found.stretch),
    }


def _primal(certificate: Certificate, stretch: float) -> dict[str, Any]:
    point = {"bias": float(certificate.bias), "stretch": stretch}
    if certificate.coefficients is None:
        return {**point, "weights": _text(certificate.weights)}
    return {**point, "coefficients": [_text(b) for b in certificate.coefficients]}


def _text(values: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(values, "<f8").tobytes()).decode()
