"""Problems as text: what is read is what was written, to the last bit."""

from __future__ import annotations

import runpy
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mklopt import GramStack, Problem, formulations, library
from mklopt.formulations import LpNorm
from mklopt.library import read_problem, write_problem

READERS = Path(__file__).resolve().parents[3] / "docs" / "readers"
SOME = [
    *("tiny-hinge", "toy-pinf", "toy-prior", "wdbc-vskl-hinge", "wdbc-ellipsoid-hinge"),
    *("wdbc-fixed-hinge", "wdbc-exact-l1", "views-hinge", "diabetes-huber"),
    *("wine-one-class", "wdbc-zeros"),
]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("problems")
    found = {}
    for name in SOME:
        found[name] = library.get(name), folder / f"{name}.txt"
        write_problem(*found[name])
    return found


@pytest.mark.parametrize("name", SOME)
def test_what_is_read_is_what_was_written(written, name):
    problem, path = written[name]
    again = read_problem(path)
    assert again.digest() == problem.digest()
    assert repr(again) == repr(problem)


@pytest.mark.parametrize("name", SOME)
def test_the_reader_in_numpy_has_the_same_kernels(written, name):
    problem, path = written[name]
    reader = runpy.run_path(str(READERS / "read_problem.py"))["read_problem"]
    found = reader(path)
    assert found["name"] == name and found["digest"] == problem.digest()
    np.testing.assert_array_equal(found["y"].ravel(), problem.y)
    for m, K in enumerate(found["kernels"]):
        np.testing.assert_array_equal(K, problem.grams.kernel(m))


def test_costs_per_sample_and_odd_numbers(tmp_path):
    rng = np.random.default_rng(0)
    L = [rng.normal(size=(7, 2)) * 10.0**k for k in (-150, 0, 150)]
    y, costs = rng.normal(size=7), rng.uniform(1, 2, size=7)
    kinds = formulations.losses_by_name()["eps_insensitive"](eps=1 / 3)  # type: ignore[call-arg]
    problem = Problem(GramStack.from_factors(L), y, kinds, LpNorm(1.1), costs)
    write_problem(problem, tmp_path / "odd.txt", "odd")
    again = read_problem(tmp_path / "odd.txt")
    assert again.digest() == problem.digest()
    assert again.loss == kinds and np.array_equal(again.C, costs)


OCTAVE = """
addpath('{readers}');
found = read_problem('{path}');
file = fopen('{out}', 'w');
fwrite(file, found.y, 'double');
fwrite(file, found.C, 'double');
for m = 1:numel(found.kernels)
  fwrite(file, found.kernels{{m}}, 'double');
end
fclose(file);
"""


@pytest.mark.skipif(
    not shutil.which("octave-cli"), reason="octave-cli is not installed"
)
def test_the_reader_in_octave_has_the_same_bits(written, tmp_path):
    scripts, outs = [], []
    for name, (_, path) in written.items():
        outs.append(tmp_path / f"{name}.bin")
        scripts.append(OCTAVE.format(readers=READERS, path=path, out=outs[-1]))
    script = tmp_path / "all.m"
    script.write_text("".join(scripts))
    subprocess.run(["octave-cli", "--norc", "--quiet", str(script)], check=True)
    for (problem, _), out in zip(written.values(), outs):
        kernels = [problem.grams.kernel(m) for m in range(problem.grams.M)]
        expected = np.concatenate([problem.y, problem.costs, *map(np.ravel, kernels)])
        np.testing.assert_array_equal(np.fromfile(out), expected)


# ---- what is refused -----------------------------------------------------------------


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("mklopt-problem 1", "mklopt-problem 2", "does not begin with"),
        ("\nend\n", "\n", "no line 'end'"),
        ("array y 38 1", "array y 37 1", "line .* is not known"),
        ("array bias 1 1\n1\n", "array bias 1 1\n0\n", "another problem than its"),
        ("text loss hinge", "text loss hing", "hing"),
        ("text formulation BlockL1", "text formulation BlockL2", "did you mean"),
        ("text loss hinge", "text name hinge", "occurs twice"),
        ("array C 38 1\n1\n", "array C 38 1\n1 1\n", "without 1 numbers"),
        ("array C 38 1\n1\n", "array C 38 1\n-1\n", "C must be positive"),
        ("array y 38 1", "array y 38 99999999999", "38 × 99999999999"),
        ("factor.1", "triangle.1", "not both|and not both"),
        ("text digest ", "text digest 0", "another problem"),
    ],
)
def test_a_changed_file_is_refused(written, tmp_path, old, new, words):
    text = written["tiny-hinge"][1].read_text()
    assert old in text
    path = tmp_path / "changed.txt"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=words):
        read_problem(path)


def test_one_bit_of_a_kernel_is_noticed(written, tmp_path):
    lines = written["tiny-hinge"][1].read_text().splitlines()
    at = lines.index("array factor.0 38 2") + 5
    first, second = lines[at].split()
    lines[at] = f"{float(np.nextafter(float(first), 9))!r} {second}"
    (tmp_path / "bit.txt").write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match="another problem than its digest"):
        read_problem(tmp_path / "bit.txt")


def test_what_cannot_be_written_is_refused(tmp_path):
    import cvxpy as cp

    import mklopt

    @mklopt.formulation
    def mine(u):
        return cp.sum(u) + cp.sum_squares(u)

    problem = library.get("tiny-hinge").with_(formulation=mine)
    with pytest.raises(ValueError, match="declared by code"):
        write_problem(problem, tmp_path / "no.txt")
    K = np.ones((1, 6, 6))
    shifted = Problem(K, [1.0, -1, 1, -1, 1, -1], formulation=LpNorm(2.0))
    assert shifted.grams.verify_psd()[0] > 0
    with pytest.raises(ValueError, match="add it to their diagonals"):
        write_problem(shifted, tmp_path / "no.txt")
    assert not list(tmp_path.iterdir())
