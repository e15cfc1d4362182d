"""Portable certificates: one file from which anyone can prove lower ≤ f* ≤ upper.

The file holds the problem (kernels or factors with their shift δ, labels, C, loss and
formulation by name and parameters), a dual point in integers over a power of two, a
primal point, and the two bounds. `checker.py`, which needs Python and nothing else,
verifies it in exact arithmetic; it does not rely on anything computed here.
docs/certificate-format.md specifies it.

Floats are little-endian float64 in base64, so that no digit is lost.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import formulations
from ..formulations import NonIsotropic
from ..formulations.losses.domains import grid_of
from ..problem import Problem, describe
from ..util.files import write_whole
from .by_rule import by_rule, rules_of
from .certificate import Certificate, certify
from .conic_form import completed, terms_of
from .reading import FORMAT, MAX_BYTES, Refused, Statement

if TYPE_CHECKING:
    from ..kernels.fitted import FittedKernels

Array = np.ndarray


def save_certificate(
    certificate: Certificate,
    path: str | os.PathLike,
    kernels: FittedKernels | None = None,
) -> None:
    """Write a certificate as a file that `mklopt verify` checks.

    With `kernels`, the file has the points and the rules of the kernels in place of
    their entries, and the bounds are for the exact kernels (by_rule.py).

    If the kernels are not yet proved positive semi-definite, the file is for K + δI
    with the δ that the proof needs, and the points are certified again for it. The
    problem of the certificate itself stays what it is.
    """
    if kernels is not None:
        certificate = by_rule(certificate, kernels)
    problem = certificate.problem
    problem = problem if kernels is not None else proved_problem(problem)
    if problem is not certificate.problem:
        points = (certificate.alpha, certificate.weights)
        certificate = certify(problem, *points, coefficients=certificate.coefficients)
    stated = statement(problem) if kernels is None else by_points(problem, kernels)
    try:
        stated["problem"] = Statement(json.loads(json.dumps(stated))).digest()
    except Refused as reason:
        raise ValueError(
            f"a certificate file cannot state {problem!r}: {reason}; "
            "result.certificate has its bounds and what they assume"
        ) from None
    claim = {**stated, **points_of(certificate)}
    if stated["formulation"][0] == "Conic":
        claim = completed(claim, problem.formulation)
    content = seal(claim)
    if len(content) > MAX_BYTES:
        raise ValueError(
            f"a portable certificate of {problem!r} has {len(content)} bytes; the "
            f"checker reads at most {MAX_BYTES}: use fewer samples or kernels"
        )
    write_whole(path, content)


def proved_problem(problem: Problem) -> Problem:
    """The problem that a file states: its kernels are proved ⪰ 0, with their δ."""
    if problem.grams.proof:
        return problem
    grams = problem.grams.apart()
    grams.verify_psd()
    return problem.with_(grams=grams)


def seal(claim: dict[str, Any]) -> bytes:
    """The bytes of a file: one line with format and hash, then the claim."""
    body = json.dumps(claim).encode()
    return FORMAT + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def statement(problem: Problem) -> dict[str, Any]:
    """The problem of a file: data, loss and formulation, and the hash of all."""
    return {
        "problem": problem.digest(),
        "loss": describe(problem.loss, problem),
        "formulation": stated_formulation(problem),
        "bias": problem.bias,
        "factors": problem.grams.storage == "factors",
        "kernels": [_text(part) for part in problem.grams.content()],
        "shift": _text(problem.grams.shift),
        "y": _text(problem.y),
        "C": _text(problem.costs),
    }


def stated_formulation(problem: Problem) -> list:
    """Ω by its name and parameters, or by its conic form if it is somebody's own."""
    omega = problem.formulation
    if type(omega) is getattr(formulations, omega.name, None):
        return describe(omega, problem)
    return ["Conic", terms_of(omega, problem.grams.M)]


def by_points(problem: Problem, fitted: FittedKernels) -> dict[str, Any]:
    """The problem of a file with the exact kernels of a family, proved without a δ."""
    rules = rules_of(fitted)
    for _, terms in rules["kernels"]:
        steps = terms["divisors"]
        terms["divisors"] = [d if type(d) is float else _text(d) for d in steps]
    return {
        "problem": "",  # the hash of all the rest
        "loss": describe(problem.loss, problem),
        "formulation": stated_formulation(problem),
        "bias": problem.bias,
        "factors": False,
        "kernels": rules["kernels"],
        "points": [_text(column) for column in rules["points"]],
        "shift": _text(np.zeros(fitted.M)),
        "y": _text(problem.y),
        "C": _text(problem.costs),
    }


def points_of(certificate: Certificate) -> dict[str, Any]:
    """The bounds, and the two points that show them."""
    found, problem = certificate.enclosure, certificate.problem
    if not np.isfinite([found.lower, found.upper]).all():
        raise ValueError(
            f"{found.lower} ≤ f* ≤ {found.upper} is infinite: a file cannot prove it; "
            "certify better candidates"
        )
    grid = grid_of(found.alpha)
    dual = {
        "integers": [int(a / grid) for a in found.alpha.ravel().tolist()],
        "exponent": int(-np.log2(grid)),
        "shrink": found.shrink,
    }
    primal = _primal(certificate, found.stretch)
    if isinstance(problem.formulation, NonIsotropic):
        v = problem.grams.norms(found.alpha)
        dual["slack"] = _text(problem.formulation.slack(found.shrink * v))
        primal["direction"] = _text(problem.formulation.direction(certificate.norms))
    return {"lower": found.lower, "upper": found.upper, "dual": dual, "primal": primal}


def _primal(certificate: Certificate, stretch: float) -> dict[str, Any]:
    problem = certificate.problem
    bias = np.broadcast_to(certificate.bias, problem.shape[1:])
    point: dict[str, Any] = {"bias": float(bias) if bias.ndim == 0 else _text(bias)}
    point["stretch"] = stretch
    if certificate.features is not None:
        ends = np.cumsum(problem.grams.ranks)[:-1]
        parts = np.split(certificate.features, ends)
        return {**point, "features": [_text(w) for w in parts]}
    if certificate.coefficients is None:
        return {**point, "weights": _text(certificate.weights)}
    return {**point, "coefficients": [_text(b) for b in certificate.coefficients]}


def _text(values: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(values, "<f8").tobytes()).decode()
