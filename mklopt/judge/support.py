"""Which kernels a regularizer can drop, where it is known by its terms, and its limits.

A kernel m is dropped at u where Ω grows at first order as u_m leaves 0: Ω'(u; e_m) > 0.
Then ‖w_m‖ = 0 as long as ‖α‖_{K_m} is below that slope. Where the terms of Ω are known
(formulations/recognized.py), the sign of the slope follows from them: a proof. A group
is dropped as a whole where this holds for each of its kernels, the others being used:
Ω increases, so its slope in any direction is at least that along an axis.

Limits: how Ω grows next to 0 and far away, and what it is where a parameter is 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from ..formulations import Declared, Formulation
from ..formulations.derive.epigraph import DerivationError
from ..formulations.derive.structure import Form
from .closed_forms import Array

MAX_GROUPS = 4  # that are named
SHARP, ROUGH = 2.0**20, 2.0**8  # how far away growth is measured
ROUND = 1e-3  # degrees this close to a half are called by it


def support(formulation: Formulation, M: int) -> str:
    """Which kernels can vanish while others are used, with a proof; "": not known."""
    twin = formulation.twin(M) if isinstance(formulation, Declared) else None
    form = None if twin is None else twin.form
    if form is None:
        return ""
    alone = [m for m in range(M) if M > 1 and form.has_kink(m, frozenset({m}))]
    groups = list(islice(_groups(form, M, set(alone)), MAX_GROUPS))
    said = []
    if alone:
        which = "every kernel" if len(alone) == M else f"kernels {_listed(alone)}"
        said.append(f"{which} alone")
    said += [f"kernels {_listed(list(group))} together" for group in groups]
    return "; ".join(said) or "no kernel while others are used"


def _groups(form: Form, M: int, alone: set[int]) -> Iterator[tuple[int, ...]]:
    """Groups of terms that vanish together, where not all of them vanish alone."""
    sets = (part.index for atom in form.atoms for part in atom.parts)
    supports = (atom.support for atom in form.atoms)
    for group in dict.fromkeys(tuple(sorted(one)) for one in (*sets, *supports)):
        zeros = frozenset(group)
        counts = 1 < len(group) < M and not zeros <= alone
        if counts and all(form.has_kink(m, zeros) for m in group):
            yield group


def _listed(kernels: list[int]) -> str:
    shown = ", ".join(map(str, kernels[:8]))
    return f"{shown}, …" if len(kernels) > 8 else shown


def limits(f: Formulation, M: int, degree: float | None) -> dict[str, str]:
    """How Ω grows next to 0 and far away, and what it is for parameters that are 0."""
    u, found = np.random.default_rng(0).uniform(0.5, 1.5, M), {}
    t = SHARP if f.has_sharp_values(M) else ROUGH
    if degree is None:
        found["u → 0"] = f"Ω(u) − Ω(0) is of degree {_degree(f, u / t)}"
        found["u → ∞"] = f"Ω(u) − Ω(0) is of degree {_degree(f, u * t)}"
    return found | (dict(_at_zero(f, M)) if isinstance(f, Declared) else {})


def _at_zero(f: Declared, M: int) -> Iterator[tuple[str, str]]:
    """What a declaration is where one of its numbers is 0."""
    for name, value in f.get_params().items():
        if type(value) in (int, float) and value > 0:
            twin = f.with_(**{name: 0.0}).twin(M)
            if twin is not None:
                yield f"{name} = 0", twin.words


def _degree(formulation: Formulation, u: Array) -> str:
    try:
        zero = formulation.value(np.zeros(len(u)))
        here, twice = (formulation.value(t * u) - zero for t in (1.0, 2.0))
    except DerivationError:
        return "that is not known"
    if not (np.isfinite(here) and np.isfinite(twice)):
        return "∞"
    if not here > 0:
        return "0"
    d = float(np.log2(twice / here))
    near = round(2 * d) / 2
    return f"{near if abs(d - near) < ROUND else d:.3g}"
