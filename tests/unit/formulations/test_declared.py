"""Users' own regularizers: constants, changed surroundings, and what is refused."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import types

import cvxpy as cp
import numpy as np
import pytest

from mklopt import (
    GramStack,
    Problem,
    certify,
    formulation,
    reference,
    solve,
    variational,
)
from mklopt.formulations import (
    ElasticNet,
    GroupLasso,
    LpNorm,
    declared,
    formulations,
    stripped,
)
from mklopt.formulations.derive.epigraph import Epigraph
from mklopt.reference.contract_problems import load

GRAMS, TARGETS = load("small")
Y = TARGETS["binary"]


def shifted(u):
    return cp.sum(u) + 5


def shifted_with_auxiliaries(u):
    t = cp.Variable(u.shape)
    return cp.sum(t) + 5, [t >= u]


@pytest.mark.parametrize("declare", [shifted, shifted_with_auxiliaries])
def test_additive_constants_are_kept(declare):
    mine = formulation(declare)
    assert mine.value(np.ones(4)) == pytest.approx(9)
    assert mine.conjugate(np.full(4, 0.5)) == pytest.approx(-5)
    plain = reference.solve(Problem(GRAMS, Y, formulation=GroupLasso()))
    moved = reference.solve(Problem(GRAMS, Y, formulation=mine))
    assert moved.lower <= plain.upper + 5 and plain.lower + 5 <= moved.upper
    derived = reference.solve_dual(Problem(GRAMS, Y, formulation=mine))
    assert derived.bound == pytest.approx(plain.upper + 5, rel=1e-8)


def test_what_a_declaration_refers_to_may_change():
    scale = 1.0
    mine = formulation(lambda u: scale * cp.sum(u))
    first = reference.solve(Problem(GRAMS, Y, formulation=mine))
    scale = 3.0
    second = reference.solve(Problem(GRAMS, Y, formulation=mine))
    truth = reference.solve(Problem(GRAMS, Y, formulation=GroupLasso(), C=1 / 3))
    assert first.upper < second.lower
    assert second.lower <= 3 * truth.upper and 3 * truth.lower <= second.upper


def test_intervals_of_derived_operators_never_cross():
    @formulation
    def k_support(u):
        theta = cp.Variable(u.shape)
        ratio = sum(cp.quad_over_lin(u[m], theta[m]) for m in range(u.shape[0]))
        return 0.5 * ratio, [theta <= 1, cp.sum(theta) <= 2]

    for name in ("hinge", "logistic", "squared"):
        found = reference.solve(Problem(GRAMS, Y, name, k_support))
        assert 0 < found.relative_gap <= 1e-7


def test_certify_survives_candidates_for_which_nothing_can_be_derived():
    @formulation
    def barrier(u):
        theta = cp.Variable(u.shape, nonneg=True)
        ratio = sum(cp.quad_over_lin(u[m], theta[m]) for m in range(u.shape[0]))
        return 0.5 * ratio + cp.sum(theta) - 0.2 * cp.sum(cp.log(theta)), []

    problem = Problem(GRAMS, Y, formulation=barrier)
    for size in (0.01, 0.1, 1.0):
        found = certify(problem, dual=size * Y, weights=np.ones(6))
        assert found.lower <= found.upper


@pytest.mark.parametrize(
    "declare, words",
    [
        (lambda u: cp.sum_squares(u - 1), r"falls from .* when u_0 grows"),
        (lambda u: -cp.sum(u), "must increase"),
        (lambda u: u, r"shape \(6,\); it must be one number"),
        (lambda u: None, "returned NoneType"),
        (lambda u: np.sum(u), r"np.sum is of NumPy.* CVXPY's functions, cp.sum$"),
        (lambda u: np.linalg.norm(np.ones(6) + u), "functions, cp.norm$"),
        (lambda u: np.linalg.norm(u), "functions, cp.norm$"),  # no warnings before it
        (lambda u: abs(u), "cp.sum and not np.sum"),
        (lambda u: cp.sum(u) * np.inf, "give finite constants and parameters"),
        (lambda u: -cp.sum(cp.log(u)), "infinite at u = 0.*@mklopt.variational"),
        (lambda u: (cp.sum(u), [u >= 1]), "infinite at u = 0"),
        (lambda u: cp.sum(u[:2]) * u[2], "is neither convex nor concave"),
        (lambda u: (cp.sum(u), [cp.sqrt(u) <= 1]), "its constraint .* is not convex"),
        (lambda u: cp.sum(u) + u[7], r"shape \(6,\) \(IndexError.* numbers 0 to 5$"),
        (
            lambda u: cp.sum(cp.sqrt(u)),
            r"not a convex .*: its part .* is concave; write",
        ),
        (lambda u: cp.sum(cp.Variable(6, boolean=True)) + cp.sum(u), "integer"),
    ],
)
def test_a_wrong_formulation_is_refused_when_the_problem_is_made(declare, words):
    with pytest.raises(ValueError, match=words):
        Problem(GRAMS, Y, formulation=formulation(declare))


def test_kernels_without_a_penalty_are_named_where_a_solver_fails():
    overlap = formulation(lambda u: cp.norm(u[:3]) + cp.norm(u[2:5]))  # none has u_5
    found = solve(Problem(GRAMS, Y, "hinge", overlap), max_iter=5)
    assert found.status == "failed"
    assert "no term has u_m for m = 5: give these kernels a penalty" in found.message


def test_what_is_not_a_function_is_refused():
    with pytest.raises(ValueError, match="takes a function"):
        formulation(3)


def test_an_indefinite_kernel_is_refused_with_a_sentence():
    K = GRAMS.dense() - 0.3 * np.eye(40)
    K = K + np.maximum(0, -np.min(np.einsum("mii->mi", K)))[..., None] * np.eye(40)
    K[0] -= 0.4 * (np.ones((40, 40)) - np.eye(40))
    with pytest.raises(ValueError, match="not positive semi-definite"):
        reference.solve(Problem(K, Y, formulation=LpNorm(2.0)))


@pytest.mark.parametrize(
    "given, words",
    [
        (dict(tol=-1.0), "must be positive"),
        (dict(options={"max_iter": 5}), "name it with solver="),
        (dict(solver=5), "not installed"),
    ],
)
def test_wrong_arguments_of_solve_get_one_clear_sentence(given, words):
    problem = Problem(GRAMS, Y, formulation=GroupLasso())
    with pytest.raises(ValueError, match=words):
        reference.solve(problem, **given)


def test_an_unbounded_problem_says_so():
    problem = Problem(GRAMS, Y, formulation=GroupLasso())
    with pytest.raises(RuntimeError, match="OSQP"):
        reference.solve(problem, solver="OSQP")


# ---- what is compiled, and when ------------------------------------------------------


@pytest.fixture
def compilations(monkeypatch):
    """Counts how often a declaration is compiled."""
    count = []
    compiled = Epigraph._compile

    def counted(self, **options):
        count.append(self.what)
        return compiled(self, **options)

    monkeypatch.setattr(Epigraph, "_compile", counted)
    return count


def test_another_C_compiles_and_checks_nothing_again(compilations):
    scale = 1.0
    mine = formulation(lambda u: scale * cp.sum(u) + cp.sum(cp.exp(u)))
    problem = Problem(GRAMS, Y, formulation=mine)
    before, checked = len(compilations), declared._check_increase.cache_info().misses
    epigraph = mine.epigraph(6)
    for C in (2.0, 3.0):
        problem = problem.with_(C=C)
    assert mine.epigraph(6) is epigraph
    assert len(compilations) == before == 1
    assert declared._check_increase.cache_info().misses == checked


def test_problems_with_other_formulations_evict_nothing(compilations):
    scales = (1.0, 2.0)
    one, two = (formulation(lambda u, a=a: a * cp.sum(cp.exp(u))) for a in scales)
    problems = [Problem(GRAMS, Y, formulation=each) for each in (one, two)]
    kept = one.epigraph(6), two.epigraph(6)
    for problem in problems:
        problem.with_(C=2.0)
        Problem(GRAMS, Y, formulation=GroupLasso())
    assert (one.epigraph(6), two.epigraph(6)) == kept and kept[0] is not kept[1]
    assert len(compilations) == 2


def test_a_declaration_whose_surroundings_change_is_compiled_again(compilations):
    scale, prior = 1.0, np.ones(6)
    mine = formulation(lambda u: scale * prior @ u)
    u = np.arange(6.0)
    first = mine.epigraph(6)
    assert mine.value(u) == pytest.approx(15.0)
    scale = 2.0
    assert mine.value(u) == pytest.approx(30.0)
    prior[5] = 3.0  # in place
    assert mine.value(u) == pytest.approx(50.0)
    scale, prior[5] = 1.0, 1.0
    assert mine.epigraph(6) is first


def test_programs_compiled_later_are_those_of_the_key():
    """Two functions of one key share an epigraph; then the first of them changes."""

    def made():
        scale = 1.0

        def set_scale(value):
            nonlocal scale
            scale = value

        return formulation(lambda u: scale * cp.sum_squares(u)), set_scale

    (one, set_one), (two, _) = made(), made()
    assert one.epigraph(2) is two.epigraph(2)
    set_one(100.0)
    v = np.array([1.0, 2.0])
    assert two.conjugate(v) == pytest.approx(v @ v / 4)  # compiled only now
    assert one.conjugate(v) == pytest.approx(v @ v / 400)


def test_a_declaration_without_a_key_is_compiled_for_every_problem(compilations):
    scale = cp.Parameter(nonneg=True, value=1.0)
    mine = formulation(lambda u: scale.value * cp.sum(u))
    Problem(GRAMS, Y, formulation=mine)
    first = mine.epigraph(6)
    assert mine.epigraph(6) is first and mine.value(np.ones(6)) == pytest.approx(6.0)
    scale.value = 2.0
    Problem(GRAMS, Y, formulation=mine)
    assert mine.epigraph(6) is not first
    assert mine.value(np.ones(6)) == pytest.approx(12.0)


def test_the_price_of_weights_is_that_of_the_present_function():
    scale = 1.0
    mine = variational(lambda theta: scale * cp.sum_squares(theta), smooth=True)
    theta = np.array([1.0, 2.0])
    assert mine.price(theta)[0] == pytest.approx(5.0)
    scale = 2.0
    value, slope = mine.price(theta)
    assert value == pytest.approx(10.0) and slope == pytest.approx(4 * theta)


def test_stripped_formulations_are_equal_where_their_parameters_are():
    same, other = declared.stripped(LpNorm(2.0)), declared.stripped(LpNorm(3.0))
    assert same.epigraph(4) is declared.stripped(LpNorm(2.0)).epigraph(4)
    assert same.epigraph(4) is not other.epigraph(4)


# ---- zeros are zeros ----------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_derived_prox_is_zero_where_the_closed_one_is(scale):
    """All examples of all formulations, at points with some, all or no zeros."""
    rng, missed, zeros = np.random.default_rng(0), 0, 0
    for kind in formulations().values():
        for one in kind.examples(5):
            if not one.closed("prox"):
                continue
            twin = stripped(one)
            for step in (0.1, 2.0):
                u = scale * rng.uniform(-0.3, 1.0, 5)
                known, found = one.prox(u, step * scale), twin.prox(u, step * scale)
                np.testing.assert_allclose(found, known, atol=1e-5 * np.max(u))
                zero = (known == 0) & (u > 0)
                zeros, missed = zeros + np.sum(zero), missed + np.sum(found[zero] > 0)
                assert np.all(found[known > 1e-6 * np.max(known)] > 0)
    assert zeros > 20 and missed == 0


@pytest.mark.parametrize("C", [0.2, 1.0])
def test_a_declared_sum_uses_the_kernels_that_the_group_lasso_uses(C):
    L = np.random.default_rng(1).normal(size=(20, 25, 2))
    y = np.sign(L[0, :, 0] + L[1, :, 1])
    stack = GramStack.from_factors(L)
    for kind in (GroupLasso(), ElasticNet(0.7)):
        used = []
        for one in (kind, stripped(kind)):
            found = solve(Problem(stack, y, "logistic", one, C), tol=1e-7)
            assert found.converged
            weights, active = found.weights, found.trace.last("active")
            used.append((np.flatnonzero(weights).tolist(), int(active)))
            assert active == np.sum(found.certificate.norms > 0)
        assert used[0] == used[1] and used[0][1] < 20


# ---- parameters ----------------------------------------------------------------------


@formulation
def stronger(u, lam=0.3, prior=None):
    prior = np.ones(u.shape) if prior is None else prior
    return cp.sum(cp.multiply(prior, u)) + lam * cp.sum_squares(u)


@variational
def ridged(theta, lam=1.0):
    return lam * cp.sum(theta)


def test_calling_a_formulation_sets_its_parameters():
    u = np.array([1.0, 2.0])
    assert stronger.value(u) == pytest.approx(3 + 0.3 * 5)
    assert stronger(lam=2).value(u) == pytest.approx(3 + 2 * 5)
    both = stronger(lam=2)(prior=np.array([1.0, 3.0]))
    assert both.value(u) == pytest.approx(7 + 2 * 5)
    assert stronger.value(u) == pytest.approx(3 + 0.3 * 5)  # it is as it was
    v = np.array([2.0, 3.0])
    truth = float(np.sum(np.maximum(v - 1, 0) ** 2)) / (4 * 2.0)
    assert stronger(lam=2.0).conjugate(v) == pytest.approx(truth, rel=1e-6)


def test_the_price_of_weights_takes_parameters():
    u = np.array([1.0, 2.0])
    for lam in (0.5, 2.0):  # min of u²/(2θ) + lam θ is u √(2 lam)
        value = ridged(lam=lam).value(u)
        assert value == pytest.approx(3 * np.sqrt(2 * lam), rel=1e-6)
        assert ridged(lam=lam).price(u)[0] == pytest.approx(3 * lam)


def test_parameters_are_values():
    same = stronger(lam=np.float32(2)), stronger(lam=2.0)
    assert same[0] == same[1] and hash(same[0]) == hash(same[1])
    assert stronger(lam=3.0) != same[0] and stronger(lam=3.0).key() != same[0].key()
    prior = np.array([1.0, 3.0])
    held = stronger(prior=prior)
    prior[0] = 100.0
    assert held == stronger(prior=np.array([1.0, 3.0])) != stronger(prior=prior)
    assert pickle.loads(pickle.dumps(held)) == held
    assert repr(same[0]) == "formulation 'stronger(lam=2.0, prior=None)'"
    assert stronger(lam=2).get_params() == {"lam": 2, "prior": None}


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda: stronger(lamb=1.0), "has no parameter lamb; it has lam, prior"),
        (lambda: stronger(lam={}), "lam = {} may change later"),
        (lambda: formulation(cp.sum)(axis=0), "has no parameter axis; it has none"),
        (lambda: LpNorm(2).with_(q=1), "has no parameter q; it has p"),
    ],
)
def test_wrong_parameters_are_named(wrong, words):
    with pytest.raises(ValueError, match=words):
        wrong()


def test_a_parameter_without_a_default_has_to_be_given():
    @formulation
    def weighted(u, prior):
        return cp.sum(cp.multiply(prior, u))

    with pytest.raises(ValueError, match=r"needs prior; write weighted\(prior=…\)"):
        Problem(GRAMS, Y, formulation=weighted)
    assert weighted(prior=[1.0, 2.0]).value(np.ones(2)) == pytest.approx(3)


# ---- numbers that vary are not compiled again ----------------------------------------


@formulation
def exponential(u, lam=0.5, start=1.0):
    return cp.sum(u) + lam * cp.sum(cp.exp(u)) + 0.1 * start * cp.norm(u[:2])


@formulation
def branching(u, lam=0.5):
    if lam > 1:
        return lam * cp.sum(cp.exp(u)) + cp.sum(u)
    return lam * cp.sum(cp.exp(u))


@formulation
def truthful(u, lam=0.5, k=2):
    """CVXPY parameters are always true; numbers are not."""
    return cp.sum(cp.exp(u)) + (5.0 if lam else 1.0) * cp.sum(u[: int(k)])


@pytest.fixture
def builds(monkeypatch):
    """Counts how often a problem of CVXPY is built."""
    count = []
    build = Epigraph.build

    def counted(self, *arguments):
        count.append(self.what)
        return build(self, *arguments)

    monkeypatch.setattr(Epigraph, "build", counted)
    return count


def test_other_numbers_compile_nothing_again(builds):
    v = np.array([3.0, 2.0, 1.5])
    for lam, start in ((0.2, 1.0), (0.4, 1.0), (0.4, 3.0), (2.0, 0.5)):
        mine = exponential(lam=lam, start=start)
        alone = stripped(mine)  # compiles for itself
        known = len(builds)
        found = mine.conjugate(v)
        once = len(builds) - known
        assert found == pytest.approx(alone.conjugate(v), rel=1e-6)
        assert once == (lam == 0.2)


@pytest.mark.parametrize("mine", [branching, truthful])
def test_functions_that_need_numbers_get_them(mine):
    v = np.array([3.0, 6.0, 1.5])
    for lam in (0.5, 0.0, 2.0, 0.5, 3.0):
        one = mine(lam=lam)
        direct = formulation(lambda u, one=one: one.function(u, **one.get_params()))
        assert one.conjugate(v) == pytest.approx(direct.conjugate(v), rel=1e-6)
        assert one.value(v) == pytest.approx(direct.value(v), rel=1e-9)


SCRIPT = """
import pickle, sys
import cvxpy as cp
import numpy as np
import mklopt

scale = 2.0

@mklopt.formulation
def mine(u, lam=0.5):
    return lam * scale * cp.sum(u)

if len(sys.argv) > 2:
    kept = pickle.dumps([mine(lam=3.0), mklopt.formulation(lambda u: cp.norm(u))])
    open(sys.argv[1], "wb").write(kept)
    assert pickle.loads(pickle.dumps(mine(lam=3.0))) == mine(lam=3.0)
"""


def test_functions_of_scripts_and_lambdas_are_pickled_by_value(tmp_path):
    script, kept = tmp_path / "script.py", tmp_path / "kept"
    script.write_text(SCRIPT)
    here = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(script), str(kept), "write"]
    subprocess.run(command, check=True, env=here)
    one, two = pickle.loads(kept.read_bytes())
    assert one.value(np.ones(2)) == pytest.approx(12) and one.get_params() == {"lam": 3}
    assert one(lam=1.0).value(np.ones(2)) == pytest.approx(4)
    assert two.value(np.array([3.0, 4.0])) == pytest.approx(5)


def test_a_script_is_no_library_in_worker_processes(monkeypatch):
    """A worker of joblib runs a file of a library as its __main__."""

    def inside(u, lam=1.0):
        return lam * cp.sum(u)

    inside.__module__, inside.__qualname__ = "__main__", "inside"
    main = types.SimpleNamespace(__file__="/lib/site-packages/joblib/worker.py")
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert formulation(inside)(lam=2.0).get_params() == {"lam": 2.0}


def test_parameters_are_given_by_name():
    @formulation
    def scaled(u, lam=1.0):
        return lam * cp.sum(u)

    with pytest.raises(TypeError, match=r"give it by name: scaled\(lam=…\)"):
        scaled(2.0)
    with pytest.raises(TypeError, match="it takes none"):
        formulation(lambda u: cp.sum(u))(2.0)
