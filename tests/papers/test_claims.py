"""Every claim of every paper, at its smallest size: a check that can fail.

Each check is run twice, on the statement and on a perturbed one (a bound divided, the
methods swapped, a factor in a map), and has to come to opposite verdicts.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

import matplotlib.pyplot as plt
import pytest

from mklopt.claims import items as papers
from mklopt.claims.empirical import Empirical
from mklopt.claims.items import CONTRARY, Scale
from mklopt.data.datasets import DataNotFound

PAPERS = {key: papers.load(key) for key in papers.known()}
ALL = [c for paper in PAPERS.values() for c in paper.claims.values()]
CLAIMS = [claim for claim in ALL if not isinstance(claim, Empirical)]
MEASURED = [claim for claim in ALL if isinstance(claim, Empirical)]
DRAWN = [f for p in PAPERS.values() for f in (*p.figures.values(), *p.sheets.values())]
AT_LEAST = {"kloft2011": 12, "orabona2012": 10}


def name(item: papers.Item) -> str:
    return f"{item.paper}-{item.name}"


@pytest.fixture(scope="session")
def scale(tmp_path_factory) -> Scale:
    """One folder of studies for all workers."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen") else base
    return Scale("tiny", 0, shared / "studies")


@pytest.mark.parametrize("claim", CLAIMS, ids=name)
def test_a_check_comes_to_the_opposite_verdict_when_it_has_to(claim, scale):
    try:
        found = claim.check(scale)
        assert found.evidence
        if found.verdict == "not testable":
            assert claim.wrong is None, "what can be perturbed can be tested"
            return
        other = claim.check(scale, wrong=True)
    except DataNotFound as missing:
        pytest.skip(str(missing.args[0]))
    assert other.verdict in CONTRARY[found.verdict], (found, other)


def negates(node: ast.AST) -> bool:
    """Whether a piece of code only turns a verdict round where `wrong` is set."""
    match node:
        case ast.Compare(left, [ast.Eq() | ast.NotEq()], [right]):
            return any(
                isinstance(s, ast.Name) and s.id == "wrong" for s in (left, right)
            )
        case ast.IfExp(ast.Name("wrong"), one, other):
            return opposite(one, other) or opposite(other, one)
        case ast.If(ast.Name("wrong"), body):
            said = "".join(map(ast.unparse, body))
            return "'confirmed'" in said and "'refuted'" in said
    return False


TURNED = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt}


def opposite(one: ast.expr, other: ast.expr) -> bool:
    """Whether one is "not other", "… and not other", or the comparison turned round."""
    match one, other:
        case ast.UnaryOp(ast.Not(), inner), _:
            return ast.dump(inner) == ast.dump(other)
        case ast.BoolOp(ast.And(), [*_, last]), _:
            return opposite(last, other)
        case ast.Compare(a, [x], [b]), ast.Compare(c, [y], [d]):
            same = (ast.dump(a), ast.dump(b)) == (ast.dump(c), ast.dump(d))
            mirrored = (ast.dump(a), ast.dump(b)) == (ast.dump(d), ast.dump(c))
            turned = TURNED.get(type(x)) is type(y)
            return (same and turned) or (mirrored and type(x) is type(y))
    return False


def test_a_perturbed_statement_is_no_negation():
    trees = {name(c): ast.parse(inspect.getsource(c.run)) for c in CLAIMS}
    found = {n for n, tree in trees.items() if any(map(negates, said(tree)))}
    assert not found, found


def said(tree: ast.AST) -> Iterator[ast.AST]:
    """The code of a check, but not how it chooses its rows."""
    yield tree
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.Subscript):
            yield from said(node)


@pytest.mark.parametrize("claim", MEASURED, ids=name)
def test_a_measured_claim_has_the_numbers_of_its_rule(claim, scale):
    """At the smallest size numbers mean little: that they are judged is enough."""
    try:
        mine, others = claim.check(scale)
    except DataNotFound as missing:
        pytest.skip(str(missing.args[0]))
    assert mine.numbers.keys() >= claim.rule.keys() and mine.evidence
    assert others and all(other.evidence for other in others)


@pytest.mark.parametrize("drawn", DRAWN, ids=name)
def test_figures_and_tables_show_something(drawn, scale):
    try:
        found = drawn(scale)
    except DataNotFound as missing:
        pytest.skip(str(missing.args[0]))
    if isinstance(drawn, papers.Sheet):
        assert len(found) > 0
        return
    plt.close(found)
    shown = [axis for axis in found.axes if axis.get_visible()]
    assert shown and all(axis.has_data() for axis in shown)


@pytest.mark.parametrize("key", PAPERS)
def test_papers_have_enough_claims_with_a_place_and_a_statement(key):
    claims = PAPERS[key].claims.values()
    assert len(claims) >= AT_LEAST.get(key, 8)
    assert all(claim.place and len(claim.words) > 30 for claim in claims)
    known = {*PAPERS[key].figures, ""}
    assert all(claim.figure in known for claim in claims)
