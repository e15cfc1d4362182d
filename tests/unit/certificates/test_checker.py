"""The checker of certificate files: what is true is proved, all else is refused."""

from __future__ import annotations

import ast
import base64
import json
import math
import shutil
import subprocess
import sys
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from mklopt.certificates import checker, portable
from mklopt.certificates.checker import Refused, check
from mklopt.formulations import VSKL, GroupLasso, LpNorm
from tests.unit.certificates.samples import resigned, sealed, tiny, written

LOSSES = ("hinge", "logistic", "squared", "eps_insensitive")


def claim_of(content):
    return json.loads(content.partition(b"\n")[2])


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
                check(reseal({**claim, "lower": -1e9, "upper": 1e9, name: value}))


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


def test_an_infeasible_dual_is_refused_for_its_own_sake(tmp_path):
    _, content = written(tmp_path)
    claim = claim_of(content)
    dual = claim["dual"]
    k = list(dual["integers"])
    for changed, why in (
        ([k[0] + 1, *k[1:]], "Σα"),
        ([1 << 60, -(1 << 60), *k[2:]], "Σα|outside the domain"),
        ([0.5, *k[1:]], "types"),
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


def imported(source):
    """The first names of all modules that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or ".").split(".")[0])
    return names


def test_an_error_inside_is_refused_in_one_line(monkeypatch):
    def broken(content):
        raise ValueError("x\nproved: 0 ≤ f* ≤ 0\x1b[2K" * 99)

    monkeypatch.setattr(checker, "opened", broken)
    with pytest.raises(Refused, match="not well-formed") as found:
        check(b"")
    assert str(found.value).isprintable() and len(str(found.value)) < 500


def test_the_checker_needs_nothing_but_python(tmp_path):
    """Its four files, alone in a folder, where no package can be seen."""
    written(tmp_path)
    names = ("checker.py", "conic.py", "matrices.py", "reading.py")
    for name in names:
        source = Path(checker.__file__).with_name(name)
        own = {"conic", "matrices", "reading"}
        assert imported(source) <= sys.stdlib_module_names | own
        assert source.read_text().count("\n") < 420
        shutil.copy(source, tmp_path)
    how: Any = dict(capture_output=True, text=True, timeout=60, cwd=tmp_path)
    for options in (["-E", "-s", "-S"], ["-I", "-S"]):
        run = [sys.executable, *options, "checker.py", "file.cert"]
        done = subprocess.run(run, **how)
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
    assert found.exit_code == 2 and "has no rows.jsonl" in found.output
    missing = call(tmp_path / "none.cert")
    assert missing.exit_code == 2 and "refused: " in missing.output


def test_norms_have_sixty_digits():
    with localcontext(checker.DIGITS):
        three, four = Decimal(3), Decimal(4)
        assert abs(checker.norm([three, four], Fraction(2)) - 5) < Decimal(10) ** -57
        assert checker.norm([three, four], None) == 4
        root = checker.power(Decimal(2), Fraction(1, 2))
        assert abs(root * root - 2) < Decimal(10) ** -57
        assert checker.power(Decimal(0), Fraction(1, 3)) == 0


def test_the_program_prints_what_is_proved_or_why_not(tmp_path, capsys):
    _, content = written(tmp_path, M=2, formulation=LpNorm(4 / 3))
    assert checker.main([str(tmp_path / "file.cert")]) == 0
    shown, proved = capsys.readouterr().out, check(content)
    assert shown.splitlines() == [
        f"proved: {proved['lower']} ≤ f* ≤ {proved['upper']}",
        "for hinge, LpNorm(p=4/3), n = 8, M = 2, with bias, "
        f"kernels K + δI, δ ≤ {proved['shift']!r}",
        f"problem {proved['problem']}",
    ]
    (tmp_path / "bad.cert").write_bytes(content[:-1])
    for arguments, why in (
        ([str(tmp_path / "bad.cert")], "hash in the first line"),
        ([str(tmp_path / "none")], "No such file"),
        ([], "give the name of one file"),
    ):
        assert checker.main(arguments) == 2
        assert why in capsys.readouterr().out


# ---- forgeries, each with honest hashes ------------------------------------------


def test_the_claim_by_hand_is_proved_and_no_more():
    proved = check(resigned(tiny()))
    assert proved["lower"] < 2 < proved["upper"]
    for name in ("lower", "upper"):  # 2 itself: bounds are moved outward by 1e-30
        with pytest.raises(Refused, match=f"{name} = 2.0 is not proved"):
            check(resigned(tiny(**{name: 2.0})))


@pytest.mark.parametrize("bits", [20, 50, 1000])
def test_group_lasso_allows_no_norm_above_1(bits):
    """α = ±(1 + 2^−bits): its value is above f*, and αᵀKα > 1 by as little."""
    dual = {"integers": [(1 << bits) + 1, -(1 << bits) - 1], "exponent": bits}
    with pytest.raises(Refused, match="αᵀK_mα > 1"):
        check(resigned(tiny(dual={**dual, "shrink": 1.0})))
    inside = {"integers": [1 << bits, -1 << bits], "exponent": bits, "shrink": 1.0}
    assert check(resigned(tiny(dual=inside)))["n"] == 2


def test_a_bias_where_the_problem_has_none_is_refused():
    """Without a bias f* = 3 (w = 1 and a loss of 2, or α = (1, −2)); b = −1 has 2."""
    honest = tiny(bias=False, alpha=(1, -2), b=0.0, theta=1.0, lower=2.9, upper=3.1)
    assert check(resigned(honest))["bias"] is False
    point = {**honest["primal"], "bias": -1.0, "weights": portable._text([2.0])}
    with pytest.raises(Refused, match="the problem has none"):
        check(resigned(honest, primal=point, lower=1.9, upper=2.1))


def test_a_dual_point_that_is_stretched_or_unbalanced_is_refused():
    """Each would show more than f* = 2."""
    huge = dict(C=1e3, lower=1.9, upper=2.1)
    for dual, why in (
        ({"integers": [1, -1], "exponent": 0, "shrink": 1 + 2**-52}, "outside"),
        ({"integers": [1, -1], "exponent": 0, "shrink": -1.0}, "outside"),
        ({"integers": [1, -3], "exponent": 0, "shrink": 1.0}, "Σα = -2"),
        ({"integers": [-1, 1], "exponent": 0, "shrink": 1.0}, "outside the domain"),
        ({"integers": [2, -2], "exponent": -1, "shrink": 0.5}, "αᵀK_mα > 1"),
        ({"integers": [1, -1], "exponent": 2201, "shrink": 1.0}, "one integer"),
        ({"integers": [1 << 2200, -1], "exponent": 0, "shrink": 1.0}, "one integer"),
    ):
        with pytest.raises(Refused, match=why):
            check(resigned(tiny(**huge, dual=dual)))
    with pytest.raises(Refused, match="α_0 lies outside the domain"):
        check(resigned(tiny(C=np.nextafter(1.0, 0), lower=1.9, upper=2.1)))
    assert check(resigned(tiny(C=1.0, lower=1.9, upper=2.1)))["n"] == 2


def test_integers_are_compared_and_reported_exactly(capsys, tmp_path):
    """K = 0 and the hinge: f* = ΣC = 2^60 + 90, between floats 256 apart."""
    top = 1 << 60

    def claim(rest, lower, upper):
        return tiny(
            L=(0.0, 0.0, 0.0, 0.0), y=(1.0, -1.0, 1.0, -1.0),
            C=(2.0**59, 2.0**59, rest, rest), theta=0.0, b=0.0,
            alpha=(1 << 59, -1 << 59, int(rest), -int(rest)), lower=lower, upper=upper,
        )  # fmt: skip

    honest = resigned(claim(45.0, top + 89, top + 91))
    proved = check(honest)
    assert (proved["lower"], proved["upper"]) == (top + 89, top + 91)
    (tmp_path / "file.cert").write_bytes(honest)
    assert checker.main([str(tmp_path / "file.cert")]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"proved: {top + 89} ≤ f* ≤ {top + 91}\n")
    for rest, lower, upper, name in (
        (45.0, top + 127, top + 256, "lower"),  # as a float it is 2^60
        (45.0, top + 90, top + 91, "lower"),
        (70.0, top, top + 139, "upper"),  # as a float it is 2^60 + 256
        (45.0, top, top + 90, "upper"),
    ):
        with pytest.raises(Refused, match=f"{name} = .* is not proved"):
            check(resigned(claim(rest, lower, upper)))


def test_bounds_in_the_wrong_order_or_infinite_are_refused():
    for lower, upper, why in (
        (2.1, 1.9, "lower = 2.1 is above upper = 1.9"),
        (1.9, math.inf, "upper = inf is not proved"),
        (math.inf, math.inf, "lower = inf is not proved"),
    ):
        with pytest.raises(Refused, match=why):
            check(resigned(tiny(lower=lower, upper=upper)))


def test_small_logarithms_have_relative_accuracy():
    """ln(1 + e^−z) is never below the truth by more than bounds are moved outward."""
    claim = checker.Claim(tiny(loss=["logistic", {}]))
    with localcontext(checker.DIGITS), mpmath.workdps(200):
        for z in [*range(-40, 100, 3), 27.6, 27.7, 99.9, 100.0, 300.0]:
            found = claim._value([Fraction(z)], Fraction(1))
            truth = mpmath.log1p(mpmath.exp(-mpmath.mpf(z)))
            ratio = mpmath.mpf(str(found * (1 + checker.OUTWARD))) / truth
            assert ratio >= 1 and (ratio - 1 < 2e-30 or z > 100), z


def test_the_entropy_is_never_above_the_truth():
    """−C V* of the logistic loss, from t = 0 over t = 2^−2000 to t = 1."""
    claim = checker.Claim(tiny(loss=["logistic", {}]))
    least = Fraction(1, 1 << 2000)
    with localcontext(checker.DIGITS), mpmath.workdps(1300):
        rounded = Fraction(6, 10**61)  # 1 − t is rounded down to 60 digits
        some = (Fraction(0), least, rounded, Fraction(1, 3), Fraction(1, 2))
        for t in (*some, *(1 - t for t in some)):
            C = Fraction(7, 4)
            found = claim._gain([t], Fraction(1), C)
            parts = [mpmath.mpf(x.numerator) / x.denominator for x in (t, 1 - t) if x]
            truth = -mpmath.mpf(7) / 4 * mpmath.fsum(x * mpmath.log(x) for x in parts)
            assert found is not None
            low = found - abs(found) * checker.OUTWARD
            assert truth - 1e-29 < mpmath.mpf(str(low)) <= truth, t


def test_bounds_are_moved_outward(tmp_path):
    """Where the exact value is a float, this float itself is not claimed."""
    claim, one = checker.Claim(tiny()), Fraction(1)
    with localcontext(checker.DIGITS):
        gains = claim._gains([([1, -1], 0)], one)
        lower = claim._lower(gains, [one])
        upper = claim._upper([[one], [-one]], Fraction(0), [4 * one])
        assert 2 - Decimal(10) ** -29 < lower < 2 < upper < 2 + Decimal(10) ** -29
        smooth = checker.Claim(tiny(formulation=["LpNorm", {"p": 2.0}]))
        lower = smooth._lower(gains, [one])  # 2 − ½
        assert Decimal("1.5") - Decimal(10) ** -29 < lower < Decimal("1.5")


def test_arrays_of_other_lengths_are_refused():
    L = portable._text([1.0, 0.0, 0.0])
    with pytest.raises(Refused, match="factor 0 is not a matrix of 2 rows"):
        check(resigned(tiny(kernels=[L])))
    with pytest.raises(Refused, match="factor 0 is not a matrix of 2 rows"):
        check(resigned(tiny(kernels=[""])))
    with pytest.raises(Refused, match="kernel 0 is not an upper triangle of 2 rows"):
        check(resigned(tiny(factors=False, kernels=[portable._text([1.0, 0.0])])))
    half = {**tiny()["dual"], "shrink": 0.5}
    shifted = dict(factors=False, kernels=[L], shift=portable._text([2.0**-40]))
    proved = check(resigned(tiny(**shifted, dual=half, lower=0.9, upper=2.1)))
    assert proved["shift"] == 2.0**-40


def test_wrong_primal_points_are_refused():
    point = tiny()["primal"]
    text = portable._text
    for changed, why in (
        ({**point, "weights": text([-2.0])}, "≥ 0 per kernel"),
        ({**point, "weights": text([2.0, 2.0])}, "≥ 0 per kernel"),
        ({**point, "stretch": math.inf}, "infinite"),
        ({**point, "bias": math.inf}, "infinite"),
        ({**point, "stretch": 0.999}, "upper = .* is not proved"),
        ({**point, "bias": -0.999}, "upper = .* is not proved"),
    ):
        with pytest.raises(Refused, match=why):
            check(resigned(tiny(primal=changed)))
    del point["weights"]
    for beta in ([[2.0, 0.0], [2.0, 0.0]], [[2.0]], []):
        changed = {**point, "coefficients": [text(b) for b in beta]}
        with pytest.raises(Refused, match="one number per kernel and sample"):
            check(resigned(tiny(primal=changed)))
    honest = {**point, "coefficients": [text([2.0, 0.0])]}
    assert check(resigned(tiny(primal=honest)))["M"] == 1


def test_what_is_printed_survives_an_ascii_terminal(tmp_path):
    written(tmp_path, M=2)
    names = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    run = [sys.executable, "-S", checker.__file__]
    how: Any = dict(capture_output=True, timeout=60, env=names, cwd=tmp_path)
    done = subprocess.run([*run, "file.cert"], **how)
    assert done.returncode == 0 and done.stdout.isascii(), done.stderr
    assert b" <= f* <= " in done.stdout and b"delta <= " in done.stdout
    (tmp_path / "bad.cert").write_bytes(reseal(tiny(y=(1.0, 0.0))))
    done = subprocess.run([*run, "bad.cert"], **how)
    assert done.returncode == 2 and done.stdout.startswith(b"refused: "), done.stderr
