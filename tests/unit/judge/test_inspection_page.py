"""The page of an inspection."""

import cvxpy as cp

import mklopt


@mklopt.formulation
def elastic(u, lam=0.5):
    return cp.sum(u) + lam * cp.sum_squares(u)


def test_a_page_has_the_facts_the_ball_and_the_declaration(tmp_path):
    found = mklopt.inspect(elastic, M=2)
    text = found.html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == text
    for fact, _ in found.facts():
        assert f"<b>{fact}</b>" in text
    assert "data:image/png;base64," in text and "lam * cp.sum_squares(u)" in text
    assert "2 times ElasticNet(l1_ratio=0.5)" in text
    assert "<table>" in found._repr_html_()


def test_words_of_a_declaration_are_escaped():
    @mklopt.formulation
    def wrong(u):
        return cp.sum(cp.sqrt(u))  # <i>

    text = mklopt.inspect(wrong).html()
    assert "&lt;i&gt;" in text and "<i>" not in text and "png" not in text
