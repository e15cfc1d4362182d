"""The commands `mklopt library list | get | submit | check | pages`."""

from dataclasses import asdict

import click

from .words import AS_JSON, console, echo_json, usage_errors


@click.group("library", epilog="Example: mklopt library get wdbc-l1-hinge")
def command() -> None:
    """Solved problems by name: list, get, submit, check."""


@command.command("list", epilog="Example: mklopt library list --tag sparse")
@click.option("--tag", "tags", multiple=True, help="Only with this tag (repeatable).")
@AS_JSON
def listed(tags: tuple[str, ...], as_json: bool) -> None:
    """List the problems, their sizes, and what is known of f*."""
    from ..library import names
    from ..library.tables import overview, summary

    with usage_errors():
        wanted = names(*tags)
    if as_json:
        echo_json([summary(name) for name in wanted])
    else:
        console(False).print(overview(wanted))


@command.command("get", epilog="Example: mklopt library get wine-lasso --certificate")
@click.argument("name")
@click.option("--out", help="The file.  [default: NAME.txt, or NAME.cert]")
@click.option("--certificate", is_flag=True, help="The proof of f* instead.")
@AS_JSON
def get(name: str, out: str | None, certificate: bool, as_json: bool) -> None:
    """Write a problem as text that any language can read, or its certificate."""
    from ..certificates.portable import save_certificate
    from ..library import get as problem_of
    from ..library import write_problem

    path = out or f"{name}.{'cert' if certificate else 'txt'}"
    with usage_errors():
        problem = problem_of(name)
        found = problem.reference
        if certificate:
            save_certificate(found.certificate, path)
        else:
            write_problem(problem, path)
    if as_json:
        bounds = {"lower": found.lower, "upper": found.upper}
        echo_json({"name": name, "file": path, "digest": problem.digest(), **bounds})
    else:
        click.echo(f"{path}: {problem.instance.about}\n{found.certificate.statement}")


@command.command("submit", epilog="Example: mklopt library submit mine.json")
@click.argument("file")
@click.option("--name", help="The problem, if the file does not name it.")
@click.option("--source", default="submitted", help="Whose solution it is.")
@AS_JSON
def submit(file: str, name: str | None, source: str, as_json: bool) -> None:
    """Judge a claimed solution; keep it if it is better than the stored one.

    FILE is a certificate, or a .npz or .json with name, dual and weights. Points that
    are kept go into the folder that MKLOPT_LIBRARY names, else into the package.
    """
    from ..library import submit as judge

    with usage_errors():
        verdict = judge(file, name, source)
    if as_json:
        echo_json(asdict(verdict))
    else:
        click.echo(str(verdict))


@command.command("check", epilog="Example: mklopt library check wine-lasso")
@click.argument("names", nargs=-1)
@AS_JSON
def check(names: tuple[str, ...], as_json: bool) -> None:
    """Check all stored solutions again, or those of NAMES.

    Exit code 0: all are proved, or skipped because their data are not here; 2: one is
    wrong, or usage error.
    """
    from ..library.checking import check as checked

    found = []
    with usage_errors():
        for one in checked(names or None):
            found.append(one)
            if not as_json:
                said = one.words or f"by {one.by}"
                click.echo(f"{one.name}: {one.status}, {said}")
    wrong = sum(one.status == "wrong" for one in found)
    if as_json:
        echo_json([asdict(one) for one in found])
    else:
        skipped = sum(one.status == "skipped" for one in found)
        proved = len(found) - wrong - skipped
        click.echo(f"{proved} proved, {skipped} skipped, {wrong} wrong")
    raise SystemExit(2 if wrong else 0)


@command.command("pages", epilog="Example: mklopt library pages library-out")
@click.argument("folder", default="library-out")
@AS_JSON
def pages(folder: str, as_json: bool) -> None:
    """Write one page for each problem, an index and the leaderboard, as HTML."""
    from ..library.pages import write_pages

    with usage_errors():
        written = write_pages(folder)
    if as_json:
        echo_json({"folder": folder, "files": written})
    else:
        click.echo(f"{folder}: {len(written)} pages; open {folder}/index.html")
