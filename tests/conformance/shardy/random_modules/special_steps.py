# SPDX-License-Identifier: Apache-2.0
"""Steps of random modules: windows, sorting, linear algebra, complex numbers, random bits, calls, collectives."""

from __future__ import annotations

from tests.conformance.shardy.random_modules.drawing import Drawer
from tests.conformance.shardy.random_modules.steps import i64, matrix
from tests.conformance.shardy.random_modules.texts import Block, Op, Value


def reduce_window(d: Drawer) -> bool:
    x = d.array(1, ("f32", "i32"))
    sizes, strides, padding = [1] * x.ndim, [1] * x.ndim, [(0, 0)] * x.ndim
    for i in d.subset(x.ndim, 1, 2):
        sizes[i] = d.rng.randint(1, min(x.shape[i], 4)) if d.maybe(0.7) else x.shape[i]
        strides[i] = d.choose((1, 1, 2))
        padding[i] = d.choose(((0, 0), (1, 1), (sizes[i] - 1, 0)))
    shape = tuple((n + a + b - k) // s + 1 for n, k, s, (a, b) in zip(x.shape, sizes, strides, padding))
    attrs = f"window_dimensions = {i64(sizes)}, window_strides = {i64(strides)}, padding = {matrix(padding)}"
    body = d.body(f"stablehlo.{d.choose(('add', 'maximum'))}", [x.dtype])
    d.op("stablehlo.reduce_window", [x, d.like((), x.dtype)], (shape, x.dtype), attrs, blocks=[body])
    return True


def select_and_scatter(d: Drawer) -> bool:
    x = d.array(1, ("f32",))
    sizes, strides = [1] * x.ndim, [1] * x.ndim
    for i in d.subset(x.ndim, 1, 2):
        sizes[i] = strides[i] = d.rng.randint(1, min(x.shape[i], 4))
    shape = tuple((n - k) // s + 1 for n, k, s in zip(x.shape, sizes, strides))
    compare = d.body("stablehlo.compare", ["f32"], "comparison_direction = #stablehlo<comparison_direction GE>", "i1")
    add = d.body("stablehlo.add", ["f32"])
    attrs = f"window_dimensions = {i64(sizes)}, window_strides = {i64(strides)}, padding = {matrix([(0, 0)] * x.ndim)}"
    operands = [x, d.like(shape, "f32"), d.like((), "f32")]
    d.op("stablehlo.select_and_scatter", operands, (x.shape, "f32"), attrs, blocks=[compare, add])
    return True


def convolution(d: Drawer) -> bool:
    """One or two spatial dims, the dims in any order."""
    spatial = d.choose((1, 1, 2))
    groups = d.choose((1, 1, 1, 2, 4))
    batch_groups = d.choose((1, 1, 2)) if groups == 1 else 1
    sizes = [d.choose((4, 6, 8, 16)) for _ in range(spatial)]
    windows = [d.choose((1, 2, 3, n)) for n in sizes]
    padding = [d.choose(((0, 0), (1, 1))) for _ in sizes]
    strides = [d.choose((1, 1, 2)) for _ in sizes]
    batch, inputs = d.choose((2, 4, 8)) * batch_groups, d.choose((1, 2, 4)) * groups
    outputs = d.choose((1, 2, 4)) * groups * batch_groups
    results = [(n + a + b - k) // s + 1 for n, k, s, (a, b) in zip(sizes, windows, strides, padding)]
    text, shapes = [], []
    for names, extents in (
        (("b", "f"), (batch, inputs, sizes)),
        (("i", "o"), (inputs // groups, outputs, windows)),
        (("b", "f"), (batch // batch_groups, outputs, results)),
    ):
        dims = [(names[0], extents[0]), (names[1], extents[1]), *((str(k), n) for k, n in enumerate(extents[2]))]
        d.rng.shuffle(dims)
        text.append(f"[{', '.join(name for name, _ in dims)}]")
        shapes.append(tuple(n for _, n in dims))
    ones = i64([1] * spatial)
    attrs = (
        f"window_strides = {i64(strides)}, padding = {matrix(padding)}, lhs_dilation = {ones}, rhs_dilation = {ones}, "
        f"window_reversal = array<i1: {', '.join(['false'] * spatial)}>, "
        f"dimension_numbers = #stablehlo.conv<{text[0]}x{text[1]}->{text[2]}>, "
        f"feature_group_count = {groups} : i64, batch_group_count = {batch_groups} : i64"
    )
    d.op("stablehlo.convolution", [d.like(shapes[0], "f32"), d.like(shapes[1], "f32")], (shapes[2], "f32"), attrs)
    return True


def sort(d: Drawer) -> bool:
    x = d.array(1)
    operands = [x] if d.maybe(0.6) else [x, d.like(x.shape, "i32")]
    dtypes = [v.dtype for v in operands]
    arguments = [Value(f"%{side}{d.number()}", (), t) for t in dtypes for side in "lr"]
    truth = Value(f"%{d.number()}", (), "i1")
    attrs = "comparison_direction = #stablehlo<comparison_direction LT>"
    block = Block(arguments, [Op(d.number(), "stablehlo.compare", arguments[:2], [truth], attrs)], [truth], fixed=True)
    dim = d.rng.randrange(x.ndim)
    attrs = f"dimension = {dim} : i64, is_stable = true"
    d.ops("stablehlo.sort", operands, [(v.shape, v.dtype) for v in operands], attrs, [block])
    return True


def map_(d: Drawer) -> bool:
    x = d.array(1, ("f32",))
    body = d.body("stablehlo.multiply", ["f32"])
    d.op(
        "stablehlo.map",
        [x, d.like(x.shape, "f32")],
        (x.shape, "f32"),
        f"dimensions = {i64(range(x.ndim))}",
        blocks=[body],
    )
    return True


# ---- linear algebra -------------------------------------------------------------------------------------------------


def cholesky(d: Drawer) -> bool:
    n = d.choose((4, 8, 16))
    x = d.like((*d.shape(d.choose((0, 1, 1, 2))), n, n), "f32")
    d.op("stablehlo.cholesky", [x], (x.shape, "f32"), "lower = true")
    return True


def triangular_solve(d: Drawer) -> bool:
    n, batch = d.choose((4, 8)), d.shape(d.choose((0, 1, 2)))
    left = d.maybe(0.5)
    a = d.like((*batch, n, n), "f32")
    b = d.like((*batch, n, d.dim()) if left else (*batch, d.dim(), n), "f32")
    attrs = (
        f"left_side = {str(left).lower()}, lower = true, unit_diagonal = false, "
        f"transpose_a = #stablehlo<transpose {d.choose(('NO_TRANSPOSE', 'TRANSPOSE'))}>"
    )
    d.op("stablehlo.triangular_solve", [a, b], (b.shape, "f32"), attrs)
    return True


def fft(d: Drawer) -> bool:
    kind = d.choose(("FFT", "IFFT", "RFFT", "IRFFT"))
    count = d.choose((1, 1, 2))
    lengths = [d.choose((4, 8, 16)) for _ in range(count)]
    half = [*lengths[:-1], lengths[-1] // 2 + 1]
    batch = d.shape(d.choose((0, 1, 2)))
    before, after = {"RFFT": (lengths, half), "IRFFT": (half, lengths)}.get(kind, (lengths, lengths))
    first = "f32" if kind == "RFFT" else "complex<f32>"
    last = "f32" if kind == "IRFFT" else "complex<f32>"
    if first == "f32":
        x = d.like((*batch, *before), "f32")
    else:
        y = d.like((*batch, *before), "f32")
        x = d.op("stablehlo.complex", [y, d.like(y.shape, "f32")], (y.shape, "complex<f32>"))
    attrs = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {i64(lengths)}"
    d.op("stablehlo.fft", [x], ((*batch, *after), last), attrs)
    return True


def complex_numbers(d: Drawer) -> bool:
    x = d.array(0, ("f32",))
    z = d.op("stablehlo.complex", [x, d.like(x.shape, "f32")], (x.shape, "complex<f32>"))
    d.op(f"stablehlo.{d.choose(('real', 'imag', 'abs'))}", [z], (x.shape, "f32"))
    return True


# ---- normalisation, random numbers ----------------------------------------------------------------------------------


def batch_norm(d: Drawer) -> bool:
    x = d.array(2, ("f32",))
    feature = d.rng.randrange(x.ndim)
    vectors = [d.like((x.shape[feature],), "f32") for _ in range(4)]
    attrs = f"epsilon = 1.0e-3 : f32, feature_index = {feature} : i64"
    d.op("stablehlo.batch_norm_inference", [x, *vectors], (x.shape, "f32"), attrs)
    return True


def rng_bit_generator(d: Drawer) -> bool:
    state = d.op("stablehlo.constant", [], ((2,), "ui64"), "value = dense<1> : tensor<2xui64>")
    shape = d.shape(d.rng.randint(1, 3))
    attrs = "rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>"
    _, bits = d.ops("stablehlo.rng_bit_generator", [state], [((2,), "ui64"), (shape, "i32")], attrs)
    d.op("stablehlo.convert", [bits], (shape, "f32"))
    return True


# ---- custom calls ---------------------------------------------------------------------------------------------------

POINTWISE_TARGETS = (
    "annotate_device_placement", "Cholesky", "CompactWyHelper", "InspectSharding", "InvertDiagBlocksLowerTriangular",
    "InvertDiagBlocksUpperTriangular", "LayoutConstraint", "mhlo.erf", "MoveToDevice", "MoveToHost",
    "xla.megascale.provide_metadata", "_SPMDInternalOp_RotateRight",
)  # fmt: skip


def custom_call(d: Drawer) -> bool:
    x = d.array(1, ("f32",))
    target = d.choose(POINTWISE_TARGETS)
    d.op("stablehlo.custom_call", [x], (x.shape, "f32"), f'call_target_name = "{target}"')
    d.feature("custom calls")
    return True


def custom_call_decompositions(d: Drawer) -> bool:
    n = d.choose((4, 8, 16))
    batch = d.shape(d.choose((0, 1, 2)))
    x = d.like((*batch, n, n), "f32")
    square, vector = (x.shape, "f32"), ((*batch, n), "f32")
    target = d.choose(("Eigh", "Qr", "QrDecompositionBlock", "ProductOfElementaryHouseholderReflectors"))
    attrs = f'call_target_name = "{target}"'
    if target == "ProductOfElementaryHouseholderReflectors":
        d.op("stablehlo.custom_call", [x, d.like((*batch, n), "f32")], square, attrs)
    else:
        d.ops("stablehlo.custom_call", [x], [square, vector], attrs)
    d.feature("custom calls")
    return True


def top_k(d: Drawer) -> bool:
    x = d.array(1, ("f32",))
    shape = (*x.shape[:-1], d.rng.randint(1, x.shape[-1]))
    d.ops("stablehlo.custom_call", [x], [(shape, "f32"), (shape, "i32")], 'call_target_name = "mhlo.topk"')
    d.feature("custom calls")
    return True


# ---- StableHLO's own collectives ------------------------------------------------------------------------------------

GROUPS = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


def collective(d: Drawer) -> bool:
    x = d.array(1, ("f32",))
    name = d.choose(
        ("all_reduce", "collective_permute", "collective_broadcast", "all_gather", "reduce_scatter", "all_to_all")
    )
    dim = d.rng.randrange(x.ndim)
    if name == "all_reduce":
        body = d.body("stablehlo.add", ["f32"])
        d.op(
            "stablehlo.all_reduce", [x], (x.shape, "f32"), f"{GROUPS}, {CHANNEL}, use_global_device_ids", blocks=[body]
        )
    elif name == "collective_permute":
        attrs = f"source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>, {CHANNEL}"
        d.op("stablehlo.collective_permute", [x], (x.shape, "f32"), attrs)
    elif name == "collective_broadcast":
        d.op("stablehlo.collective_broadcast", [x], (x.shape, "f32"), f"{GROUPS}, {CHANNEL}")
    elif name == "all_gather":
        shape = (*x.shape[:dim], 2 * x.shape[dim], *x.shape[dim + 1 :])
        attrs = f"all_gather_dim = {dim} : i64, {GROUPS}, {CHANNEL}, use_global_device_ids"
        d.op("stablehlo.all_gather", [x], (shape, "f32"), attrs)
    elif x.shape[dim] % 2:
        return False
    elif name == "reduce_scatter":
        shape = (*x.shape[:dim], x.shape[dim] // 2, *x.shape[dim + 1 :])
        body = d.body("stablehlo.add", ["f32"])
        attrs = f"scatter_dimension = {dim} : i64, {GROUPS}, {CHANNEL}, use_global_device_ids"
        d.op("stablehlo.reduce_scatter", [x], (shape, "f32"), attrs, blocks=[body])
    else:
        other = d.rng.randrange(x.ndim)
        shape = list(x.shape)
        shape[dim] //= 2
        shape[other] *= 2
        dims = f"split_dimension = {dim} : i64, concat_dimension = {other} : i64, split_count = 2 : i64"
        d.op("stablehlo.all_to_all", [x], (tuple(shape), "f32"), f"{dims}, {GROUPS}, {CHANNEL}")
    return True


SPECIAL_STEPS = [
    (reduce_window, 0.7), (select_and_scatter, 0.5), (convolution, 1.0), (sort, 0.8), (map_, 0.3), (cholesky, 0.4),
    (triangular_solve, 0.5), (fft, 0.7), (complex_numbers, 0.5), (batch_norm, 0.5), (rng_bit_generator, 0.4),
    (custom_call, 0.6), (custom_call_decompositions, 0.5), (top_k, 0.4), (collective, 1.8),
]  # fmt: skip
