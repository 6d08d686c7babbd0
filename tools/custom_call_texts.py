# SPDX-License-Identifier: Apache-2.0
"""Programs of the custom calls that shardwise defines, by target, with a sentence for each.

A signature lists operands and results as ops/linalg/batched_call.h does: the elements (T: those of the call, R: real
ones, C: complex ones, I: int32), then a letter for each dim after those of the batch.

    "T n n -> T n n, I"      (tensor<8x4x4xf32>) -> (tensor<8x4x4xf32>, tensor<8xi32>)
"""

from __future__ import annotations

from typing import NamedTuple

BATCH = 8
SIZES = {"m": 5, "n": 4, "k": 4, "l": 3, "c": 2, "p": 4, "q": 4, "r": 5, "s": 4}
LAPACK_PAGE = "https://www.netlib.org/lapack/explore-html/"


class Call(NamedTuple):
    """A custom call.

    Attributes:
        about: what it computes.
        text: a program with the call; ``{t}``, ``{r}`` and ``{c}`` stand for its elements, real and complex ones.
        computed: what computes it.
        partitioned: how it is partitioned.
        dtypes: the dtypes to try; all of them if empty.
    """

    about: str
    text: str
    computed: str
    partitioned: str = "the rule of its matrices, which need replication"
    dtypes: tuple[str, ...] = ()


def _type(tensor: str, sizes: dict[str, int]) -> str:
    elements, *dims = tensor.split()
    shape = "x".join(str(size) for size in (BATCH, *(sizes[dim] for dim in dims)))
    return f"tensor<{shape}x{ {'T': '{t}', 'R': '{r}', 'C': '{c}', 'I': 'i32'}[elements] }>"


def _program(target: str, signature: str, attributes: str = "", **sizes: int) -> str:
    before, after = ([_type(x, SIZES | sizes) for x in side.split(", ")] for side in signature.split(" -> "))
    arguments = ", ".join(f"%arg{i}: {of}" for i, of in enumerate(before))
    operands = ", ".join(f"%arg{i}" for i in range(len(before)))
    count = f":{len(after)}" if len(after) > 1 else ""
    returned = ", ".join(f"%0#{i}" if len(after) > 1 else "%0" for i in range(len(after)))
    results = ", ".join(after)
    shown = f"({results})" if len(after) > 1 else results
    return (
        f"func.func @main({arguments}) -> ({results}) {{\n  %0{count} = stablehlo.custom_call @{target}({operands})"
        f"{attributes} : ({', '.join(before)}) -> {shown}\n  return {returned} : {results}\n}}"
    )


def _config(options: str) -> str:
    """Letters are their codes, as in JAX's texts: ``uplo=L`` is ``uplo = 76 : ui8``."""

    def value(text: str) -> str:
        if text in ("true", "false"):
            return text
        return f"{text} : i32" if text.isdigit() else f"{ord(text)} : ui8"

    fields = ", ".join(f"{name} = {value(text)}" for name, text in (pair.split("=") for pair in options.split()))
    return f" {{mhlo.backend_config = {{{fields}}}}}" if fields else ""


# By the stem for real and for complex numbers: what it computes, the signatures, options, and sizes that they need.
_SVD = "T m n -> T m n, R k, T m p, T q n, I"
_LAPACK: list[tuple[str, str, str, str, str, str, dict[str, int]]] = [
    ("potrf", "potrf", "The Cholesky factor", "T n n -> T n n, I", "", "uplo=L", {}),
    ("trsm", "trsm", "The solution of a triangular system", "T s s, T m n -> T m n", "",
     "side=L uplo=L trans_x=N diag=N", {"m": 4, "n": 2}),
    ("getrf", "getrf", "The LU factors with row pivots", "T m n -> T m n, I k, I", "", "", {}),
    ("geqrf", "geqrf", "The QR factors as reflectors", "T m n -> T m n, T k", "", "", {}),
    ("geqp3", "geqp3", "The QR factors with column pivots", "T m n, I n -> T m n, I n, T k", "", "", {}),
    ("orgqr", "ungqr", "The orthogonal matrix of reflectors", "T m n, T k -> T m n", "", "", {}),
    ("ormqr", "unmqr", "The product with the orthogonal matrix of reflectors", "T r q, T k, T m n -> T m n", "",
     "left=true transpose=false", {"n": 2}),
    ("syevd", "heevd", "Eigenvectors and eigenvalues of symmetric (Hermitian) matrices", "T n n -> T n n, R n, I", "",
     "mode=V uplo=L", {}),
    ("gesdd", "gesdd", "The singular value decomposition by divide and conquer", _SVD, "", "mode=S", {}),
    ("gesvd", "gesvd", "The singular value decomposition by QR iterations", _SVD, "", "mode=S", {}),
    ("geev", "geev", "Eigenvalues, and left and right eigenvectors", "T n n -> R n, R n, C n n, C n n, I",
     "T n n -> T n, T n n, T n n, I", "compute_left=V compute_right=V", {}),
    ("gees", "gees", "The Schur form, its vectors and the eigenvalues", "T n n -> T n n, T n n, R n, R n, I, I",
     "T n n -> T n n, T n n, T n, I, I", "mode=V sort=N", {}),
    ("gehrd", "gehrd", "The Hessenberg form and its reflectors", "T n n -> T n n, T l, I", "", "low=1 high=4", {}),
    ("sytrd", "hetrd", "The tridiagonal form of symmetric (Hermitian) matrices", "T n n -> T n n, R n, R l, T l, I", "",
     "uplo=L", {}),
    ("gtsv", "gtsv", "The solution of a tridiagonal system", "T n, T n, T n, T n c -> T n, T n, T n, T n c, I", "", "",
     {}),
]  # fmt: skip
_OF_LAPACK = "LAPACK, one call per matrix: its bits do not depend on the sharding"
_TYPES = {"s": "float32", "d": "float64", "c": "complex64", "z": "complex128"}


def _lapack() -> dict[str, Call]:
    calls = {}
    for real, of_complex, about, signature, complex_signature, options, sizes in _LAPACK:
        for letter, dtype in _TYPES.items():
            stem = of_complex if letter in "cz" else real
            own = complex_signature if letter in "cz" and complex_signature else signature
            target = f"lapack_{letter}{stem}_ffi"
            sentence = f"{about} of each matrix: LAPACK's [{letter}{stem}]({LAPACK_PAGE}), as JAX calls it on CPU."
            calls[target] = Call(
                sentence, _program(target, own, _config(options), **sizes), _OF_LAPACK, dtypes=(dtype,)
            )
    return calls


_OURS: list[tuple[str, str, str, str]] = [
    ("lu", "The LU factors, the pivots of the rows, and the order of the rows", "T m n -> T m n, I k, I m", ""),
    ("solve", "The solution of a linear system (`np.linalg.solve`, `np.linalg.inv`)", "T n n, T n c -> T n c", ""),
    ("det", "The determinant (`np.linalg.det`)", "T n n -> T", ""),
    ("slogdet", "Sign and logarithm of the determinant (`np.linalg.slogdet`)", "T n n -> T, R", ""),
    ("qr", "The orthogonal and the triangular factor (`np.linalg.qr`)", "T m n -> T m p, T p n", ""),
    ("eigh", "Eigenvectors and eigenvalues of symmetric (Hermitian) matrices (`np.linalg.eigh`)",
     "T n n -> T n n, R n", "uplo=L"),
    ("eigvalsh", "Eigenvalues of symmetric (Hermitian) matrices (`np.linalg.eigvalsh`)", "T n n -> R n", "uplo=L"),
    ("eig", "Eigenvalues and right eigenvectors (`np.linalg.eig`)", "T n n -> C n, C n n", ""),
    ("eigvals", "Eigenvalues (`np.linalg.eigvals`)", "T n n -> C n", ""),
    ("svd", "The singular value decomposition (`np.linalg.svd`)", "T m n -> T m p, R k, T q n", ""),
    ("svdvals", "Singular values (`np.linalg.svdvals`)", "T m n -> R k", ""),
]  # fmt: skip
_TPU: list[tuple[str, str, str, str]] = [
    ("LuDecomposition", "The LU factors, the pivots of the rows, and the order of the rows", "T m n -> T m n, I k, I m",
     ""),
    ("Qr", "The QR factors as reflectors", "T m n -> T m n, T k", ""),
    ("ProductOfElementaryHouseholderReflectors", "The orthogonal matrix of reflectors", "T m n, T k -> T m n", ""),
    ("Eigh", "Eigenvectors and eigenvalues of symmetric (Hermitian) matrices", "T n n -> T n n, R n",
     ' {backend_config = "1,1,100,1e-6"}'),
]  # fmt: skip
_IDENTITIES = {
    "Sharding": "An annotation in a manual region; elsewhere, the parser makes it a `sdy.sharding_constraint`",
    "annotate_device_placement": "The memory that holds the operand (`jax.device_put` to a memory space)",
    "InspectSharding": "A question for another compiler",
    "LayoutConstraint": "The order of the dims in memory",
    "MoveToDevice": "The memory of the device holds the operand",
    "MoveToHost": "The memory of the host holds the operand",
}
_TOP_K = """func.func @greater(%a: tensor<{t}>, %b: tensor<{t}>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<{t}>, tensor<{t}>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func @main(%arg0: tensor<8x64x{t}>, %arg1: tensor<8x64xi32>, %arg2: tensor<{t}>, %arg3: tensor<i32>)
    -> (tensor<8x3x{t}>, tensor<8x3xi32>) {
  %0:2 = stablehlo.custom_call @ApproxTopK(%arg0, %arg1, %arg2, %arg3) {called_computations = [@greater],
    mhlo.backend_config = {aggregate_to_topk = true, recall_target = 0.95 : f32, reduction_dim = 1 : i64,
    top_k = 3 : i64}} : (tensor<8x64x{t}>, tensor<8x64xi32>, tensor<{t}>, tensor<i32>)
    -> (tensor<8x3x{t}>, tensor<8x3xi32>)
  return %0#0, %0#1 : tensor<8x3x{t}>, tensor<8x3xi32>
}"""
_OLD_TOP_K = """func.func @main(%arg0: tensor<8x64x{t}>) -> (tensor<8x3x{t}>, tensor<8x3xi32>) {
  %0:2 = stablehlo.custom_call @mhlo.topk(%arg0) {mhlo.attributes = {k = 3 : i64, largest = true},
    mhlo.version = 1 : i64} : (tensor<8x64x{t}>) -> (tensor<8x3x{t}>, tensor<8x3xi32>)
  return %0#0, %0#1 : tensor<8x3x{t}>, tensor<8x3xi32>
}"""
_OF_OPS = "other ops, which replace it before propagation: `chlo.top_k`, or a sort for another order"
CALLS: dict[str, Call] = {
    **{
        f"shardwise.{name}": Call(f"{about}.", _program(f"shardwise.{name}", signature, _config(options)), _OF_LAPACK)
        for name, about, signature, options in _OURS
    },
    **_lapack(),
    **{
        name: Call(f"{about}, as JAX calls it on TPU.", _program(name, signature, attributes), _OF_LAPACK)
        for name, about, signature, attributes in _TPU
    },
    **{
        name: Call(f"{about}.", _program(name, "T m n -> T m n"), "the identity: no number depends on it", "its rule")
        for name, about in _IDENTITIES.items()
    },
    "ApproxTopK": Call(
        "The k first elements of each row by a comparison (`lax.approx_max_k`, `lax.approx_min_k`); the exact ones.",
        _TOP_K,
        _OF_OPS,
        "the ops that replace it",
    ),
    "mhlo.topk": Call(
        "The k largest or smallest elements of each row (`lax.top_k` of JAX before 0.5).",
        _OLD_TOP_K,
        _OF_OPS,
        "the ops that replace it",
    ),
}
