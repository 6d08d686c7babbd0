// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/elementwise/special_decompositions.h"

#include <array>
#include <limits>
#include <numbers>
#include <span>

#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/term.h"

namespace shardwise {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Term operand(auto& context, size_t i = 0) { return {&context.builder(), context.operand(i)}; }

Term converted(Term x, DType dtype) { return {x.builder, build_convert(*x.builder, x.id, dtype)}; }

// Sets formula(operands) in f64, rounded once. Complex operands have no decomposition: verify_real refuses them.
template <class F>
void in_double(DecomposeContext& context, F formula) {
  if (is_complex(context.op().result_type().dtype)) return;
  const auto wide = [&](size_t i) { return converted(operand(context, i), DType::kF64); };
  const DType dtype = context.op().result_type().dtype;
  if constexpr (requires(Term x) { formula(x); }) {
    context.set_result(0, converted(formula(wide(0)), dtype).id);
  } else {
    context.set_result(0, converted(formula(wide(0), wide(1)), dtype).id);
  }
}

// Horner's scheme, the highest power first.
Term polynomial(Term x, std::span<const double> coefficients) {
  Term sum = x.splat(coefficients[0]);
  for (const double coefficient : coefficients.subspan(1)) sum = x.splat(coefficient) + sum * x;
  return sum;
}

// Clenshaw's scheme for c0 / 2 + sum c_k T_k(x / 2), the last coefficient first; x is in [-2, 2].
Term chebyshev(Term x, std::span<const double> coefficients) {
  Term last = x.splat(0.0), sum = x.splat(0.0), before = x.splat(0.0);
  for (const double coefficient : coefficients) {
    before = last;
    last = sum;
    sum = x * last - before + coefficient;
  }
  return (sum - before) * 0.5;
}

Term fails(Term x) { return x.compare("NE", x); }  // NaN

Term is_whole(Term x) { return x.compare("EQ", x.op("stablehlo.floor")); }

// ---- gamma ---------------------------------------------------------------------------------------------------------

// B(2j) / 2j of the Bernoulli numbers B, the last one first. From 8.5 on, later terms are below 6e-17.
constexpr std::array kDigammaTail{
    -3617.0 / 8160, 1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12,
};
constexpr double kDigammaSteps = 8, kShiftsBelow = 16;

// 1 / w + 1 / (w + 1) + … + 1 / (w + 7). Terms k and 7 - k add up to (2 w + 7) / (u + k (7 - k)), where u = w (w + 7),
// so that the sum is one quotient: the derivative of u (u + 6) (u + 10) (u + 12) by u, over this product.
Term sum_of_steps(Term w) {
  const Term u = w * (w + (kDigammaSteps - 1));
  const Term slope = ((u * 4.0 + 84.0) * u + 504.0) * u + 720.0;
  const Term product = (((u + 28.0) * u + 252.0) * u + 720.0) * u;
  return (w * 2.0 + (kDigammaSteps - 1)) * slope / product;
}

// The derivative of lgamma; NaN at its poles 0, -1, -2, …; below 1/2 by reflection. Abramowitz and Stegun, "Handbook of
// Mathematical Functions", 1964: 6.3.6 (steps up to a large number), 6.3.18 (the expansion there), 6.3.7 (reflection).
Term digamma(Term x) {
  const Term reflects = x.compare("LT", x.splat(0.5));
  const Term w = reflects.select(1.0 - x, x);
  const Term is_small = w.compare("LT", w.splat(kShiftsBelow)), a = is_small.select(w + kDigammaSteps, w);
  // Large numbers, whose products would overflow, take no steps.
  const Term steps = is_small.select(sum_of_steps(w.op("stablehlo.minimum", w.splat(kShiftsBelow))), w.splat(0.0));
  const Term inverse = 1.0 / a, tail = polynomial(inverse * inverse, kDigammaTail) * inverse;
  const Term y = a.op("stablehlo.log") - steps - (tail + 0.5) * inverse;
  // x less the nearest integer: the tangent of large multiples of pi would lose all digits.
  const Term angle = (x + (x + 0.5).op("stablehlo.floor").op("stablehlo.abs")) * std::numbers::pi;
  const Term below = y - std::numbers::pi / angle.op("stablehlo.tan");
  const Term is_pole = x.compare("LE", x.splat(0.0)).op("stablehlo.and", is_whole(x));
  return is_pole.select(x.splat(kNan), reflects.select(below, y));
}

// ---- zeta ----------------------------------------------------------------------------------------------------------

// B(2j) / (2j)! of the Bernoulli numbers B.
constexpr std::array kBernoulli{
    1.0 / 12,
    -1.0 / 720,
    1.0 / 30240,
    -1.0 / 1209600,
    1.0 / 47900160,
    -5.284190138687493e-10,
    1.3382536530684679e-11,
    -3.3896802963225827e-13,
    8.586062056277845e-15,
    -2.174868698558062e-16,
    5.5090028283602295e-18,
    -1.3954464685812522e-19,
};
constexpr int kTerms = 16;
constexpr double kLowestQ = -8;

// The sum of (q + k)^-s over k >= 0, by the formula of Euler and Maclaurin: the first terms, and with a = q + 16
//   a^(1 - s) / (s - 1) + a^-s / 2 + sum over j of B(2j) / (2j)! s (s + 1) … (s + 2j - 2) a^(-s - 2j + 1)
Term zeta(Term s, Term q) {
  Term sum = s.splat(0.0);
  for (int k = 0; k < kTerms; ++k) sum = sum + (q + k).op("stablehlo.power", -s);
  const Term a = q + kTerms, power = a.op("stablehlo.power", -s), square = a * a;
  Term series = s.splat(kBernoulli.back());
  for (int j = static_cast<int>(kBernoulli.size()) - 1; j > 0; --j) {
    series = series * ((s + (2.0 * j - 1)) * (s + 2.0 * j) / square) + kBernoulli[static_cast<size_t>(j) - 1];
  }
  const Term tail = power * (a / (s + -1.0) + 0.5 + series * s / a);
  const Term zero = s.splat(0.0), one = s.splat(1.0), nan = s.splat(kNan), infinity = s.splat(kInfinity);
  const Term total = power.compare("EQ", zero).select(sum, sum + tail);
  const Term is_pole = q.compare("LE", zero).op("stablehlo.and", is_whole(q));
  const Term is_known = q.compare("GE", q.splat(kLowestQ));
  const Term positive = is_pole.select(infinity, is_known.select(total, nan));
  const Term above = s.compare("EQ", one).select(infinity, positive);
  return s.compare("LT", one).op("stablehlo.or", fails(s + q)).select(nan, above);
}

// (-1)^(n + 1) n! zeta(n + 1, x). Order 0 is digamma, as zeta has a pole at 1; 2 is a number that the select drops.
Term polygamma(Term n, Term x) {
  const Term zero = n.splat(0.0), half = (n * 0.5).op("stablehlo.floor");
  const Term is_even = n.compare("EQ", half * 2.0), is_zero = n.compare("EQ", zero);
  const Term size =
      (n + 1.0).op("chlo.lgamma").op("stablehlo.exponential") * zeta(is_zero.select(n.splat(2.0), n + 1.0), x);
  const Term value = is_zero.select(digamma(x), is_even.select(-size, size));
  return n.compare("GE", zero).op("stablehlo.and", is_whole(n)).select(value, n.splat(kNan));
}

// ---- Bessel --------------------------------------------------------------------------------------------------------

// Coefficients of exp(-x) I1(x) / x in [0, 8], by x / 2 - 2, and of exp(-x) sqrt(x) I1(x) above, by 32 / x - 2. They
// are sums over Chebyshev points with 60 digits; the expansions are those of Clenshaw, "Chebyshev Series for
// Mathematical Functions", NPL 1962, which Cephes uses, too.
constexpr std::array kBesselBelow{
    2.7779141127610464e-18, -2.111421214358166e-17,  1.5536319577362005e-16, -1.1055969477353862e-15,
    7.600684294735408e-15,  -5.042185504727912e-14,  3.223793365945575e-13,  -1.9839743977649436e-12,
    1.1736186298890901e-11, -6.663489723502027e-11,  3.625590281552117e-10,  -1.8872497517228294e-09,
    9.381537386495773e-09,  -4.445059128796328e-08,  2.0032947535521353e-07, -8.568720264695455e-07,
    3.4702513081376785e-06, -1.3273163656039436e-05, 4.781565107550054e-05,  -0.00016176081582589674,
    0.0005122859561685758,  -0.0015135724506312532,  0.004156422944312888,   -0.010564084894626197,
    0.024726449030626516,   -0.05294598120809499,    0.1026436586898471,     -0.17641651835783406,
    0.25258718644363365,
};
constexpr std::array kBesselAbove{
    -1.2421932751930744e-18, -9.314178867314006e-19,  7.51729631084099e-18,    4.414348323071889e-18,
    -4.650305368489336e-17,  -3.2095259219934404e-17, 2.96262899764595e-16,    3.3082023109209285e-16,
    -1.8803547755107825e-15, -3.8144030724370075e-15, 1.0420276984128802e-14,  4.272440016711951e-14,
    -2.1015418427726643e-14, -4.0835511110921974e-13, -7.198551776245908e-13,  2.0356285441470896e-12,
    1.4125807436613782e-11,  3.2526035830154884e-11,  -1.8974958123505413e-11, -5.589743462196584e-10,
    -3.835380385964237e-09,  -2.6314688468895196e-08, -2.512236237870209e-07,  -3.882564808877691e-06,
    -0.00011058893876262371, -0.009761097491361469,   0.7785762350182801,
};

// Each expansion is computed only inside its interval, for the sake of its derivative.
Term bessel_i1e(Term x) {
  const Term eight = x.splat(8.0), size = x.op("stablehlo.abs");
  const Term low = size.op("stablehlo.minimum", eight), high = size.op("stablehlo.maximum", eight);
  const Term below = x * chebyshev(low * 0.5 + -2.0, kBesselBelow);
  const Term above = x.op("stablehlo.sign") * chebyshev(32.0 / high + -2.0, kBesselAbove) * high.op("stablehlo.rsqrt");
  return size.compare("LE", eight).select(below, above);
}

// ---- erf_inv -------------------------------------------------------------------------------------------------------

// Giles, "Approximating the erfinv function", GPU Computing Gems Jade Edition, 2011.
constexpr std::array kSingleCentre{
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727,    1.50140941,
};
constexpr std::array kSingleTail{
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613,   0.00943887047,  1.00167406,    2.83297682,
};
constexpr std::array kDoubleCentre{
    -3.64441206401782e-21,   -1.6850591381820166e-19, 1.28584807152564e-18,    1.1157877678025181e-17,
    -1.333171662854621e-16,  2.0972767875968562e-17,  6.637638134358324e-15,   -4.054566272975207e-14,
    -8.151934197605472e-14,  2.6335093153082323e-12,  -1.2975133253453532e-11, -5.415412054294628e-11,
    1.0512122733215323e-09,  -4.112633980346984e-09,  -2.9070369957882005e-08, 4.2347877827932404e-07,
    -1.3654692000834679e-06, -1.3882523362786469e-05, 0.00018673420803405714,  -0.000740702534166267,
    -0.006033670871430149,   0.24015818242558962,     1.6536545626831027,
};
constexpr std::array kDoubleMiddle{
    2.2137376921775787e-09,  9.075656193888539e-08,  -2.7517406297064545e-07, 1.8239629214389228e-08,
    1.5027403968909828e-06,  -4.013867526981546e-06, 2.9234449089955446e-06,  1.2475304481671779e-05,
    -4.7318229009055734e-05, 6.828485145957318e-05,  2.4031110387097894e-05,  -0.0003550375203628475,
    0.0009532893797373805,   -0.0016882755560235047, 0.002491442096107851,    -0.003751208507569241,
    0.005370914553590064,    1.0052589676941592,     3.0838856104922208,
};
constexpr std::array kDoubleTail{
    -2.7109920616438573e-11, -2.555641816996525e-10,  1.5076572693500548e-09,  -3.789465440126737e-09,
    7.61570120807834e-09,    -1.496002662714924e-08,  2.914795345090108e-08,   -6.771199775845234e-08,
    2.2900482228026655e-07,  -9.9298272942317e-07,    4.526062597223154e-06,   -1.968177810553167e-05,
    7.599527703001776e-05,   -0.00021503011930044477, -0.00013871931833623122, 1.0103004648645344,
    4.849906401408584,
};

constexpr ErfInvBranch kSingleBranches[] = {{5.0, 2.5, kSingleCentre}, {kInfinity, 3.0, kSingleTail}};
constexpr ErfInvBranch kDoubleBranches[] = {
    {6.25, 3.125, kDoubleCentre}, {16.0, 3.25, kDoubleMiddle}, {kInfinity, 5.0, kDoubleTail}};

Term erf_inv(Term x) {
  // The product is precise near 1, where x^2 is not.
  const Term w = -((1.0 - x) * (x + 1.0)).op("stablehlo.log");
  const Term root = w.op("stablehlo.maximum", w.splat(0.0)).op("stablehlo.sqrt");
  const std::span<const ErfInvBranch> branches = erf_inv_branches(x.type().dtype);
  const auto value = [&](size_t i) {
    return polynomial((i == 0 ? w : root) + -branches[i].offset, branches[i].coefficients);
  };
  Term factor = value(branches.size() - 1);
  for (size_t i = branches.size() - 1; i-- > 0;) {
    factor = w.compare("LT", w.splat(branches[i].below)).select(value(i), factor);
  }
  const Term is_end = x.op("stablehlo.abs").compare("EQ", x.splat(1.0));
  return is_end.select(x * kInfinity, factor * x);
}

}  // namespace

void decompose_digamma(DecomposeContext& context) { in_double(context, digamma); }
void decompose_zeta(DecomposeContext& context) { in_double(context, zeta); }
void decompose_polygamma(DecomposeContext& context) { in_double(context, polygamma); }
void decompose_bessel_i1e(DecomposeContext& context) { in_double(context, bessel_i1e); }

void decompose_erf_inv(DecomposeContext& context) {
  const DType dtype = context.op().result_type().dtype;
  const Term x = converted(operand(context), computed_in(dtype));
  context.set_result(0, converted(erf_inv(x), dtype).id);
}

std::span<const ErfInvBranch> erf_inv_branches(DType dtype) {
  if (dtype == DType::kF64) return kDoubleBranches;
  return kSingleBranches;
}

void vjp_digamma(VjpContext& context) {
  const Term g{&context.builder(), context.cotangent()}, x = operand(context);
  if (context.needs(0)) context.set(0, (g * x.splat(1.0).op("chlo.polygamma", x)).id);
}

// The order is a whole number, so no cotangent flows into it.
void vjp_polygamma(VjpContext& context) {
  const Term g{&context.builder(), context.cotangent()};
  if (context.needs(1)) context.set(1, (g * (operand(context) + 1.0).op("chlo.polygamma", operand(context, 1))).id);
}

void vjp_erf_inv(VjpContext& context) {
  const Term g{&context.builder(), context.cotangent()}, y{&context.builder(), context.result()};
  if (context.needs(0)) {
    context.set(0, (g * ((y * y).op("stablehlo.exponential") * (0.5 / std::numbers::inv_sqrtpi))).id);
  }
}

}  // namespace shardwise
