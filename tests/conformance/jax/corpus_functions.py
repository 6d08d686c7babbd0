# SPDX-License-Identifier: Apache-2.0
"""Functions of JAX's libraries for ``corpus.py`` to lower, by module. A row is (function, arrays).

``corpus_coverage.py`` finds the functions that the rows call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax
from jax.experimental.layout import Layout, with_layout_constraint

from tests.conformance.jax.corpus_linalg import LINALG, Rows, of_module
from tests.conformance.jax.linalg_losses import B, S, normal

X, Y, Z = normal(8, 6), normal(8, 6), normal(16, 8)
UNIT = np.clip(np.abs(normal(8, 6)) / 3, 0.01, 0.99)
POSITIVE = np.abs(normal(8, 6)) + np.float32(0.1)
INTS = (np.arange(48).reshape(8, 6) * 37 % 11).astype(np.int32)
IDS = (np.arange(16) * 5 % 8).astype(np.int32)
HOLES = np.where(INTS == 3, np.float32(np.nan), X)
COMPLEX = (normal(8, 6) + 1j * normal(8, 6)).astype(np.complex64)
KEY = np.array([0, 42], np.uint32)
LONG = normal(2, 64)
IMAGE, KERNEL = normal(8, 8, 8, 3), normal(3, 3, 3, 4)
WEIGHT = normal(6, 6)


FFT: Rows = {
    **of_module("fft ifft fftshift ifftshift", jnp.fft, COMPLEX),
    **of_module("rfft ihfft rfft2 fft2 fftn rfftn", jnp.fft, X),
    **of_module("irfft hfft irfft2 ifft2 ifftn irfftn", jnp.fft, COMPLEX),
    "fft of a prime length": (lambda x: jnp.fft.fft(x, 13, axis=0), (COMPLEX,)),
    "fftfreq and rfftfreq": (lambda x: (x * jnp.fft.fftfreq(6), x[:, :4] * jnp.fft.rfftfreq(6)), (X,)),
    "dct and idct": (lambda x: (jsp.fft.dct(x), jsp.fft.idct(x)), (X,)),
    "dctn and idctn": (lambda x: (jsp.fft.dctn(x), jsp.fft.idctn(x)), (X,)),
}


def _typed(key: Any) -> Any:
    """Keys with a dtype of their own, and those of XLA's generator, whose bits JAX takes from rng_bit_generator."""
    typed = jax.random.wrap_key_data(key, impl="threefry2x32")
    rbg = jax.random.wrap_key_data(jnp.concatenate([key, key + 1]), impl="rbg")
    return jax.random.key_data(jax.random.clone(typed)), jax.random.bits(rbg, (4, 6)), jax.random.uniform(rbg, (16,))


RANDOM: Rows = {
    "key and PRNGKey": (lambda s: (jax.random.PRNGKey(s[1]), jax.random.key_data(jax.random.key(s[0]))), (KEY,)),
    "wrap_key_data, key_data, clone, rbg": (_typed, (KEY,)),
    "cauchy, logistic, double_sided_maxwell": (
        lambda k: (
            jax.random.cauchy(k, (9,)),
            jax.random.logistic(k, (9,)),
            jax.random.double_sided_maxwell(k, 0.5, 2.0, (9,)),
        ),
        (KEY,),
    ),
    "ball and orthogonal": (lambda k: (jax.random.ball(k, 3, shape=(5,)), jax.random.orthogonal(k, 4)), (KEY,)),
    "binomial and geometric": (
        lambda k: (jax.random.binomial(k, 10, 0.3, (9,)), jax.random.geometric(k, 0.3, (9,))),
        (KEY,),
    ),
    "multinomial": (lambda k: jax.random.multinomial(k, 9.0, jnp.array([0.2, 0.5, 0.3])), (KEY,)),
    "chisquare, f, t, wald": (
        lambda k: (
            jax.random.chisquare(k, 3.0, (9,)),
            jax.random.f(k, 3.0, 5.0, (9,)),
            jax.random.t(k, 4.0, (9,)),
            jax.random.wald(k, 1.5, (9,)),
        ),
        (KEY,),
    ),
    "generalized_normal, loggamma, lognormal": (
        lambda k: (
            jax.random.generalized_normal(k, 1.5, (9,)),
            jax.random.loggamma(k, 2.5, (9,)),
            jax.random.lognormal(k, 0.5, (9,)),
        ),
        (KEY,),
    ),
    "maxwell and rademacher": (lambda k: (jax.random.maxwell(k, (9,)), jax.random.rademacher(k, (9,))), (KEY,)),
    "pareto, rayleigh, triangular, weibull_min": (
        lambda k: (
            jax.random.pareto(k, 2.0, (9,)),
            jax.random.rayleigh(k, 1.5, (9,)),
            jax.random.triangular(k, -1, 0.5, 2, (9,)),
            jax.random.weibull_min(k, 1.5, 2.0, (9,)),
        ),
        (KEY,),
    ),
    "uniform": (lambda k: jax.random.uniform(k, (16, 5)), (KEY,)),
    "normal": (lambda k: jax.random.normal(k, (16, 5)), (KEY,)),
    "bits": (lambda k: jax.random.bits(k, (16, 5), jnp.uint16), (KEY,)),
    "randint": (lambda k: jax.random.randint(k, (16, 5), -3, 9), (KEY,)),
    "split and fold_in": (lambda k: (jax.random.split(k, 5), jax.random.fold_in(k, 7)), (KEY,)),
    "permutation": (lambda k: jax.random.permutation(k, 24), (KEY,)),
    "choice": (lambda k: jax.random.choice(k, 24, (8,), replace=False), (KEY,)),
    "bernoulli": (lambda k: jax.random.bernoulli(k, 0.3, (16, 5)), (KEY,)),
    "categorical": (lambda k, x: jax.random.categorical(k, x), (KEY, X)),
    "gumbel": (lambda k: jax.random.gumbel(k, (16,)), (KEY,)),
    "exponential and laplace": (lambda k: (jax.random.exponential(k, (9,)), jax.random.laplace(k, (9,))), (KEY,)),
    "truncated_normal": (lambda k: jax.random.truncated_normal(k, -1, 2, (16,)), (KEY,)),
    "gamma": (lambda k: jax.random.gamma(k, 2.5, (16,)), (KEY,)),
    "beta and dirichlet": (
        lambda k: (jax.random.beta(k, 2.0, 3.0, (9,)), jax.random.dirichlet(k, jnp.ones(4) * 2, (5,))),
        (KEY,),
    ),
    "poisson": (lambda k: jax.random.poisson(k, 4.0, (16,)), (KEY,)),
    "multivariate_normal": (
        lambda k, s: jax.random.multivariate_normal(k, jnp.zeros(4), s, (8,), method="cholesky"),
        (KEY, S[0]),
    ),
}
SORTS: Rows = {
    **of_module("sort argsort median sort_complex", jnp, X),
    **of_module("argmax argmin nanmedian count_nonzero", jnp, X),
    "sort and sort_key_val of lax": (
        lambda x, y: (lax.sort((x, y), num_keys=1), lax.sort_key_val(y, x, dimension=0)),
        (X, INTS),
    ),
    "argpartition": (lambda x: jnp.sort(jnp.argpartition(x, 2, axis=1)[:, :2], axis=1), (X,)),
    "nanargmax and nanargmin": (lambda x: (jnp.nanargmax(x, axis=1), jnp.nanargmin(x, axis=0)), (HOLES,)),
    "nanquantile, nanpercentile, percentile": (
        lambda x, y: (jnp.nanquantile(x, 0.3, axis=1), jnp.nanpercentile(x, 70, axis=0), jnp.percentile(y, 20)),
        (HOLES, X),
    ),
    "setxor1d": (lambda x, y: jnp.setxor1d(x, y, size=9), (INTS[0], INTS[1])),
    "unique_all, unique_counts, unique_inverse, unique_values": (
        lambda x: (
            tuple(jnp.unique_all(x, size=12)),
            tuple(jnp.unique_counts(x, size=12)),
            tuple(jnp.unique_inverse(x, size=12)),
            jnp.unique_values(x, size=12),
        ),
        (INTS,),
    ),
    "argwhere, flatnonzero, where": (
        lambda x: (jnp.argwhere(x > 5, size=24), jnp.flatnonzero(x > 5, size=24), jnp.where(x > 5, size=24)),
        (INTS,),
    ),
    "compress and extract": (
        lambda x, i: (jnp.compress(i[:, 0] > 4, x, axis=0, size=5), jnp.extract(i > 5, x, size=24)),
        (X, INTS),
    ),
    "histogram_bin_edges, histogram2d, histogramdd": (
        lambda x, y: (
            jnp.histogram_bin_edges(x, 5),
            jnp.histogram2d(x[:, 0], y[:, 0], 4),
            jnp.histogramdd(x[:, :2], 3),
        ),
        (X, Y),
    ),
    "sort of ints, descending": (lambda x: jnp.sort(x, axis=0, descending=True), (INTS,)),
    "lexsort": (lambda x, y: jnp.lexsort((x, y)), (INTS[:, 0], INTS[:, 1])),
    "top_k": (lambda x: lax.top_k(x, 3), (X,)),
    "approx_max_k": (lambda x: lax.approx_max_k(x, 3, recall_target=1.0)[0], (X,)),
    "approx_min_k of columns": (lambda x: lax.approx_min_k(x, 2, reduction_dimension=0), (X,)),
    "approx_max_k of bfloat16": (lambda x: lax.approx_max_k(x.astype(jnp.bfloat16) + 1, 2)[0], (X,)),
    "approx_max_k in parts": (
        lambda x: lax.approx_max_k(x, 2, aggregate_to_topk=False, reduction_input_size_override=64),
        (X,),
    ),
    "gradient of approx_max_k": (jax.grad(lambda x: jnp.sum(lax.approx_max_k(x * x, 2)[0])), (X,)),
    "quantile": (lambda x: jnp.quantile(x, jnp.array([0.1, 0.9]), axis=1), (X,)),
    "searchsorted": (lambda x, y: jnp.searchsorted(jnp.sort(x[0]), y), (X, Y)),
    "partition": (lambda x: jnp.sort(jnp.partition(x, 2, axis=1)[:, :2], axis=1), (X,)),
    "unique": (lambda x: jnp.unique(x, size=12, return_counts=True), (INTS,)),
    "union1d": (lambda x, y: jnp.union1d(x, y, size=12), (INTS[0], INTS[1])),
    "intersect1d": (lambda x, y: jnp.intersect1d(x, y, size=6), (INTS[0], INTS[1])),
    "setdiff1d": (lambda x, y: jnp.setdiff1d(x, y, size=6), (INTS[0], INTS[1])),
    "nonzero": (lambda x: jnp.nonzero(x > 5, size=24), (INTS,)),
    "isin": (lambda x: jnp.isin(x, jnp.array([1, 4])), (INTS,)),
    "bincount and histogram": (
        lambda x, y: (jnp.bincount(x.ravel(), length=12), jnp.histogram(y, 5)[0]),
        (INTS, X),
    ),
    "digitize": (lambda x: jnp.digitize(x, jnp.array([-1.0, 0, 1])), (X,)),
}
_NN = (
    "relu relu6 gelu silu elu selu celu softplus sigmoid log_sigmoid leaky_relu hard_tanh hard_sigmoid hard_swish "
    "soft_sign softmax log_softmax squareplus mish glu logsumexp standardize sparse_plus hard_silu swish identity "
    "logmeanexp sparse_sigmoid tanh"
)
NN: Rows = {
    **of_module(_NN, jax.nn, X),
    "log1mexp": (jax.nn.log1mexp, (POSITIVE,)),
    "one_hot": (lambda i: jax.nn.one_hot(i, 8), (IDS,)),
    "dot_product_attention": (
        lambda q: jax.nn.dot_product_attention(q, q, q, is_causal=True),
        (normal(2, 8, 4, 8),),
    ),
    "scaled_dot_general": (
        lambda x, y: jax.nn.scaled_dot_general(x, y, (((2,), (2,)), ((0,), (0,)))),
        (normal(2, 8, 32), normal(2, 4, 32)),
    ),
    "gradient of a block": (jax.grad(lambda w, x: jnp.sum(jax.nn.gelu(x @ w) ** 2)), (WEIGHT, X)),
}
SPECIAL: Rows = {
    **of_module("erf erfc erfcx expit dawsn i0 i0e i1 i1e ndtr log_ndtr softmax log_softmax gammasgn", jsp.special, X),
    **of_module("digamma gammaln loggamma gamma entr factorial exp1 expi spence sici fresnel", jsp.special, POSITIVE),
    **of_module("erfinv logit ndtri", jsp.special, UNIT),
    **of_module(
        "xlogy xlog1py betaln gammainc gammaincc beta boxcox boxcox1p kl_div rel_entr poch comb owens_t",
        jsp.special,
        POSITIVE,
        POSITIVE[::-1] + np.float32(0.5),
    ),
    "betainc": (jsp.special.betainc, (POSITIVE, POSITIVE[::-1] + np.float32(0.5), UNIT)),
    "polygamma": (lambda x: jsp.special.polygamma(2, x), (POSITIVE,)),
    "multigammaln": (lambda x: jsp.special.multigammaln(x + 2, 3), (POSITIVE,)),
    "expn": (lambda x: jsp.special.expn(3, x), (POSITIVE,)),
    "bernoulli": (lambda x: x[0] @ jsp.special.bernoulli(5), (POSITIVE,)),
    "hyp1f1": (lambda x: jsp.special.hyp1f1(x, x + 1.5, x / 2), (POSITIVE,)),
    "hyp2f1": (lambda x, u: jsp.special.hyp2f1(x, x + 0.5, x + 2.5, u / 2), (POSITIVE, UNIT)),
    "sph_harm_y": (
        lambda u: jsp.special.sph_harm_y(IDS[:6] + 1, IDS[:6] // 2, u[0], u[1], n_max=8),
        (UNIT,),
    ),
    "wofz": (jsp.special.wofz, (COMPLEX,)),
    "zeta": (lambda x: jsp.special.zeta(x + 1.5, 2.0), (POSITIVE,)),
    "logsumexp": (lambda x: jsp.special.logsumexp(x, axis=1), (X,)),
    "norm.logpdf": (lambda x: jsp.stats.norm.logpdf(x), (X,)),
    "bessel_jn": (lambda x: jsp.special.bessel_jn(x, v=2), (POSITIVE,)),
}


def _conv(x: Any, w: Any, **options: Any) -> Any:
    return lax.conv_general_dilated(x, w, dimension_numbers=("NHWC", "HWIO", "NHWC"), **options)


CONVOLUTIONS: Rows = {
    "conv same": (lambda x, w: _conv(x, w, window_strides=(1, 1), padding="SAME"), (IMAGE, KERNEL)),
    "conv strided": (lambda x, w: _conv(x, w, window_strides=(2, 1), padding="VALID"), (IMAGE, KERNEL)),
    "conv dilated": (
        lambda x, w: _conv(
            x, w, window_strides=(1, 1), padding=((2, 1), (0, 3)), lhs_dilation=(2, 1), rhs_dilation=(1, 2)
        ),
        (IMAGE, KERNEL),
    ),
    "conv depthwise": (
        lambda x, w: _conv(x, w, window_strides=(1, 1), padding="SAME", feature_group_count=3),
        (IMAGE, normal(3, 3, 1, 6)),
    ),
    "conv transposed": (
        lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        (IMAGE, KERNEL),
    ),
    "conv gradient": (
        jax.grad(lambda w, x: jnp.sum(_conv(x, w, window_strides=(2, 2), padding="SAME") ** 2)),
        (KERNEL, IMAGE),
    ),
    "max_pool gradient": (
        jax.grad(lambda x: jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2)),
        (IMAGE,),
    ),
    "conv and conv_with_general_padding": (
        lambda x, w: (
            lax.conv(x, w, (2, 1), "SAME"),
            lax.conv_with_general_padding(x, w, (1, 1), ((1, 0), (2, 1)), (2, 1), (1, 2)),
        ),
        (normal(2, 3, 8, 7), normal(4, 3, 3, 3)),
    ),
    "conv_general_dilated_local and _patches": (
        lambda x, w: (
            lax.conv_general_dilated_local(x, w, (1, 1), "VALID", (3, 3)),
            lax.conv_general_dilated_patches(x, (3, 2), (1, 2), "SAME"),
        ),
        (normal(2, 3, 8, 7), normal(4, 27, 6, 5)),
    ),
    "convolve, correlate, correlate2d of scipy": (
        lambda x, y: (
            jsp.signal.convolve(x, y[:3], mode="same"),
            jsp.signal.correlate(x, y[:3, :2], mode="full"),
            jsp.signal.correlate2d(x, y[:3, :3], mode="valid"),
        ),
        (X, Y),
    ),
    "csd, welch, detrend": (
        lambda x, y: (
            jsp.signal.csd(x, y, nperseg=16)[1],
            jsp.signal.welch(x, nperseg=16)[1],
            jsp.signal.detrend(x, axis=0),
        ),
        (LONG[0], LONG[1]),
    ),
    "stft and istft": (
        lambda x: (
            jsp.signal.stft(x, nperseg=16)[2],
            jsp.signal.istft(jsp.signal.stft(x, nperseg=16)[2], nperseg=16)[1],
        ),
        (LONG,),
    ),
    "convolve": (lambda x, y: jnp.convolve(x[0], y[0], mode="full"), (X, Y)),
    "correlate of complex": (lambda x: jnp.correlate(x[0], x[1, :3], mode="same"), (COMPLEX,)),
    "convolve2d": (lambda x, y: jsp.signal.convolve2d(x, y[:3, :3], mode="same"), (X, Y)),
    "fftconvolve": (lambda x, y: jsp.signal.fftconvolve(x, y, mode="same"), (X, Y)),
}
CONTROL: Rows = {
    "scan": (lambda x: lax.scan(lambda c, r: (jnp.tanh(c + r), c * r), x[0], x), (X,)),
    "scan gradient": (jax.grad(lambda x: lax.scan(lambda c, r: (jnp.tanh(c + r), c * r), x[0], x)[1].sum()), (X,)),
    "reverse scan": (lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c), x[0], x, reverse=True), (X,)),
    "while": (lambda x: lax.while_loop(lambda c: jnp.sum(c**2) < 1e4, lambda c: c * 1.5, x), (X,)),
    "fori": (lambda x: lax.fori_loop(0, 5, lambda i, c: c.at[i].add(c[i + 1]), x), (X,)),
    "cond": (lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x), (X,)),
    "switch": (lambda x, i: lax.switch(i[0, 1] % 3, [jnp.sin, jnp.cos, jnp.abs], x), (X, INTS)),
    "associative_scan": (lambda x: lax.associative_scan(jnp.maximum, x), (X,)),
    "map": (lambda x: lax.map(lambda r: jnp.sort(r), x), (X,)),
    "vmapped while": (
        jax.vmap(lambda r: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, r)),
        (X,),
    ),
    "cumulative": (lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cummax(x, 0), lax.cumlogsumexp(x, 1)), (X,)),
    "cumsum, cumprod, cummin of lax": (
        lambda x: (lax.cumsum(x, 1, reverse=True), lax.cumprod(x, 0), lax.cummin(x, 1)),
        (X,),
    ),
    "cg": (lambda a, b: jsp.sparse.linalg.cg(lambda v: a @ v, b[:, 0], maxiter=5)[0], (S[0], B[0])),
    "custom_linear_solve": (
        lambda a, b: lax.custom_linear_solve(
            lambda v: a @ v, b[:, 0], lambda _, v: jnp.linalg.solve(a, v), symmetric=True
        ),
        (S[0], B[0]),
    ),
    "custom_root": (
        lambda x: lax.custom_root(
            lambda r: r**3 - x,
            jnp.ones_like(x),
            lambda f, r: lax.fori_loop(0, 20, lambda _, r: r - f(r) / (3 * r**2), r),
            lambda g, y: y / g(jnp.ones_like(y)),
        ),
        (POSITIVE,),
    ),
}


def _fp8(x: Any, w: Any) -> Any:
    return lax.dot_general(
        x.astype(jnp.float8_e4m3fn), w.astype(jnp.float8_e5m2), (((1,), (0,)), ((), ())),
        preferred_element_type=jnp.float32,
    )  # fmt: skip


def _reduced(combine: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A reduction whose region has calls and copies of scalars. XLA for CPU ends the process at branches in it."""
    return lambda x: (lax.reduce(x, np.float32(0), combine, (0,)), lax.reduce(x, np.float32(0), combine, (0, 1)))


def _placed(x: Any) -> Any:
    """Prints @LayoutConstraint, and for TPU @annotate_device_placement."""
    columns = with_layout_constraint(x * 2, Layout(major_to_minor=(1, 0)))
    return jax.device_put(jax.device_put(columns, jax.memory.Space.Host), jax.memory.Space.Device) + 1


MIXED: Rows = {
    "fp8 dot": (_fp8, (X, WEIGHT)),
    "int8 dot": (
        lambda x, w: lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32),
        (INTS.astype(np.int8), INTS[:6].astype(np.int8)),
    ),
    "bfloat16 dot": (lambda x, w: (x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)).astype(jnp.float32), (X, WEIGHT)),
    "ragged_dot": (
        lambda x, w: lax.ragged_dot(x, w, jnp.array([3, 0, 5], jnp.int32)),
        (X, normal(3, 6, 4)),
    ),
    "einsum": (lambda x, y: jnp.einsum("ij,kj,kl->il", x, y, y), (X, Y)),
    "scatter and gather": (lambda x, i: (x[i], x.at[i].add(1.0), x.at[i, 0].max(2.0)), (X, IDS)),
    "reduce with where": (_reduced(lambda a, b: jnp.where(a > b, a, b)), (X,)),
    "reduce with hypot": (_reduced(jnp.hypot), (X,)),
    "reduce with reshape": (_reduced(lambda a, b: jnp.reshape(jnp.maximum(a, b), ())), (X,)),
    "scatter with where": (lambda x, i: x.at[i].apply(lambda v: jnp.where(v > 0.5, v * 2, jnp.sin(v))), (X, IDS[:4])),
    "segment_sum": (lambda x, i: jax.ops.segment_sum(x, i, 8), (Z, IDS)),
    "segment_max, segment_min, segment_prod": (
        lambda x, i: (jax.ops.segment_max(x, i, 8), jax.ops.segment_min(x, i, 8), jax.ops.segment_prod(x, i, 8)),
        (Z, IDS),
    ),
    "bitcast and clz": (
        lambda x: (
            lax.bitcast_convert_type(x, jnp.int32),
            lax.clz(x.view(jnp.int32)),
            lax.population_count(x.view(jnp.uint8)),
        ),
        (X,),
    ),
    "complex functions": (lambda z: (jnp.exp(z), jnp.sqrt(z), jnp.abs(z), jnp.angle(z), jnp.log(z)), (COMPLEX,)),
    "nextafter": (lambda x: jnp.nextafter(x, x + 1), (X,)),
    "layout and memory": (_placed, (X,)),
}
FUNCTIONS: Rows = {
    f"{module}.{name}": row
    for module, rows in {
        "linalg": LINALG, "fft": FFT, "random": RANDOM, "sort": SORTS, "nn": NN, "special": SPECIAL,
        "conv": CONVOLUTIONS, "control": CONTROL, "mixed": MIXED,
    }.items()
    for name, row in rows.items()
}  # fmt: skip
