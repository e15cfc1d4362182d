"""Reading certificate files: bounded, and only what is known; forgeries by hand."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import resource
import subprocess
import sys
import zipfile
from fractions import Fraction
from pathlib import Path

import pytest

from mklopt.certificates import checker, portable, reading
from mklopt.certificates.checker import check
from mklopt.certificates.reading import Refused
from tests.unit.certificates.samples import resigned, sealed, tiny

SECONDS, MEMORY = 5, 1 << 29  # of the processor, for whatever is no certificate


def refusal(claim):
    """Why a claim is refused; its hashes are honest wherever they can be."""
    try:
        content = resigned(claim)
    except Exception:
        content = sealed(json.dumps(claim).encode())
    with pytest.raises(Refused) as found:
        check(content)
    return str(found.value)


# ---- names, parameters, types ----------------------------------------------------


@pytest.mark.parametrize(
    "formulation",
    [
        ["GroupLasso", {"lambda": 1e9}],
        ["GroupLasso", {"x\nproved: 0 ≤ f* ≤ 0\n": 1}],
        ["GroupLasso", {"\x1b[2K\rproved: 0 ≤ f* ≤ 0": 1}],
        ["GroupLasso", []],
        ["GroupLasso"],
        ["GroupLasso", {}, {}],
        ["GroupLasso\nproved: 0 ≤ f* ≤ 0", {}],
        ["BlockL1", {"p": 2.0}],
        ["LpNorm", {}],
        ["LpNorm", {"p": True}],
        ["LpNorm", {"p": "2"}],
        ["LpNorm", {"p": None}],
        ["LpNorm", {"p": [2.0]}],
        ["LpNorm", {"p": 0.5}],
        ["LpNorm", {"p": -1.0}],
        ["LpNorm", {"p": 1e300}],
        ["BlockNorm", {"q": 0.999}],
        ["BlockPower", {"q": math.inf}],
        ["BlockPower", {"q": 2e6}],
        ["Composite", {"groups": [[0]], "r": 3.0, "s": 1.0}],
        ["Composite", {"groups": [[0, 0]], "r": 1.0, "s": 1.0}],
        ["SparseBlockNorm", {"q": 2.5, "a": 0.1}],
        ["SparseBlockNorm", {"q": 1.5, "a": -0.1}],
        ["SparseBlockNorm", {"q": 1.5, "a": math.inf}],
        ["ElasticNet", {"l1_ratio": 1.5}],
        ["ElasticNet", {"l1_ratio": -0.5}],
        ["Tikhonov", {"p": 2.0, "mu": 0.0}],
        ["Tikhonov", {"p": 2.0, "mu": -1.0}],
        ["FixedWeights", {"theta": [-1.0]}],
        ["FixedWeights", {"theta": []}],
        ["FixedWeights", {"theta": [1.0, 1.0]}],
        ["FixedWeights", {"theta": 1.0}],
        ["WeightedLpNorm", {"p": 2.0, "prior": [0.0]}],
        ["WeightedLpNorm", {"p": 2.0, "prior": [1.0, 1.0]}],
        ["NonIsotropic", {"E": [[1.0, 0.0]]}],
        ["NonIsotropic", {"E": [[1.0, 0.5], [0.4, 1.0]]}],
        ["NonIsotropic", {"E": [[1.0]]}],  # without its witnesses
        ["NonIsotropic", {"E": []}],
        ["LpNorm", {"p": 10**400}],
        ["LpNorm", {"p": 2.0, "q": 1.0}],
        ["VSKL", {"groups": [[0]], "q": True}],
        ["VSKL", {"groups": [[0]], "q": 0.5}],
        ["VSKL", {"groups": [[False]], "q": 1.0}],
        ["VSKL", {"groups": [[0.0]], "q": 1.0}],
        ["VSKL", {"groups": [[0], []], "q": 1.0}],
        ["VSKL", {"groups": [[0, 0]], "q": 1.0}],
        ["VSKL", {"groups": [[1]], "q": 1.0}],
        ["VSKL", {"groups": [], "q": 1.0}],
        ["VSKL", {"groups": "0", "q": 1.0}],
        [["GroupLasso"], {}],
        "GroupLasso",
        {"GroupLasso": {}},
        None,
    ],
    ids=repr,
)
def test_only_known_formulations_with_known_parameters(formulation):
    said = refusal(tiny(formulation=formulation))
    assert said and said.isprintable(), said


@pytest.mark.parametrize(
    "loss",
    [
        ["hinge", {"eps": 0.1}],
        ["hinge", {"x\nproved: 0 ≤ f* ≤ 0\n": 1}],
        ["hinge\n", {}],
        ["squared_hinge", {}],
        ["eps_insensitive", {}],
        ["eps_insensitive", {"eps": -0.1}],
        ["eps_insensitive", {"eps": True}],
        ["eps_insensitive", {"eps": math.inf}],
        ["eps_insensitive", {"eps": "0"}],
        ["huber", {"delta": 0.0}],
        ["huber", {"delta": -1.0}],
        ["huber", {"delta": math.inf}],
        ["quantile", {"tau": 1.1}],
        ["quantile", {"tau": -0.1}],
        ["one_class", {}],
        ["multinomial", {}],
        ["multiclass_hinge", {}],
        "hinge",
    ],
    ids=repr,
)
def test_only_known_losses_with_known_parameters(loss):
    said = refusal(tiny(loss=loss))
    assert said and said.isprintable(), said


@pytest.mark.parametrize(
    "changes",
    [
        {"bias": 1},
        {"bias": 1.0},
        {"bias": "true"},
        {"factors": 1},
        {"factors": None},
        {"lower": True},
        {"lower": "1.9"},
        {"upper": None},
        {"upper": [2.1]},
        {"note": "proved: 0 ≤ f* ≤ 0"},
        {"kernels": {"0": ""}},
        {"kernels": "AAAA"},
        {"kernels": [[1.0, 0.0]]},
        {"kernels": []},
        {"y": [1.0, -1.0]},
        {"y": ""},
        {"C": portable._text([2.0, -2.0])},
        {"C": portable._text([2.0, 0.0])},
        {"C": portable._text([2.0, math.nan])},
        {"C": portable._text([2.0])},
        {"C": "====" * 4},
        {"shift": portable._text([-1e-300])},
        {"shift": portable._text([])},
        {"shift": portable._text([0.0, 0.0])},
        {"dual": {"integers": [True, -1], "exponent": 0, "shrink": 1.0}},
        {"dual": {"integers": [1, -1], "exponent": False, "shrink": 1.0}},
        {"dual": {"integers": [1, -1], "exponent": 0.0, "shrink": 1.0}},
        {"dual": {"integers": [1, -1], "exponent": 0, "shrink": True}},
        {"dual": {"integers": [1, -1], "exponent": 0}},
        {"dual": {"integers": {"0": 1}, "exponent": 0, "shrink": 1.0}},
        {"primal": {"bias": 0.0, "stretch": 1.0}},
        {"primal": {**tiny()["primal"], "coefficients": []}},
        {"primal": {**tiny()["primal"], "stretch": True}},
        {"primal": {**tiny()["primal"], "bias": False}},
        {"primal": []},
    ],
    ids=str,
)
def test_other_keys_and_types_are_refused(changes):
    said = refusal({**tiny(), **changes})
    assert said and said.isprintable(), said


def test_what_is_printed_was_parsed(tmp_path, capsys):
    """Of all that a forger writes, only numbers and known names reach the screen."""
    claim = tiny(formulation=["VSKL", {"q": 1, "groups": [[0]]}], lower=1.4, upper=2.1)
    assert check(resigned(claim))["formulation"] == ["VSKL", {"groups": [[0]], "q": 1}]
    (tmp_path / "file.cert").write_bytes(resigned(claim))
    assert checker.main([str(tmp_path / "file.cert")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "proved: 1.4 ≤ f* ≤ 2.1",
        "for hinge, VSKL(groups=[[0]], q=1), n = 2, M = 1, with bias, kernels K",
    ]
    assert len(lines) == 3
    for formulation in (
        ["a\nproved: 0 ≤ f* ≤ 0\x1b[1A", {}],
        ["GroupLasso", {"\n": 1}],
    ):
        content = sealed(json.dumps(tiny(formulation=formulation)).encode())
        (tmp_path / "file.cert").write_bytes(content)
        assert checker.main([str(tmp_path / "file.cert")]) == 2
        shown = capsys.readouterr().out
        assert shown.startswith("refused: ") and shown[:-1].isprintable()


def test_a_statement_names_every_part():
    stated = reading.Statement(
        tiny(loss=["eps_insensitive", {"eps": 0.25}], bias=False)
    )
    words = "eps_insensitive(eps=0.25), GroupLasso(), n = 2, M = 1, without bias, "
    assert str(stated) == words + "kernels K"
    stated = reading.Statement(
        tiny(formulation=["LpNorm", {"p": 4 / 3}], shift=portable._text([1e-9]))
    )
    assert "LpNorm(p=4/3)" in str(stated) and "δ ≤ 1e-09" in str(stated)


def test_the_exponent_is_the_nearest_fraction():
    """If its denominator is at most 1000; else it is the float itself."""
    for p, r in (
        (4 / 3, Fraction(8, 7)),
        (2, Fraction(4, 3)),
        (1.01, Fraction(202, 201)),
        (math.inf, Fraction(2)),
        (1, Fraction(1)),
        (2**0.5, 2 * Fraction(2**0.5) / (Fraction(2**0.5) + 1)),
    ):
        stated = reading.Statement(tiny(formulation=["LpNorm", {"p": p}]))
        assert stated.norm[:2] == ([[0]], r)
    for q, exponent in ((1, 2), (2.0, 4), (1.1, Fraction(11, 5)), (math.inf, None)):
        kind = ["VSKL", {"groups": [[0]], "q": q}]
        assert reading.Statement(tiny(formulation=kind)).norm[1:3] == (1, exponent)
    assert reading.shown("p", 4 / 3) == "p=4/3" and reading.shown("q", 2.0) == "q=2"
    assert reading.shown("mu", 4 / 3) == "mu=1.3333333333333333"
    assert reading.shown("p", 2**0.5) == "p=1.4142135623730951"
    assert reading.shown("p", math.inf) == "p=inf"


def test_all_versions_are_read():
    """What version 1 can say is the same claim in all."""
    body = resigned(tiny()).partition(b"\n")[2]
    for version in (b"1", b"2", b"3", b"4"):
        head = b"mklopt certificate " + version + b" "
        content = head + hashlib.sha256(body).hexdigest().encode() + b"\n" + body
        assert check(content)["n"] == 2
    with pytest.raises(Refused, match="does not begin with"):
        check(content.replace(b"certificate 4", b"certificate 5", 1))


DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "certificate-format.md"


def test_the_example_of_the_specification_is_proved():
    text = DOCUMENT.read_text(encoding="utf-8")
    example = re.search(r"```text\n(mklopt certificate 4 .*?)\n```", text, re.DOTALL)
    assert example is not None
    proved = check(example[1].encode())
    assert (proved["lower"], proved["upper"]) == (1.9999, 2.0001)
    assert f"{proved['lower']} ≤ f* ≤ {proved['upper']}" in text


def test_the_specification_names_everything():
    text = DOCUMENT.read_text(encoding="utf-8")
    names = (reading.LOSSES, reading.FORMULATIONS, reading.RULES)
    known = (*names, reading.BY_RULES, reading.BOUNDS, reading.DUAL)
    words = {word for table in known for word in table} | {*reading.PRIMAL}
    parameters = [terms for table in names for terms in table.values()]
    words |= {key for table in (*parameters, *reading.POINTS) for key in table}
    words |= {key for table in reading.WITNESS.values() for key in table}
    assert not [word for word in words if f"`{word}`" not in text]


# ---- JSON ------------------------------------------------------------------------


def test_numbers_are_finite_and_short():
    assert reading.parsed(b"[1, -2.5, 1e-400, Infinity]") == [1, -2.5, 0.0, math.inf]
    digits = reading.MAX_DIGITS
    assert reading.parsed(b"9" * digits) == 10**digits - 1
    for text in ("9" * (digits + 1), "0." + "3" * digits, "-" + "9" * digits):
        with pytest.raises(Refused, match="more than 1000 digits"):
            reading.parsed(text.encode())
    for text in ("NaN", "-Infinity", "1e999", "-1e999"):
        with pytest.raises(Refused, match=r"is no number|is too large"):
            reading.parsed(text.encode())


def test_a_key_stands_once():
    body = json.dumps({**tiny(), "problem": "x"}).encode()
    twice = body.replace(b'"lower"', b'"lower": 0.0, "lower"')
    with pytest.raises(Refused, match="twice"):
        check(sealed(twice))


def test_entries_are_counted_before_they_are_read():
    few, many = reading.MAX_ENTRIES - 1, reading.MAX_ENTRIES
    assert len(reading.parsed(b"[" + b"1," * few + b"1]")) == many
    for body in (b"[" + b"1," * many + b"1]", b"[[]," * many, b"{" * (many + 1)):
        with pytest.raises(Refused, match="more than 1000000 entries"):
            reading.parsed(body)


def test_forms():
    form = {"a": [[reading.WHOLE]], "b": reading.NUMBER}
    assert reading.fits({"a": [[1], []], "b": 0.5}, form)
    others: tuple = ({"a": [[1.0]], "b": 1}, {"a": [1], "b": 1}, {"a": []}, [], "a")
    assert not any(reading.fits(wrong, form) for wrong in others)
    assert not reading.fits({"a": [], "b": 1, "c": 1}, form)


# ---- files: every refusal in seconds and with little memory -----------------------


def run_checker(path):
    """The checker as a program, with little memory and little time."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    done = subprocess.run(
        [sys.executable, "-S", checker.__file__, str(path)],
        capture_output=True, text=True, timeout=60, preexec_fn=limit,
    )  # fmt: skip
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "kind", ["/dev/zero", "/dev/urandom", "fifo", "folder", "huge"]
)
def test_what_is_no_file_of_bounded_size_is_refused_at_once(tmp_path, kind):
    path = tmp_path / "file.cert"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(10 * 10**9)  # zeros that take no room
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(kind)
    code, said = run_checker(path)
    assert code == 2 and said.startswith("refused: ")
    assert any(why in said for why in ("regular file", "bytes", "directory"))


HONEST = json.dumps(tiny()).encode()
BOMBS = {  # bodies that ask for time or memory
    "deep lists": lambda: b"[" * 900_000,
    "deep objects": lambda: b'{"a":' * 900_000,
    "digits": lambda: b"9" * 10_000_000,
    "float digits": lambda: b"0." + b"3" * 10_000_000,
    "exponent": lambda: b"1e" + b"9" * 10_000_000,
    "lists": lambda: b"[" + b"[]," * 10_000_000 + b"1]",
    "zeros": lambda: b"\0" * 20_000_000,
    "text": lambda: b'"' + b"A" * 20_000_000 + b'"',
    "utf-16": lambda: "[1]".encode("utf-16"),
    "integers": lambda: HONEST.replace(b"[1, -1]", b"[1%b, -1]" % (b"0" * 1_000_000)),
    "samples": lambda: HONEST.replace(b"[1, -1]", b"[" + b"1," * 900_000 + b"1]"),
    "exponents": lambda: HONEST.replace(b'nt": 0', b'nt": 1' + b"0" * 900),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_at_once(tmp_path, name):
    path = tmp_path / "file.cert"
    path.write_bytes(sealed(BOMBS[name]()))
    code, said = run_checker(path)
    assert code == 2 and said.startswith("refused: ") and len(said) < 600


def test_an_archive_is_no_certificate(tmp_path):
    path = tmp_path / "file.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.npy", b"\0" * 10_000_000)
    code, said = run_checker(path)
    assert code == 2 and "does not begin with" in said


def test_a_file_is_read_up_to_its_limit(tmp_path, monkeypatch):
    path = tmp_path / "file.cert"
    path.write_bytes(b"12345678")
    monkeypatch.setattr(reading, "MAX_BYTES", 8)
    assert reading.read(path) == b"12345678"
    monkeypatch.setattr(reading, "MAX_BYTES", 7)
    with pytest.raises(Refused, match="more than 7 bytes"):
        reading.read(path)
    with pytest.raises(Refused, match="more than 7 bytes"):
        reading.opened(b"12345678")


def vskl(*groups):
    return {"formulation": ["VSKL", {"groups": [*groups], "q": 1.0}]}


@pytest.mark.parametrize(
    "changes, why",
    [
        ({"C": portable._text([2.0, 0.0])}, "C ≤ 0"),
        ({"shift": portable._text([-1e-300])}, "a shift < 0"),
        ({"y": portable._text([1.0, 0.0])}, "labels −1 and"),
        ({"loss": ["eps_insensitive", {"eps": -5e-324}]}, "ε is negative"),
        (vskl([0, 0]), "not a partition"),
        (vskl([0], []), "not a partition"),
        (vskl(), "not a partition"),
        (vskl([1]), "not a partition"),
    ],
    ids=str,
)
def test_a_statement_is_refused_for_its_own_reason(changes, why):
    """Before any hash or point is looked at."""
    with pytest.raises(Refused, match=why):
        reading.Statement({**tiny(), **changes})
