"""Keys of declarations: they change with whatever a function refers to."""

from __future__ import annotations

import pickle
import sys
import types
from dataclasses import dataclass
from functools import partial

import cvxpy as cp
import numpy as np
import pytest

from mklopt.formulations import LpNorm, formulation, gallery, variational
from mklopt.formulations.derive.declaration import (
    Declaration,
    Keyed,
    NoKeyError,
    key_of,
    look_up,
)

SCALE = 1.0
PRIOR = np.ones(3)


def helper(u):
    return SCALE * cp.sum(u)


def calls_helper(u):
    return sum(helper(u) for _ in range(2))


def calls_itself(u, depth=2):
    return cp.sum(u) if depth == 0 else calls_itself(u, depth - 1)


@dataclass(frozen=True)
class Settings:
    scale: float
    prior: object = None

    def penalty(self, u):
        return self.scaled(u)

    def scaled(self, u):
        return self.scale * SCALE * cp.sum(u)


def test_equal_functions_have_equal_keys():
    def made(a):
        return lambda u: a * cp.sum(u)

    assert key_of(made(1.0)) == key_of(made(1.0)) is not None
    assert hash(key_of(made(1.0))) == hash(key_of(made(1.0)))
    different = [made(a) for a in (1.0, 1, True, np.float64(1), 0.0, -0.0, "1", (1.0,))]
    assert len({key_of(each) for each in different}) == len(different)
    assert key_of(lambda u: cp.sum(u)) != key_of(lambda u: 2 * cp.sum(u))


def test_a_closure_variable_counts():
    scale = 1.0

    def declared(u):
        return scale * cp.sum(u)

    before = key_of(declared)
    assert key_of(declared) == before
    scale = 2.0
    assert key_of(declared) != before
    scale = 1.0
    assert key_of(declared) == before


def test_an_array_changed_in_place_counts():
    prior = np.ones(3)
    before = key_of(lambda u: prior @ u), key_of(partial(np.dot, prior))
    prior[1] = 2.0
    assert key_of(lambda u: prior @ u) != before[0]
    assert key_of(partial(np.dot, prior)) != before[1]


@pytest.mark.parametrize("function", [helper, calls_helper, Settings(2.0).penalty])
def test_a_global_variable_counts_and_so_do_those_of_functions_called(
    function, monkeypatch
):
    before = key_of(function)
    assert before is not None and key_of(function) == before
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 3.0)
    assert key_of(function) != before


def test_another_function_under_the_same_name_counts(monkeypatch):
    before = key_of(calls_helper)
    monkeypatch.setattr(sys.modules[__name__], "helper", lambda u: cp.max(u))
    assert key_of(calls_helper) != before


def test_defaults_attributes_items_and_fields_count():
    def with_default(u, a=1.0, *, b=2.0):
        return a * b * cp.sum(u)

    before = key_of(with_default)
    with_default.__defaults__ = (3.0,)
    after = key_of(with_default)
    with_default.__kwdefaults__ = {"b": 5.0}
    again = key_of(with_default)
    with_default.note = "an attribute"  # type: ignore[attr-defined]
    assert len({before, after, again, key_of(with_default)}) == 4

    listed, table, members = [1.0], {"a": 1.0}, {1, 2}
    functions = [lambda: listed, lambda: table, lambda: members]
    seen = [key_of(each) for each in functions]
    listed.append(2.0)
    table["a"] = 2.0
    members.add(3)
    assert not set(seen) & {key_of(each) for each in functions}

    assert key_of(Settings(1.0).penalty) == key_of(Settings(1.0).penalty)
    assert key_of(Settings(1.0).penalty) != key_of(Settings(2.0).penalty)
    assert key_of(Settings(1.0, PRIOR)) == key_of(Settings(1.0, PRIOR.copy()))
    assert key_of(Settings(1.0, PRIOR)) != key_of(Settings(1.0, 2 * PRIOR))


def test_methods_of_the_package_are_known_by_the_fields_of_their_owner():
    assert key_of(LpNorm(2.0).penalty) == key_of(LpNorm(2.0).penalty)
    assert key_of(LpNorm(2.0).penalty) != key_of(LpNorm(3.0).penalty)
    assert key_of(gallery.k_support(2)) == key_of(gallery.k_support(2))
    assert key_of(gallery.k_support(2)) != key_of(gallery.k_support(3))
    assert key_of(cp.sum) is cp.sum and key_of(calls_itself) is not None


def test_whatever_may_change_without_notice_has_no_key():
    class Mutable:
        scale = 1.0

        def __call__(self, u):
            return self.scale * cp.sum(u)

    parameter, rng = cp.Parameter(value=1.0), np.random.default_rng(0)
    objects = np.array([[1.0], None], dtype=object)
    own = types.ModuleType("a_module_of_the_user")

    def imports(u):
        import a_module_of_the_user  # type: ignore[import-not-found]

        return a_module_of_the_user.scale * u

    for unsafe in (
        Mutable(),
        Mutable().__call__,
        lambda u: parameter * u,
        lambda u: rng.normal() * u,
        lambda u: objects[0] * u,
        lambda u: own.scale * u,
        imports,
    ):
        assert key_of(unsafe) is None
    assert key_of(lambda u: Mutable.scale * u) is not None
    before = key_of(lambda u: Mutable.scale * u)
    Mutable.scale = 2.0
    assert key_of(lambda u: Mutable.scale * u) != before
    assert issubclass(NoKeyError, Exception)


def test_a_variable_without_a_value_yet_gives_no_key():
    def early():
        found = key_of(lambda u: later * u)  # type: ignore[has-type]
        later = 1.0
        return found, key_of(lambda u: later * u)

    assert early()[0] is None and early()[1] is not None


def test_a_declaration_without_a_key_is_read_again_on_demand():
    parameter = cp.Parameter(value=1.0)
    mine = formulation(lambda u: parameter.value * cp.sum(u))
    first = mine.key()
    assert mine.key() == first
    mine.read_again()
    second = mine.key()
    assert second != first and mine.key() == second
    known = formulation(lambda u: cp.sum(u))
    before = known.key()
    known.read_again()
    assert known.key() == before


@formulation
def by_name(u):
    return cp.sum(u)


def plain(theta):
    return cp.sum(theta)


def test_declarations_are_pickled_by_name_or_by_parts():
    assert pickle.loads(pickle.dumps(by_name)) is by_name
    assert look_up(__name__, "by_name", ()) is by_name and by_name.name == "by_name"
    unbound = variational(plain, smooth=True)
    copy = pickle.loads(pickle.dumps(unbound))
    assert copy == unbound and copy is not unbound and copy.smooth
    assert isinstance(copy, Declaration) and copy.key() == unbound.key()


def test_keyed_objects_are_compared_by_their_keys():
    assert Keyed("a", 1) == Keyed("a", 2) != Keyed("b", 1)
    assert len({Keyed("a", 1), Keyed("a", 2)}) == 1
