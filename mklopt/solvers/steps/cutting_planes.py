"""The linear programs of the cutting-plane solvers, through HiGHS.

Every α gives a cut: J(θ) ≥ linear(α) − ½ Σ θ_m v_m(α)². The master problem is to
minimize the largest cut. For p = 1 this is a linear program on the simplex. For p > 1
the ball ‖θ‖_p ≤ 1 is relaxed by tangents: if the solution of the program lies outside
the ball, the tangent at the point θ̂ = θ/‖θ‖_p, Σ θ̂_m^{p−1} θ_m ≤ 1, is added and the
program solved again.

Reference: Sonnenburg et al. (2006); Kloft et al. (2011), section 4.4.1.
"""

import numpy as np

from ...formulations.norms import Array, norm
from ...util.extras import need

MAX_PROGRAMS = 8  # linear programs for one minimum, p > 1
OUTSIDE = 1e-5  # ‖θ‖_p − 1 up to which θ counts as inside the ball


class Cuts:
    """min t over t and θ ≥ 0 in the ball, t above all cuts; HiGHS keeps its basis."""

    def __init__(self, M: int, p: float):
        need("highspy")
        import highspy

        self.M, self.p, self.scale, self.inf = M, p, 0.0, highspy.kHighsInf
        self.alphas: list[Array] = []
        self.rows: list[int] = []  # the row of the cut of each α
        self.program = highspy.Highs()
        self.program.setOptionValue("output_flag", False)
        self.program.setOptionValue("threads", 1)
        for side in ("primal", "dual"):
            self.program.setOptionValue(f"{side}_feasibility_tolerance", 1e-10)
        for _ in range(M):
            self.program.addVar(0.0, 1.0)
        self.program.addVar(-self.inf, self.inf)
        self.program.changeColCost(M, 1.0)
        if p == 1:
            self._row(1.0, 1.0, np.append(np.ones(M), 0.0))

    def _row(self, low: float, high: float, row: Array) -> None:
        columns = np.flatnonzero(row).astype(np.int32)
        self.program.addRow(low, high, len(columns), columns, row[columns])

    def add(self, alpha: Array, linear: float, v: Array) -> None:
        """Add the cut t ≥ linear − ½ Σ θ v², in units of the first cut."""
        self.scale = self.scale or max(abs(linear), 1e-300)
        self.alphas.append(alpha.copy())
        self.rows.append(self.program.getNumRow())
        row = np.append(0.5 * v**2 / self.scale, 1.0)
        self._row(linear / self.scale, self.inf, row)

    def minimum(self) -> Array:
        """The weights that minimize the largest cut."""
        if self.p == np.inf:
            return np.ones(self.M)
        for _ in range(MAX_PROGRAMS):
            self.program.run()
            found = self.program.getSolution().col_value
            if len(found) != self.M + 1 or not np.all(np.isfinite(found)):
                raise FloatingPointError("HiGHS found no minimum of the cuts")
            point = np.maximum(np.array(found[:-1]), 0.0)
            size = norm(point, self.p)
            if self.p == 1 or size <= 1 + OUTSIDE:
                break
            touch = point / size
            inside = np.maximum(touch, 0.01 * np.max(touch) / self.M)
            for near in (touch, inside / norm(inside, self.p)):
                self._row(-self.inf, 1.0, np.append(near ** (self.p - 1), 0.0))
        return np.asarray(point / max(size, 1e-300))

    def mixture(self) -> Array:
        """Σ λ_k α_k with the multipliers of the cuts: the dual point of the program.

        By convexity its dual value is at least that of the program. Each α_k alone is
        optimal for one θ only, and its dual value may be far below.
        """
        if self.p == np.inf:
            return self.alphas[-1]
        prices = np.array(self.program.getSolution().row_dual)[self.rows]
        prices = np.maximum(prices, 0.0)
        if not np.sum(prices) > 0:
            return self.alphas[-1]
        used = np.flatnonzero(prices)
        shares = prices[used] / np.sum(prices)
        return np.tensordot(shares, [self.alphas[k] for k in used], axes=1)
