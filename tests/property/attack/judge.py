"""One case, solved by mklopt and judged by the exact evaluator.

What is wrong has a kind:

    false lower      an exactly evaluated primal point lies below the lower bound
    false upper      an exactly evaluated dual point lies above the upper bound
    unproved lower   the dual point of the enclosure does not show its lower bound
    unproved upper   the primal point of the enclosure does not show its upper bound
    infeasible       the dual point of the enclosure is not feasible as real numbers
    stored           the stack holds other kernels than those it was given
    false proof      kernels are said to be proved, and are not positive semi-definite
    weak duality     mklopt itself found lower > upper, for kernels that are PSD
    raw exception    anything but a ValueError that mklopt raises itself, one sentence
    refused          a valid problem that was built is refused with such a ValueError
    time             more than MAX_CPU seconds of CPU time at a limit of LIMIT seconds
    converged        status "converged", but the enclosed gap exceeds the tolerance
    derived          as unproved, where it is stated that operators are derived
    point            certify(weights, dual) of a result has not the gap of the result
    warning          a warning reached the user
    failed           status "failed": an exception inside a solver, told in a message
    nan              a bound is NaN
    own file         the checker refuses a file of save_certificate

Command line: python -m tests.property.attack.judge --seed 1 --from 0 --to 1000
"""

from __future__ import annotations

import argparse
import linecache
import math
import os
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from mpmath import mpf

from tests.property.attack.exact import (
    MULTI,
    Exact,
    Indefinite,
    Kernels,
    dyadic,
    rational,
)
from tests.property.attack.points import SQUARES
from tests.property.attack.problems import FACTORED, Case, draw, plain

LIMIT = 2.0  # seconds, the time limit of a run
MAX_CPU = 4.0  # CPU seconds: twice that
SMALL = 12  # samples: then proofs of positive semi-definiteness are judged
CENTRED = 1e-9  # relative: entries from sums over a matrix, in two orders
GIVE_UP = 15.0  # CPU seconds after which a run is stopped from outside
GAP_ROOM = (1e-6, 1e-15)  # relative and absolute room of "gap ≤ tol"
POINT_ROOM = (1e-6, 1e-12)  # the same for two certificates of one point
ZERO = Fraction(0)
SHORT = Fraction(3, 8)  # the shorter part of a golden section, nearly
SECTIONS = 100  # (5/8)^100 = 4e-21
HALVINGS = 2200  # of the length of a dual point: 2^-2200 is far below any float
PACKAGE = ("mklopt", "formulations", "reference")
ROOT = Path(__file__).resolve().parents[3]
EXPECTED = ("Solution may be inaccurate", "Converting A to a CSC")
MUST_NOT = (  # what the bar of `make test-all` forbids
    *("false lower", "false upper", "unproved lower", "unproved upper"),
    *("infeasible", "stored", "false proof", "weak duality", "raw exception"),
    "refused",
    *("time", "converged", "nan", "own file"),
)
REPORTED = ("derived", "point", "warning", "failed")


class Overrun(BaseException):
    """The run was stopped from outside; no `except Exception` catches it."""


@dataclass
class Record:
    """What became of a case."""

    case: Case
    wrong: list[tuple[str, str]] = field(default_factory=list)
    status: str = ""
    seconds: float = 0.0
    bounds: int = 0  # pairs of bounds that were judged
    solved: Any = None  # with low-rank kernels; the exact ones come later

    def add(self, kind: str, detail: str) -> None:
        """Note something wrong."""
        self.wrong.append((kind, detail))


# ---- running mklopt ------------------------------------------------------------------


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raise Overrun after so many seconds of CPU time."""

    def stop(*_: Any) -> None:
        raise Overrun(f"stopped after {seconds:g} s of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def spaces(case: Case) -> Iterator[None]:
    """Factors of any size stay in feature space, as they do with many samples."""
    from mklopt.grams import stack

    least = 0 if case.in_feature_space else 10**9
    share = mock.patch.object(stack, "FEATURE_SHARE", 0)  # of any number of columns
    with mock.patch.object(stack, "FEATURE_SAMPLES", least), share:
        yield


def judge(case: Case) -> Record:
    """Run a case and judge everything it says."""
    record = Record(case)
    with warnings.catch_warnings(record=True) as told, spaces(case):
        warnings.simplefilter("always")
        with tempfile.TemporaryDirectory() as case.folder:
            _run(case, record)
    for text in sorted({_warning(w) for w in told}):
        if not any(known in text for known in EXPECTED):
            record.add("warning", text)
    return record


def _warning(w: Any) -> str:
    text = str(w.message).split("\n")[0][:80]
    return f"{w.category.__name__}: {text} ({_place(w.filename)}:{w.lineno})"


def _run(case: Case, record: Record) -> None:
    begun = time.process_time()
    try:
        with stopped_after(GIVE_UP):
            problem = case.build()
    except Overrun:
        record.add("time", "build")
        return
    except Exception as error:
        _exception(record, error, "build")
        record.status = "not built"
        return
    stored_kernels(case, problem, record)
    try:
        results = _timed(case, problem, record)
    except Exception as error:
        _exception(record, error, case.action)
        record.status = "exception"
        return
    record.seconds = time.process_time() - begun
    if record.solved is not None:
        _judge_exact(case, record.solved, record)
    _judge_bounds(case, results, record)


def _timed(case: Case, problem: Any, record: Record) -> list[tuple[Any, Any]]:
    """What the action returned; a slow run is repeated, so that caches are warm."""
    for attempt in range(2):
        begun = time.process_time()
        try:
            with stopped_after(GIVE_UP):
                results = ACTIONS[case.action](case, problem, record, attempt)
        except Overrun:
            record.add("time", f"more than {GIVE_UP:g} s {record.status}")
            return []
        taken = time.process_time() - begun
        if taken <= MAX_CPU * max(1, len(results)):
            return results
    record.add("time", f"{taken:.1f} s for {len(results)} runs, {record.status}")
    return results


def _options(case: Case, problem: Any) -> tuple[str, dict[str, Any]]:
    from mklopt.solvers import solvers

    rng = np.random.default_rng(case.seed_of_run)
    options: dict[str, Any] = {"tol": case.tol, "time_limit": LIMIT}
    if case.solver == "auto":
        return "auto", options
    able = [n for n, s in sorted(solvers().items()) if not s.why_not(problem)]
    name = able[int(rng.integers(len(able)))]
    options["max_iter"] = int(rng.integers(1, 40))
    options["seed"] = int(rng.integers(100))
    return name, options


def _solve(case: Case, problem: Any, record: Record, attempt: int) -> list:
    import mklopt

    name, options = _options(case, problem)
    result = mklopt.solve(problem, name, **options)
    return [*_of_result(result, record, attempt)]


def _of_result(result: Any, record: Record, attempt: int) -> Iterator[tuple[Any, Any]]:
    """The certificate, after the rules on status and point."""
    found, problem = result.certificate, result.problem
    tol = float(result.trace.about.get("tol", record.case.tol))
    record.status = f"{result.solver} {result.status}"
    lower, upper = found.lower, found.upper
    repr(result), str(result), str(found), found.assumptions
    if attempt == 0:
        _status(result, lower, upper, tol, record)
        _point(result, record)
    yield found, problem


def _status(result: Any, lower: float, upper: float, tol: float, record: Record):
    room = tol * (1 + GAP_ROOM[0]) + GAP_ROOM[1]
    width = math.inf
    if lower == upper:
        width = 0.0
    elif math.isfinite(lower) and math.isfinite(upper) and upper != 0:
        width = float((rational(upper) - rational(lower)) / abs(rational(upper)))
    if result.status == "converged" and not width <= room:
        told = f"{result.solver}: enclosed gap {width:.1e}, tol {tol:.1e}"
        record.add("converged", f"{told}, [{lower:.6g}, {upper:.6g}]")
    if result.status == "failed":
        record.add("failed", f"{result.solver}: {result.message}"[:160])


def _point(result: Any, record: Record) -> None:
    import mklopt

    point: dict[str, Any] = {"weights": result.weights}
    if result.point != "weights":
        point = {result.point: getattr(result.certificate, result.point)}
    again = mklopt.certify(result.problem, dual=result.dual, **point)
    most = result.relative_gap * (1 + POINT_ROOM[0]) + POINT_ROOM[1]
    if not again.relative_gap <= most:
        gaps = f"{again.relative_gap:.1e} instead of {result.relative_gap:.1e}"
        record.add("point", f"{result.solver}: gap {gaps}")


def _certify(case: Case, problem: Any, record: Record, attempt: int) -> list:
    """Candidates of nobody, and a good point that was rescaled or disturbed."""
    import mklopt

    rng = np.random.default_rng(case.seed_of_run)
    candidates = [_nobody(rng, case, problem) for _ in range(2)]
    if case.seed_of_run % 3 == 0:
        good = mklopt.solve(problem, tol=1e-3, time_limit=0.3).certificate
        candidates += _disturbed(rng, good)
    out = []
    if case.seed_of_run % 5 == 0:
        out += _weights_alone(rng, problem)
    for candidate in candidates:
        found = mklopt.certify(problem, **candidate)
        str(found), found.assumptions
        out.append((found, problem))
    record.status = "certified"
    return out


def _weights_alone(rng: np.random.Generator, problem: Any) -> list[tuple[Any, Any]]:
    """α is that of the SVM at the weights, as in the conformance kit."""
    from mklopt.judge.exam.answer import Candidate
    from mklopt.judge.exam.case import NOT_CERTIFIED, certified

    weights = np.abs(_garbage(rng, (problem.grams.M,)))
    if problem.loss.quadratic(problem.y, problem.costs) is None:
        return []
    try:
        return [(certified(problem, Candidate(None, weights)), problem)]
    except NOT_CERTIFIED:
        return []


def _nobody(rng: np.random.Generator, case: Case, problem: Any) -> dict[str, Any]:
    """Numbers of any size, sparse, infeasible, zero."""
    M, grams = problem.grams.M, problem.grams
    alpha = _garbage(rng, problem.shape) * (1 if rng.random() < 0.5 else _C(case))
    alpha = np.where(np.isfinite(alpha), alpha, 1.0)
    if case.storage in FACTORED and rng.random() < 0.4:
        shape = (int(np.sum(grams.ranks)), *problem.shape[1:])
        return {"dual": alpha, "features": _garbage(rng, shape)}
    if rng.random() < 0.5:
        return {"dual": alpha, "weights": np.abs(_garbage(rng, (M,)))}
    return {"dual": alpha, "coefficients": _garbage(rng, (M, *problem.shape))}


def _disturbed(rng: np.random.Generator, good: Any) -> list[dict[str, Any]]:
    """α/t with t·θ for a power of two t, far out; and α with a last digit changed."""
    t = 2.0 ** int(rng.integers(0, 1000))
    noise = 1 + 2.0**-52 * rng.integers(-3, 4, size=good.alpha.shape)
    if good.features is not None:
        return [{"dual": good.alpha * noise, "features": good.features}]
    out: list[dict[str, Any]] = [
        {"dual": good.alpha * noise, "coefficients": good.expansion}
    ]
    if good.weights is not None and np.all(good.weights * t < 1e300):
        out.append({"dual": good.alpha / t, "weights": good.weights * t})
    return out


def _C(case: Case) -> float:
    return float(np.max(plain(case.C)))


def _garbage(rng: np.random.Generator, shape: tuple) -> np.ndarray:
    how = rng.integers(0, 5)
    values = rng.normal(size=shape)
    with np.errstate(all="ignore"):  # what overflows is replaced
        if how == 1:
            values = values * (rng.random(shape) < 0.3)
        elif how == 2:
            values = np.zeros(shape)
        elif how == 3:
            values = values * 10.0 ** rng.uniform(-323, 307)
        elif how == 4:
            values = values * 10.0 ** rng.uniform(-10, 10, size=shape)
    return np.where(np.isfinite(values), values, 1.0)


def _path(case: Case, problem: Any, record: Record, attempt: int) -> list:
    import mklopt

    rng = np.random.default_rng(case.seed_of_run)
    options: dict[str, Any] = {"tol": case.tol, "time_limit": LIMIT}
    top = float(np.max(problem.costs))
    options["Cs"] = [c for c in (top / 16, top, 4 * top) if 0 < c < math.inf]
    if rng.random() < 0.3:
        options |= {"Cs": None, "points": 3}
    try:
        results = mklopt.path(problem, **options)
    except ValueError as error:
        if "C_zero" in str(error):
            record.status = "no C_zero"
            return []
        raise
    repr(results), results.weights, results.converged
    return [pair for r in results for pair in _of_result(r, record, attempt)]


def _save(case: Case, problem: Any, record: Record, attempt: int) -> list:
    import mklopt

    name, options = _options(case, problem)
    result = mklopt.solve(problem, name, **options)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.npz")
        result.save(path)
        loaded = mklopt.Result.load(path, problem)
        _proof_file(case, result, os.path.join(folder, "proof.cert"), record)
    first = [*_of_result(result, record, attempt)]
    return [*first, *_of_result(loaded, record, attempt)]


def _proof_file(case: Case, result: Any, path: str, record: Record) -> None:
    """What save_certificate writes must convince the checker."""
    import mklopt
    from mklopt.certificates.checker import Refused, check
    from mklopt.certificates.portable import save_certificate

    found = result.certificate
    names = ("features", "weights", "coefficients")
    name = next(name for name in names if getattr(found, name) is not None)
    point: dict[str, Any] = {name: getattr(found, name)}
    again = mklopt.certify(case.build(), dual=found.alpha, **point)
    try:
        save_certificate(again, path)
    except ValueError as error:
        if "cannot state" in str(error) or "is infinite" in str(error):
            return
        raise
    try:
        check(Path(path).read_bytes())
    except Refused as reason:
        record.add("own file", str(reason)[:200])


def _exact(case: Case, problem: Any, record: Record, attempt: int) -> list:
    """A solution with low-rank features, and what it is worth for exact kernels."""
    import mklopt

    result = mklopt.solve(problem, tol=case.tol, time_limit=LIMIT)
    record.solved = result
    return [*_of_result(result, record, attempt)]


ACTIONS = {
    "solve": _solve,
    "certify": _certify,
    "path": _path,
    "save": _save,
    "exact": _exact,
}


def _exception(record: Record, error: Exception, where: str) -> None:
    """A sentence of mklopt, or a raw exception."""
    frames = traceback.extract_tb(error.__traceback__)
    last, text = frames[-1], " ".join(str(error).split())
    line = linecache.getline(last.filename, last.lineno or 0).strip()
    place = f"{_place(last.filename)}:{last.lineno}"
    said = f"{where}: {type(error).__name__}: {text[:160]} ({place})"
    own = _place(last.filename).split("/")[0] in PACKAGE and line.startswith("raise")
    sentence = isinstance(error, ValueError) and 10 < len(text) < 1000
    if isinstance(error, ValueError) and text.startswith("weak duality fails"):
        record.add("weak duality", said)
    elif not (own and sentence):
        chain = [f for f in frames if _place(f.filename).split("/")[0] in PACKAGE]
        ours = f"{_place(chain[-1].filename)}:{chain[-1].lineno}" if chain else "?"
        record.add("raw exception", f"{said} via {ours}")
    elif where != "build":
        record.add("refused", said)


def _place(filename: str) -> str:
    path = Path(filename)
    if path.is_relative_to(ROOT):
        return str(path.relative_to(ROOT))
    return "/".join(path.parts[-2:])


# ---- judging bounds ------------------------------------------------------------------


def stored_kernels(case: Case, problem: Any, record: Record) -> None:
    """Whether the stack holds what it was given."""
    if case.recipe is not None:
        _family_kernels(case, problem, record)
        return
    if case.storage == "factors":
        same = all(map(np.array_equal, problem.grams.factors, case.arrays))
    elif case.storage == "lazy":
        return
    else:
        kinds = np.float32 if case.storage == "float32" else np.float64
        means = [(0.5 * K + 0.5 * K.T).astype(kinds) for K in case.arrays]
        got = [problem.grams.kernel(m) for m in range(case.M)]
        same = all(map(np.array_equal, got, means))
    if not same:
        record.add("stored", "kernels differ from those given")


def _family_kernels(case: Case, problem: Any, record: Record) -> None:
    """Entries are those of the family, and the same whether streamed or stored.

    To the last bit, if normalizations need no sums over the whole matrix.
    """
    assert case.recipe is not None
    if case.storage == "low rank":
        return
    entries = [problem.grams.kernel(m) for m in range(case.M)]
    if told := case.recipe.far_off(entries):
        record.add("stored", told)
    stored = [*map(case.recipe.fitted().grams().kernel, range(case.M))]
    room = 0.0 if set(case.recipe.normalize) <= SQUARES else CENTRED
    far = [np.max(np.abs(A - B)) > room * np.max(B) for A, B in zip(entries, stored)]
    if any(far):
        record.add("stored", "entries differ from those of fitted.grams()")


def _judge_bounds(case: Case, found: list, record: Record) -> None:
    """Every pair of bounds against every exactly evaluated point of its problem."""
    if case.again and found:
        _second(case, found, record)
    problems: dict[tuple, list] = defaultdict(list)
    for certificate, problem in found:
        key = (problem.costs.tobytes(), certificate.shift.tobytes())
        problems[key].append((certificate, problem))
    for group in problems.values():
        _judge_group(case, group, record)


def _second(case: Case, found: list, record: Record) -> None:
    """A second solve of the first problem, for other points."""
    import mklopt

    try:
        with stopped_after(GIVE_UP):
            other = mklopt.solve(found[0][1], tol=1e-10, time_limit=0.5)
            other.certificate.enclosure  # noqa: B018
            found.append((other.certificate, found[0][1]))
    except (Exception, Overrun):  # judged where it is the first solve
        return


def _judge_group(case: Case, group: list, record: Record) -> None:
    problem = group[0][1]
    evaluator = case.exact(problem.grams, group[0][0].shift)
    evaluator.C = [rational(c) for c in problem.costs]
    _same_costs(case, problem, record)
    proved = problem.grams.proof and case.storage not in FACTORED
    if proved and case.n <= SMALL and _indefinite(case, evaluator):
        record.add("false proof", f"by {problem.grams.proof}")
    try:
        _against_points(group, evaluator, record)
    except Indefinite as error:
        if _indefinite(case, evaluator):
            record.status += " (indefinite)"
        else:
            record.add("raw exception", f"the evaluator: {error}")


def _same_costs(case: Case, problem: Any, record: Record) -> None:
    """C must be what was meant; on a path it is another one."""
    if case.action == "path":
        return
    given = np.broadcast_to(np.array(plain(case.C), float), (case.n,))
    if not np.array_equal(given, problem.costs):
        record.add("stored", "C differs from what was given")


def _against_points(group: list, evaluator: Exact, record: Record) -> None:
    primal, dual = zero_points(evaluator), [(evaluator.dual(_zeros(evaluator)), "zero")]
    for certificate, _ in group:
        own_primal, own_dual = _own(certificate, evaluator, record)
        primal += own_primal
        dual += own_dual
    for certificate, _ in group:
        _refuted(certificate, primal, dual, evaluator, record)


def _refuted(
    bounds: Any, primal: list, dual: list, evaluator: Exact, record: Record
) -> None:
    """Whether a point refutes a lower or an upper bound.

    Between the two points weak duality has to hold. Where kernels are assumed to be
    positive semi-definite and are not, it need not, and nothing is said.
    """
    lowest = min(primal, key=lambda item: item[0][1])
    highest = max(dual, key=lambda item: item[0][0])
    lower, upper = float(bounds.lower), float(bounds.upper)
    record.bounds += 1
    if math.isnan(lower) or math.isnan(upper):
        record.add("nan", f"[{lower}, {upper}]")
        return
    found = []
    kind = "" if not bounds.assumptions else " (assumed)"
    if mpf(lower) > lowest[0][1]:
        by = _excess(mpf(lower), lowest[0][1])
        found.append(("false lower", f"{lower!r} by {by}: {lowest[1]} point{kind}"))
    if mpf(upper) < highest[0][0]:
        by = _excess(highest[0][0], mpf(upper))
        found.append(("false upper", f"{upper!r} by {by}: {highest[1]} point{kind}"))
    if found and any("semi-definite" in text for text in bounds.assumptions):
        kernels = evaluator.kernels
        if not all(kernels.definite(m) for m in range(kernels.M)):
            record.status += " (indefinite)"
            return
    record.wrong += found


def _excess(larger: Any, smaller: Any) -> str:
    scale = max(abs(larger), abs(smaller))
    if math.isinf(scale):
        return "∞"
    return f"{float((larger - smaller) / scale):.1e} of it" if scale else "0"


def _own(certificate: Any, evaluator: Exact, record: Record) -> tuple[list, list]:
    """The points of one certificate, and whether they show its own bounds."""
    if math.isnan(certificate.lower) or math.isnan(certificate.upper):
        return [], []
    enclosure = certificate.enclosure
    dual: list = []
    primal: list = []
    exact_alpha = _times(dyadic(enclosure.alpha), enclosure.shrink)
    here = evaluator.dual(exact_alpha)
    dual.append((here, "own"))
    lower, upper = float(enclosure.lower), float(enclosure.upper)
    if mpf(lower) > here[1]:
        inside = here[1] > -math.inf or _in_domain(evaluator, exact_alpha)
        by = _excess(mpf(lower), here[1]) if here[1] > -math.inf else "∞"
        kind = "unproved lower" if inside else "infeasible"
        kind = "derived" if _derived(certificate) else kind
        record.add(kind, f"{lower!r} by {by}")
    nearby = evaluator.feasible(certificate.alpha)
    if nearby is not None:
        for s in (1.0, certificate.shrink, certificate.shrink * (1 - 2.0**-50)):
            dual.append((evaluator.dual(_times(nearby, s)), "repaired"))
    if not np.all(np.isfinite(enclosure.alpha)):
        return primal, dual
    for t in {1.0, float(enclosure.stretch)}:
        value = _primal(certificate, evaluator, enclosure, t)
        primal.append((value, "own"))
        if t == enclosure.stretch and mpf(upper) < value[0]:
            by = _excess(value[0], mpf(upper))
            kind = "derived" if _derived(certificate) else "unproved upper"
            record.add(kind, f"{upper!r} by {by}")
    return primal, dual


def _derived(certificate: Any) -> bool:
    """Whether the certificate says that it rests on numerically derived operators."""
    return any("derived operators" in text for text in certificate.assumptions)


def _in_domain(evaluator: Exact, block: Any) -> bool:
    """Whether D = −∞ is due to Ω* alone: α is in the domain of V*, and balanced."""
    penalty = evaluator.penalty
    evaluator.penalty = "FixedWeights", {"theta": [0.0] * evaluator.kernels.M}
    inside = evaluator.dual(block)[0] > -math.inf
    evaluator.penalty = penalty
    return bool(inside)


def _times(block: tuple[np.ndarray, Fraction], s: float) -> tuple[np.ndarray, Fraction]:
    return block[0], block[1] * rational(s)


def _primal(certificate: Any, evaluator: Exact, enclosure: Any, t: float) -> Any:
    """P at t times the primal point of a certificate."""
    bias = _scaled_bias(certificate.bias, t)
    if certificate.features is not None and not np.all(
        np.isfinite(certificate.features)
    ):
        return mpf(math.inf), mpf(math.inf)  # θ_mL_mᵀα has overflowed: no bound
    if certificate.features is None:
        return evaluator.primal(_blocks(certificate, enclosure, t), bias)
    grams = certificate.problem.grams
    parts = np.split(certificate.features, np.cumsum(grams.ranks)[:-1])
    scaled = [_times(dyadic(w), t) for w in parts]
    return evaluator.primal_of_features(grams.factors, scaled, bias)


def _blocks(certificate: Any, enclosure: Any, t: float) -> list:
    if certificate.coefficients is not None:
        return [_times(dyadic(B), t) for B in certificate.coefficients]
    alpha = dyadic(enclosure.alpha)
    scale = [rational(theta) * rational(t) for theta in certificate.weights]
    return [(alpha[0], alpha[1] * s) for s in scale]


def _scaled_bias(bias: Any, t: float) -> Any:
    """t·b in rationals: Fraction for one output, an array for many."""
    values = np.asarray(bias, float)
    if values.ndim == 0:
        return rational(values) * rational(t)
    out = np.empty(values.shape, object)
    out[:] = [rational(b) * rational(t) for b in values]
    return out


def _zeros(evaluator: Exact) -> tuple[np.ndarray, Fraction]:
    n, k = evaluator.kernels.n, evaluator.classes
    return dyadic(np.zeros((n, k) if k else n))


def zero_points(evaluator: Exact) -> list:
    """P at w = 0 and a few biases."""
    blocks = [_zeros(evaluator)] * evaluator.kernels.M
    biases = [Fraction(0)]
    if evaluator.bias and evaluator.loss[0] not in MULTI:
        biases += [*map(Fraction, evaluator.y[:6]), _mean(evaluator)]
    return [(evaluator.primal(blocks, b), "zero") for b in biases]


def _mean(evaluator: Exact) -> Fraction:
    top = sum(c * y for c, y in zip(evaluator.C, evaluator.y))
    return rational(float(top / sum(evaluator.C)))


def _indefinite(case: Case, evaluator: Exact) -> bool:
    return not all(evaluator.kernels.definite(m) for m in range(case.M))


# ---- bounds for exact kernels --------------------------------------------------------


def _judge_exact(case: Case, result: Any, record: Record) -> None:
    """Bounds of the problem with the kernels as functions of the points.

    Good points come from a solution with stored kernels; own points: max_s D(s·α).
    """
    import mklopt

    assert case.recipe is not None
    fitted, problem = case.recipe.low_rank(), result.problem
    try:
        found = mklopt.certify_exact(fitted, result, passes=_passes(case, problem))
        str(found), found.assumptions
    except Exception as error:
        _exception(record, error, "exact")
        return
    matrices = case.recipe.functions(fitted.entries)
    evaluator = case.exact_with(Kernels(matrices, [0.0] * case.M, rounded=True))
    primal = zero_points(evaluator)
    dual: list = [(evaluator.dual(_zeros(evaluator)), "zero")]
    near = problem.with_(grams=case.recipe.fitted().grams())
    try:
        good = mklopt.solve(near, tol=1e-9, time_limit=0.5).certificate
        points = _own(good, evaluator, Record(case))
        primal, dual = primal + points[0], dual + points[1]
    except ValueError:  # judged where stored kernels are solved
        pass
    own = _best_multiple(evaluator, found.dual)
    derived = any("derived operators" in text for text in found.assumptions)
    if mpf(float(found.lower)) > own[1]:
        by = _excess(mpf(float(found.lower)), own[1])
        kind = "derived" if derived else "unproved lower"
        record.add(kind, f"exact kernels: {found.lower!r} by {by}")
    dual.append((own, "own"))
    _refuted(found, primal, dual, evaluator, record)


def _passes(case: Case, problem: Any) -> int:
    """How often the dual point is improved; the dual has to be quadratic for it."""
    quadratic = problem.loss.quadratic(problem.y, problem.costs) is not None
    return case.seed_of_run % 3 if quadratic and len(problem.shape) == 1 else 0


def _best_multiple(evaluator: Exact, alpha: np.ndarray) -> tuple[Any, Any]:
    """Bounds of max D(s·α) over 0 ≤ s ≤ 1, which is concave in s: by golden sections.

    They begin at the power of two where D stops to fall: s may be as small as 1e-300.
    """
    block = dyadic(alpha)

    def value(s: Fraction) -> Any:
        return evaluator.dual((block[0], block[1] * s))

    few, least = 0, HALVINGS  # of the exponent: D(s) ≤ D(s/2) for all s above
    while few < least:
        middle = (few + least) // 2
        s = Fraction(1, 1 << middle)
        falls = not value(s)[1] > value(s / 2)[1]
        few, least = (middle + 1, least) if falls else (few, middle)
    low, high = Fraction(0), Fraction(1, 1 << max(least - 1, 0))
    met = [value(Fraction(1)), value(high), value(ZERO)]
    for _ in range(SECTIONS):
        a, b = low + (high - low) * SHORT, high - (high - low) * SHORT
        at_a, at_b = value(a), value(b)
        met += [at_a, at_b]
        low, high = (a, high) if at_b[1] > at_a[1] else (low, b)
    return max(one[0] for one in met), max(one[1] for one in met)


# ---- many cases ----------------------------------------------------------------------


@dataclass
class Summary:
    """What was found in many cases, by kind."""

    cases: int = 0
    built: int = 0
    bounds: int = 0
    seconds: float = 0.0
    found: dict[str, list[tuple[Case, str]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    statuses: Counter = field(default_factory=Counter)

    def add(self, record: Record) -> None:
        """Count one case."""
        self.cases += 1
        self.built += record.status != "not built"
        self.bounds += record.bounds
        self.statuses[record.status] += 1
        for kind, detail in record.wrong:
            self.found[kind].append((record.case, detail))

    def count(self, kinds: tuple[str, ...]) -> int:
        """How many findings are of these kinds."""
        return sum(len(self.found[kind]) for kind in kinds)

    def text(self, most: int = 10) -> str:
        """Findings grouped by kind, a few of each in full."""
        lines = [
            f"{self.cases} cases, {self.built} built, {self.bounds} pairs of bounds, "
            f"{self.seconds:.0f} s, {self.seconds / max(1, self.cases):.3f} s per case"
        ]
        for kind in (*MUST_NOT, *REPORTED):
            items = self.found[kind]
            if items:
                lines.append(f"\n{kind}: {len(items)}")
            groups = defaultdict(list)
            for case, detail in items:
                groups[_signature(kind, case, detail)].append((case, detail))
            for alike in sorted(groups.values(), key=len, reverse=True)[:most]:
                case, detail = alike[0]
                others = ", ".join(str(c.index) for c, _ in alike[1:8])
                lines.append(f"  {len(alike)} × {detail}\n      {case}")
                lines += [f"      also {others}"] if others else []
        return "\n".join(lines)


def _signature(kind: str, case: Case, detail: str) -> str:
    """What findings of one cause have in common."""
    told = ("raw exception", "refused", "warning", "failed", "weak duality", "own file")
    if kind in told:
        return re.sub(r"[-+\d.e]+", "#", detail.split(" via ")[-1])[-90:]
    return f"{case.penalty[0]} {case.loss[0]} {bool(case.extreme)}"


def attack(
    seed: int, first: int, last: int, every: int = 0, plainly: bool = False
) -> Summary:
    """Judge the cases first … last − 1 of a seed; plainly: all parameters as floats."""
    summary, begun = Summary(), time.process_time()
    for index in range(first, last):
        case = draw(seed, index)
        record = judge(case.plainly() if plainly else case)
        summary.add(record)
        summary.seconds = time.process_time() - begun
        if every and summary.cases % every == 0:
            wrong = summary.count(MUST_NOT)
            print(
                f"{summary.cases} cases, {wrong} wrong, {summary.seconds:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    return summary


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="random problems, judged exactly")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--to", dest="last", type=int, default=100)
    parser.add_argument("--most", type=int, default=10, help="shown of each kind")
    parser.add_argument("--plain", action="store_true", help="parameters as floats")
    given = parser.parse_args()
    summary = attack(given.seed, given.first, given.last, 50, given.plain)
    print(summary.text(given.most))
    print("\nhow they ended:")
    for status, count in summary.statuses.most_common():
        print(f"  {count:5d} {status}")


if __name__ == "__main__":
    main()
