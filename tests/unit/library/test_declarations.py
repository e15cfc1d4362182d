"""What the library has to have: how many problems, of which kinds and sizes."""

from __future__ import annotations

import pytest

from mklopt.formulations.text import formulation_from
from mklopt.library import names, records
from mklopt.library.declarations import INSTANCES
from mklopt.library.stored_records import HOME, points_in

KNOWN = records()


def test_there_are_enough_of_every_kind():
    assert len(INSTANCES) >= 60
    assert len({one.name for one in INSTANCES.values()}) == len(INSTANCES)
    kinds = ["hinge", "logistic", "squared", "eps_insensitive", "huber", "quantile"]
    for loss in [*kinds, "one_class", "multiclass_hinge", "multinomial"]:
        assert names(loss), loss
    for tag in (
        "real",
        "synthetic",
        "degenerate",
        "ill-conditioned",
        "sparse",
        "dense",
    ):
        assert len(names(tag)) >= 3, tag
    used = {type(formulation_from(i.formulation)).__name__ for i in INSTANCES.values()}
    assert len(used) >= 14


def test_sizes_reach_from_small_to_large():
    assert min(k.n for k in KNOWN.values()) <= 38
    assert max(k.n for k in KNOWN.values()) >= 5000
    assert min(k.M for k in KNOWN.values()) <= 4
    assert max(k.M for k in KNOWN.values()) >= 10_000


def test_every_problem_has_a_record_and_points():
    assert set(KNOWN) == set(INSTANCES)
    stored = points_in(HOME).names()
    assert {f"{record.digest[:16]}.json" for record in KNOWN.values()} == stored
    assert not list(points_in(HOME)), "points are packed: make bench NAME=library"


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_the_optimum_is_known(name):
    assert KNOWN[name].lower <= KNOWN[name].upper
    assert KNOWN[name].relative_gap <= 1e-9


def test_kernels_need_no_shift_and_have_the_recorded_bits():
    """Of the problems that need neither other data nor much time."""
    for name in ("tiny-hinge", "toy-p4", "wdbc-exact-l1", "iris-hinge", "alike-l1"):
        problem = INSTANCES[name].build()
        assert not problem.grams.verify_psd().any()
        assert problem.digest() == KNOWN[name].digest, name
