"""The problems of the library, as declarations.

A name never changes its meaning: its kernels, labels, Ω, V and C are those of the hash
in the records. A new problem is one more line here; `make bench NAME=library` solves it
and adds it to the records.
"""

from .instance import Instance
from .points import Generated, Real
from .stacks import Blocks, Columns, Drawn, Exact, Pivoted

GAUSSIANS = ("gaussian(1)", "gaussian(3)", "gaussian(10)", "gaussian(30)")
BOTH = (*GAUSSIANS, "gaussian(1) on single")
MANY = tuple(f"gaussian({width})" for width in (0.5, 1, 2, 4, 8, 16, 32, 64))
MIXED = (*GAUSSIANS, "polynomial(2)", "linear")


def _groups(M: int, size: int) -> str:
    """Kernels 0 … M − 1 in groups of neighbours, as text."""
    parts = [tuple(range(j, min(j + size, M))) for j in range(0, M, size)]
    return f"groups={tuple(parts)}"


def _ellipsoid(M: int) -> str:
    """A tridiagonal E ≻ 0 with ¼ beside the diagonal, as text."""
    rows = [
        tuple({0: 1.0, 1: 0.25}.get(abs(i - j), 0.0) for j in range(M))
        for i in range(M)
    ]
    return f"E={tuple(rows)}"


WDBC = Real("wdbc", 100, seed=1)
WDBC_KERNELS = Pivoted(BOTH, 20)
RING = Generated("ringnorm", 200, seed=2)
TOY = Generated("sparse_signal", 60, seed=3, d=50, few=5)
VIEWS = Generated("three_views", 120, seed=5, noise=2.0)

BINARY = (
    Instance(
        "tiny-hinge", "the smallest problem: three kernels of rank two",
        Drawn(38, Blocks(3, 2, seed=1)), None, "hinge", "l1", 1.0,
        tags=("synthetic", "easy"),
    ),
    Instance(
        "wdbc-l1-hinge", "the classical ℓ1-MKL on real data",
        WDBC, WDBC_KERNELS, "hinge", "l1", 1.0, tags=("real", "easy", "sparse"),
    ),
    Instance(
        "wdbc-lp-hinge", "dense ℓ4/3-MKL on the same kernels",
        WDBC, WDBC_KERNELS, "hinge", f"lp:p={4 / 3}", 1.0,
        tags=("real", "easy", "dense"),
    ),
    Instance(
        "wdbc-l1-hinge-C100", "nearly separable: large C",
        WDBC, WDBC_KERNELS, "hinge", "l1", 100.0, tags=("real", "ill-conditioned"),
    ),
    Instance(
        "wdbc-lasso-logistic", "group lasso with the logistic loss, no bias",
        WDBC, WDBC_KERNELS, "logistic", "group_lasso", 1.0, False,
        ("real", "easy", "sparse"),
    ),
    Instance(
        "wdbc-net-logistic", "elastic net: strongly convex, and sparse",
        WDBC, WDBC_KERNELS, "logistic", "ElasticNet:l1_ratio=0.5", 1.0,
        tags=("real", "sparse"),
    ),
    Instance(
        "wdbc-ivanov-hinge", "the Ivanov form, p = 2",
        WDBC, WDBC_KERNELS, "hinge", "Ivanov:p=2", 1.0, tags=("real", "dense"),
    ),
    Instance(
        "wdbc-tikhonov-hinge", "the Tikhonov form: Ω is a power 4/3",
        WDBC, WDBC_KERNELS, "hinge", "Tikhonov:p=2,mu=0.5", 1.0,
        tags=("real", "dense"),
    ),
    Instance(
        "wdbc-vskl-hinge", "variable sparsity: 34 kernels in groups of five",
        WDBC, WDBC_KERNELS, "hinge", f"VSKL:{_groups(34, 5)},q=2", 1.0,
        tags=("real", "groups"),
    ),
    Instance(
        "wdbc-composite-hinge", "composite absolute penalty over groups",
        WDBC, WDBC_KERNELS, "hinge", f"Composite:{_groups(34, 5)},r=1,s=1.5", 1.0,
        tags=("real", "groups"),
    ),
    Instance(
        "wdbc-ellipsoid-hinge", "non-isotropic: weights in an ellipsoid",
        Real("wdbc", 80, seed=4), Pivoted(GAUSSIANS, 20), "hinge",
        f"NonIsotropic:{_ellipsoid(4)}", 1.0, tags=("real", "dense"),
    ),
    Instance(
        "wdbc-fixed-hinge", "a plain SVM: all kernel weights are 1/4",
        Real("wdbc", 200, seed=5), Pivoted(GAUSSIANS, 30), "hinge",
        "FixedWeights:theta=(0.25, 0.25, 0.25, 0.25)", 1.0, tags=("real", "svm"),
    ),
    Instance(
        "wdbc-all-logistic", "all samples; one kernel for each of 30 features",
        Real("wdbc"), Columns(1), "logistic", "group_lasso", 0.1,
        tags=("real", "sparse"),
    ),
    Instance(
        "wdbc-all-exact", "all samples, eight Gaussians as they are, to width 64",
        Real("wdbc"), Exact(MANY), "hinge", "lp:p=2", 1.0,
        tags=("real", "ill-conditioned", "dense"),
    ),
    Instance(
        "wdbc-exact-l1", "Gaussians as they are: triangles instead of factors",
        Real("wdbc", 120, seed=6), Exact(GAUSSIANS), "hinge", "l1", 1.0,
        tags=("real", "exact"),
    ),
    Instance(
        "wdbc-copies", "every sample three times: the dual is not unique",
        Real("wdbc", 40, seed=7, repeat=3), Pivoted(BOTH, 16), "hinge", "lp:p=2", 1.0,
        tags=("real", "degenerate"),
    ),
    Instance(
        "wdbc-twins", "every kernel twice: weights are not unique",
        Real("wdbc", 100, seed=8), Pivoted(GAUSSIANS, 20, twice=True), "hinge", "l1",
        1.0, tags=("real", "degenerate"),
    ),
    Instance(
        "wdbc-zeros", "kernels of zeros among others",
        Real("wdbc", 100, seed=8), Pivoted(GAUSSIANS, 20, zeros=3), "logistic",
        "lp:p=2", 1.0, tags=("real", "degenerate"),
    ),
    Instance(
        "digits-3-8", "handwritten 3 and 8: one kernel for each row of pixels",
        Real("digits", classes=(3, 8)), Columns(8), "hinge", "l1", 0.1,
        tags=("real", "sparse"),
    ),
    Instance(
        "digits-4-9-logistic", "handwritten 4 and 9: one kernel for each pixel",
        Real("digits", classes=(4, 9)), Columns(1), "logistic", "group_lasso", 1.0,
        tags=("real", "sparse"),
    ),
    Instance(
        "ringnorm-exact", "eight Gaussians from narrow to wide, hinge, C = 10",
        RING, Exact(MANY), "hinge", "lp:p=2", 10.0,
        tags=("synthetic", "ill-conditioned", "exact"),
    ),
    Instance(
        "ringnorm-l1", "the same, sparse, by factors",
        RING, Pivoted(MANY, 40), "hinge", "l1", 1.0, tags=("synthetic", "sparse"),
    ),
    Instance(
        "twonorm-single", "a Gaussian for every feature",
        Generated("twonorm", 200, seed=9), Pivoted(("gaussian(2) on single",), 8),
        "hinge", "l1", 1.0, tags=("synthetic", "dense"),
    ),
    Instance(
        "twonorm-rare", "six of 200 samples are +1",
        Generated("twonorm", 200, seed=10, few=6), Pivoted(BOTH, 12), "hinge",
        "lp:p=2", 10.0, tags=("synthetic", "unbalanced"),
    ),
    Instance(
        "twonorm-sizes", "kernels of sizes 1 to 256",
        Generated("twonorm", 100, seed=11),
        Pivoted(("gaussian(2) on single",), 8, sizes=5), "hinge", "lp:p=1.5", 1.0,
        tags=("synthetic", "ill-conditioned"),
    ),
    Instance(
        "toy-p1", "five of fifty features count: p = 1",
        TOY, Columns(1), "hinge", "lp:p=1", 1.0, False, ("synthetic", "sparse"),
    ),
    Instance(
        "toy-p43", "five of fifty features count: p = 4/3",
        TOY, Columns(1), "hinge", f"lp:p={4 / 3}", 1.0, tags=("synthetic",),
    ),
    Instance(
        "toy-p4", "five of fifty features count: p = 4",
        TOY, Columns(1), "hinge", "lp:p=4", 1.0, tags=("synthetic", "dense"),
    ),
    Instance(
        "toy-pinf", "five of fifty features count: p = ∞, the sum of kernels",
        TOY, Columns(1), "hinge", "lp:p=inf", 1.0, tags=("synthetic", "dense"),
    ),
    Instance(
        "toy-prior", "kernel m has the prior (m + 1)/10",
        TOY, Columns(5), "hinge",
        f"WeightedLpNorm:p=2,prior={tuple((m + 1) / 10 for m in range(10))}", 1.0,
        tags=("synthetic",),
    ),
    Instance(
        "toy-q3", "block norm with q = 3: anti-sparse",
        TOY, Columns(5), "logistic", "BlockNorm:q=3", 1.0, tags=("synthetic", "dense"),
    ),
    Instance(
        "toy-qinf", "block norm with q = ∞: the largest norm rules",
        TOY, Columns(5), "logistic", "BlockNorm:q=inf", 1.0,
        tags=("synthetic", "dense"),
    ),
    Instance(
        "toy-power", "a sum of powers, q = 1.3: no norm",
        TOY, Columns(5), "logistic", "BlockPower:q=1.3", 1.0, tags=("synthetic",),
    ),
    Instance(
        "words-sparse", "binary features in few samples; sparse block norm",
        Generated("counts", 400, seed=12, d=600, few=30), Columns(6), "logistic",
        "SparseBlockNorm:q=1.5,a=0.3", 1.0, False, ("synthetic", "sparse data"),
    ),
    Instance(
        "words-l1", "binary features in few samples; 600 kernels of rank one",
        Generated("counts", 300, seed=13, d=600, few=40), Columns(1), "hinge", "l1",
        10.0, tags=("synthetic", "sparse data", "sparse", "many kernels"),
    ),
    Instance(
        "alike-l1", "twelve kernels that come in threes, nearly equal",
        Drawn(80, Blocks(12, 6, seed=14, alike=3), few=6), None, "hinge", "l1", 10.0,
        tags=("synthetic", "ill-conditioned", "degenerate"),
    ),
    Instance(
        "blocks-1000", "a thousand kernels of rank two, three of them matter",
        Drawn(200, Blocks(1000, 2, seed=15), few=3), None, "hinge", "l1", 1.0,
        tags=("synthetic", "many kernels", "sparse"),
    ),
    Instance(
        "blocks-10000-logistic", "ten thousand kernels of rank one, two matter",
        Drawn(60, Blocks(10_000, 1, seed=16)), None, "logistic", "group_lasso", 0.2,
        tags=("synthetic", "many kernels", "sparse"),
    ),
    Instance(
        "blocks-10000-hinge", "ten thousand kernels of rank one, hinge",
        Drawn(100, Blocks(10_000, 1, seed=17)), None, "hinge", "l1", 0.1,
        tags=("synthetic", "many kernels", "sparse"),
    ),
    Instance(
        "blocks-rare", "three of 60 samples are +1, C = 0.01",
        Drawn(60, Blocks(20, 3, seed=18), share=0.05), None, "hinge", "lp:p=2", 0.01,
        tags=("synthetic", "unbalanced"),
    ),
    Instance(
        "twonorm-5000", "5000 samples, twenty kernels of rank one",
        Generated("twonorm", 5000, seed=19), Columns(1), "hinge", "lp:p=2", 0.1,
        tags=("synthetic", "many samples", "dense"),
    ),
    Instance(
        "signal-3000", "3000 samples, a hundred kernels of rank two, logistic",
        Generated("sparse_signal", 3000, seed=20, d=200, few=10), Columns(2),
        "logistic", "group_lasso", 0.02, tags=("synthetic", "many samples", "sparse"),
    ),
    Instance(
        "leukemia-l1", "38 patients, 7129 genes: one kernel for each",
        Real("leukemia"), Columns(1), "hinge", "l1", 0.01,
        tags=("real", "many kernels", "to fetch"),
    ),
    Instance(
        "sonar-l1", "60 frequencies, a kernel for each, and the hinge",
        Real("sonar"), Columns(1), "hinge", "l1", 1.0,
        tags=("real", "sparse", "to fetch"),
    ),
    Instance(
        "sonar-mixed", "Gaussians, a polynomial and a linear kernel",
        Real("sonar"), Pivoted(MIXED, 40), "hinge", f"lp:p={4 / 3}", 10.0,
        tags=("real", "to fetch"),
    ),
    Instance(
        "ionosphere-lasso", "group lasso on 34 features",
        Real("ionosphere"), Pivoted(("gaussian(1) on single",), 6), "logistic",
        "group_lasso", 0.5, tags=("real", "sparse", "to fetch"),
    ),
    Instance(
        "liver-exact", "noisy labels: most samples are at a bound",
        Real("liver", 200, seed=21), Exact(GAUSSIANS), "hinge", "l1", 1.0,
        tags=("real", "exact", "to fetch"),
    ),
    Instance(
        "pima-lp", "all 768 samples, four Gaussians by factors",
        Real("pima"), Pivoted(GAUSSIANS, 40), "hinge", "lp:p=2", 1.0,
        tags=("real", "to fetch"),
    ),
)  # fmt: skip

CLASSES = (
    Instance(
        "iris-multinomial", "three classes, four features, a kernel for each",
        Real("iris"), Columns(1), "multinomial", "lp:p=2", 1.0,
        tags=("real", "easy"),
    ),
    Instance(
        "iris-hinge", "the multi-class hinge on a few Gaussians",
        Real("iris", 90, seed=22), Pivoted(GAUSSIANS, 10), "multiclass_hinge",
        "lp:p=2", 1.0, tags=("real",),
    ),
    Instance(
        "wine-lasso", "13 features: group lasso with the multinomial loss",
        Real("wine"), Columns(1), "multinomial", "group_lasso", 0.2,
        tags=("real", "sparse"),
    ),
    Instance(
        "wine-l1-hinge", "13 features: ℓ1 with the multi-class hinge",
        Real("wine"), Columns(1), "multiclass_hinge", "l1", 0.1,
        tags=("real", "sparse"),
    ),
    Instance(
        "digits-rows", "ten classes, 400 samples, a kernel for each row of pixels",
        Real("digits", 400, seed=23), Columns(8), "multinomial", "lp:p=2", 0.05,
        tags=("real", "many classes"),
    ),
    Instance(
        "waveform-single", "Breiman's waves: a kernel for each of 21 points",
        Generated("waveform", 150, seed=24), Columns(1), "multinomial", "l1", 0.1,
        tags=("synthetic", "sparse"),
    ),
    Instance(
        "waveform-hinge", "Breiman's waves: seven kernels of three points",
        Generated("waveform", 90, seed=25), Columns(3), "multiclass_hinge", "lp:p=2",
        0.1, tags=("synthetic",),
    ),
    Instance(
        "views-lasso", "three classes: each view tells one from the two others",
        VIEWS, Columns(2), "multinomial", "group_lasso", 0.1,
        tags=("synthetic", "views"),
    ),
    Instance(
        "views-hinge", "the same views with the multi-class hinge, no bias",
        VIEWS, Columns(2), "multiclass_hinge", "BlockNorm:q=1.5", 0.1, False,
        ("synthetic", "views"),
    ),
)  # fmt: skip

REGRESSION = (
    Instance(
        "diabetes-lasso", "the group lasso of ten features",
        Real("diabetes"), Columns(1), "squared", "group_lasso", 0.05,
        tags=("real", "easy", "sparse"),
    ),
    Instance(
        "diabetes-lasso-no-bias", "the same without a bias, for other packages",
        Real("diabetes", 200, seed=26), Columns(1), "squared", "group_lasso", 0.1,
        False, ("real", "easy", "sparse"),
    ),
    Instance(
        "diabetes-tube", "support vector regression, ε = 0.1",
        Real("diabetes", 150, seed=27), Pivoted(GAUSSIANS, 20), "eps_insensitive",
        "lp:p=2", 1.0, tags=("real",),
    ),
    Instance(
        "diabetes-huber", "Huber's loss, ℓ4/3",
        Real("diabetes", 150, seed=28), Pivoted(GAUSSIANS, 20), "huber",
        f"lp:p={4 / 3}", 1.0, tags=("real",),
    ),
    Instance(
        "diabetes-median", "quantile regression, τ = 1/2, ℓ1",
        Real("diabetes", 150, seed=29), Columns(1), "quantile", "l1", 1.0,
        tags=("real", "sparse"),
    ),
    Instance(
        "polynomial-net", "Gaussians on single features, elastic net",
        Generated("polynomial", 300, seed=30, d=30, few=4, noise=0.5),
        Pivoted(("gaussian(2) on single",), 8), "squared", "ElasticNet:l1_ratio=0.5",
        1.0, tags=("synthetic", "sparse"),
    ),
    Instance(
        "polynomial-4000", "4000 samples, 40 kernels of rank one",
        Generated("polynomial", 4000, seed=31, d=40, few=6), Columns(1), "squared",
        "group_lasso", 0.01, tags=("synthetic", "many samples", "sparse"),
    ),
    Instance(
        "blocks-score", "four hundred kernels of rank two, ridge-like ℓ2",
        Drawn(150, Blocks(400, 2, seed=32), few=10, target="score"), None, "squared",
        "lp:p=2", 1.0, tags=("synthetic", "many kernels", "dense"),
    ),
)  # fmt: skip

ONE_CLASS = (
    Instance(
        "benign-one-class", "all benign samples of wdbc",
        Real("wdbc", classes=(-1,)), Pivoted(GAUSSIANS, 15), "one_class", "lp:p=2",
        0.1, False, ("real",),
    ),
    Instance(
        "wine-one-class", "one wine, thirteen features",
        Real("wine", classes=(1,)), Pivoted(("gaussian(2) on single",), 6),
        "one_class", "l1", 1.0, False, ("real", "sparse"),
    ),
    Instance(
        "outliers-exact", "a cloud with ten points far away, Gaussians as they are",
        Generated("outliers", 120, seed=33, d=5, few=10), Exact(GAUSSIANS),
        "one_class", "lp:p=2", 0.2, False, ("synthetic", "exact"),
    ),
    Instance(
        "outliers-2000", "2000 samples, factors of rank ten",
        Generated("outliers", 2000, seed=34, d=5, few=50), Pivoted(GAUSSIANS, 10),
        "one_class", f"lp:p={4 / 3}", 0.01, False, ("synthetic", "many samples"),
    ),
)  # fmt: skip

INSTANCES = {one.name: one for one in (*BINARY, *CLASSES, *REGRESSION, *ONE_CLASS)}
