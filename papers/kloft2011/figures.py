"""The figures and tables of the paper, redrawn from the studies of this folder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mklopt.claims.items import Scale, figure, table
from mklopt.util import style

from . import bounds, stand_in_claims, studies, timing, timing_claims, toy_claims
from .studies import INF, bayes_error, name

Array = np.ndarray
HATCHES = ("", "//", "..", "xx", "\\\\")  # told apart in grey


def _bands(axis: Any, rows: pd.DataFrame, x: str, y: str, scale_y: float = 1.0) -> None:
    """One band per norm over the seeds."""
    for k, (p, part) in enumerate(rows.groupby("p")):
        values = scale_y * part.pivot_table(index="seed", columns=x, values=y)
        style.band(axis, values.columns, values, k, f"ℓ{name(float(p))}")


def _short_legend(axis: Any, seeds: int, **more: Any) -> None:
    """Norms only, and once for all what the bands are."""
    handles, labels = axis.get_legend_handles_labels()
    labels = [text.split(" (mean")[0] for text in labels]
    title = "one seed"
    if seeds > 1:
        title = f"mean of {seeds} seeds, {style.LEVEL:.0%} band"
    axis.legend(handles, labels, title=title, **more)


def _with_error(values: pd.Series) -> str:
    """Mean ± standard error."""
    return f"{values.mean():.2f} ± {values.sem():.2f}"


def _repeats(study: Any, scale: Scale, claims: Any) -> pd.DataFrame:
    """The rows of all seeds of a study, those of the claims on it."""
    seeds = {"tiny": claims.SEEDS[:1], "quick": claims.SEEDS, "full": claims.FULL}
    return study.over(scale, seeds[scale.mode])


# ---- section 5.1 --------------------------------------------------------------------


@figure("kloft2011", "Figure 1")
def toy_classes(scale: Scale) -> Any:
    """The toy data in two dimensions for θ = (1, 0): 100 points of each class, one
    contour of each Gaussian, and the Bayes boundary. The second feature is noise."""
    fig, (axis,) = style.panels(1, columns=1, height=3.0)
    rng = scale.rng("toy classes")
    turn = np.linspace(0, 2 * np.pi, 100)
    for k, side in enumerate((-1.0, 1.0)):
        points = rng.standard_normal((100, 2)) + np.array([side * studies.RHO, 0.0])
        look = style.look(k)
        shape = {"marker": look["marker"], "color": look["color"]}
        axis.scatter(
            *points.T,
            s=9,
            alpha=0.6,
            label=f"class {side:+.0f}".replace("-", "−"),
            **shape,
        )
        ring = np.cos(turn) + side * studies.RHO, np.sin(turn)
        axis.plot(*ring, color="black", lw=1.0)
    axis.axvline(0.0, color="black", ls="--", lw=1.0, label="Bayes boundary")
    axis.set(
        xlabel="informative feature $x_1$", ylabel="noise feature $x_2$", aspect="equal"
    )
    axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return fig


@figure("kloft2011", "Figure 2")
def toy_errors(scale: Scale) -> Any:
    """Toy experiment: test error (left), its excess over the Bayes error (middle, log
    scale) and distance of the weights from the truth (right) against the fraction of
    noise kernels, for small (above) and large samples (below). Test errors are exact, C
    is the best of the paper's grid for every norm and data set; the paper used
    validation and test sets of 10,000 points and 250 data sets."""
    tiny = scale.mode == "tiny"
    small = studies.toy_small.over(scale, toy_claims.SMALL[: 1 if tiny else None])
    large = studies.toy_large.over(scale, toy_claims.LARGE[: 1 if tiny else None])
    rows = pd.concat([small, large])
    rows = rows.assign(noise=100 * rows.nu, excess=100 * (rows.error - bayes_error()))
    fig, axes = style.panels(6, columns=3, height=2.6)
    for line, (n, part) in enumerate(rows.groupby("n")):
        left, middle, right = axes[3 * line : 3 * line + 3]
        _bands(left, part, "noise", "error", 100.0)
        left.axhline(100 * bayes_error(), color="black", lw=0.8, ls=":")
        left.annotate("Bayes", (0, 100 * bayes_error()), fontsize=7, va="top")
        left.set(ylabel=f"test error in %, n = {n}", ylim=(0, None))
        for k, (_, own) in enumerate(part.groupby("p")):
            middle.plot(own.groupby("noise").excess.mean(), **style.look(k))
        middle.set(ylabel="excess over Bayes in points", yscale="log")
        _bands(right, part, "noise", "model_error")
        right.set(ylabel="model error ‖ζ(θ̂) − ζ(θ)‖", ylim=(0, None))
        for axis in (left, middle, right):
            axis.set_xlabel("noise kernels in %")
        _short_legend(
            right, part.seed.nunique(), loc="upper left", bbox_to_anchor=(1, 1)
        )
    return fig


# ---- sections 5.2 to 5.4 ------------------------------------------------------------


@figure("kloft2011", "Table 1 as a figure")
def localization_errors(scale: Scale) -> Any:
    """1 − MCC, one against the rest, against the norm (axis in 1/p), on stand-ins for
    the protein localization data: wine and wdbc with Gaussians of four widths on three
    parts of the features, mfeat with four widths on each of six views, splice with four
    widths on four windows. For each split and norm the best C, as in the paper."""
    rows = _repeats(studies.localization, scale, stand_in_claims)
    rows = rows.assign(x=1 / rows.p, loss=100 * (1 - rows.mcc))
    sets = list(rows.data.unique())
    fig, axes = style.panels(len(sets), columns=min(len(sets), 2))
    norms = rows.p.unique()
    ticks = norms if len(norms) < 7 else norms[[0, 2, 3, 4, 5, -1]]  # room for words
    for k, (axis, which) in enumerate(zip(axes, sets)):
        part = rows[rows.data == which]
        values = part.pivot_table(index="seed", columns="x", values="loss")
        style.band(
            axis, values.columns, values, k, f"{which}, {part.M.iloc[0]} kernels"
        )
        axis.set_xticks(1 / ticks, [name(p) for p in ticks])
        axis.invert_xaxis()
        axis.set(xlabel="norm p (sparse to uniform)", ylabel="1 − MCC in %")
        axis.set_ylim(0, None)
        axis.legend(loc="best")
    return fig


@table("kloft2011", "Table 1")
def localization_table(scale: Scale) -> pd.DataFrame:
    """1 − MCC in % with its standard error over splits, per norm; data sets stand in
    for plant, nonpl, psortNeg and psortPos (see the figure)."""
    rows = _repeats(studies.localization, scale, stand_in_claims)
    groups = (100 * (1 - rows.mcc)).groupby([rows.data, rows.p])
    wide = groups.agg(_with_error).unstack("p")
    wide.columns = [f"ℓ{name(p)}" for p in wide.columns]
    return wide.loc[rows.data.unique()].reset_index()


@figure("kloft2011", "Figure 3")
def gene_start_curves(scale: Scale) -> Any:
    """AUC against the number of training samples (left) and kernel weights, scaled to
    sum 1, at the largest (right). Stand-in for the gene starts: splice sites against
    other sequences (splice), cubic kernels on the six positions before and after the
    site, linear ones on three windows further away, spherically normalized."""
    rows = _repeats(studies.gene_starts, scale, stand_in_claims)
    fig, (left, right) = style.panels(2, height=3.0)
    each = rows.drop_duplicates(["n", "seed", "p"])
    _bands(left, each, "n", "auc")
    left.set(xlabel="training samples", ylabel="AUC on test points", xscale="log")
    sizes = rows.n.unique()
    left.set_xticks(sizes, [f"{n}" for n in sizes], minor=False)
    left.minorticks_off()
    _short_legend(left, each.seed.nunique(), loc="lower right")
    shown = rows[rows.n == rows.n.max()]
    norms = sorted(shown.p.unique())
    for k, p in enumerate(norms):
        means = shown[shown.p == p].groupby("kernel", sort=False).weight.mean()
        at = np.arange(len(means)) + 0.16 * (k - (len(norms) - 1) / 2)
        look = {"color": style.COLOURS[k], "hatch": HATCHES[k], "edgecolor": "white"}
        right.bar(at, means, 0.15, label=f"ℓ{name(p)}", lw=0.3, **look)
    right.set_xticks(range(len(means)), [k.replace(" ", "\n") for k in means.index])
    right.set(ylabel=f"kernel weight, n = {rows.n.max()}")
    right.legend()
    return fig


def _heat(scale: Scale, which: str) -> Any:
    rows = _repeats(studies.alignments, scale, stand_in_claims)
    rows = rows.groupby(["data", "kernel", "other"], sort=False)
    rows = rows[["target", "alignment"]].mean().reset_index()
    rows = rows[rows.data == which]
    order = list(rows.kernel.unique())
    A = rows.pivot(index="kernel", columns="other", values="alignment").loc[
        order, order
    ]
    fit = rows.drop_duplicates("kernel").set_index("kernel").target.loc[order]
    fig, (left, right) = style.panels(2, height=3.0)
    left.grid(False)
    image = left.imshow(A, vmin=0.0, vmax=1.0, cmap="cividis")
    for (i, j), v in np.ndenumerate(A.to_numpy()):
        tone = "black" if v > 0.5 else "white"
        left.text(j, i, f"{v:.2f}", ha="center", va="center", color=tone, fontsize=7)
    left.set_xticks(range(len(order)), order, rotation=35, ha="right")
    left.set_yticks(range(len(order)), order)
    fig.colorbar(image, ax=left, label="alignment of kernels", shrink=0.85)
    right.barh(range(len(order)), fit, color=style.COLOURS[0])
    right.set_yticks(range(len(order)), order)
    right.invert_yaxis()
    right.grid(False, axis="y")
    right.set(xlabel="alignment with the labels")
    fig.tight_layout()
    return fig


@figure("kloft2011", "Figure 4")
def gene_start_alignments(scale: Scale) -> Any:
    """Centred alignments of the five kernels of figure 3 with each other (left) and
    with the labels (right). Stand-in for the gene starts: splice."""
    return _heat(scale, "gene starts")


@figure("kloft2011", "Figure 5")
def network_alignments(scale: Scale) -> Any:
    """The same for the three kernels of table 2. Stand-in for the gene network: Fourier
    (fou), Zernike (zer) and morphological (mor) features of handwritten digits (mfeat);
    labels are the ten digits."""
    return _heat(scale, "gene network")


@table("kloft2011", "Table 2")
def network_table(scale: Scale) -> pd.DataFrame:
    """AUC in % of single kernels, of norms, and of norms with all pairwise products,
    with the standard error over splits; C = 1. Stand-in for the gene network: three
    views of handwritten digits, one digit against the rest (mfeat)."""
    rows = _repeats(studies.network, scale, stand_in_claims)
    each = 100 * rows.groupby(["method", "seed"], sort=False).auc.mean()
    text = each.groupby("method", sort=False).agg(_with_error)
    return text.rename("AUC in %").reset_index()


# ---- section 5.5 --------------------------------------------------------------------


LEFT = (
    timing.SVM,
    *(f"interleaved analytic, ℓ{p}" for p in ("1", "4/3", "2")),
    timing.SILP,
    "interleaved SIP, ℓ2",
)
RIGHT = (
    *(timing.ANALYTIC, timing.HESSIAN, timing.SIMPLE, timing.WRAPPER),
    *("algorithm 1, ℓ4/3", "SILP on the fly, ℓ1", "SIP on the fly, ℓ2"),
    *("analytic on the fly, ℓ2", "SVM on the fly"),
)


@figure("kloft2011", "Figure 6")
def training_times(scale: Scale) -> Any:
    """Seconds of one thread to a certified gap of 1e-3, against the number of samples
    with 50 kernels (above) and against the number of kernels (below): the SVM and
    interleaved methods with stored kernels (left), wrappers and methods that compute
    kernels on the fly (right, with interleaved analytic ℓ4/3 again). Mean and standard
    error over draws of the digits; log-log. Odd against even digits of MNIST, Gaussians
    2σ² = 1.2^0 … 1.2^(M−1), C = 1. All methods are implemented here with one SVM
    solver; ℓ3 is in the data."""
    fig, axes = style.panels(4, columns=2, height=3.2)
    sides = (
        (timing.times_by_samples, "n", "M", "samples n, {} kernels"),
        (timing.times_by_kernels, "M", "n", "kernels M, {} samples"),
    )
    for line, (study, x, fixed, label) in enumerate(sides):
        rows = _repeats(study, scale, timing_claims)
        for column, methods in enumerate((LEFT, RIGHT)):
            axis = axes[2 * line + column]
            for k, method in enumerate(methods):
                own = rows[rows.method == method].groupby(x).seconds_cpu
                look = {**style.look(k), "label": method}
                if "fly" in method:
                    look["linestyle"] = ":"
                error = own.sem().fillna(0.0)
                axis.errorbar(own.mean().index, own.mean(), error, capsize=2, **look)
            axis.set(xscale="log", yscale="log", ylabel="seconds of one thread")
            axis.set_xlabel(label.format(rows[fixed].iloc[0]))
            at = sorted(rows[x].unique())
            axis.set_xticks(at, [str(v) for v in at])
            axis.minorticks_off()
            axis.legend(
                loc="upper left", bbox_to_anchor=(0.0, -0.18), fontsize=7, ncols=2
            )
        left, right = axes[2 * line : 2 * line + 2]
        low, high = zip(left.get_ylim(), right.get_ylim())
        left.set_ylim(min(low), max(high))
        right.set_ylim(min(low), max(high))
    return fig


@table("kloft2011", "Figure 6 in numbers, at the largest size")
def work_at_the_largest_size(scale: Scale) -> pd.DataFrame:
    """What each method takes to a certified gap of 1e-3 at the largest n: seconds of
    one thread (mean ± standard error over draws), passes over all kernels, SVMs solved,
    kernels with a weight, support vectors."""
    rows = _repeats(timing.times_by_samples, scale, timing_claims)
    rows = rows[rows.n == rows.n.max()]
    groups = rows.groupby("method", sort=False)
    found = groups[["passes", "svms", "kernels", "support"]].mean().round(1)
    seconds = groups.seconds_cpu.agg(lambda s: f"{s.mean():.3g} ± {s.sem():.1g}")
    found.insert(0, "seconds", seconds)
    found["status"] = groups.status.agg(lambda s: ", ".join(sorted(set(s))))
    return found.reset_index()


@table("kloft2011", "Section 5.5, what does not fit in memory")
def beyond_memory(scale: Scale) -> pd.DataFrame:
    """Kernels that would take 149 GB (20,000 samples × 50) and 74 GB (10,000 kernels ×
    1000 samples) if they were stored, computed on the fly; and 1000 stored kernels.
    Seconds of the clock, on a machine with other work, and of one thread; to a
    certified gap of 1e-3. "Chunks on the fly" is algorithm 2; "auto" is our
    choice of a solver."""
    studies_ = (timing.many_samples, timing.many_kernels, timing.thousand)
    rows = pd.concat([_repeats(s, scale, timing_claims) for s in studies_])
    names = ["seconds", "seconds_cpu", "gap", "kernels", "support"]
    return rows.groupby(["n", "M", "p", "method"])[names].mean().reset_index()


# ---- appendix A ---------------------------------------------------------------------


def _ball(p: float) -> tuple[Array, Array]:
    """The unit circle of ‖w‖_q in the plane, q = 2p/(p+1)."""
    q = 2.0 if p == INF else 2 * p / (p + 1)
    turn = np.linspace(0, 2 * np.pi, 400)
    x, y = np.cos(turn), np.sin(turn)
    size = (np.abs(x) ** q + np.abs(y) ** q) ** (1 / q)
    return x / size, y / size


@figure("kloft2011", "Figure 7")
def two_cases(scale: Scale) -> Any:
    """The two cases of appendix A.1 in the plane: the Bayes classifier w (dot), uniform
    (left) or sparse (right), and the smallest class ‖w‖_{2,q} ≤ C that contains it, for
    p = 1, 2 and ∞. A uniform truth needs a larger C the smaller p is, a sparse one
    C = 1."""
    fig, axes = style.panels(2, height=3.0)
    for axis, ones in zip(axes, (2, 1)):
        for k, p in enumerate((1.0, 2.0, INF)):
            C = bounds.radius(ones, p)
            x, y = _ball(p)
            look = {**style.look(k), "marker": ""}
            axis.plot(C * x, C * y, label=f"p = {name(p)}, C = {C:.2f}", **look)
        axis.plot(1.0, float(ones == 2), "ko", markersize=6, zorder=5)
        axis.set(aspect="equal", xlabel="$w_1$", ylabel="$w_2$")
        axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return fig


@figure("kloft2011", "Appendix A.1, examples 1 and 2")
def examples_of_a1(scale: Scale) -> Any:
    """What it costs to have a w with s ones among M in the class: the p-dependent term
    of bound (35) (left) and the measured complexity 2 C R(H^p) itself (right), for
    C = ‖w‖_q. The bound is flat in p for a uniform w and rises with p for all others;
    the complexity, free of the surplus log M, is smallest at p = ∞ for a uniform w, at
    p = 1 for a sparse one, and in between for those in between. Linear kernels of
    signs, k(x, x) = 1."""
    rows = bounds.complexities(scale)
    most = rows.M.max()
    rows = rows[(rows.kernels == "linear") & rows.M.eq(most)]
    n, M = int(rows.n.iloc[0]), int(rows.M.iloc[0])
    fig, axes = style.panels(2, height=3.0)
    for k, ones in enumerate((M, M // 4, M // 16, 1)):
        label = f"s = {ones}" + (" (uniform)" if ones == M else "")
        bound = [bounds.example_term(n, M, p, ones) for p in rows.p]
        value = [2 * bounds.radius(ones, p) * v for p, v in zip(rows.p, rows.value)]
        for axis, term in zip(axes, (bound, value)):
            axis.plot(1 / rows.p, term, label=label, **style.look(k))
    for axis, label in zip(axes, ("term of bound (35)", "2 C R(H$^p$), measured")):
        axis.set_xticks(1 / rows.p, [name(p) for p in rows.p])
        axis.invert_xaxis()
        axis.set(yscale="log", xlabel="norm p (sparse to uniform)", ylabel=label)
    axes[1].legend(title=f"M = {M}, n = {n}", loc="upper left", bbox_to_anchor=(1, 1))
    return fig


@figure("kloft2011", "Theorems 6 and 8, footnote 20")
def rademacher_complexities(scale: Scale) -> Any:
    """Rademacher complexities of the ℓp classes by Monte Carlo (markers, three standard
    errors are smaller than they are) under the bound of theorems 6 and 8 (solid) and
    the one without log M (dashed, p > 1; derived in bounds.py), against the number of
    kernels, for p = 1, 2 and ∞. Filled: one sign per kernel, independent; open: copies
    of one kernel, where the conversion of theorem 6 is sharp."""
    rows = bounds.complexities(scale)
    fig, axes = style.panels(3, columns=3, height=3.0)
    for k, (axis, p) in enumerate(zip(axes, (1.0, 2.0, INF))):
        look = {**style.look(k), "linestyle": ""}
        own = rows[rows.p == p]
        for family, fill in (("linear", None), ("copies", "none")):
            part = own[own.kernels == family].sort_values("M")
            text = "independent" if fill is None else "copies"
            axis.plot(
                part.M,
                part.value,
                label=text,
                **look,
                **({"mfc": fill} if fill else {}),
            )
        axis.plot(part.M, part.bound, "k-", lw=1.0, label="bound, thm. 6 and 8")
        if p > 1:
            axis.plot(part.M, part.direct, "k--", lw=1.0, label="without log M")
        axis.set(xscale="log", yscale="log", xlabel="kernels M")
        axis.set(ylabel=f"R(H$^p$), p = {name(p)}, n = {part.n.iloc[0]}")
        axis.legend(fontsize=7)
    return fig


@figure("kloft2011", "Corollaries 9 and 10")
def bounds_and_test_errors(scale: Scale) -> Any:
    """Bound (34) at probability 95 % (lines without filling) and measured test error
    (filled) of the same classifiers against the number of samples: toy data, 50 linear
    kernels spherically normalized (k(x, x) = 1: signs of the features), no bias, means
    over seeds. Above the dotted line at ½ a bound says less than a coin; above 1 (grey)
    it says nothing at all."""
    rows = bounds.risks(scale)
    levels = list(rows.nu.unique())
    fig, axes = style.panels(len(levels), columns=len(levels), height=3.2)
    for axis, nu in zip(axes, levels):
        for k, (p, part) in enumerate(rows[rows.nu == nu].groupby("p")):
            means = part.groupby("n")[["bound", "test"]].mean()
            axis.plot(means.test, label=f"ℓ{name(float(p))}", **style.look(k))
            axis.plot(means.bound, **{**style.look(k), "mfc": "white"})
        axis.axhline(0.5, color="black", ls=":", lw=0.8)
        axis.axhspan(1.0, 10.0, color="0.93", zorder=0, lw=0)
        axis.set(
            xscale="log", yscale="log", xlabel="training samples n", ylim=(0.02, 10)
        )
        axis.set(ylabel=f"risk, {100 * nu:.0f} % noise kernels")
        at = sorted(rows.n.unique())
        axis.set_xticks(at, [str(v) for v in at])
        axis.minorticks_off()
    axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return fig
