"""All formulations by name, for type checkers: at run time they load on first use."""

from .base import Formulation as Formulation
from .block_norm import BlockL1 as BlockL1
from .block_norm import BlockNorm as BlockNorm
from .block_power import BlockPower as BlockPower
from .declared import Declared as Declared
from .declared import Variational as Variational
from .declared import formulation as formulation
from .declared import stripped as stripped
from .declared import variational as variational
from .elastic_net import ElasticNet as ElasticNet
from .fixed_weights import FixedWeights as FixedWeights
from .group_lasso import GroupLasso as GroupLasso
from .groupings import graph_edges as graph_edges
from .groupings import groups_by as groups_by
from .groupings import tree_groups as tree_groups
from .ivanov import Ivanov as Ivanov
from .ivanov import Tikhonov as Tikhonov
from .losses.base import Loss as Loss
from .losses.declared import loss as loss
from .losses.declared import stripped_loss as stripped_loss
from .lp_norm import LpNorm as LpNorm
from .lp_norm import WeightedLpNorm as WeightedLpNorm
from .mixed_norm import VSKL as VSKL
from .mixed_norm import Composite as Composite
from .non_isotropic import NonIsotropic as NonIsotropic
from .sparse_block_norm import SparseBlockNorm as SparseBlockNorm

def formulations() -> dict[str, type[Formulation]]: ...
def losses_by_name() -> dict[str, type[Loss]]: ...
