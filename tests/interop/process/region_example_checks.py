# SPDX-License-Identifier: Apache-2.0
"""The examples with manual regions on 8 host devices of JAX. In a process of its own."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.region_examples import REGION_EXAMPLES


@pytest.mark.parametrize("name", REGION_EXAMPLES)
def test_an_example_with_a_region_runs_on_jax(name: str) -> None:
    example = REGION_EXAMPLES[name]()
    function = example.compiled().to_jax()
    found = function.get(function(*example.arguments))
    results = found if isinstance(found, (tuple, list)) else [found]
    for got, wanted in zip(results, example.expected(), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
