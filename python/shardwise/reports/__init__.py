# SPDX-License-Identifier: Apache-2.0
"""What programs report, as plain data with text, rich, HTML, JSON and pandas views.

``program.collectives()`` is a :class:`Ledger`, ``program.why(...)`` an :class:`Explanation`,
``program.promotions()`` a :class:`Promotions`, and ``program.memory()`` a :class:`MemoryReport`.
"""

from .collective_rows import CollectiveRow
from .explanations import (
    AxisExplanation,
    Counterfactual,
    Explanation,
    LostAxis,
    ValueExplanation,
)
from .ledger import Ledger
from .ledger_groups import CollectiveGroup, LedgerDiff, LedgerDifference, LedgerGroups
from .memory import MemoryReport, MemoryRow
from .promotions import Promotion, Promotions

__all__ = [
    "AxisExplanation",
    "CollectiveGroup",
    "CollectiveRow",
    "Counterfactual",
    "Explanation",
    "Ledger",
    "LedgerDiff",
    "LedgerDifference",
    "LedgerGroups",
    "LostAxis",
    "MemoryReport",
    "MemoryRow",
    "Promotion",
    "Promotions",
    "ValueExplanation",
]
