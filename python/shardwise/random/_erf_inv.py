# SPDX-License-Identifier: Apache-2.0
"""The error function, and its inverse by polynomials in w = -log(1 - x²), one for the centre and others for the tails.

Source: Giles, "Approximating the erfinv function", GPU Computing Gems Jade Edition, 2011; the coefficients and the
order of operations are those of XLA.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..tracing import Tracer

__all__ = ["erf", "erf_inv"]

# A branch: the upper limit of w; the offset of the polynomial in w (first branch) or sqrt(w); its coefficients.
_SINGLE = (
    (5.0, 2.5, (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
                -0.00417768164, 0.246640727, 1.50140941)),
    (np.inf, 3.0, (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
                   0.00943887047, 1.00167406, 2.83297682)),
)  # fmt: skip
_DOUBLE = (
    (6.25, 3.125, (
        -3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18, 1.115787767802518096e-17,
        -1.333171662854620906e-16, 2.0972767875968561637e-17, 6.6376381343583238325e-15, -4.0545662729752068639e-14,
        -8.1519341976054721522e-14, 2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11,
        1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
        -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352, -0.00074070253416626697512,
        -0.0060336708714301490533, 0.24015818242558961693, 1.6536545626831027356,
    )),
    (16.0, 3.25, (
        2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
        1.5027403968909827627e-06, -4.013867526981545969e-06, 2.9234449089955446044e-06, 1.2475304481671778723e-05,
        -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
        0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066, -0.0037512085075692412107,
        0.005370914553590063617, 1.0052589676941592334, 3.0838856104922207635,
    )),
    (np.inf, 5.0, (
        -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09, -3.7894654401267369937e-09,
        7.6157012080783393804e-09, -1.4960026627149240478e-08, 2.9147953450901080826e-08, -6.7711997758452339498e-08,
        2.2900482228026654717e-07, -9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05,
        7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026, 1.0103004648645343977,
        4.8499064014085844221,
    )),
)  # fmt: skip


def erf(x: Any) -> Any:
    """The error function of a float array or tracer, elementwise."""
    if isinstance(x, Tracer):
        return x._trace.emit("chlo.erf", (x,))
    return np.vectorize(math.erf, otypes=[float])(x.astype(float)).astype(x.dtype)


def erf_inv(x: Any) -> Any:
    """The number whose error function is ``x``, elementwise; ±1 gives ±infinity, and other values NaN.

    Args:
        x: a float array or tracer; 16-bit floats are computed in float32.

    >>> round(float(erf_inv(np.array([0.5]))[0]), 12)
    0.476936276204
    """
    if x.dtype.itemsize < 4:
        return erf_inv(x.astype(np.float32)).astype(x.dtype)
    number = x.dtype.type
    with np.errstate(divide="ignore", invalid="ignore"):
        w = -np.log1p(-x * x)
        result = _polynomials(w, _SINGLE if x.dtype == np.float32 else _DOUBLE, number) * x
        # By its sign: the gradient of x * infinity would be infinite.
        return np.where(np.abs(x) == 1, np.sign(x) * number(np.inf), result)


def _polynomials(w: Any, branches: Any, number: Any) -> Any:
    """Horner's scheme. Each step selects the coefficient by branch; a branch with fewer coefficients stops early."""
    below = [w < number(limit) for limit, _, _ in branches[:-1]]
    shifts = [shift for _, shift, _ in branches]
    # Replaced below the first limit, because the gradient of the root at zero is infinite.
    root = np.sqrt(np.maximum(w, number(branches[0][0])))
    argument = np.where(below[0], w - number(shifts[0]), root - _choose(below[1:], shifts[1:], number))
    result: Any = _choose(below, [c[0] for _, _, c in branches], number)
    for i in range(1, len(branches[0][2])):
        active = [c[i] for _, _, c in branches if i < len(c)]
        following = _choose(below, active, number) + result * argument
        result = following if len(active) == len(branches) else np.where(below[len(active) - 1], following, result)
    return result


def _choose(below: list[Any], values: list[float], number: Any) -> Any:
    """The first value whose condition holds, else the last one."""
    chosen = number(values[-1])
    for condition, value in reversed(list(zip(below, values[:-1]))):
        chosen = np.where(condition, number(value), chosen)
    return chosen
