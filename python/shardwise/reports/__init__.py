# SPDX-License-Identifier: Apache-2.0
"""What programs report, as plain data with text, rich, HTML, JSON and pandas views.

``program.collectives()`` is a :class:`Ledger`, ``program.why(...)`` an :class:`Explanation`,
``program.promotions()`` a :class:`Promotions`, ``program.memory()`` a :class:`MemoryReport`,
``program.rematerialized()`` a :class:`Rematerialization`, ``program.work()`` a :class:`WorkReport`,
``program.estimate()`` an :class:`Estimate`, ``program.shard_update()`` a :class:`ShardUpdateReport`, and
``program.choice_price()`` a :class:`Price`.
"""

from .collective_rows import CollectiveRow
from .decisions import ChosenOp, Decision, Instead, Way
from .estimate import Estimate, EstimateRow
from .estimate_groups import EstimateDiff, EstimateDifference, EstimateGroup, EstimateGroups
from .explanations import (
    AxisExplanation,
    Counterfactual,
    Explanation,
    LostAxis,
    ValueExplanation,
)
from .ledger import Ledger
from .ledger_groups import CollectiveGroup, LedgerDiff, LedgerDifference, LedgerGroups
from .memory import MemoryGroup, MemoryGroups, MemoryMoment, MemoryReport, MemoryRow, MemoryTimeline
from .price import Price
from .promotions import Promotion, Promotions
from .rematerialization import Rematerialization, RematerializedGroup, RematerializedGroups, RematerializedRow
from .shard_update import ShardUpdateReport, StateRow
from .work import WorkReport, WorkRow

__all__ = [
    "AxisExplanation",
    "ChosenOp",
    "CollectiveGroup",
    "CollectiveRow",
    "Counterfactual",
    "Decision",
    "Estimate",
    "EstimateDiff",
    "EstimateDifference",
    "EstimateGroup",
    "EstimateGroups",
    "EstimateRow",
    "Explanation",
    "Instead",
    "Ledger",
    "LedgerDiff",
    "LedgerDifference",
    "LedgerGroups",
    "LostAxis",
    "MemoryGroup",
    "MemoryGroups",
    "MemoryMoment",
    "MemoryReport",
    "MemoryRow",
    "MemoryTimeline",
    "Price",
    "Promotion",
    "Promotions",
    "Rematerialization",
    "RematerializedGroup",
    "RematerializedGroups",
    "RematerializedRow",
    "ShardUpdateReport",
    "StateRow",
    "ValueExplanation",
    "Way",
    "WorkReport",
    "WorkRow",
]


def __dir__() -> list[str]:
    return sorted(__all__)
