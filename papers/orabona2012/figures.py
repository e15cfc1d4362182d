"""The paper's figures, redrawn in shape on the data of stand_ins.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from mklopt.claims.items import Scale, figure
from mklopt.util import style

from . import headline_studies, mnist_study, studies
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


def seeds_of(scale: Scale, study: Any, count: int) -> pd.DataFrame:
    """The rows of as many seeds as its claims have at this size."""
    return study.over(scale, range(scale.of(1, count, 1)))


def below(fig: Any, axis: Any, ncols: int = 3) -> None:
    """One legend for all panels, under them."""
    handles = axis.get_legend_handles_labels()
    fig.legend(*handles, loc="outside lower center", ncols=ncols)
    fig.set_layout_engine("constrained")


WHO = ("OBSCURE", "Pegasos-MKL", "SILP", "SimpleMKL", "p-norm MKL", "MC-MKL")


@figure(KEY, "Figures 2 and 3")
def against_rivals(scale: Scale) -> Any:
    """Test error against CPU time (left) and objective above f* against epochs of stage
    2 (right), C = 100 and p = 1.05. Above: seven kernels on flowers, with descriptors
    of our own. Below: the pen's path and three images drawn from it in place of the
    four descriptions of Pendigits. Rivals are points where they have a gap of 0.01, one
    for each split: SILP, SimpleMKL and p-norm MKL with one class against the rest,
    MC-MKL with the multi-class loss. Dotted: the error of the optimum.
    """
    rows = seeds_of(scale, headline_studies.rivals, 3)
    sets = list(dict.fromkeys(rows.data))
    fig, axes = style.panels(2 * len(sets), columns=2, height=2.9)
    for at, name in enumerate(sets):
        one, (left, right) = rows[rows.data == name], axes[2 * at : 2 * at + 2]
        for k, method in enumerate(WHO):
            _rival(left, right, one[one.method == method], method, k)
        left.axhline(one.best_error.mean(), color="0.4", lw=1.0, ls=":")
        left.set(xscale="log", xlabel="CPU seconds", ylim=(0, None))
        left.set_ylabel(f"{name}: test error, %")
        right.set(xscale="log", yscale="log", xlabel="epochs of stage 2")
        right.set_ylabel("objective / f* − 1")
    below(fig, axes[0])
    return fig


def _rival(left: Any, right: Any, rows: pd.DataFrame, method: str, k: int) -> None:
    if method not in WHO[:2]:
        look = {**style.look(k), "linestyle": ""}
        left.plot(rows.seconds, rows.error, label=method, **look)
        return
    mean = rows.groupby("epochs")[["seconds", "error"]].mean()
    left.plot(mean.seconds, mean.error, label=method, **style.look(k))
    later = rows[rows.epochs > 0]
    off = later.assign(off=np.maximum(later.objective / later.upper - 1, 1e-6))
    style.band(right, *seeds_by(off, "epochs", "off"), k, method, True)


@figure(KEY, "Figure 4, top")
def errors_over_p(scale: Scale) -> Any:
    """Test error at the end of OBSCURE against p, C = 100: seven kernels on flowers and
    six views of digits, which all carry information; three levels of PHOG on flowers,
    and 39 Gaussians on random subsets of features of letter, in place of Caltech-101.
    """
    rows = seeds_of(scale, headline_studies.choice_of_p, 10)
    rows["error"] = rows[["chosen_by", "judged_by"]].mean(axis=1)
    fig, axes = style.panels(4, columns=2, height=2.4)
    for k, (axis, (name, one)) in enumerate(zip(axes, rows.groupby("data"))):
        style.band(axis, *seeds_by(one, "p", "error"), k, str(name))
        axis.set(xlabel="p", ylabel="test error, %", title=name)
    return fig


@figure(KEY, "Figure 4, bottom")
def times_of_stages(scale: Scale) -> Any:
    """CPU time of the online stage, and of stage 2 to 1.01 f* or 5000 epochs (above),
    and test errors of both and of the optimum (below), against p: seven kernels (left)
    and three levels of PHOG (right) on flowers, C = 100.
    """
    rows = seeds_of(scale, headline_studies.stages, 3)
    fig, axes = style.panels(4, columns=2, height=2.6)
    for j, (name, one) in enumerate(rows.groupby("data")):
        parts = {"online stage": "online", "stage 2": "stage_2", "optimum": "best"}
        for k, (label, column) in enumerate(parts.items()):
            x, errors = seeds_by(one, "p", f"{column}_error")
            style.band(axes[2 + j], x, errors, k, label)
            if column != "best":
                x, seconds = seeds_by(one, "p", f"seconds_{column}")
                style.band(axes[j], x, seconds, k, label, True)
        axes[j].set(yscale="log", ylabel="CPU seconds", title=name)
        axes[2 + j].set(xlabel="p", ylabel="test error, %")
    below(fig, axes[2])
    return fig


@figure(KEY, "Figure 5")
def more_kernels(scale: Scale) -> Any:
    """More kernels, in random orders, p = 1.01, C = 100: 39 Gaussians on letter in
    place of Caltech-101. Left: test error against epochs of stage 2. Middle: updates of
    stage 1 until no sample pays a loss, at most 300 epochs. Right: R when it ends.
    """
    rows = seeds_of(scale, headline_studies.kernel_counts, 6)
    rows = rows[rows.data == headline_studies.LETTER]
    fig, axes = style.panels(3, columns=3, height=3.0)
    for k, (F, one) in enumerate(rows[rows.epochs > 0].groupby("F")):
        style.band(axes[0], *seeds_by(one, "epochs", "error"), k, f"F = {F}")
    axes[0].set(xscale="log", xlabel="epochs of stage 2", ylabel="test error, %")
    online = rows[rows.epochs == 0]
    for k, (axis, value) in enumerate(zip(axes[1:], ("updates", "R"))):
        style.band(axis, *seeds_by(online, "F", value), k, value)
        axis.set(xscale="log", xlabel="kernels F", ylabel=value, ylim=(0, None))
        axis.set_xticks(sorted(set(rows.F)), [str(F) for F in sorted(set(rows.F))])
        axis.minorticks_off()
    below(fig, axes[0], 6)
    return fig


@figure(KEY, "Figure 6, right")
def joint_errors(scale: Scale) -> Any:
    """Test error against the number of samples of each class, letter with 39 Gaussians
    on random subsets of features in place of Caltech-101, C = 100: the multi-class loss
    with p = 1.01; SILP, p-norm MKL and the sum of kernels, one class against the rest.
    """
    rows = seeds_of(scale, headline_studies.joint_or_apart, 5)
    fig, (axis,) = style.panels(1, columns=1, height=3.0)
    for k, (method, one) in enumerate(rows.groupby("method", sort=False)):
        style.band(axis, *seeds_by(one, "each", "error"), k, str(method))
    axis.set(xlabel="samples of each class", ylabel="test error, %")
    axis.set_xticks(sorted(set(rows.each)))
    axis.legend(fontsize="small")
    return fig


@figure(
    KEY,
    "Figure 7",
    sizes={
        "quick": "Few and many digits: 2000 and 6000.",
        "full": "Few and many digits: 20,000 and 60,000.",
    },
)
def mnist_errors(scale: Scale) -> Any:
    """Test error on the 10,000 test digits of MNIST against epochs: four quadrants × a
    linear, a cubic and a Gaussian kernel, computed on the fly, p dual to q = 2 ln 12,
    C = 1. Five epochs are the online stage. All 60,000 digits, and a third of the
    digits with many epochs beside all of them with ten. Dotted: the paper's 1.95 %.
    """
    whole = seeds_of(scale, mnist_study.all_digits, 3)
    some = seeds_of(scale, mnist_study.mnist, 3)
    fig, (axis,) = style.panels(1, columns=1, height=3.2)
    parts = [*some.groupby("n"), *whole.groupby("n")]
    for k, (n, one) in enumerate(parts):
        style.band(axis, *seeds_by(one, "epochs", "error"), k, f"N = {n}")
    axis.axhline(1.95, color="0.4", lw=1.0, ls=":")
    axis.set(xlabel="epochs", ylabel="test error, %", xscale="log", ylim=(0, None))
    ticks = sorted(set(some.epochs))
    axis.set_xticks(ticks, [str(t) for t in ticks])
    axis.minorticks_off()
    axis.legend(fontsize="small")
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
    rows = seeds_of(scale, studies.starts, 5)
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


@figure(KEY, "Abstract and Section 4")
def linear_time(scale: Scale) -> Any:
    """CPU time (left) and steps (middle) of both stages until the objective is 1.1 f*,
    against the number of digits, λ = 0.01 or λ = 1/N; grey is proportional to N. Right:
    time of a step that is an update, grey likewise. Images, twelve kernels.
    """
    rows = seeds_of(scale, headline_studies.training_time, 3)
    cost = studies.step_cost(scale)
    fig, axes = style.panels(3, columns=3, height=3.0)
    for axis, value in zip(axes, ("seconds", "steps")):
        for k, (rule, one) in enumerate(rows.groupby("rule")):
            style.band(axis, *seeds_by(one, "n", value), k, str(rule), True)
        n = np.unique(rows.n)
        axis.plot(n, rows[value].min() * n / n[0], color="0.7", lw=1.0, zorder=0)
        axis.set(xscale="log", yscale="log", xlabel="samples N", ylabel=value)
        axis.set_xticks(n, [str(k) for k in n])
        axis.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        axis.legend(fontsize="small")
    for k, (classes, one) in enumerate(cost.groupby("k")):
        took = 1e6 * one.seconds_per_step
        axes[2].plot(one.n, took, label=f"{classes} classes", **style.look(k))
    most = np.array([0, cost.n.max()])
    axes[2].plot(most, took.iloc[-1] * most / most[1], color="0.7", lw=1.0, zorder=0)
    axes[2].set(xlabel="samples N", ylabel="µs per step", xlim=(0, None),
                ylim=(0, None))  # fmt: skip
    axes[2].legend(fontsize="small")
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
