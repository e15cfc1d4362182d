"""What section 5.5 of the paper says of execution times.

Judged in seconds of one thread, on the authors' problems (timing.py), all methods with
one SVM solver, one clock and one stopping rule. The numbers are ratios of seconds, so
that the machine matters little. SVMs and passes are in the data of figure 6.

In the paper the methods were different programs in different languages. What is judged
here is what their steps are worth, not what the programs were. Settings were tried on
seed 0 before the rules were written; seed 0 is not used.
"""

from __future__ import annotations

from functools import partial

import pandas as pd

from mklopt.claims.bounds import at_least, at_most, between
from mklopt.claims.empirical import empirical
from mklopt.claims.items import Scale

from . import timing
from .timing import ANALYTIC, HESSIAN, SILP, SIMPLE, SVM, WRAPPER

SEEDS, FULL = (1, 2, 3), (1,)
DATA = ("mnist",)
FLY = ("SILP on the fly, ℓ1", "SIP on the fly, ℓ2", "analytic on the fly, ℓ2")
HOUR, MINUTES = 3600.0, 180.0
L2, SPARSE = "interleaved analytic, ℓ2", "interleaved analytic, ℓ1"
DENSE = (
    *(f"interleaved analytic, ℓ{p}" for p in ("4/3", "2", "3")),
    "interleaved SIP, ℓ2",
)


on_digits = partial(
    empirical,
    "kloft2011",
    data=DATA,
    seeds=SEEDS,
    full_seeds=FULL,
    figure="training_times",
)


def by_samples(scale: Scale, what: str = "seconds_cpu") -> pd.DataFrame:
    """n in rows, methods in columns."""
    rows = timing.times_by_samples(scale)
    return rows.pivot_table(index="n", columns="method", values=what)


def by_kernels(scale: Scale, what: str = "seconds_cpu") -> pd.DataFrame:
    """M in rows, methods in columns."""
    rows = timing.times_by_kernels(scale)
    return rows.pivot_table(index="M", columns="method", values=what)


# ---- against n ----------------------------------------------------------------------


@on_digits(
    "Section 5.5, figure 6 top",
    measured="at the largest n: seconds of the fastest other method with stored "
    "kernels over those of the SVM",
    rule=at_least(1, log=True),
)
def the_svm_on_the_sum_is_the_fastest(scale: Scale) -> float:
    """The SVM on the sum of stored kernels is the fastest method (their sum is made
    before the clock starts, as in the authors' scripts)."""
    last = by_samples(scale).iloc[-1]
    others = [m.label for m in timing.STORED if m.label != SVM]
    return last[others].min() / last[SVM]


@the_svm_on_the_sum_is_the_fastest.control(
    "HessianMKL is the fastest of all methods with stored kernels",
    at_least(1, log=True),
)
def fastest_over_hessian(scale: Scale) -> float:
    last = by_samples(scale).iloc[-1]
    others = [m.label for m in timing.STORED if m.label != HESSIAN]
    return last[others].min() / last[HESSIAN]


@on_digits(
    "Section 5.5, figure 6 top",
    measured="at the largest n: seconds of SimpleMKL, and of the SILP wrapper, over "
    "those of the slowest of the interleaved methods with p > 1 or cuts, and on the "
    "fly",
    rule={SIMPLE: at_least(1, log=True), WRAPPER: at_least(1, log=True)},
)
def wrappers_are_slower_than_kernels_on_the_fly(scale: Scale) -> dict[str, float]:
    """SimpleMKL and the SILP wrapper are the slowest, slower than methods that compute
    kernels on the fly."""
    last = by_samples(scale).iloc[-1]
    slowest = last[[*DENSE, SILP, *FLY]].max()
    return {name: last[name] / slowest for name in (SIMPLE, WRAPPER)}


@wrappers_are_slower_than_kernels_on_the_fly.control(
    "the SVM takes as long as SimpleMKL", at_least(1, log=True)
)
def svm_over_simple(scale: Scale) -> float:
    last = by_samples(scale).iloc[-1]
    return last[SVM] / last[SIMPLE]


@on_digits(
    "Section 5.5, figure 6 top (n = 8,000)",
    measured="at the largest n: seconds of SimpleMKL over those of the interleaved "
    "SILP",
    rule=at_least(120, partly=10, log=True),
)
def simple_mkl_is_120_times_slower_than_the_silp(scale: Scale) -> float:
    """With many samples SimpleMKL is more than 120 times slower than the ℓ1 SILP.

    The paper says so of n = 8,000; here n is at most 2,000.
    """
    last = by_samples(scale).iloc[-1]
    return last[SIMPLE] / last[SILP]


@simple_mkl_is_120_times_slower_than_the_silp.control(
    "HessianMKL is ten times slower than the interleaved SILP", at_least(10, log=True)
)
def hessian_over_silp(scale: Scale) -> float:
    last = by_samples(scale).iloc[-1]
    return last[HESSIAN] / last[SILP]


@on_digits(
    "Abstract; section 5.5, last paragraph",
    measured="the largest ratio over all sizes of both sweeps: seconds of the rival "
    "over those of the faster of interleaved analytic ℓ4/3 and interleaved SILP",
    rule={
        SIMPLE: at_least(100, partly=10, log=True),
        HESSIAN: at_least(10, partly=3, log=True),
    },
)
def interleaving_gains_one_and_two_orders(scale: Scale) -> dict[str, float]:
    """Interleaved optimization is up to one order of magnitude faster than HessianMKL,
    and up to two orders faster than SimpleMKL."""
    all_sizes = pd.concat([by_samples(scale), by_kernels(scale)])
    ours = all_sizes[[ANALYTIC, SILP]].min(axis=1)
    return {name: float((all_sizes[name] / ours).max()) for name in (SIMPLE, HESSIAN)}


@interleaving_gains_one_and_two_orders.control(
    "algorithm 1, the wrapper of the paper, is ten times slower than interleaving "
    "somewhere",
    at_least(10, log=True),
)
def largest_gain_on_algorithm_1(scale: Scale) -> float:
    all_sizes = pd.concat([by_samples(scale), by_kernels(scale)])
    return float((all_sizes["algorithm 1, ℓ4/3"] / all_sizes[ANALYTIC]).max())


@on_digits(
    "Abstract; section 6, second paragraph",
    measured="at the largest n: seconds of the rival over those of interleaved "
    "analytic ℓ4/3; of the SILP wrapper over those of the interleaved SILP",
    rule={
        name: at_least(10, partly=2, log=True) for name in (SIMPLE, HESSIAN, WRAPPER)
    },
)
def interleaving_vastly_outperforms_wrappers(scale: Scale) -> dict[str, float]:
    """Interleaved optimization vastly outperforms the commonly used wrappers."""
    last = by_samples(scale).iloc[-1]
    ours = {SIMPLE: ANALYTIC, HESSIAN: ANALYTIC, WRAPPER: SILP}
    return {name: last[name] / last[own] for name, own in ours.items()}


@interleaving_vastly_outperforms_wrappers.control(
    "it is ten times faster with stored kernels than with kernels on the fly, at the "
    "smallest n",
    at_least(10, log=True),
)
def stored_against_fly(scale: Scale) -> float:
    first = by_samples(scale).iloc[0]
    return first["analytic on the fly, ℓ2"] / first[L2]


@on_digits(
    "Section 4.3, after theorem 4",
    measured="at the largest n: seconds of algorithm 1 with SVMs solved to 1e-5 over "
    "those of algorithm 2, both ℓ4/3",
    rule=at_least(2, partly=1.1, log=True),
)
def precise_svms_are_wasteful(scale: Scale) -> float:
    """A precise SVM for a mixture that is not the best is wasteful: interleaving is
    faster than the wrapper with the same step in θ."""
    last = by_samples(scale).iloc[-1]
    return last["algorithm 1, ℓ4/3"] / last[ANALYTIC]


@precise_svms_are_wasteful.control(
    "the wrapper needs 100 SVMs to a gap of 1e-3", at_least(100)
)
def svms_of_algorithm_1(scale: Scale) -> float:
    return by_samples(scale, "svms").iloc[-1]["algorithm 1, ℓ4/3"]


@on_digits(
    "Section 5.5, figure 6 top",
    measured="growth of seconds from n = 250 to the largest n: interleaved analytic, "
    "and SIP, both ℓ2, over that of the interleaved SILP",
    rule={"analytic": between(0.5, 2, log=True), "SIP": between(0.5, 2, log=True)},
)
def non_sparse_mkl_scales_like_the_silp(scale: Scale) -> dict[str, float]:
    """Non-sparse MKL scales with n similarly as the ℓ1 SILP, with both steps."""
    growth = growth_in_n(scale)
    return {
        "analytic": growth[L2] / growth[SILP],
        "SIP": growth["interleaved SIP, ℓ2"] / growth[SILP],
    }


def growth_in_n(scale: Scale) -> pd.Series:
    table = by_samples(scale)
    return table.iloc[-1] / table.loc[scale.of(60, 250, 250)]


@non_sparse_mkl_scales_like_the_silp.control(
    "seconds of non-sparse MKL grow like n³", at_least(1, log=True)
)
def growth_over_cubes(scale: Scale) -> float:
    n = by_samples(scale).index
    return growth_in_n(scale)[L2] / (n[-1] / scale.of(60, 250, 250)) ** 3


@on_digits(
    "Section 5.5, figure 6 top",
    measured="at the largest n: seconds of HessianMKL over those of the slowest "
    "interleaved non-sparse method; of the fastest on the fly over HessianMKL",
    rule={
        "over interleaved": at_least(1, log=True),
        "below fly": at_least(1, log=True),
    },
)
def hessian_mkl_ranks_between(scale: Scale) -> dict[str, float]:
    """HessianMKL ranks between methods on the fly and non-sparse interleaved ones."""
    last = by_samples(scale).iloc[-1]
    over = last[HESSIAN] / last[list(DENSE)].max()
    return {
        "over interleaved": over,
        "below fly": last[list(FLY)].min() / last[HESSIAN],
    }


@hessian_mkl_ranks_between.control(
    "HessianMKL takes as long as SimpleMKL", at_least(1, log=True)
)
def hessian_over_simple(scale: Scale) -> float:
    last = by_samples(scale).iloc[-1]
    return last[HESSIAN] / last[SIMPLE]


@on_digits(
    "Section 5.5, figure 6 top",
    measured="at the largest n: seconds on the fly over those with stored kernels, "
    "the same step and norm",
    rule={"SILP, ℓ1": at_least(1, log=True), "analytic, ℓ2": at_least(1, log=True)},
)
def kernels_on_the_fly_take_longer(scale: Scale) -> dict[str, float]:
    """Methods on the fly take longer: nothing is computed before their clock starts."""
    last = by_samples(scale).iloc[-1]
    return {
        "SILP, ℓ1": last["SILP on the fly, ℓ1"] / last[SILP],
        "analytic, ℓ2": last["analytic on the fly, ℓ2"] / last[L2],
    }


@kernels_on_the_fly_take_longer.control(
    "the SVM on the fly takes longer than ℓ2 with cuts on the fly",
    at_least(1, log=True),
)
def svm_over_sip_on_the_fly(scale: Scale) -> float:
    last = by_samples(scale).iloc[-1]
    return last["SVM on the fly"] / last["SIP on the fly, ℓ2"]


# ---- against M ----------------------------------------------------------------------


@on_digits(
    "Section 5.5, figure 6 bottom",
    measured="seconds at the largest M over those at M = 10",
    rule=between(1 / 3, 3, log=True),
)
def the_svm_hardly_depends_on_the_number_of_kernels(scale: Scale) -> float:
    """The SVM on the sum takes an essentially constant time. (The sum is made before
    the clock starts.)"""
    seconds = by_kernels(scale)[SVM]
    return seconds.iloc[-1] / seconds.iloc[0]


@the_svm_hardly_depends_on_the_number_of_kernels.control(
    "so does interleaved analytic ℓ2: at most three times as long", at_most(3, log=True)
)
def growth_of_l2(scale: Scale) -> float:
    seconds = by_kernels(scale)[L2]
    return seconds.iloc[-1] / seconds.iloc[0]


@on_digits(
    "Section 5.5, figure 6 bottom",
    measured="at the largest M: seconds of the fastest other MKL method with stored "
    "kernels over the interleaved SILP; of interleaved analytic ℓ2 over it",
    rule={"fastest other": at_least(1, log=True), "ℓ2": between(1, 3, log=True)},
)
def the_silp_is_the_fastest_with_many_kernels(scale: Scale) -> dict[str, float]:
    """With many kernels the interleaved SILP is the fastest MKL method; non-sparse
    methods are just slightly slower."""
    last = by_kernels(scale).iloc[-1]
    others = [m.label for m in timing.STORED if m.label not in (SVM, SILP)]
    return {
        "fastest other": last[others].min() / last[SILP],
        "ℓ2": last[L2] / last[SILP],
    }


@the_silp_is_the_fastest_with_many_kernels.control(
    "SimpleMKL is the fastest MKL method there", at_least(1, log=True)
)
def fastest_over_simple(scale: Scale) -> float:
    last = by_kernels(scale).iloc[-1]
    others = [m.label for m in timing.STORED if m.label not in (SVM, SIMPLE)]
    return last[others].min() / last[SIMPLE]


@on_digits(
    "Section 5.5, figure 6 bottom",
    measured="at the largest M: seconds with cuts over those with the analytic step, "
    "both interleaved, ℓ2",
    rule=at_least(1, log=True),
)
def analytic_steps_are_faster_than_semi_infinite_programs(scale: Scale) -> float:
    """The analytical methods are somewhat faster than the SIP approaches."""
    last = by_kernels(scale).iloc[-1]
    return last["interleaved SIP, ℓ2"] / last[L2]


@analytic_steps_are_faster_than_semi_infinite_programs.control(
    "ℓ3 takes twice as long as ℓ2, both with the analytic step", at_least(2, log=True)
)
def l3_over_l2(scale: Scale) -> float:
    last = by_kernels(scale).iloc[-1]
    return last["interleaved analytic, ℓ3"] / last[L2]


@on_digits(
    "Section 5.5, figure 6 bottom",
    measured="at the largest M: seconds of interleaved analytic ℓ1 over those of ℓ4/3",
    rule=at_least(1.2, log=True),
)
def the_sparse_analytic_method_is_slower(scale: Scale) -> float:
    """The sparse analytical method performs worse than its non-sparse counterpart."""
    last = by_kernels(scale).iloc[-1]
    return last[SPARSE] / last[ANALYTIC]


@the_sparse_analytic_method_is_slower.control(
    "ℓ1 with cuts is slower than ℓ2 with cuts, too", at_least(1, log=True)
)
def sparse_cuts_over_dense(scale: Scale) -> float:
    last = by_kernels(scale).iloc[-1]
    return last[SILP] / last["interleaved SIP, ℓ2"]


@on_digits(
    "Section 5.5, figure 6 bottom",
    measured="at the largest M: seconds of SimpleMKL, and of the SILP wrapper, over "
    "those of the slowest of HessianMKL and the interleaved methods with p > 1 or "
    "cuts",
    rule={SIMPLE: at_least(1, log=True), WRAPPER: at_least(1, log=True)},
)
def wrappers_perform_worst_with_many_kernels(scale: Scale) -> dict[str, float]:
    """With many kernels the wrapper methods again perform worst."""
    last = by_kernels(scale).iloc[-1]
    slowest = last[[*DENSE, SILP, HESSIAN]].max()
    return {name: last[name] / slowest for name in (SIMPLE, WRAPPER)}


@wrappers_perform_worst_with_many_kernels.control(
    "SimpleMKL needs at most ten SVMs there", at_most(10)
)
def svms_of_simple(scale: Scale) -> float:
    return by_kernels(scale, "svms").iloc[-1][SIMPLE]


@on_digits(
    "Section 5.5, figure 6 bottom",
    measured="seconds over those of interleaved analytic ℓ4/3: at the largest M, "
    "divided by the same at M = 10",
    rule={SIMPLE: at_most(1, log=True), HESSIAN: at_most(1, log=True)},
)
def simple_and_hessian_become_more_efficient(scale: Scale) -> dict[str, float]:
    """SimpleMKL and HessianMKL become more efficient with the number of kernels,
    measured by what interleaving takes."""
    table = by_kernels(scale)
    ratio = table.iloc[-1] / table.iloc[0]
    return {name: ratio[name] / ratio[ANALYTIC] for name in (SIMPLE, HESSIAN)}


@simple_and_hessian_become_more_efficient.control(
    "SimpleMKL takes fewer seconds at the largest M than at M = 10",
    at_most(1, log=True),
)
def growth_of_simple(scale: Scale) -> float:
    seconds = by_kernels(scale)[SIMPLE]
    return seconds.iloc[-1] / seconds.iloc[0]


@on_digits(
    "Section 5.5, figure 6 bottom",
    measured="at the largest M: seconds of SimpleMKL over HessianMKL; of HessianMKL "
    "over the slowest interleaved non-sparse method, and over the interleaved SILP",
    rule={
        "SimpleMKL": at_least(3, partly=1, log=True),
        "non-sparse": at_least(1, log=True),
        "SILP": at_least(1, log=True),
    },
)
def hessian_mkl_is_faster_than_simple_mkl(scale: Scale) -> dict[str, float]:
    """HessianMKL is considerably faster than SimpleMKL, but slower than non-sparse
    interleaved methods and the SILP."""
    last = by_kernels(scale).iloc[-1]
    dense = last[HESSIAN] / last[list(DENSE)].max()
    own = last[HESSIAN]
    return {
        "SimpleMKL": last[SIMPLE] / own,
        "non-sparse": dense,
        "SILP": own / last[SILP],
    }


@hessian_mkl_is_faster_than_simple_mkl.control(
    "HessianMKL needs as many SVMs as SimpleMKL", at_least(1, log=True)
)
def svms_of_hessian(scale: Scale) -> float:
    last = by_kernels(scale, "svms").iloc[-1]
    return last[HESSIAN] / last[SIMPLE]


# ---- what does not fit in memory -----------------------------------------------------


@on_digits(
    "Section 5.5, last paragraph",
    measured="seconds of one thread for 1000 stored kernels, SILP wrapper, to 1e-3",
    rule=at_most(MINUTES),
)
def a_thousand_kernels_take_less_than_three_minutes(scale: Scale) -> float:
    """MKL with 1000 kernels of 1000 × 1000 takes less than 3 minutes."""
    return timing.thousand(scale).seconds_cpu.max()


@a_thousand_kernels_take_less_than_three_minutes.control(
    "it reads the kernels as often as 100 times", at_least(100)
)
def passes_of_a_thousand(scale: Scale) -> float:
    return timing.thousand(scale).passes.max()


@on_digits(
    "Section 5.5, figure 6 top",
    measured="20,000 samples, 50 kernels on the fly, the slower of ℓ1 and ℓ2: seconds "
    "of one thread of algorithm 2, and its largest certified gap",
    rule={"seconds": at_most(HOUR), "gap": at_most(1e-3)},
)
def twenty_thousand_samples_fit(scale: Scale) -> dict[str, float]:
    """Interleaving trains on 50 kernel matrices of 20,000 × 20,000, which would take
    149 GB. (The hour is our bound; the paper's figure is in hours, too.)"""
    rows = timing.many_samples(scale)
    own = rows[rows.method == "chunks on the fly"]
    others = rows[rows.method == "auto"]
    beside = {"auto, seconds": others.seconds_cpu.max(), "auto, gap": others.gap.max()}
    return {"seconds": own.seconds_cpu.max(), "gap": own.gap.max(), **beside}


@twenty_thousand_samples_fit.control(
    "95 % of the samples are support vectors of ℓ2", at_least(0.95)
)
def share_of_support_vectors(scale: Scale) -> float:
    rows = timing.many_samples(scale)
    return float((rows[rows.p == 2].support / rows.n).min())


@on_digits(
    "Section 5.5, figure 6 bottom",
    measured="10,000 kernels on the fly, n = 1000, the slower of ℓ1 and ℓ2: seconds "
    "of one thread of algorithm 2, and its largest certified gap",
    rule={"seconds": at_most(HOUR), "gap": at_most(1e-3)},
)
def ten_thousand_kernels_fit(scale: Scale) -> dict[str, float]:
    """Interleaving copes with 10,000 kernels of 1000 × 1000, which would take 74 GB.

    With 2σ² = 1.2^(m−1) all but some 240 of them are 1 in double precision, here and
    in the authors' scripts: a harder problem this is not.
    """
    rows = timing.many_kernels(scale)
    own = rows[rows.method == "chunks on the fly"]
    others = rows[rows.method == "auto"]
    beside = {"auto, seconds": others.seconds_cpu.max(), "auto, gap": others.gap.max()}
    return {"seconds": own.seconds_cpu.max(), "gap": own.gap.max(), **beside}


@ten_thousand_kernels_fit.control("ℓ1 uses one kernel in a hundred", at_least(0.01))
def share_of_kernels(scale: Scale) -> float:
    rows = timing.many_kernels(scale)
    return float((rows[rows.p == 1].kernels / rows.M).max())
