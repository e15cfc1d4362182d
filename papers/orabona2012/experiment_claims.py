"""What section 5 states of OBSCURE beside other methods, as checks on stand-ins."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mklopt.claims.items import Finding, Scale, claim, decide

from . import studies
from .claims import KEY, LISTS, last_errors, left_over

Array = np.ndarray


@claim(
    KEY,
    "Figure 1 and Section 5.2",
    wrong="the two are swapped",
    figure="synthetic_kernels",
)
def the_joint_machine_selects_one_kernel(scale: Scale, wrong: bool = False) -> Finding:
    """Three classes, four kernels: each of the one-against-the-rest machines picks two
    kernels, the joint one and OBSCURE only the fourth.
    """
    rows = studies.synthetic_weights(scale)
    kept = rows[rows.share > 1e-3].groupby("machine").kernel.agg(list).to_dict()
    single = [kept[name] for name in kept if "against" in name]
    joint = [kept[name] for name in kept if "against" not in name]
    if wrong:
        single, joint = joint, single
    return decide(
        all(len(one) == 2 for one in single) and all(one == [4] for one in joint),
        "; ".join(f"{name}: kernels {which}" for name, which in kept.items()) + ".",
    )


@claim(
    KEY,
    "Section 5.3 and Figure 2",
    wrong="Pegasos and OBSCURE are swapped",
    figure="running",
)
def obscure_is_faster_than_pegasos(scale: Scale, wrong: bool = False) -> Finding:
    """OBSCURE converges much faster than Pegasos-MKL, steps of length 1/(λt) without
    stage 1 and ball.
    """
    rows = studies.race(scale)
    rows = rows[rows.method.isin(["OBSCURE", "Pegasos-MKL"])]
    left = left_over(rows, ["data", "p", "C", "epochs", "method"]).unstack("method")
    ratio = np.log(left["OBSCURE"] / left["Pegasos-MKL"]) * (-1 if wrong else 1)
    mean = np.exp(ratio.groupby(["data", "p", "C"]).mean())
    small, large = mean.xs(100.0, level="C").max(), mean.xs(1.0, level="C").max()
    verdict = "refuted" if small > 0.7 else "confirmed" if large <= 0.7 else "partly"
    each = ", ".join(
        f"{x:.2f} ({d}, p = {p:g}, C = {C:g})" for (d, p, C), x in mean.items()
    )
    return Finding(
        verdict,
        "f − f* of OBSCURE over that of Pegasos after the same epochs, stage 1 "
        f"included, geometric mean over the run: {each}. At most 0.7 was asked for. "
        "A ball helps where λ is small, which is what it is made for.",
        {"C=100": small, "C=1": large},
    )


@claim(
    KEY,
    "Sections 5.3 and 5.7",
    wrong="batch and OBSCURE are swapped",
    figure="running",
)
def obscure_reaches_the_optimum_before_batch(
    scale: Scale, wrong: bool = False
) -> Finding:
    """OBSCURE reaches the optimal solution much faster than batch solvers."""
    rows = studies.race(scale)
    rows["off"] = rows.objective / rows.lower - 1
    batch = rows[rows.method == "batch (analytic)"].groupby(["data", "p", "C"])
    ends = batch[["passes", "off"]].last()
    ours = rows[rows.method == "OBSCURE"]
    each = ours.groupby(["data", "p", "C", "epochs"])[["passes", "off"]].mean()
    last = each.groupby(["data", "p", "C"]).last()
    winner, other = (ends, last) if wrong else (last, ends)
    return decide(
        np.all(winner.off < other.off) and winner.off.max() <= 0.01,
        f"Batch: at most {ends.off.max():.0e} above the optimum, relatively, after "
        f"{ends.passes.min():.0f} to {ends.passes.max():.0f} passes over the kernels. "
        f"OBSCURE after {ours.epochs.max():.0f} epochs, {last.passes.min():.0f} to "
        f"{last.passes.max():.0f} passes: {last.off.min():.2g} to {last.off.max():.2g}"
        ". Asked for: 0.01, and less than the other. (Its rivals in the paper were C++ "
        "programs of 2010; ours are those of this library.)",
        batch=ends.off.max(), ours=last.off.max(),
    )  # fmt: skip


@claim(
    KEY,
    "Sections 5.4 and 5.7",
    wrong="batch and OBSCURE are swapped",
    figure="both_exponents",
)
def obscure_predicts_well_before_batch(scale: Scale, wrong: bool = False) -> Finding:
    """It predicts as well as the batch solvers after a training time that is much
    shorter.
    """
    rows = studies.race(scale)
    cells = rows[rows.C == 100].groupby(["data", "p"])
    found = {cell: _work_to_predict(one) for cell, one in cells}
    ratios = np.array(list(found.values()))
    wins, loses = np.all(ratios <= 0.5), np.all(ratios >= 2)
    verdict = "confirmed" if wins else "refuted" if loses else "partly"
    if wrong:
        verdict = "confirmed" if loses else "refuted"
    each = ", ".join(f"{x:.2f} ({d}, p = {p:g})" for (d, p), x in found.items())
    return Finding(
        verdict,
        "Passes over the kernels until test errors stay within one percentage point of "
        f"the optimum's, OBSCURE over batch: {each}; at most 0.5 was asked for.",
        {f"{d} p={p:g}": x for (d, p), x in found.items()},
    )


def _work_to_predict(rows: pd.DataFrame) -> float:
    """Passes of OBSCURE until its mean test error stays near the final one of the
    batch solver, over those of the batch solver."""
    batch = rows[rows.method == "batch (analytic)"]
    goal = batch.error.iloc[-1] + 1.0
    ours = rows[rows.method == "OBSCURE"].groupby("epochs")[["passes", "error"]].mean()
    mine, theirs = (
        _stays(one.passes.to_numpy(), one.error.to_numpy() <= goal)
        for one in (ours, batch)
    )
    return mine / theirs


def _stays(passes: Array, good: Array) -> float:
    """The passes after which it is good and stays so; infinite if it ends bad."""
    bad = np.flatnonzero(~good)
    first = bad[-1] + 1 if len(bad) else 0
    return float(passes[first]) if first < len(passes) else np.inf


@claim(
    KEY,
    "Section 5.5 and Figure 4, top",
    wrong="the two lists of kernels are swapped",
    figure="exponent",
)
def the_best_p_depends_on_the_data(scale: Scale, wrong: bool = False) -> Finding:
    """Where all kernels carry information a sparse solution does not predict better;
    where many are redundant or bad it does. So p has to be chosen.
    """
    rows = studies.exponents(scale)
    ends = last_errors(rows, ["kernels", "p", "seed"], False).end
    table = ends.unstack("p")
    gain = (table.iloc[:, -1] - table.iloc[:, 0]).unstack("seed")  # of the smallest p
    few, many = ("many", "views") if wrong else ("views", "many")
    best = table.groupby("kernels").mean().idxmin(axis=1)
    each = ", ".join(
        f"{g.mean():+.2f} ± {_t(g):.2f} points ({LISTS[str(name)]}; best at p = "
        f"{best[name]:g})"
        for name, g in gain.iterrows()
    )
    sparse, dense = gain.loc[many], gain.loc[few]
    return decide(
        sparse.mean() > _t(sparse) and dense.mean() <= 0.5 * sparse.mean() + 0.5,
        f"Test error at p = 2 minus that at p = {table.columns[0]:g}: {each}. Asked "
        "for: above 0 beyond its 95 % interval with many kernels, and at most half of "
        "that, plus half a point, on the views.",
        **{str(name): g.mean() for name, g in gain.iterrows()},
    )


def _t(values: pd.Series, level: float = 0.05) -> float:
    """Half the two-sided t interval of a mean."""
    from scipy.special import stdtrit

    n = len(values)
    return float(-stdtrit(n - 1, level / 2) * np.std(values, ddof=1) / np.sqrt(n))


@claim(
    KEY,
    "Section 5.7 and Figure 6, right",
    wrong="the two are swapped",
    figure="all_methods",
)
def the_multi_class_loss_predicts_better(scale: Scale, wrong: bool = False) -> Finding:
    """All methods with the multi-class loss predict better than the sparse methods that
    train one class against the rest.
    """
    rows = studies.methods(scale)
    table = rows.pivot_table(index=["each", "seed"], columns="method", values="error")
    joint = [name for name in table if "against" not in name]
    single = [name for name in table if name.endswith("rest") and name[:3] != "sum"]
    if wrong:
        joint, single = single, joint
    worst, best = table[joint].max(axis=1), table[single].min(axis=1)
    gain = (
        (table[single].mean(axis=1) - table[joint].mean(axis=1)).groupby("each").mean()
    )
    mean = table.groupby("each").mean()
    good = np.all(mean[joint].max(axis=1) < mean[single].min(axis=1))
    verdict = "confirmed" if good else "partly" if np.all(gain > 0) else "refuted"
    each = ", ".join(f"{g:+.2f} ({n} samples per class)" for n, g in gain.items())
    share = float(np.mean(worst < best))
    return Finding(
        verdict,
        f"Percentage points by which one against the rest errs more, on average of "
        f"both kinds: {each}. In {share:.0%} of the splits every joint method is "
        "better than every other.",
        {f"each={n}": g for n, g in gain.items()},
    )


@claim(
    KEY,
    "Section 5.8 and Figure 7",
    wrong="the first epoch of stage 2 in place of the online stage",
    figure="more_samples",
)
def few_epochs_predict_as_well(scale: Scale, wrong: bool = False) -> Finding:
    """Good solutions come quickly: after the online stage test errors are nearly those
    at the end, and they fall with the number of samples.
    """
    rows = studies.samples(scale)
    found = last_errors(rows[rows.method == "OBSCURE"], ["n"], wrong)
    worse = float((found.early - found.end).max())
    others = rows[rows.method != "OBSCURE"]
    rest = others.pivot(index="n", columns="method", values="error").iloc[-1]
    each = ", ".join(f"{e:.1f} % (N = {n})" for n, e in found.end.items())
    return decide(
        worse <= 1.5 and np.all(np.diff(found.end) < 0),
        f"The online stage is at most {worse:.2f} points worse than the end (1.5 were "
        f"allowed); errors at the end {each}. With as many samples the sum of kernels "
        f"has {rest['sum of kernels']:.1f} %, the best kernel "
        f"{rest['best kernel']:.1f} %.",
        worse=worse,
    )


@claim(KEY, "Section 5.8", wrong=None)
def all_of_mnist_on_the_fly(scale: Scale) -> Finding:
    """With kernels computed on the fly and all 60,000 digits, 10 epochs bring the test
    error to 1.95 %, 0.45 points below 20,000 samples and 500 epochs.
    """
    return Finding(
        "not testable",
        "5000 of the digits are to be had here; the trend over N is drawn in place of "
        "Figure 7.",
    )
