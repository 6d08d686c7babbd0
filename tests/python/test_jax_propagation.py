# SPDX-License-Identifier: Apache-2.0
"""What JAX lowers, with annotations on its arguments, is propagated as by Shardy, value by value.

test_text.py checks that the same texts read and print back.
"""

from __future__ import annotations

import pytest
from oracle_runs import PIPELINE, text_differences
from shardy_oracle import ShardyOracle
from test_text import JAX_PROGRAMS

# XLA rewrites CHLO before Shardy, which has no rules for it.
LEGALIZE = "func.func(chlo-legalize-to-stablehlo)"
LEAST_PROGRAMS = 25
# Functions called several times, of whose results some calls use one and some another. Shardy gives each call one
# of its own, in which what the call does not use has no sharding; here all calls share one.
SHARED_FUNCTIONS = ("recurrent_gradient",)


@pytest.mark.parametrize("name", [name for name in JAX_PROGRAMS if name not in SHARED_FUNCTIONS])
def test_what_jax_lowers_is_propagated_as_by_shardy(shardy: ShardyOracle, name: str) -> None:
    text = shardy.parse(shardy.after(shardy.lower(name), LEGALIZE))
    found = text_differences(shardy, text, PIPELINE)
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("name", SHARED_FUNCTIONS)
def test_programs_with_shared_functions_have_their_arguments_and_results_as_by_shardy(
    shardy: ShardyOracle, name: str
) -> None:
    text = shardy.parse(shardy.after(shardy.lower(name), LEGALIZE))
    found = text_differences(shardy, text, PIPELINE)
    assert found
    assert not [row for row in found if row[0].startswith(("argument", "result"))]


def test_there_are_enough_programs() -> None:
    assert len(set(JAX_PROGRAMS) - set(SHARED_FUNCTIONS)) >= LEAST_PROGRAMS
