"""Each refuted rate has a problem that runs, and on which the printed bound fails."""

from __future__ import annotations

import numpy as np
import pytest

from mklopt import Problem
from mklopt.claims.counterexamples import CounterExample, Step, counterexamples
from papers.aflalo2011.counterexamples import TwoPieces, shrinking_steps
from papers.kloft2011.counterexamples import kernels_apart, the_wrapper_above_q_3
from papers.orabona2012.counterexamples import steps_without_t
from papers.suzuki2009.counterexamples import linearized_steps, small_kernels

ALL = counterexamples("all")


@pytest.mark.parametrize("one", ALL, ids=lambda one: f"{one.paper}-{one.name}")
def test_the_printed_bound_is_exceeded(one):
    found = one.run()
    assert one.refutes(found) and len(one.printed) > 20
    worst = max(step.value / step.printed for step in found)
    assert worst > 1.01
    assert one.table(found).row_count == len(found)


def test_they_are_found_by_paper():
    assert {one.paper for one in ALL} == {
        "aflalo2011", "kloft2011", "orabona2012", "suzuki2009"
    }  # fmt: skip
    assert counterexamples("jain2012") == []
    assert [one.name for one in counterexamples("kloft2011")] == [
        "the_wrapper_above_q_3"
    ]


def test_what_is_right_is_not_refuted():
    """The same runs stay below bounds that hold, or descend where they should."""
    steps = shrinking_steps.run(2)
    lengths = np.cumsum(1 / np.arange(1, 3)), np.cumsum(1 / np.sqrt(np.arange(1, 3)))
    right = (0.5 + 0.5 * lengths[0]) / lengths[1]  # theorem 3.1, item 1
    assert all(step.value <= bound for step, bound in zip(steps, right))
    below = the_wrapper_above_q_3.steps(kernels_apart(q=2.5), 20)
    assert below[-1].value < 1e-6
    assert not linearized_steps.refutes(linearized_steps.steps(small_kernels(1.0), 10))


def test_a_bound_that_holds_is_not_refuted():
    assert not shrinking_steps.refutes([Step(1, 1.0, 1.0), Step(2, 0.5, 0.7)])
    assert shrinking_steps.refutes([Step(1, 1.0, 1.0), Step(2, 0.71, 0.7)])


def test_a_problem_is_written_for_others(tmp_path):
    the_wrapper_above_q_3.save(tmp_path / "apart.npz")
    with np.load(tmp_path / "apart.npz") as found:
        again = Problem(found["K"], found["y"], "hinge", kernels_apart().formulation)
        assert "BlockNorm" in str(found["about"])
    assert again.grams.M == 3 and again.grams.n == 12
    with pytest.raises(ValueError, match="TwoPieces, not about an MKL problem"):
        shrinking_steps.save(tmp_path / "plane.npz")
    assert isinstance(shrinking_steps.problem(), TwoPieces)


def test_fewer_steps_show_less():
    assert not CounterExample.refutes(steps_without_t, steps_without_t.run(4))
    with pytest.raises(ValueError, match="most"):
        steps_without_t.run(0)
