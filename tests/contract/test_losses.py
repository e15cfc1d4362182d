"""Every closed form of a loss equals what its declaration gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mklopt.formulations import losses_by_name, stripped_loss
from mklopt.formulations.losses.base import Loss
from mklopt.formulations.losses.domains import Box, Simplex

TOL = 1e-7
LOSSES = [loss for cls in losses_by_name().values() for loss in cls.examples()]
IDS = [repr(loss) for loss in LOSSES]
Y = {
    "binary": np.array([1.0, -1.0, 1.0, -1.0, 1.0]),
    "real": np.array([0.3, -1.2, 0.0, 2.0, 0.1]),
    "ones": np.ones(5),
    "classes": np.array([0, 1, 2, 1, 0]),
}
NUMBERS = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.1, 0.3]),  # kinks
    st.floats(-4, 4, allow_nan=False),
)
BLOCK = st.lists(NUMBERS, min_size=15, max_size=15).map(np.array)


def shaped(loss: Loss, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    y = Y[loss.labels]
    shape = loss.shape(y)
    return numbers[: int(np.prod(shape))].reshape(shape), y


def dual_points(loss: Loss, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points in the domain of V*, its ends included now and then."""
    a, y = shaped(loss, numbers)
    ones = np.ones(len(y))
    return -loss.domain(y).restore(-a, ones, bias=False), y


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
@given(numbers=BLOCK)
def test_value_is_the_declared_one(loss, numbers):
    f, y = shaped(loss, numbers)
    np.testing.assert_allclose(
        loss.value(f, y), stripped_loss(loss).value(f, y), rtol=TOL, atol=TOL
    )


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
@given(numbers=BLOCK)
def test_conjugate_is_the_declared_one(loss, numbers):
    a, y = dual_points(loss, numbers)
    a = a * (1 - 1e-8)  # the interior-point value does not exist at the very edge
    declared = stripped_loss(loss).epigraph(y).conjugate(a)
    np.testing.assert_allclose(loss.conjugate(a, y), declared, rtol=TOL, atol=TOL)


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
@given(numbers=BLOCK, other=BLOCK)
def test_fenchel_young(loss, numbers, other):
    """V(f) + V*(a) ≥ ⟨a, f⟩ always, with equality at a subgradient."""
    f, y = shaped(loss, numbers)
    a, _ = dual_points(loss, other)

    def excess(a):
        inner = (a * f).reshape(len(y), -1).sum(axis=1)
        return loss.value(f, y) + loss.conjugate(a, y) - inner

    assert np.all(excess(a) >= -1e-12)
    np.testing.assert_allclose(excess(loss.gradient(f, y)), 0, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
@given(numbers=BLOCK, step=st.floats(0.05, 5.0))
def test_prox_is_stationary_in_the_declared_conjugate(loss, numbers, step):
    """g = (f − z)/step is a subgradient at z: Fenchel–Young with equality."""
    f, y = shaped(loss, numbers)
    z = loss.prox(f, y, step)
    g = (f - z) / step
    domain = loss.domain(y)
    inside = -domain.restore(-g, np.ones(len(y)), bias=False)
    np.testing.assert_allclose(inside, g, atol=1e-12)
    inner = (inside * z).reshape(len(y), -1).sum(axis=1)
    excess = loss.value(z, y) + loss.conjugate(inside, y) - inner
    np.testing.assert_allclose(excess, 0, atol=1e-11)
    rough = stripped_loss(loss).prox(f, y, step)
    np.testing.assert_allclose(z, rough, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
def test_domain_is_the_declared_one(loss):
    y = Y[loss.labels]
    domain = loss.domain(y)
    if isinstance(domain, Box):
        derived = stripped_loss(loss).domain(y)
        assert isinstance(derived, Box)
        np.testing.assert_allclose(derived.low, domain.low, atol=1e-7)
        np.testing.assert_allclose(derived.high, domain.high, atol=1e-7)
        outside = np.where(np.isfinite(domain.high), domain.high + 1e-3, 0.0)
        values = loss.conjugate(outside, y)
        assert np.all(np.isinf(values) == np.isfinite(domain.high))
        assert np.all((domain.low <= 0) & (domain.high >= 0))
    else:
        assert isinstance(domain, Simplex)
        off = np.zeros(loss.shape(y))
        off[:, 0] = 0.2
        assert np.all(np.isinf(loss.conjugate(off, y)))


@pytest.mark.parametrize(
    "loss", [loss for loss in LOSSES if loss.bias_allowed], ids=repr
)
@given(numbers=BLOCK)
def test_offset_is_the_best_bias(loss, numbers):
    f, y = shaped(loss, numbers)
    C = np.array([1.0, 2.0, 0.5, 1.0, 3.0])
    b = loss.best_bias(f, y, C)
    best = C @ loss.value(f + b, y)
    rng = np.random.default_rng(0)
    for scale in (1e-3, 0.1, 2.0):
        for _ in range(10):
            other = b + scale * rng.normal(size=np.shape(b))
            assert C @ loss.value(f + other, y) >= best - 1e-9 * (1 + best)
    derived = stripped_loss(loss).best_bias(f, y, C)
    assert abs(C @ loss.value(f + derived, y) - best) <= 1e-6 * (1 + best)


def test_registry_finds_every_loss_of_the_issue():
    names = (
        "hinge logistic squared eps_insensitive one_class multiclass_hinge multinomial"
    )
    assert {*names.split(), "huber", "quantile"} <= set(losses_by_name())


def test_a_loss_that_falls_for_ever_is_refused():
    from mklopt import loss

    endless = loss(lambda f, y: -f)
    with pytest.raises(ValueError, match="not bounded below"):
        endless.domain(np.array([0.0, 1.0]))


def test_gradients_at_large_margins_do_not_overflow():
    logistic = losses_by_name()["logistic"]()
    f, y = np.array([1e4, -1e4]), np.array([1.0, 1.0])
    assert np.all(np.isfinite(logistic.value(f, y)))
    assert math.isclose(logistic.value(f, y)[1], 1e4)


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
@given(numbers=BLOCK, costs=st.lists(st.floats(0.1, 50.0), min_size=5, max_size=5))
def test_the_quadratic_dual_is_the_conjugate(loss, numbers, costs):
    """C V*(−α/C) = −linear α + kink |α| + ½ ridge α² on [low, high]."""
    a, y = dual_points(loss, numbers)
    C = np.array(costs)
    dual = loss.quadratic(y, C)
    if dual is None:
        assert loss.name in ("logistic", "multiclass_hinge", "multinomial")
        return
    alpha = np.clip(-C * a, dual.low, dual.high)
    value = -dual.linear * alpha + dual.kink * np.abs(alpha)
    value += 0.5 * dual.ridge * alpha**2
    np.testing.assert_allclose(
        value, C * loss.conjugate(-alpha / C, y), rtol=1e-12, atol=1e-12
    )
    low, high = loss.domain(y).ends(C)
    np.testing.assert_array_equal([dual.low, dual.high], [low, high])


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
@given(numbers=BLOCK)
def test_a_step_per_sample_is_a_step_for_each(loss, numbers):
    f, y = shaped(loss, numbers)
    steps = np.array([0.1, 0.5, 1.0, 2.0, 5.0])
    together = loss.prox(f, y, steps)
    for i, step in enumerate(steps):
        np.testing.assert_allclose(together[i], loss.prox(f, y, step)[i], atol=1e-9)


@pytest.mark.parametrize(
    "loss", [x for x in LOSSES if x.twice_differentiable], ids=repr
)
@given(numbers=BLOCK)
def test_steep_losses_invert_their_gradient(loss, numbers):
    """V'(inverse(a)) = a, and RRᵀ is the slope of V' there."""
    f, y = shaped(loss, numbers)
    a = loss.gradient(f, y)
    back = loss.inverse(a, y)
    np.testing.assert_allclose(loss.gradient(back, y), a, atol=1e-9)
    R, h = loss.root(a, y), 1e-5
    direction = np.cos(np.arange(f.size)).reshape(f.shape)
    slope = (
        loss.gradient(f + h * direction, y) - loss.gradient(f - h * direction, y)
    ) / (2 * h)
    if R.ndim == 1:
        np.testing.assert_allclose(R * R * direction, slope, atol=1e-6)
    else:
        product = np.einsum("iab,icb,ic->ia", R, R, direction)
        np.testing.assert_allclose(product, slope, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
@given(numbers=BLOCK)
def test_smoothness_bounds_the_slope_of_the_gradient(loss, numbers):
    f, y = shaped(loss, numbers)
    g = f + np.sin(7 * np.arange(f.size)).reshape(f.shape)
    change = np.atleast_2d((loss.gradient(f, y) - loss.gradient(g, y)).T).T
    distance = np.linalg.norm(np.atleast_2d((f - g).T).T, axis=1)
    if loss.smoothness is not None:
        size = np.linalg.norm(change, axis=1)
        assert np.all(size <= loss.smoothness * distance * (1 + 1e-9) + 1e-12)


def test_smooth_losses_are_those_without_kinks():
    named = {x.name for x in LOSSES if x.smoothness is not None}
    assert named == {"logistic", "squared", "huber", "multinomial"}
    assert {x.name for x in LOSSES if x.twice_differentiable} == named - {"huber"}


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
@given(numbers=BLOCK)
def test_room_ends_at_the_edge_of_the_domain(loss, numbers):
    """α + t·step is in the domain up to t = room, and not beyond."""
    a, y = dual_points(loss, numbers)
    ones, step = np.ones(len(y)), np.cos(3 * np.arange(a.size)).reshape(a.shape)
    if step.ndim == 2:
        step = step - step.mean(axis=1, keepdims=True)
    alpha, domain = -0.9 * a, loss.domain(y)
    room = domain.room(alpha, step, ones)
    if not math.isfinite(room):
        assert loss.name == "squared"
        return
    assert np.all(np.isfinite(loss.conjugate(-(alpha + 0.999 * room * step), y)))
    beyond = loss.conjugate(-(alpha + (1.001 * room + 1e-6) * step), y)
    assert not np.all(np.isfinite(beyond))


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
@given(numbers=BLOCK)
def test_the_compiled_loss_of_one_sample_is_the_loss(loss, numbers):
    """And its domain bounds the subgradients: V is Lipschitz."""
    stated = loss.pointwise()
    if stated is None:
        assert np.any(np.isinf(loss.domain(Y[loss.labels]).radius))
        return
    (f, y), (function, parameter) = shaped(loss, numbers), stated
    g, values = np.empty((len(y), f.size // len(y))), []
    for i in range(len(y)):
        one = np.ascontiguousarray(f[i]).reshape(-1)
        values.append(function(one, float(y[i]), parameter, g[i]))
    np.testing.assert_allclose(values, loss.value(f, y), rtol=1e-14, atol=1e-14)
    slope = loss.gradient(f, y).reshape(g.shape)
    np.testing.assert_allclose(g, slope, rtol=1e-14, atol=1e-14)
    assert np.all(np.linalg.norm(g, axis=1) <= loss.domain(y).radius + 1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
@given(numbers=BLOCK)
def test_the_margins_are_those_of_the_loss(loss, numbers):
    """V = max_j (f_j + Δ_j) − f_y, and then C V*(−α/C) = ⟨Δ, α⟩ on the domain."""
    f, y = shaped(loss, numbers)
    margins = loss.margins(y)
    if margins is None:
        assert loss.name != "multiclass_hinge"
        return
    rows = np.arange(len(y))
    value = np.max(f + margins, axis=1) - f[rows, y]
    np.testing.assert_allclose(value, loss.value(f, y), atol=1e-12)
    a, y = dual_points(loss, numbers)
    np.testing.assert_allclose(
        loss.conjugate(a, y), -np.sum(margins * a, axis=1), atol=1e-12
    )
