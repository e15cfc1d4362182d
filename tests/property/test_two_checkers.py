"""Two checkers of certificate files, in two languages and two arithmetics, agree.

mklopt/certificates/checker.py computes with Python's integers and `decimal`;
checker-cpp/ with GMP and intervals of MPFR, and was written from
docs/certificate-format.md alone. A file that one proves and the other refuses shows an
error in one of them, or in the specification. Files between which the specification
lets a checker choose are the only exception: kernels that are singular up to rounding.
"""

from __future__ import annotations

import json
import random
from copy import deepcopy
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import mklopt
from mklopt import formulations as F
from mklopt.certificates import portable
from mklopt.certificates.certificate import certify
from mklopt.certificates.checker import check
from mklopt.certificates.reading import Refused
from tests.property import test_certificate_files as attacks
from tests.property import test_tampered_certificates as tampering
from tests.second_checker import verdicts
from tests.unit.certificates.rationals import values_of
from tests.unit.certificates.samples import resigned, stack, tiny
from tests.unit.certificates.test_checker import flips, fuzzed, reseal

FULL = pytest.mark.full
PAIRS = [(x, y) for x in tampering.LOSSES for y in range(len(tampering.FORMULATIONS))]


def ours(content: bytes) -> str:
    try:
        check(content)
    except Refused as reason:
        return f"refused: {reason}"
    return "proved: "


def disagreements(contents: list[bytes], folder) -> tuple[list[str], int]:
    """What only one of them proves, and how many files both prove."""
    wrong, both = [], 0
    for content, theirs in zip(contents, verdicts(contents, folder), strict=True):
        mine = ours(content)
        proved = [verdict.startswith("proved: ") for verdict in (mine, theirs)]
        both += all(proved)
        if proved[0] != proved[1] and not ("not proved ⪰ 0" in mine and near(content)):
            wrong.append(f"{mine} | {theirs} | {content!r}")
    return wrong, both


def near(content: bytes) -> bool:
    """Whether some kernel is semi-definite by so little that no proof is asked for."""
    judge = attacks.Judge(json.loads(content.partition(b"\n")[2]))
    room = Fraction(judge.n + 2, 1 << 50)

    def lowered(K):
        least = room * sum(K[i][i] for i in range(judge.n))
        return [[x - least * (i == j) for j, x in enumerate(row)]
                for i, row in enumerate(K)]  # fmt: skip

    return all(map(attacks.psd, judge.K)) and not all(
        attacks.psd(lowered(K)) for K in judge.K
    )


def claim_of(pair: int) -> dict:
    loss, place = PAIRS[pair % len(PAIRS)]
    formulation, bias = tampering.FORMULATIONS[place], bool(pair % 2)
    return tampering.claim_of(loss, formulation, bias, seed=pair)


def as_triangles(claim: dict) -> dict:
    """The same problem with entries of the kernels in place of factors."""
    n = len(attacks.unpacked(claim["y"]))
    kernels = []
    for text in claim["kernels"]:
        L = np.array(attacks.unpacked(text)).reshape(n, -1)
        K = L @ L.T + np.eye(n) / 8  # exact: small multiples of 1/64
        kernels.append(portable._text(K[np.triu_indices(n)]))
    dual = {**claim["dual"], "shrink": claim["dual"]["shrink"] / 4}
    claim = {**claim, "dual": dual, "lower": -1e9, "upper": 1e9}
    return {**claim, "factors": False, "kernels": kernels}


def with_rules(pair: int, room: float = 1e-10) -> dict:
    """Kernels by rules of points, and bounds that are as good as `room` allows."""
    claim, rng = claim_of(pair), np.random.default_rng(pair)
    r = portable._text(rng.uniform(0.5, 2.0, tampering.N))
    shrink = claim["dual"]["shrink"] * (0.25 if pair % 3 else 1 / 16)
    claim |= {
        "factors": False,
        "points": [portable._text(x) for x in rng.normal(size=(2, tampering.N))],
        "kernels": [
            ["gaussian", {"rate": 0.7, "columns": [0, 1], "divisors": []}],
            ["power", {"degree": 1 + pair % 3, "offset": 0.5, "columns": [1],
                       "divisors": [r][: pair % 2]}],
            ["gaussian", {"rate": 0.3, "columns": [0], "divisors": [3, r, 0.5]}],
        ],
        "shift": portable._text([0.0, 1e-9 * (pair % 2), 0.0]),
        "dual": {**claim["dual"], "shrink": shrink},
    }  # fmt: skip
    if "slack" in claim["dual"]:  # no longer the best one
        return claim | {"lower": -1e9, "upper": 1e9}
    with mpmath.workdps(60):
        low, up = values_of(claim)
    room *= float(1 + abs(low) + abs(up))
    return claim | {"lower": float(low) - room, "upper": float(up) + room}


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=FULL)])
def test_kernels_by_rules_are_proved_by_both(tmp_path, step):
    """Bounds 1e-10 outside of the values with 60 digits are; inside, none is."""
    honest = [with_rules(pair) for pair in range(0, len(PAIRS), step)]
    contents: list[bytes] = [resigned(claim) for claim in honest]
    wrong, both = disagreements(contents, tmp_path)
    assert not wrong and both == len(contents), wrong[:3]
    contents = []
    for claim in honest:
        move = 2e-10 * (1 + abs(claim["lower"]) + abs(claim["upper"]))
        for key, by in (("lower", move), ("upper", -move)):
            other = {**claim, "lower": -1e12, "upper": 1e12, key: claim[key] + by}
            if claim["upper"] < 1e9:
                contents.append(resigned(other))
    assert disagreements(contents, tmp_path) == ([], 0)


@pytest.mark.parametrize("count", [60, pytest.param(5000, marks=FULL)])
def test_forged_rules_have_one_verdict(tmp_path, count):
    """Other numbers and other things in claims with rules; what both prove is true."""
    claims = [with_rules(pair) for pair in range(0, len(PAIRS), 12)]
    contents: list[bytes] = []
    for k in range(count):
        rng, claim = random.Random(k), deepcopy(claims[k % len(claims)])
        if k % 3:
            attacks.forge_number(claim, rng)
        else:
            claim = fuzzed(claim, np.random.default_rng(k))
        try:
            contents.append(resigned(claim))
        except Exception:
            contents.append(reseal(claim))
        if k % 3 and ours(contents[-1]) == "proved: ":
            with mpmath.workdps(60):
                low, up = values_of(claim)
            assert claim["lower"] <= low <= up <= claim["upper"] or "slack" in claim
    wrong, both = disagreements(contents, tmp_path)
    assert not wrong, wrong[:3]
    assert 0.1 * count < both < 0.6 * count


def test_every_loss_with_every_formulation_is_proved_by_both(tmp_path):
    contents = [resigned(claim_of(pair)) for pair in range(len(PAIRS))]
    contents += [resigned(as_triangles(claim_of(pair))) for pair in range(0, 126, 9)]
    contents += [attacks.sealed(json.dumps(attacks.honest(k)).encode()) for k in (1, 2)]
    wrong, both = disagreements(contents, tmp_path)
    assert not wrong and both == len(contents), wrong[:3]


@pytest.mark.parametrize("loss", ["hinge", "multinomial"])
def test_every_kind_of_point_is_proved_by_both(tmp_path, loss):
    grams, _ = stack("factors")
    rng, y = np.random.default_rng(5), np.arange(8) % 3
    y = np.where(y > 0, 1.0, -1.0) if loss == "hinge" else y
    problem = mklopt.Problem(grams, y, loss, F.LpNorm(3.0), np.linspace(1, 2, 8))
    k, contents = problem.shape[1:], []
    points = {"weights": (3,), "coefficients": (3, 8, *k), "features": (6, *k)}
    for name, shape in points.items():
        given = np.abs(rng.normal(size=shape))
        found = certify(problem, rng.normal(size=problem.shape), **{name: given})
        path = tmp_path / "file.cert"
        portable.save_certificate(found, path)
        contents.append(path.read_bytes())
        assert f'"{name}"'.encode() in contents[-1]
    wrong, both = disagreements(contents, tmp_path)
    assert not wrong and both == 3, wrong


@pytest.mark.parametrize("count", [24, pytest.param(1000, marks=FULL)])
def test_flipped_bits_are_refused_by_both(tmp_path, count):
    content = resigned(claim_of(0))
    contents = [touched for _, touched in flips(content, count, seed=count)]
    assert disagreements(contents, tmp_path) == ([], 0)


@pytest.mark.parametrize("count", [24, pytest.param(1000, marks=FULL)])
@pytest.mark.parametrize("kind", ["data", "terms"])
def test_other_problems_are_refused_by_both(tmp_path, kind, count):
    """Whose file has an honest hash, but names the problem that it was written for."""
    contents: list[bytes] = []
    rng = np.random.default_rng(count)
    while len(contents) < count:
        claim = claim_of(len(contents))
        claim["problem"] = json.loads(resigned(claim).partition(b"\n")[2])["problem"]
        changed = tampering.tampered(claim, rng, [kind])
        if any(changed[key] != claim[key] for key in claim):
            contents.append(reseal(changed))
    assert disagreements(contents, tmp_path) == ([], 0)


@pytest.mark.parametrize("count", [24, pytest.param(1000, marks=FULL)])
@pytest.mark.parametrize("kind", tampering.KINDS)
def test_tampering_with_honest_hashes(tmp_path, kind, count):
    """Only the mathematics can refuse: both do, or neither, and then it is true."""
    contents: list[bytes] = []
    rng = np.random.default_rng(count)
    for turn in range(count):
        changed = tampering.tampered(claim_of(turn * 29), rng, [kind])
        try:
            contents.append(resigned(changed))
        except (Refused, ValueError):  # no problem can be stated with it
            contents.append(reseal(changed))
        if count < 1000:
            continue
        tampering.judged(changed)
    wrong, both = disagreements(contents, tmp_path)
    assert not wrong, wrong[:3]
    assert both == 0 if kind == "bounds" else both < 0.7 * count


@pytest.mark.parametrize("count", [240, pytest.param(10_000, marks=FULL)])
def test_fuzzed_files_have_one_verdict(tmp_path, count):
    """Half are forged with honest hashes, a quarter of any loss and formulation."""
    contents: list[bytes] = []
    rng = np.random.default_rng(count)
    claims = [claim_of(pair * 17) for pair in range(min(len(PAIRS), count // 8))]
    for k in range(count):
        if k % 2:
            contents.append(attacks.forged(k, attacks.FEW)[1])
            continue
        claim = claims[k // 4 % len(claims)]
        change = fuzzed if k % 4 else tampering.tampered
        changed = change(claim, rng)
        try:
            contents.append(resigned(changed))
        except Exception:  # too damaged for a hash of the problem
            contents.append(reseal(changed))
    wrong, both = disagreements(contents, tmp_path)
    assert not wrong, wrong[:3]
    assert 0.05 * count < both < 0.6 * count


def test_what_both_read_in_the_same_way(tmp_path):
    """Numbers and texts at the edges of JSON and base64."""
    body = json.dumps(json.loads(resigned(tiny()).partition(b"\n")[2]))
    assert body.count('"bias": -1.0') == body.count('"AAAAAAAAAAA="') == 1
    edges = {
        '"bias": -1.0': ["-1", "-1e0", "-1.0E+0", "-10e-1", "-01", "-1.", "- 1",
                         "-1.000000000000000000001", "-1e-999", "-1e999", "true"],
        '"exponent": 0': ["-0", "0.0", "00", "0e0", "3000", "null"],
        '"shrink": 1.0': ["1", "1.00000000000000000001", "Infinity", "NaN", "+1"],
        '"upper": 2.0000000000000004': ["3" + "0" * 900, "3" + "0" * 1000,
                                        "Infinity", "1e308", "2.0", "2"],
        '"AAAAAAAAAAA="': ['"AAAAAAAAAAB="', '"AAAAAAAAAAA"', '"AAAAAAAAAAA=="',
                           '"AAAA AAAAAAA="', '"\\u0041AAAAAAAAAA="', '"AAAAAAAAAAA=="',
                           '"AAAAAAAAAAA=AAAAAAAAAAA="', '""', '"===="', '"é"'],
    }  # fmt: skip
    contents = [attacks.sealed(body.encode())]
    for old, values in edges.items():
        assert body.count(old) == 1, old
        key, colon, _ = old.rpartition(": ")
        contents += [
            attacks.sealed(body.replace(old, key + colon + value).encode())
            for value in values
        ]
    contents += [attacks.sealed(text.encode()) for text in (
        body + " \n", body + "x", body[:-1], "\ufeff" + body, body.replace(", ", ",\t"),
        body.replace("bias", "b\\u0069as"), "[" * 100_000, "", "{}", "[]", "1",
        body.replace(", ", ",\f"), body.replace('"GroupLasso"', '"Group\nLasso"'),
    )]  # fmt: skip
    contents += [b"", b"\n", contents[0].replace(b"1 ", b"9 ", 1), contents[0][:-1]]
    wrong, both = disagreements(contents, tmp_path)
    assert not wrong, wrong
    assert both == 16, both


def test_both_write_numbers_in_the_same_way(tmp_path):
    """In the hash of the problem: the shortest decimals, as Python has them."""
    numbers = [-0.0, 0.0, 0.1, 2.0, 1e15, 1e16, 1.5e16, 123456789012345680.0, 1e22]
    numbers += [1e-4, 1e-5, 1.25e-7, 5e-324, 2.0**-1022, 1.7976931348623157e308, 1 / 3]
    numbers += [9007199254740993.0, 1e100, 1e-100, 0, 7, 10**30, 100.0, 12345.678]
    rng, contents = random.Random(0), []
    numbers += [rng.choice([1, 10]) ** rng.uniform(-300, 300) for _ in range(40)]
    for eps in numbers:
        claim = tiny(loss=["eps_insensitive", {"eps": eps}])
        claim |= {"lower": -(10**320), "upper": 10**320}
        contents.append(resigned(claim))
    wrong, both = disagreements(contents, tmp_path)
    assert not wrong and both == len(contents), wrong[:3]


@pytest.mark.parametrize("form", [F.LpNorm(2.0), F.GroupLasso()], ids=repr)
def test_equal_bounds_are_not_proved_by_either(tmp_path, form):
    """The margin of 1e-30 is part of the rules: the exact value itself is refused."""
    claim = tiny() if form == F.GroupLasso() else tiny(alpha=(2, -2), theta=1.0)
    claim["formulation"] = [form.name, vars(form)]
    contents = []
    for low, up in ((2.0, 2.1), (1.9, 2.0), (1.9, 2.1)):
        contents.append(resigned({**claim, "lower": low, "upper": up}))
    wrong, both = disagreements(contents, tmp_path)
    assert not wrong and both == 1, wrong
