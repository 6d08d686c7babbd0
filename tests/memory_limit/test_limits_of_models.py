# SPDX-License-Identifier: Apache-2.0
"""Steps of models under limits from the least that they can keep to their peak: a run stays within each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardwise as sw
from shardwise import _core
from tests.memory_limit.model_steps import MORE_MODELS
from tests.memory_limit.programs import MODELS, Model
from tests.support.run_seed import in_turn, is_whole

LIMITS = 8 if is_whole() else 2  # steps between the least limit and the peak


def _rehearsed(program: sw.Program) -> int:
    """The peak of a run of one device, as its plan holds and frees values."""
    found: int = _core.runtime.Executable(program._compiled).memory(donated=list(program._donated))[0]
    return found


def _bits(tree: Any) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in sw.tree.leaves(tree)]


@pytest.mark.parametrize("model", in_turn(MORE_MODELS + MODELS, 8), ids=lambda model: model.name)
def test_a_run_is_within_each_limit(model: Model) -> None:
    program = model.jitted().lower(*model.arguments).compile()
    peak, least = program.memory().peak_bytes, program.rematerialized(1000).after_bytes
    assert least < peak
    for step in range(LIMITS):
        limit = least + (peak - least) * step // LIMITS
        limited = model.jitted(memory_limit=limit).lower(*model.arguments).compile()
        assert _rehearsed(limited) <= limited.memory().peak_bytes <= limit


@pytest.mark.parametrize("model", in_turn(MORE_MODELS, 4), ids=lambda model: model.name)
def test_bits_do_not_depend_on_the_limit(model: Model) -> None:
    limit = int(model.jitted().lower(*model.arguments).compile().memory().peak_bytes * 0.99)
    assert _bits(model.jitted(memory_limit=limit)(*model.arguments)) == _bits(model.jitted()(*model.arguments))


LATER = ("optimize_collectives", "form_scans", "window_einsums", "combine_collectives")


@pytest.mark.parametrize("model", in_turn(MODELS, 5), ids=lambda model: model.name)
@pytest.mark.parametrize("later", LATER)
def test_a_later_pass_undoes_nothing(model: Model, later: str) -> None:
    program = model.jitted().lower(*model.arguments).compile()
    limit = int(program.memory().peak_bytes * max(model.least, 0.6))
    donated = list(program._donated)
    limited = model.jitted(memory_limit=limit).lower(*model.arguments).compile()._compiled.stages["local"]
    again = _core.passes.run_passes(limited, [later])
    assert _core.analysis.live_bytes(limited, donated)[0] <= limit
    assert _core.analysis.live_bytes(again, donated)[0] <= limit
