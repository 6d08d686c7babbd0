# SPDX-License-Identifier: Apache-2.0
"""Options that are true or false. A word, None or 2 in place of one is an error, not a true value.

@takes_flags("optim")
def trace(decay: Any, nesterov: bool = False) -> ...: ...      trace(0.9, nesterov=np.True_) gets True
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from .errors import message, shown

__all__ = ["as_flag", "flags_of", "takes_flags"]

_F = TypeVar("_F", bound=Callable[..., Any])


def as_flag(what: str, name: str, value: Any) -> bool:
    """The option as a bool: True, False, 1, 0, or a NumPy scalar of them. TypeError for others.

    A traced value is returned as it is: what needs its truth raises the error of traced values.
    """
    if isinstance(value, bool):
        return value
    if hasattr(value, "__shardwise_array__"):
        return value  # type: ignore[no-any-return]
    is_scalar = isinstance(value, (int, np.integer, np.bool_)) or (isinstance(value, np.ndarray) and value.shape == ())
    if not is_scalar or np.asarray(value).dtype.kind not in "biu" or value not in (0, 1):
        raise TypeError(message(what, f"{name} must be a bool", shown(value)))
    return bool(value)


def flags_of(signature: inspect.Signature) -> Sequence[str]:
    """The parameters that are annotated as bools."""
    return [name for name, parameter in signature.parameters.items() if parameter.annotation in ("bool", bool)]


def takes_flags(module: str) -> Callable[[_F], _F]:
    """Decorator: check the parameters that are annotated as bools. Errors begin with ``module`` and the name."""

    def decorate(function: _F) -> _F:
        what, signature = f"{module}.{function.__name__}", inspect.signature(function)
        names = flags_of(signature)
        if not names:
            return function
        places = {name: place for place, name in enumerate(signature.parameters)}

        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            given = list(args)
            for name in names:
                if name in kwargs:
                    kwargs[name] = as_flag(what, name, kwargs[name])
                elif (
                    places[name] < len(given) and signature.parameters[name].kind is not inspect.Parameter.KEYWORD_ONLY
                ):
                    given[places[name]] = as_flag(what, name, given[places[name]])
            return function(*given, **kwargs)

        return called  # type: ignore[return-value]

    return decorate
