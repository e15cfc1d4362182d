"""The checker of certificate files: what is true is proved, all else is refused."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import subprocess
import sys
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mklopt.certificates import checker, portable, reading
from mklopt.certificates.checker import Refused, check
from mklopt.formulations import VSKL, GroupLasso, LpNorm
from tests.unit.certificates.samples import written

LOSSES = ("hinge", "logistic", "squared", "eps_insensitive")


def claim_of(content):
    return json.loads(content.partition(b"\n")[2])


def sealed(body):
    """An honest hash around any bytes."""
    return reading.FORMAT + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def reseal(claim):
    """An honest hash around a changed claim: only the mathematics can refuse it."""
    return portable.seal(claim)


def test_bounds_moved_by_a_hair_are_refused(tmp_path):
    """The claimed bounds are as wide as the enclosure; inside of it nothing is."""
    for loss in LOSSES:
        _, content = written(tmp_path, loss=loss)
        claim = claim_of(content)
        middle = 0.5 * (claim["lower"] + claim["upper"])
        gap = claim["upper"] - claim["lower"]
        for name, value in (("lower", middle + gap), ("upper", middle - gap)):
            with pytest.raises(Refused, match=f"{name} = .* is not proved"):
                check(reseal({**claim, name: value}))


def flips(content, count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        place, bit = int(rng.integers(len(content))), int(rng.integers(8))
        yield (
            place,
            bytes(b ^ (1 << bit) if i == place else b for i, b in enumerate(content)),
        )


@pytest.mark.parametrize(
    "count", [60, pytest.param(1000, marks=pytest.mark.full)], ids=str
)
def test_every_flipped_bit_is_refused(tmp_path, count):
    _, content = written(tmp_path, M=2, formulation=LpNorm(2.0))
    check(content)
    for place, touched in flips(content, count, seed=count):
        with pytest.raises(Refused):
            check(touched)
            pytest.fail(f"byte {place} was changed and nobody noticed")


def tampered(claim, rng):
    """One change to data, points, bounds or names, with its kind."""
    kinds = ("kernels", "y", "C", "shift", "dual", "lower", "upper", "loss", "terms")
    kind = str(rng.choice(kinds))
    claim = json.loads(json.dumps(claim))
    if kind in ("y", "C", "shift"):
        claim[kind] = touched(claim[kind], rng)
    elif kind == "kernels":
        m = int(rng.integers(len(claim["kernels"])))
        claim["kernels"][m] = touched(claim["kernels"][m], rng)
    elif kind == "dual":
        i = int(rng.integers(len(claim["dual"]["integers"])))
        claim["dual"]["integers"][i] += int(rng.choice([-1, 1])) << int(
            rng.integers(60)
        )
    elif kind in ("lower", "upper"):
        inward = 1 if kind == "lower" else -1
        claim[kind] += inward * abs(claim[kind]) * 10.0 ** -rng.uniform(1, 6)
    elif kind == "loss":
        other = [name for name in LOSSES if name != claim["loss"][0]]
        claim["loss"] = [str(rng.choice(other)), {"eps": 0.1}]
    else:
        claim["formulation"] = [["GroupLasso", {}], ["LpNorm", {"p": 3.0}]][
            int(rng.integers(2))
        ]
    return kind, claim


def touched(text, rng):
    data = bytearray(base64.b64decode(text))
    data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    return base64.b64encode(bytes(data)).decode()


@pytest.mark.parametrize(
    "count", [60, pytest.param(1000, marks=pytest.mark.full)], ids=str
)
def test_tampering_with_an_honest_hash_is_refused(tmp_path, count):
    """Whoever changes the content and hashes it anew meets the problem's own hash."""
    _, content = written(tmp_path, M=2, formulation=LpNorm(2.0))
    claim, rng = claim_of(content), np.random.default_rng(count)
    for _ in range(count):
        kind, changed = tampered(claim, rng)
        with pytest.raises(Refused):
            check(reseal(changed))
            pytest.fail(f"{kind} was changed and nobody noticed")


@pytest.mark.full
def test_tampering_with_a_large_file_is_refused(tmp_path):
    """And the whole file is checked in seconds of one core: n = 200, M = 20."""
    _, content = written(tmp_path, n=200, M=20, formulation=GroupLasso(), loss="hinge")
    check(content)
    for _, changed in flips(content, 20, seed=1):
        with pytest.raises(Refused):
            check(changed)


def resigned(claim, **changes):
    """Everything hashed anew, the problem too: another problem, the same points."""
    claim = {**claim, **changes}
    claim["problem"] = checker.Claim(claim).digest()
    return reseal(claim)


def test_an_infeasible_dual_is_refused_for_its_own_sake(tmp_path):
    _, content = written(tmp_path)
    claim = claim_of(content)
    dual = claim["dual"]
    k = list(dual["integers"])
    for changed, why in (
        ([k[0] + 1, *k[1:]], "Σα"),
        ([1 << 60, -(1 << 60), *k[2:]], "Σα|outside the domain"),
        ([0.5, *k[1:]], "integer"),
        (k[1:], "integer"),
    ):
        with pytest.raises(Refused, match=why):
            check(reseal({**claim, "dual": {**dual, "integers": changed}}))
    with pytest.raises(Refused, match="outside"):
        check(reseal({**claim, "dual": {**dual, "shrink": 1.5}}))


def test_an_indefinite_kernel_is_refused(tmp_path):
    _, content = written(tmp_path)
    claim = claim_of(content)
    K = np.frombuffer(base64.b64decode(claim["kernels"][1])).copy()
    K[1] = 1.5  # an off-diagonal entry above its diagonal
    kernels = [claim["kernels"][0], portable._text(K), claim["kernels"][2]]
    with pytest.raises(Refused, match=r"kernel 1 .* not proved"):
        check(resigned(claim, kernels=kernels))


def test_a_shift_that_is_left_out_is_missed(tmp_path):
    """The singular kernel is proved for K + δI only."""
    _, content = written(tmp_path)
    claim = claim_of(content)
    with pytest.raises(Refused, match="kernel 0"):
        check(resigned(claim, shift=portable._text(np.zeros(3))))


def test_another_problem_is_not_proved_by_the_same_points(tmp_path):
    _, content = written(tmp_path, formulation=LpNorm(4 / 3))
    claim = claim_of(content)
    with pytest.raises(Refused, match="not proved"):
        check(resigned(claim, formulation=["LpNorm", {"p": 2.0}]))
    C = np.frombuffer(base64.b64decode(claim["C"]))
    with pytest.raises(Refused, match="outside the domain"):
        check(resigned(claim, C=portable._text(1e-3 * C)))


def test_dominance_is_exact():
    """A matrix that is indefinite by less than float64 can see is not proved ⪰ 0."""
    tiny = 2.0**-60
    assert checker.Triangle([1.0, 1.0 - 2.0**-20, 1.0], 2).positive(Fraction(0))
    singular = checker.Triangle([1.0, 1.0, 1.0], 2)
    assert not singular.positive(Fraction(0))  # ⪰ 0, yet with no room for a proof
    assert singular.positive(Fraction(1e-14))
    indefinite = checker.Triangle([tiny, 1.0, tiny], 2)
    assert not indefinite.positive(Fraction(0))


def fuzzed(claim, rng):
    """A claim with something else in one place, however deep."""
    values: list = [None, True, -1, 0, 1e308, "x", [], {}, [[]], 10**50, -0.5, "AAAA"]
    claim = json.loads(json.dumps(claim))
    here: Any = claim
    key: Any = str(rng.choice(list(claim)))
    while isinstance(here[key], dict | list) and len(here[key]) and rng.random() < 0.7:
        here = here[key]
        key = (
            str(rng.choice(list(here)))
            if isinstance(here, dict)
            else int(rng.integers(len(here)))
        )
    here[key] = values[int(rng.integers(len(values)))]
    return claim


@pytest.mark.parametrize(
    "count", [300, pytest.param(10_000, marks=pytest.mark.full)], ids=str
)
def test_malformed_claims_get_a_sentence(tmp_path, count):
    """Whatever stands in the file, the checker answers, and only with a refusal.

    The changed claims carry honest hashes wherever one can be computed.
    """
    _, content = written(tmp_path, M=2, n=6, formulation=VSKL(((0,), (1,)), 2.0))
    claim, rng = claim_of(content), np.random.default_rng(count)
    proved = check(content)
    for _ in range(count):
        changed = fuzzed(claim, rng)
        try:
            changed["problem"] = checker.Claim(changed).digest()
        except Exception:
            changed["problem"] = claim["problem"]
        try:
            answer = check(reseal(changed))
        except Refused as reason:
            assert str(reason)
        else:  # true of the problem that it names
            assert answer["problem"] != proved["problem"] or bounds_hold(answer, proved)


def bounds_hold(answer, proved):
    return answer["lower"] <= proved["upper"] and answer["upper"] >= proved["lower"]


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"\x00" * 100, b"mklopt certificate 1 \n{}", b"[" * 100_000],
    ids=["empty", "newline", "zeros", "no hash", "brackets"],
)
def test_what_is_no_certificate_is_refused(content):
    with pytest.raises(Refused):
        check(content)


def test_deep_nesting_is_refused():
    with pytest.raises(Refused, match="well-formed"):
        check(sealed(b"[" * 100_000))


def test_the_checker_needs_nothing_but_python(tmp_path):
    """It runs in an isolated interpreter that cannot see this package."""
    written(tmp_path)
    source = Path(checker.__file__)
    names = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(source.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or "."]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert names <= sys.stdlib_module_names
    assert source.read_text().count("\n") < 400
    run = [sys.executable, "-I", "-S", str(source), str(tmp_path / "file.cert")]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("proved: "), done.stderr


def test_the_command_line(tmp_path):
    from click.testing import CliRunner

    from mklopt.cli import main

    _, content = written(tmp_path)
    good, bad = tmp_path / "file.cert", tmp_path / "bad.cert"
    bad.write_bytes(content[:-1])
    call = lambda path: CliRunner().invoke(main, ["verify", str(path)])  # noqa: E731
    assert call(good).exit_code == 0 and "≤ f* ≤" in call(good).output
    assert call(bad).exit_code == 2 and "refused: " in call(bad).output
    found = CliRunner().invoke(main, ["verify", str(good), "--json"])
    assert found.exit_code == 0 and json.loads(found.output)["proved"]
    found = CliRunner().invoke(main, ["verify", str(bad), "--json"])
    assert found.exit_code == 2 and "hash" in json.loads(found.output)["reason"]
    found = CliRunner().invoke(main, ["verify", str(tmp_path), "--json"])
    assert found.exit_code == 2 and "is a folder" in found.output
    missing = call(tmp_path / "none.cert")
    assert missing.exit_code == 2 and "refused: " in missing.output


def test_arithmetic_is_exact():
    assert checker.grid([0.5, -3.0, 0.125]) == ([4, -24, 1], 3)
    assert checker.dot([1, 2, 3], [4, 5]) == 14
    assert checker.square([1, 2, 3, 4, 5, 6], 3) == [[1, 2, 3], [2, 4, 5], [3, 5, 6]]
    assert checker.scaled(-5, 8, 1) == -2 and checker.scaled(5, 8, 5) == 20
    R = checker.cholesky([[4.0, 2.0], [2.0, 10.0]], 0.0)
    assert R == [[2.0], [1.0, 3.0]] and checker.cholesky([[-1.0]], 0.5) is None


def test_norms_have_sixty_digits():
    with localcontext(checker.DIGITS):
        three, four = Decimal(3), Decimal(4)
        assert abs(checker.norm([three, four], Fraction(2)) - 5) < Decimal(10) ** -57
        assert checker.norm([three, four], None) == 4
        root = checker.power(Decimal(2), Fraction(1, 2))
        assert abs(root * root - 2) < Decimal(10) ** -57
        assert checker.power(Decimal(0), Fraction(1, 3)) == 0


def test_products_know_the_shift():
    """K = LLᵀ with L = (1, ½)ᵀ, as a factor and as a triangle; a = (2, −1)/2."""
    a, shift = ([2, -1], 1), Fraction(3)
    kinds = (checker.Factor([1.0, 0.5], 2), checker.Triangle([1.0, 0.5, 0.25], 2))
    for kernel in kinds:
        image, quad = checker.product(kernel, shift, a)
        assert image == [Fraction(3, 4) + 3, Fraction(3, 8) - Fraction(3, 2)]
        assert quad == Fraction(3, 4) ** 2 + 3 * Fraction(5, 4)


def test_the_program_prints_what_is_proved_or_why_not(tmp_path, capsys):
    found, content = written(tmp_path, M=2, formulation=LpNorm(2.0))
    assert checker.main([str(tmp_path / "file.cert")]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("proved: ") and f"problem {found.problem.digest()}" in shown
    assert "for hinge, LpNorm(p=2.0), n = 8, M = 2, with bias, kernels K + " in shown
    (tmp_path / "bad.cert").write_bytes(content[:-1])
    for arguments, why in (
        ([str(tmp_path / "bad.cert")], "hash in the first line"),
        ([str(tmp_path / "none")], "No such file"),
        ([], "give the name of one file"),
    ):
        assert checker.main(arguments) == 2
        assert why in capsys.readouterr().out
