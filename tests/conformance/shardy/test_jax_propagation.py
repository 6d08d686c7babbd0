# SPDX-License-Identifier: Apache-2.0
"""What JAX lowers, with annotations on its arguments, is propagated as by Shardy, value by value.

tests/conformance/stablehlo/test_text.py checks that the same texts read and print back.
"""

from __future__ import annotations

import pytest

from shardwise import _core
from tests.conformance.shardy.client import ShardyOracle
from tests.conformance.shardy.oracle_runs import PIPELINE, text_differences
from tests.conformance.stablehlo.test_text import JAX_PROGRAMS

# XLA rewrites CHLO before Shardy, which has no rules for it.
LEGALIZE = "func.func(chlo-legalize-to-stablehlo)"
LEAST_PROGRAMS = 25
# The mechanism "arguments of functions in the last round" of mechanisms.py: Shardy leaves a carry of the loop whole.
LATE = ("recurrent_gradient",)


@pytest.mark.parametrize("passes", [(), ("inline_calls", "simplify")], ids=["as written", "simplified"])
@pytest.mark.parametrize("name", [name for name in JAX_PROGRAMS if name not in LATE])
def test_what_jax_lowers_is_propagated_as_by_shardy(shardy: ShardyOracle, name: str, passes: tuple[str, ...]) -> None:
    """As written, and as a compiled program propagates it."""
    text = shardy.parse(shardy.after(shardy.lower(name), LEGALIZE))
    if passes:
        text = _core.passes.run_passes(_core.ir.parse(text), list(passes)).text(generic=True)
    found = text_differences(shardy, text, PIPELINE)
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("name", LATE)
def test_where_arguments_hear_late_more_is_sharded_than_by_shardy(shardy: ShardyOracle, name: str) -> None:
    text = shardy.parse(shardy.after(shardy.lower(name), LEGALIZE))
    found = text_differences(shardy, text, PIPELINE)
    assert found
    for op, ours, theirs in found:
        assert not op.startswith(("argument", "result"))
        assert "".join(ours).count('"data"') >= "".join(theirs).count('"data"'), op


def test_there_are_enough_programs() -> None:
    assert len(set(JAX_PROGRAMS) - set(LATE)) >= LEAST_PROGRAMS
