# SPDX-License-Identifier: Apache-2.0
"""Small programs of ops with libraries of their own, to be mutated, compiled and run: LAPACK, sorts, transforms."""

from __future__ import annotations

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=3]>\n'
C = "tensor<4x6xcomplex<f32>>"
ROWS = f'{C} {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{?}}]>}}'

COMPLEX = f"""{MESH}func.func @main(%x: {ROWS}) -> ({C}, tensor<4x6xf32>) {{
  %c = stablehlo.constant dense<(1.5, -2.0)> : {C}
  %d = stablehlo.constant dense<[[(0.0, 1.0)], [(2.0, 3.0)], [(-0.0, 0x7FC00000)], [(4.0, -5.0)]]>
      : tensor<4x1xcomplex<f32>>
  %e = stablehlo.broadcast_in_dim %d, dims = [0, 1] : (tensor<4x1xcomplex<f32>>) -> {C}
  %0 = stablehlo.multiply %x, %c : {C}
  %1 = stablehlo.add %0, %e : {C}
  %2 = stablehlo.divide %1, %c : {C}
  %3 = stablehlo.abs %2 : ({C}) -> tensor<4x6xf32>
  %4 = stablehlo.exponential %2 : {C}
  return %4, %3 : {C}, tensor<4x6xf32>
}}
"""
TRANSFORMS = f"""{MESH}func.func @main(%x: {ROWS}) -> (tensor<4x10xf32>, {C}) {{
  %0 = stablehlo.fft %x, type = FFT, length = [6] : ({C}) -> {C}
  %1 = stablehlo.fft %0, type = IFFT, length = [4, 6] : ({C}) -> {C}
  %2 = stablehlo.fft %1, type = IRFFT, length = [10] : ({C}) -> tensor<4x10xf32>
  %3 = stablehlo.fft %2, type = RFFT, length = [10] : (tensor<4x10xf32>) -> {C}
  return %2, %3 : tensor<4x10xf32>, {C}
}}
"""
S = "tensor<6x4xf32>"
N = "tensor<6x4xi32>"
SPLIT = f'{S} {{sdy.sharding = #sdy.sharding<@mesh, [{{"b"}}, {{"a"}}]>}}'
SORT = f"""{MESH}func.func @main(%x: {SPLIT}) -> ({S}, {N}, {N}) {{
  %i = stablehlo.iota dim = 0 : {N}
  %0:2 = "stablehlo.sort"(%x, %i) <{{dimension = 0 : i64, is_stable = true}}> ({{
  ^bb0(%p: tensor<f32>, %q: tensor<f32>, %r: tensor<i32>, %s: tensor<i32>):
    %l = stablehlo.compare LT, %p, %q, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %l : tensor<i1>
  }}) : ({S}, {N}) -> ({S}, {N})
  %1:2 = chlo.top_k(%0#0, k = 4) : {S} -> ({S}, {N})
  return %1#0, %1#1, %0#1 : {S}, {N}, {N}
}}
"""


def lapack(target: str, config: str, operands: tuple[str, ...], results: tuple[str, ...]) -> str:
    """One call on a batch of matrices or vectors; scalars of the batch come as dims without a layout."""

    def layout(of: str) -> str:
        ndim = of.count("x")
        order = [1, 2, 0] if ndim == 3 else list(range(ndim - 1, -1, -1))
        return f"dense<{order}> : tensor<{ndim}xindex>"

    types, made = (", ".join(f"tensor<{x}>" for x in group) for group in (operands, results))
    layouts = [", ".join(map(layout, group)) for group in (operands, results)]
    sharded = f'tensor<{operands[0]}> {{sdy.sharding = #sdy.sharding<@mesh, [{{"b"}}, {{}}, {{?}}]>}}'
    arguments = ", ".join(f"%x{i}: {sharded if i == 0 else f'tensor<{x}>'}" for i, x in enumerate(operands))
    names = ", ".join(f"%x{i}" for i in range(len(operands)))
    returned = ", ".join(f"%0#{i}" for i in range(len(results)))
    return f"""{MESH}func.func @main({arguments}) -> ({made}) {{
  %0:{len(results)} = stablehlo.custom_call @{target}({names}) {{api_version = 4 : i32, {config}
      operand_layouts = [{layouts[0]}], result_layouts = [{layouts[1]}]}} : ({types}) -> ({made})
  return {returned} : {made}
}}
"""


LAPACK = [
    lapack("lapack_spotrf_ffi", "mhlo.backend_config = {uplo = 76 : ui8},", ("3x4x4xf32",), ("3x4x4xf32", "3xi32")),
    lapack("lapack_cgetrf_ffi", "", ("3x4x4xcomplex<f32>",), ("3x4x4xcomplex<f32>", "3x4xi32", "3xi32")),
    lapack("lapack_dgeqrf_ffi", "", ("3x5x4xf64",), ("3x5x4xf64", "3x4xf64")),
    lapack("lapack_sorgqr_ffi", "", ("3x5x4xf32", "3x4xf32"), ("3x5x4xf32",)),
    lapack(
        "lapack_ssyevd_ffi", "mhlo.backend_config = {mode = 86 : ui8, uplo = 76 : ui8},", ("3x4x4xf32",),
        ("3x4x4xf32", "3x4xf32", "3xi32"),
    ),
    lapack(
        "lapack_sgesdd_ffi", "mhlo.backend_config = {mode = 83 : ui8},", ("3x5x4xf32",),
        ("3x5x4xf32", "3x4xf32", "3x5x4xf32", "3x4x4xf32", "3xi32"),
    ),
]  # fmt: skip
OP_TEXTS = [COMPLEX, TRANSFORMS, SORT, *LAPACK]
