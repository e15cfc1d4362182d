"""The paper's figures, redrawn in shape on the data of stand_ins.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mklopt.claims.items import Scale, figure, table
from mklopt.util import style

from . import studies
from .settings import synthetic

KEY = "orabona2012"
GREY = "0.82"  # of the interval of f*


def seeds_by(rows: pd.DataFrame, x: str, value: str) -> tuple[Any, Any]:
    """x, and values[seed, x]."""
    found = rows.pivot(index="seed", columns=x, values=value)
    return found.columns.to_numpy(), found.to_numpy()


def log_band(axis: Any, x: Any, values: Any, k: int, label: str) -> None:
    """A band of powers of ten: geometric means, and intervals of the logarithms."""
    from matplotlib.ticker import MaxNLocator

    style.band(axis, x, np.log10(values), k, label)
    axis.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axis.yaxis.set_major_formatter(lambda power, _: f"$10^{{{power:.0f}}}$")


# ---- figures 1 to 7 --------------------------------------------------------------


@figure(KEY, "Figure 1")
def synthetic_kernels(scale: Scale) -> Any:
    """Three classes, four kernels (generated; the paper gives no formula). Above, the
    kernels, black 0 and white 1: 1 to 3 tell one class from the others, 4 tells all
    apart. Below, shares of the kernel weights: sparse MKL one class against the rest
    keeps two kernels for each class, all classes at once only the fourth, and so does
    OBSCURE with p = 1.0001.
    """
    rows = studies.synthetic_weights(scale)
    grams = synthetic(scale.of(90, 300, 300), seed=scale.seed).grams
    fig, axes = style.panels(10, columns=5, height=2.6)
    fig.set_size_inches(11, 4.6)
    fig.set_layout_engine("constrained")
    for m, axis in enumerate(axes[:4]):
        axis.imshow(grams.kernel(m), cmap="gray", vmin=0, vmax=1)
        axis.set(title=f"kernel {m + 1}", xticks=[], yticks=[])
        axis.grid(False)
    axes[4].set_visible(False)
    for axis, (name, one) in zip(axes[5:], rows.groupby("machine", sort=False)):
        axis.bar(one.kernel, one.share, color=style.COLOURS[0], width=0.6)
        axis.set(title=str(name).replace(" against", "\nagainst"), ylim=(0, 1.02))
        axis.set(xticks=range(1, 5), xlabel="kernel")
    axes[5].set_ylabel("share of the weight")
    return fig


METHODS = ("OBSCURE", "Pegasos-MKL", "MC-MKL (SILP)", "batch (analytic)")


@figure(KEY, "Figure 2")
def running(scale: Scale) -> Any:
    """C = 100 and p = 1.25: objective above f* (relative, geometric means; the grey
    band is the width of the interval that f* lies in, and nothing is drawn below it)
    against passes over the kernels and against time, and test error against time. mfeat
    in place of the Oxford flowers; pendigits with images drawn from the pen's points in
    place of the paper's four descriptions. A pass touches every kernel entry once;
    OBSCURE spends at most 25 epochs on stage 1, and the bump is where stage 2 begins.
    """
    rows = studies.race(scale)
    rows = rows[(rows.p == 1.25) & (rows.C == 100)].copy()
    rows["off"] = rows.objective / rows.lower - 1
    sets = list(dict.fromkeys(rows.data))
    fig, axes = style.panels(3 * len(sets), columns=3, height=3.0)
    for at, name in enumerate(sets):
        one, some = rows[rows.data == name], axes[3 * at : 3 * at + 3]
        width = max(float((one.upper / one.lower - 1).max()), 1e-7)
        _running(one, some, width)
        for axis in some[:2]:
            axis.set(ylabel=f"{name}: objective / f* − 1")
            top = float(np.log10(width))
            axis.axhspan(top - 0.5, top, color=GREY, zorder=0)
        some[2].set(ylabel=f"{name}: test error, %")
        some[2].set_ylim(bottom=0)
    handles = axes[0].get_legend_handles_labels()
    fig.legend(*handles, loc="outside lower center", ncols=4)
    fig.set_layout_engine("constrained")
    return fig


def _running(rows: pd.DataFrame, axes: list[Any], floor: float) -> None:
    for k, method in enumerate(METHODS):
        one = rows[rows.method == method]
        for axis, x, value in zip(axes, ("passes", *["seconds"] * 2), PANELS):
            at = one.groupby("epochs")[x].mean().to_numpy()
            _, values = seeds_by(one, "epochs", value)
            draw = log_band if value == "off" else style.band
            least = floor if value == "off" else 0.0
            draw(axis, at, np.maximum(values, least), k, method)
            axis.set(xlabel=UNITS[x], xscale="log")


PANELS = ("off", "off", "error")
UNITS = {"passes": "passes over the kernels", "seconds": "seconds"}


@figure(KEY, "Figure 3")
def both_exponents(scale: Scale) -> Any:
    """Test error against training time on pendigits, C = 100: OBSCURE for several p
    along its run (left), and one-against-the-rest machines with the exponent p/(2 − p)
    of Kloft et al. solved to gaps of 0.3, 0.1, 0.01 and 0.001, SILP and the multi-class
    SILP along its run (right).
    """
    rows = studies.exponents_of_both(scale)
    fig, axes = style.panels(2, height=3.6)
    parts = [rows[rows.method == "OBSCURE"], rows[rows.method != "OBSCURE"]]
    for axis, part in zip(axes, parts):
        for k, ((method, p), one) in enumerate(part.groupby(["method", "p"])):
            name = {"p": "p-norm", "S": "SILP", "M": "multi-class SILP"}.get(method[0])
            label = f"p = {p:g}" if name is None else f"{name}, p = {p:g}"
            axis.plot(one.seconds, one.error, label=label, **style.look(k))
        axis.set(xlabel="seconds", ylabel="test error, %", xscale="log")
        axis.legend(fontsize="small")
    ends = rows.seconds.min() / 1.5, 1.5 * rows.seconds.max()
    for axis, title in zip(axes, ("OBSCURE", "batch solvers")):
        axis.set(xlim=ends, ylim=(0, 1.05 * rows.error.max()), title=title)
    return fig


@figure(KEY, "Figure 4")
def exponent(scale: Scale) -> Any:
    """The role of p, C = 100. Above: test error at the end of both stages, on mfeat in
    place of KTH-IDOL2 (left) and on letter with 39 Gaussians on random subsets of
    features in place of Caltech-101 (right). Below: the run on the latter for some p,
    one split; up to the large marker stage 1, after it stage 2, whose first steps are
    so long that the error rises first.
    """
    rows = studies.exponents(scale)
    fig, axes = style.panels(4, height=2.9)
    rows = rows.sort_values("epochs")
    for axis, kind in zip(axes, ("views", "many")):
        part = rows[rows.kernels == kind]
        for k, (stage, label) in enumerate(
            {"online": "online stage", "stage 2": "stage 2"}.items()
        ):
            last = part[part.stage == stage].groupby(["seed", "p"]).tail(1)
            style.band(axis, *seeds_by(last, "p", "error"), k, label)
        name = part.data.iloc[0]
        axis.set(xlabel="p", ylabel=f"{name}: test error, %")
        low, high = axis.get_ylim()
        axis.set_ylim(max(0.0, low - 0.5 * (high - low)), high)
        axis.legend(fontsize="small", loc="lower right")
    some = rows[(rows.kernels == "many") & (rows.seed == 0)]
    for axis, x in zip(axes[2:], ("epochs", "seconds")):
        for k, p in enumerate([p for p in (1.01, 1.05, 1.25, 2.0) if p in set(some.p)]):
            _stages(axis, some[some.p == p], x, k, f"p = {p:g}")
        axis.set(xlabel=x, ylabel=f"{some.data.iloc[0]}: test error, %", xscale="log")
        axis.legend(fontsize="small")
    return fig


def _stages(axis: Any, rows: pd.DataFrame, x: str, k: int, label: str) -> None:
    """One run; a large marker where stage 1 ends."""
    axis.plot(rows[x], rows.error, label=label, **style.look(k))
    end = rows[rows.stage == "online"]
    big = {**style.look(k), "markersize": 10, "markerfacecolor": "white"}
    axis.plot(end[x], end.error, **big)


@figure(KEY, "Figure 5")
def more_kernels(scale: Scale) -> Any:
    """More kernels, p = 1.01, C = 100: the first F of 39 Gaussians on letter (in place
    of Caltech-101's 39 kernels), in random orders. Left: test error against epochs of
    stage 2; the horizontal lines are the online stage alone. Right: updates of stage 1
    until no sample pays a loss, at most 300 epochs.
    """
    rows = studies.kernels_added(scale)
    fig, axes = style.panels(2, height=3.4)
    rows["later"] = rows.epochs - rows.online_epochs
    for k, F in enumerate(scale.of((2, 8, 39), (1, 4, 39), (1, 4, 39))):
        one = rows[rows.F == F]
        later = one[one.stage == "stage 2"]
        style.band(axes[0], *seeds_by(later, "later", "error"), k, f"F = {F}")
        online = one[one.stage == "online"].error.mean()
        axes[0].axhline(online, color=style.look(k)["color"], lw=0.8, alpha=0.7)
    name = "digits" if scale.mode == "tiny" else "letter"
    axes[0].set(
        xlabel="epochs of stage 2", ylabel=f"{name}: test error, %", xscale="log"
    )
    axes[0].set_ylim(bottom=0)
    axes[0].legend(fontsize="small", loc="lower left")
    online = rows[rows.stage == "online"]
    style.band(axes[1], *seeds_by(online, "F", "updates"), 0, "updates")
    axes[1].set(xlabel="kernels", ylabel="updates of stage 1", xscale="log")
    axes[1].set_xticks(sorted(set(rows.F)), [str(F) for F in sorted(set(rows.F))])
    axes[1].minorticks_off()
    axes[1].legend(fontsize="small")
    return fig


@figure(KEY, "Figure 6")
def all_methods(scale: Scale) -> Any:
    """All methods on letter with 39 Gaussians on random subsets of features (in place
    of Caltech-101), C = 100, p = 1.01: training time to a gap of 0.01 or 60 epochs of
    stage 2 (left, geometric means), and test error (right, means), against the number
    of samples per class; bands for two of the methods.
    """
    rows = studies.methods(scale)
    fig, axes = style.panels(2, height=3.4)
    for k, (method, one) in enumerate(rows.groupby("method", sort=False)):
        x, took = seeds_by(one, "each", "seconds")
        _, error = seeds_by(one, "each", "error")
        if method in ("OBSCURE", "SILP, one against the rest"):
            log_band(axes[0], x, took, k, str(method))
            style.band(axes[1], x, error, k, str(method))
        else:
            middle = np.log10(took).mean(axis=0)
            axes[0].plot(x, middle, label=method, **style.look(k))
            axes[1].plot(x, error.mean(axis=0), label=method, **style.look(k))
    axes[0].set(ylabel="training time, seconds")
    axes[1].set(ylabel="test error, %")
    for axis in axes:
        axis.set(xlabel="samples per class", xticks=sorted(set(rows.each)))
    fig.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2
    )
    fig.set_layout_engine("constrained")
    return fig


@figure(KEY, "Figure 7")
def more_samples(scale: Scale) -> Any:
    """Test error against training time for several numbers of samples N, on 5000 digits
    of MNIST (in place of 60,000): four quadrants × a linear, a cubic and a Gaussian
    kernel, p = 1.25, C = 100. Large markers end stage 1. Horizontal: SVMs on the sum of
    the kernels, dashed, and on the best single kernel, dotted.
    """
    rows = studies.samples(scale)
    fig, axes = style.panels(2, height=3.4)
    for k, (n, one) in enumerate(rows.groupby("n")):
        ours = one[one.method == "OBSCURE"].sort_values("epochs")
        for axis, x in zip(axes, ("seconds", "epochs")):
            _stages(axis, ours, x, k, f"N = {n}")
            for method, line in (("sum of kernels", "--"), ("best kernel", ":")):
                level = one[one.method == method].error.iloc[0]
                axis.axhline(level, color=style.look(k)["color"], ls=line, lw=1.0)
            axis.set(xlabel=x, ylabel="test error, %", xscale="log")
            axis.set_ylim(bottom=0)
    fig.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3
    )
    fig.set_layout_engine("constrained")
    return fig


# ---- figures of our own ----------------------------------------------------------


@figure(KEY, "Theorem 3")
def theorem_3_over_T(scale: Scale) -> Any:
    """Theorem 3 on 60 samples, three overlapping classes and four kernels: f − f* in
    units of f(0) for the mean of w_1 … w_T and for w_T, the bound, and the level of
    f(0) − f* above which a bound says nothing. Left C = 0.01, right C = 100.
    """
    rows = studies.expectation(scale)
    fig, axes = style.panels(2, height=3.2)
    for axis, C in zip(axes, (0.01, 100.0)):
        part = rows[(rows.p == 1.5) & (rows.C == C)].copy()
        scaled = part.start.iloc[0]
        part["off"] = (part.value - part.upper) / scaled
        for k, (which, label) in enumerate(
            {"average": "mean of w", "last": "last w"}.items()
        ):
            x, values = seeds_by(part[part.iterate == which], "T", "off")
            style.band(axis, x, values, k, label)
        bound = part.groupby("T").bound.first() / scaled
        axis.plot(bound.index, bound, label="bound of theorem 3", **style.look(2))
        level = 1 - float(part.lower.iloc[0]) / scaled
        axis.axhline(level, color="0.4", lw=1.0, ls=":", label="w = 0")
        axis.set(xlabel="steps T", ylabel="(f − f*) / f(0)", xscale="log", yscale="log")
        axis.set(title=f"p = 1.5, C = {C:g}")
    fig.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2
    )
    fig.set_layout_engine("constrained")
    return fig


@figure(KEY, "Theorem 4")
def stage_1(scale: Scale) -> Any:
    """Stage 1 on separable classes, against its step η: updates and R (markers), and
    the bounds of theorem 4 (grey lines of the same kind), for three p.
    """
    rows = studies.separable(scale)
    fig, axes = style.panels(2, height=3.0)
    for k, (p, one) in enumerate(rows.groupby("p")):
        for axis, value in zip(axes, ("updates", "R")):
            style.band(axis, *seeds_by(one, "eta", value), k, f"p = {p:g}")
            bound = one.groupby("eta")[f"most_{value}"].first()
            line = {**style.look(k), "color": "0.55", "marker": ""}
            axis.plot(bound.index, bound, **line)
            axis.set(xlabel="step η", xscale="log", yscale="log")
    axes[0].set_ylabel("updates of stage 1")
    axes[1].set_ylabel("R")
    axes[1].legend(fontsize="small")
    return fig


@figure(KEY, "Section 4.1")
def radius(scale: Scale) -> Any:
    """R after each epoch of stage 1 (filled) and the norm of its w (open), over ‖w*‖;
    mfeat, a Gaussian on each view, C = 1 (left) and C = 100 (right). R must stay above
    1, the norm alone need not.
    """
    rows = studies.radii(scale)
    fig, axes = style.panels(2, height=3.2)
    for axis, C in zip(axes, (1.0, 100.0)):
        for k, (p, one) in enumerate(rows[rows.C == C].groupby("p")):
            axis.plot(one.epoch, one.R / one.most, label=f"p = {p:g}", **style.look(k))
            empty = {**style.look(k), "markerfacecolor": "white", "alpha": 0.6}
            axis.plot(one.epoch, one.norm / one.most, **empty)
        axis.axhline(1.0, color="0.3", lw=1.0)
        axis.set(xlabel="epochs of stage 1", ylabel="relative to ‖w*‖", yscale="log")
        axis.set(title=f"C = {C:g}")
    axes[1].legend(fontsize="small")
    return fig


@figure(KEY, "Section 4.1")
def what_stage_1_gives(scale: Scale) -> Any:
    """Stage 2 on mfeat, p = 1.25: what is left of the objective, relative to f*, from
    the end of stage 1 or from w = 0, in balls of several R; C = 100 (left) and C = 1
    (right). The start matters for an epoch or so, R for the whole run.
    """
    rows = studies.starts(scale)
    rows = rows[rows.p == 1.25].copy()
    rows["off"] = rows.objective / rows.upper - 1
    fig, axes = style.panels(2, height=3.2)
    cases = {
        "from stage 1, R of stage 1": ("stage 1", "of stage 1"),
        "from w = 0, R of stage 1": ("0", "of stage 1"),
        "from w = 0, R = ‖w*‖": ("0", "‖w*‖"),
        "from w = 0, R = ∞": ("0", "∞"),
    }
    for axis, C in zip(axes, (100.0, 1.0)):
        for k, (label, (start, ball)) in enumerate(cases.items()):
            one = rows[(rows.C == C) & (rows.start == start) & (rows.ball == ball)]
            x, values = seeds_by(one, "epoch", "off")
            style.band(axis, np.maximum(x, 0.5), values, k, label)
        axis.set(
            xlabel="epochs of stage 2 (0.5: the start)", xscale="log", yscale="log"
        )
        axis.set(title=f"C = {C:g}", ylabel="objective / f* − 1")
    fig.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2
    )
    fig.set_layout_engine("constrained")
    return fig


@figure(KEY, "Section 4")
def many_kernels(scale: Scale) -> Any:
    """Four kernels that matter among F, λ and the number of steps fixed: what is left
    of the objective (f(0) = 1) for q = 2 ln F and for p = 2.
    """
    rows = studies.noise(scale)
    rows["off"] = rows.value - rows.upper
    last = rows[rows["T"] == rows["T"].max()]
    fig, axes = style.panels(1, columns=1, height=3.0)
    (axis,) = axes
    for k, (choice, one) in enumerate(last.groupby("choice")):
        label = f"q = {choice}" if choice[0] == "2" else str(choice)
        style.band(axis, *seeds_by(one, "F", "off"), k, label)
    steps = int(last["T"].iloc[0])
    axis.set(xlabel="kernels F", xscale="log", yscale="log")
    axis.set(ylabel=f"f − f* after {steps} steps")
    axis.set_xticks(sorted(set(last.F)), [str(F) for F in sorted(set(last.F))])
    axis.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    axis.legend(fontsize="small")
    return fig


@figure(KEY, "Section 4")
def linear_in_N(scale: Scale) -> Any:
    """Left: what is left of the objective (f(0) = 1) after T steps, λ = 0.01 fixed, for
    several numbers of samples. Right: time of a step that is an update; the grey line
    is proportional to N. Images, twelve kernels.
    """
    rows, cost = studies.steps(scale), studies.step_cost(scale)
    rows["off"] = rows.value - rows.upper
    fig, axes = style.panels(2, height=3.0)
    for k, (n, one) in enumerate(rows.groupby("n")):
        style.band(axes[0], *seeds_by(one, "T", "off"), k, f"N = {n}")
    axes[0].set(xlabel="steps T", ylabel="f − f*", xscale="log", yscale="log")
    for k, (classes, one) in enumerate(cost.groupby("k")):
        took = 1e6 * one.seconds_per_step
        axes[1].plot(one.n, took, label=f"{classes} classes", **style.look(k))
    n = cost.n.unique()
    most = np.array([0, n[-1]])
    axes[1].plot(most, took.iloc[-1] * most / n[-1], color="0.7", lw=1.0, zorder=0)
    axes[1].set(
        xlabel="samples N", ylabel="µs per step", xlim=(0, None), ylim=(0, None)
    )
    axes[0].set_xticks(sorted(set(rows["T"])), [str(T) for T in sorted(set(rows["T"]))])
    axes[0].tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    for axis in axes:
        axis.legend(fontsize="small")
    return fig


@figure(KEY, "Section 2.2")
def sparser(scale: Scale) -> Any:
    """Kernels in use, (Σ‖w_m‖)²/Σ‖w_m‖², and kernels with more than a thousandth of the
    largest weight, in certified solutions for p from 1 to 2: four of sixteen kernels
    carry information, the others are noise.
    """
    rows = studies.sparsity(scale)
    fig, axes = style.panels(1, columns=1, height=3.0)
    (axis,) = axes
    axis.plot(rows.p, rows.used, label="in use", **style.look(0))
    axis.plot(rows.p, rows.kept, label="above a thousandth", **style.look(1))
    axis.set(xlabel="p", ylabel="kernels", ylim=(0, 16.8))
    axis.legend(fontsize="small")
    return fig


@table(KEY, "Section 5.7, Figure 6")
def all_methods_table(scale: Scale) -> pd.DataFrame:
    """Test error in % and passes over the kernels, means over splits: letter, 39
    Gaussians on random subsets of features, C = 100, p = 1.01.
    """
    rows = studies.methods(scale)
    found = rows.groupby(["method", "each"], sort=False)[["error", "passes"]].mean()
    wide = found.unstack("each").round(1)
    wide.columns = [f"{what}, {n} per class" for what, n in wide.columns]
    return wide.reset_index()
