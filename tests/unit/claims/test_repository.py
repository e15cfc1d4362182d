"""The commit that a run names."""

from __future__ import annotations

import subprocess

from mklopt.claims import items
from mklopt.claims.repository import commit, git


def test_a_commit_is_named_and_changed_code_marked(tmp_path, monkeypatch):
    monkeypatch.setattr(items, "ROOT", tmp_path)
    assert commit() == "" and git("status") == ""  # no repository
    code = tmp_path / "mklopt" / "a.py"
    code.parent.mkdir()
    code.write_text("1")
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    assert len(commit()) == 12
    code.write_text("2")
    assert commit().endswith("+")
    code.with_name("new.py").write_text("3")
    assert commit().endswith("+")
    code.with_name("new.py").unlink()
    (tmp_path / "notes.txt").write_text("3")
    subprocess.run(["git", "checkout", "-q", "mklopt"], cwd=tmp_path, check=True)
    assert len(commit()) == 12
