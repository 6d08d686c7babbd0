# SPDX-License-Identifier: Apache-2.0
"""Options that are true or false: words, None and other numbers are errors that name the option."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import shardwise as sw
from tests.errors.calls_of_optim import ARGUMENTS

X = np.arange(8, dtype=np.float32).reshape(4, 2)
KEY = sw.random.key(0)
MODULES: dict[str, Any] = {"optim": sw.optim, "nn": sw.nn, "lax": sw.lax, "random": sw.random}
REQUIRED: dict[str, Any] = {"key": KEY, "a": 4, "f": np.add, "fn": np.add, "use_running_average": True}


def _flags() -> Iterator[Any]:
    for module, members in MODULES.items():
        for name in members.__all__:
            function = getattr(members, name)
            if callable(function) and not isinstance(function, type):
                for parameter in inspect.signature(function).parameters.values():
                    if parameter.annotation == "bool":
                        yield pytest.param(module, name, parameter.name, id=f"{module}.{name}-{parameter.name}")


@pytest.mark.parametrize("value", ["word", 3, None, [True], 0.0], ids=repr)
@pytest.mark.parametrize(("module", "name", "flag"), [*_flags()])
def test_a_flag_must_be_a_bool(module: str, name: str, flag: str, value: Any) -> None:
    function = getattr(MODULES[module], name)
    required = [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    arguments = {one: REQUIRED.get(one, X) for one in required if one != flag}
    arguments |= ARGUMENTS.get(name, {"xs": X} if name == "scan" else {})
    with pytest.raises(TypeError, match=rf"^{module}\.{name}: {flag} must be a bool, got "):
        function(**arguments, **{flag: value})


def test_there_are_flags() -> None:
    assert len([*_flags()]) > 40


@pytest.mark.parametrize("value", [True, np.True_, 1, np.int32(1), np.array(True)], ids=repr)
def test_a_flag_may_be_a_number_of_numpy(value: Any) -> None:
    np.testing.assert_array_equal(sw.nn.gelu(X, value), sw.nn.gelu(X, True))
    np.testing.assert_array_equal(sw.lax.cumsum(X, reverse=value), sw.lax.cumsum(X, reverse=True))
    momentum = sw.optim.trace(0.9, nesterov=value)
    np.testing.assert_allclose(momentum.update(X, momentum.init(X))[0], 1.9 * X, rtol=1e-6)
    drawn = sw.random.choice(KEY, 8, (4,), replace=value)
    np.testing.assert_array_equal(drawn, sw.random.choice(KEY, 8, (4,), replace=True))
