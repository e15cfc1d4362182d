"""Stored references: one JSON file per problem, named by the hash of the problem.

A file holds candidates (α, θ or coefficients, bias), never a verdict: `load` certifies
them afresh against the problem at hand. Numbers are written so that they read back to
the last bit. A crash while writing leaves the old file or the new one; a file whose
checksum does not fit is treated as absent.

Files that will not change can be packed into archives (.zip) in the same folder, as the
references of this package are. A file beside the archives goes before one inside.
"""

import json
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..certificates.certificate import certify
from ..problem import Problem, describe
from ..util.archives import members_of, read_member, write_members
from ..util.checks import check_path
from ..util.files import checksum, write_whole
from .exact import Reference, solve

FORMAT = "mklopt reference 1"


class Store:
    """A folder of references.

    Parameters
    ----------
    folder : str or path
        Made when the first reference is saved.

    Examples
    --------
    >>> store = mklopt.reference.Store("references")  # doctest: +SKIP
    >>> found = store.solve(problem)  # solved once, then read  # doctest: +SKIP
    """

    def __init__(self, folder: str | os.PathLike[str]):
        check_path(folder)
        self.folder = Path(folder)

    def path(self, problem: Problem) -> Path:
        """The file of a problem.

        Parameters
        ----------
        problem : Problem

        Returns
        -------
        pathlib.Path
            It may not exist.
        """
        problem.grams.verify_psd()  # the shift it may take belongs to the problem
        return self.folder / f"{problem.digest()[:16]}.json"

    def save(self, problem: Problem, reference: Reference) -> Path:
        """Write a reference; the kernels are proved positive semi-definite first.

        Parameters
        ----------
        problem : Problem
        reference : Reference
            Of this problem.

        Returns
        -------
        pathlib.Path
            The file.

        Raises
        ------
        ValueError
            Where a kernel is not positive semi-definite.
        """
        path, certificate = self.path(problem), reference.certificate
        body = {
            "format": FORMAT,
            "problem": problem.digest(),
            "loss": describe(problem.loss, problem),
            "formulation": describe(problem.formulation, problem),
            "alpha": certificate.alpha.tolist(),
            "weights": _plain(certificate.weights),
            "coefficients": _plain(certificate.coefficients),
            "theta": reference.weights.tolist(),
            "solver": reference.solver,
            "seconds": round(reference.seconds, 2),
        }
        if certificate.weights is None and certificate.coefficients is None:
            body["features"] = _plain(certificate.features)
        whole = json.dumps(body | {"checksum": checksum(body)})
        write_whole(path, whole.encode())
        return path

    def load(self, problem: Problem) -> Reference | None:
        """The stored reference, certified afresh.

        Parameters
        ----------
        problem : Problem

        Returns
        -------
        Reference or None
            None where there is no file, or one that is damaged.
        """
        body = self._read(self.path(problem))
        if body is None or body["problem"] != problem.digest():
            return None
        points = ("weights", "coefficients", "features")
        given = {k: body[k] for k in points if body.get(k) is not None}
        certificate = certify(problem, body["alpha"], **given)
        dual = certificate.shrink * certificate.alpha
        theta = np.array(body["theta"])
        return Reference(certificate, theta, dual, body["solver"], body["seconds"])

    def solve(self, problem: Problem, **options: Any) -> Reference:
        """The stored reference, or a new one that is stored.

        Parameters
        ----------
        problem : Problem
        **options
            Those of `reference.solve`, where it is called.

        Returns
        -------
        Reference
        """
        found = self.load(problem)
        if found is None:
            found = solve(problem, **options)
            self.save(problem, found)
        return found

    def _read(self, path: Path) -> dict[str, Any] | None:
        try:
            body = json.loads(self._content(path.name))
            stated = body.pop("checksum")
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            return None
        whole = body.get("format") == FORMAT and stated == checksum(body)
        return body if whole else None

    def _content(self, name: str) -> bytes:
        """The bytes of a file, or of its copy in an archive."""
        path = self.folder / name
        if path.is_file():
            return path.read_bytes()
        packed = (read_member(archive, name) for archive in self.archives())
        return next(filter(None, packed), b"")

    def __iter__(self) -> Iterator[Path]:
        return iter(sorted(self.folder.glob("*.json")))

    def archives(self) -> list[Path]:
        """The archives of packed references.

        Returns
        -------
        list of pathlib.Path
        """
        return sorted(self.folder.glob("*.zip"))

    def names(self) -> set[str]:
        """The names of all files, packed or not.

        Returns
        -------
        set of str
            Each is the first 16 digits of the hash of a problem, and ".json".
        """
        packed = {name for path in self.archives() for name in members_of(path)}
        return packed | {path.name for path in self}

    def pack(self, archive: str, names: Collection[str]) -> Path:
        """Put these files into one archive, and nothing else; loose ones are removed.

        Parameters
        ----------
        archive : str
            The name of the archive, such as "small.zip"; an older one is replaced.
        names : collection of str
            Those of `names()`.

        Returns
        -------
        pathlib.Path
            The archive.
        """
        path = self.folder / archive
        write_members(path, {name: self._content(name) for name in names})
        for name in names:
            (self.folder / name).unlink(missing_ok=True)
        return path


def _plain(array: np.ndarray | None) -> list | None:
    return None if array is None else array.tolist()
