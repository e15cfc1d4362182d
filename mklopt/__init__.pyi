"""The public names of mklopt, for type checkers: at run time they load on first use."""

from . import data as data
from . import formulations as formulations
from . import gmkl as gmkl
from . import kernels as kernels
from . import library as library
from . import plots as plots
from . import reference as reference
from . import solvers as solvers
from . import structured as structured
from .certificates.certificate import Certificate as Certificate
from .estimators.classifier import MKLClassifier as MKLClassifier
from .estimators.cv import MKLClassifierCV as MKLClassifierCV
from .estimators.one_class import MKLOneClass as MKLOneClass
from .estimators.regressor import MKLRegressor as MKLRegressor
from .formulations import formulation as formulation
from .formulations import gallery as gallery
from .formulations import loss as loss
from .formulations import variational as variational
from .gmkl import families as families
from .gmkl import regularizers as regularizers
from .gmkl.problem import KernelFamilyProblem as KernelFamilyProblem
from .grams.stack import GramStack as GramStack
from .judge import rates as rates
from .judge.exam.exam import check_solver as check_solver
from .judge.exam.one_point import diagnose as diagnose
from .judge.inspection import check_formulation as check_formulation
from .judge.inspection import inspect as inspect
from .judge.worst_case_table import worst_case_table as worst_case_table
from .kernels.cluster.stack import ClusterStack as ClusterStack
from .kernels.streaming import LazyStack as LazyStack
from .problem import Problem as Problem
from .reference.c_zero import C_zero as C_zero
from .run.loop import solve as solve
from .run.result import Result as Result
from .run.trace import Trace as Trace
from .solvers import solver as solver
from .structured.problem import StructuredProblem as StructuredProblem
from .tasks.certify import certify as certify
from .tasks.certify_exact import certify_exact as certify_exact
from .tasks.estimate import estimate as estimate
from .tasks.one_vs_rest import one_vs_rest as one_vs_rest
from .tasks.path import path as path
from .tasks.prove_used import prove_used as prove_used
from .tasks.race import race as race
from .util.threads import threads as threads

__all__ = [
    "C_zero",
    "Certificate",
    "ClusterStack",
    "GramStack",
    "KernelFamilyProblem",
    "LazyStack",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLOneClass",
    "MKLRegressor",
    "Problem",
    "Result",
    "StructuredProblem",
    "Trace",
    "__version__",
    "certify",
    "certify_exact",
    "check_formulation",
    "check_solver",
    "data",
    "diagnose",
    "estimate",
    "families",
    "formulation",
    "formulations",
    "gallery",
    "gmkl",
    "inspect",
    "kernels",
    "library",
    "loss",
    "one_vs_rest",
    "path",
    "plots",
    "prove_used",
    "race",
    "rates",
    "reference",
    "regularizers",
    "solve",
    "solver",
    "solvers",
    "structured",
    "threads",
    "variational",
    "worst_case_table",
]

__version__: str

HOMES: dict[str, str]
