// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/elementwise/elementwise.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "shardwise/base/error.h"
#include "shardwise/base/narrow_float.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/elementwise/elementwise_infer.h"
#include "shardwise/ops/elementwise/elementwise_integers.h"
#include "shardwise/ops/elementwise/elementwise_rows.h"
#include "shardwise/ops/elementwise/elementwise_vjp.h"
#include "shardwise/ops/elementwise/operand_checks.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"
#include "shardwise/ops/shared/strided_kernels.h"

namespace shardwise {
namespace {

// With different widths, one element corresponds to several elements along a last dim, which must stay whole. The op
// then adds or drops a dim, so it does not propagate early.
ShardingRule rule_bitcast_convert(const OpView& op) {
  RuleBuilder rule(op);
  const size_t result = rule.result_tensor(0);
  const Dims& from = op.operand_type(0).shape;
  const Dims& to = op.result_type().shape;
  for (size_t dim = 0; dim < std::min(from.size(), to.size()); ++dim) {
    const FactorId factor = rule.factor(from[dim]);
    rule.map(0, dim, factor).map(result, dim, factor);
  }
  if (from.size() != to.size()) {
    const Dims& narrower = from.size() > to.size() ? from : to;
    rule.map(from.size() > to.size() ? 0 : result, narrower.size() - 1, rule.need_replication(narrower.back()));
  }
  return rule.build();
}

// ---- tile hooks ----------------------------------------------------------------------------------------------------

uint32_t tile_square(TileBuilder& tiles, const OpView& op, std::span<const uint32_t> inputs) {
  return tiles.emit(TileCode::kMultiply, {inputs[0], inputs[0]}, op.result_type().dtype);
}

uint32_t tile_compare(TileBuilder& tiles, const OpView& op, std::span<const uint32_t> inputs) {
  const TileCode code = comparison_code(op.attrs().get<EnumAttr>("comparison_direction").value);
  const EnumAttr* type = op.attrs().find<EnumAttr>("compare_type");
  if (type == nullptr || type->value != "TOTALORDER") return tiles.emit(code, inputs, DType::kBool);
  // IEEE's totalOrder is that of integers made of the bits: -NaN < -inf < … < -0 < +0 < … < inf < NaN.
  const DType key = tiles.dtype(inputs[0]) == DType::kF64 ? DType::kI64 : DType::kI32;
  const uint32_t lhs = tiles.emit(TileCode::kTotalOrderKey, {inputs[0]}, key);
  const uint32_t rhs = tiles.emit(TileCode::kTotalOrderKey, {inputs[1]}, key);
  return tiles.emit(code, {lhs, rhs}, DType::kBool);
}

struct FloatFormat {
  DType bits;
  int exponent, mantissa;
};
FloatFormat float_format(DType dtype) {
  switch (dtype) {
    case DType::kF16: return {DType::kU16, 5, 10};
    case DType::kBF16: return {DType::kU16, 8, 7};
    case DType::kF32: return {DType::kU32, 8, 23};
    default: return {DType::kU64, 11, 52};
  }
}

// Rounds the mantissa to nearest even in integer arithmetic, then maps exponents out of range to infinity or zero.
uint32_t tile_reduce_precision(TileBuilder& tiles, const OpView& op, std::span<const uint32_t> inputs) {
  if (is_narrow_float(tiles.dtype(inputs[0]))) {
    // Reducing adds no bits, so that the conversion back rounds no second time.
    const DType narrow = tiles.dtype(inputs[0]), wide = computed_in(narrow);
    const uint32_t widened = tiles.emit(TileCode::kConvert, {inputs[0]}, wide);
    return tiles.emit(TileCode::kConvert, {tile_reduce_precision(tiles, op, std::array{widened})}, narrow);
  }
  const uint32_t x = inputs[0];
  const DType dtype = tiles.dtype(x);
  const auto [bits, exponent, mantissa] = float_format(dtype);
  const auto exponent_bits = static_cast<int>(op.attrs().get_int("exponent_bits"));
  const auto mantissa_bits = static_cast<int>(op.attrs().get_int("mantissa_bits"));
  const DType u = bits;
  const auto number = [&](uint64_t value) { return tiles.scalar(Scalar::of_uint(u, value)); };
  const uint64_t exponent_mask = ((uint64_t{1} << exponent) - 1) << mantissa;
  const uint64_t sign_mask = uint64_t{1} << (exponent + mantissa);
  uint32_t word = tiles.emit(TileCode::kBitcast, {x}, u);
  if (mantissa_bits < mantissa) {
    const int cut = mantissa - mantissa_bits;
    const uint32_t last = tiles.emit(
        TileCode::kAnd,
        {tiles.emit(TileCode::kShiftRightLogical, {word, number(static_cast<uint64_t>(cut))}, u), number(1)}, u);
    // Half a unit less one, plus the last bit kept: ties go to even. A carry makes the next power of two.
    const uint32_t bias = tiles.emit(TileCode::kAdd, {last, number((uint64_t{1} << (cut - 1)) - 1)}, u);
    word = tiles.emit(TileCode::kAdd, {word, bias}, u);
    word = tiles.emit(TileCode::kAnd, {word, number(~((uint64_t{1} << cut) - 1))}, u);
  }
  if (exponent_bits < exponent) {
    const uint64_t bias = (uint64_t{1} << (exponent - 1)) - 1;
    // The largest exponent is `reduced`, as in IEEE's formats. There are no subnormal numbers: they become 0.
    const uint64_t reduced = (uint64_t{1} << (exponent_bits - 1)) - 1;
    const uint32_t power = tiles.emit(TileCode::kAnd, {word, number(exponent_mask)}, u);
    const uint32_t sign = tiles.emit(TileCode::kAnd, {word, number(sign_mask)}, u);
    const uint32_t infinity = tiles.emit(TileCode::kOr, {sign, number(exponent_mask)}, u);
    const uint32_t over = tiles.emit(TileCode::kGreater, {power, number((bias + reduced) << mantissa)}, DType::kBool);
    const uint32_t under =
        tiles.emit(TileCode::kLessEqual, {power, number((bias - reduced) << mantissa)}, DType::kBool);
    word = tiles.emit(TileCode::kSelect, {over, infinity, word}, u);
    word = tiles.emit(TileCode::kSelect, {under, sign, word}, u);
  }
  const uint32_t result = tiles.emit(TileCode::kBitcast, {word}, dtype);
  // Rounding might carry the mantissa of a NaN into its sign. Without mantissa bits, a format has no NaN.
  const uint32_t is_nan = tiles.emit(TileCode::kNotEqual, {x, x}, DType::kBool);
  const uint32_t infinity = tiles.emit(TileCode::kBitcast, {number(exponent_mask)}, dtype);
  return tiles.emit(TileCode::kSelect, {is_nan, mantissa_bits > 0 ? x : infinity, result}, dtype);
}

// ---- rows ----------------------------------------------------------------------------------------------------------

constexpr std::string_view kSteps = "the derivative is zero almost everywhere: the result moves in steps";

// The op of a row of functions.def, apart from its code.
struct MathFunction {
  std::string_view name;
  VjpFn vjp;
  std::string_view no_vjp_reason, doc;
  LinearIn linear;
  bool commutative;
};
constexpr MathFunction smooth(std::string_view name, VjpFn vjp, std::string_view doc, LinearIn linear = {},
                              bool commutative = false) {
  return {name, vjp, {}, doc, linear, commutative};
}
constexpr MathFunction stepped(std::string_view name, std::string_view reason, std::string_view doc,
                               LinearIn linear = {}, bool commutative = false) {
  return {name, not_differentiable, reason, doc, linear, commutative};
}

// Real operands suit whatever `infer` accepts. For complex ones only the tile builder knows its functions.
void verify_function(const OpView& op) {
  if (!is_complex(op.operand_type(0).dtype)) return;
  TileBuilder tiles;
  std::vector<uint32_t> inputs;
  for (size_t i = 0; i < op.operand_count(); ++i) inputs.push_back(tiles.input(op.operand_type(i).dtype));
  try {
    op.def().tile(tiles, op, inputs);
  } catch (const DTypeError&) {
    refuse_complex(op);
  }
}

// Those that SLEEF computes, as their rows state: a series each, where others are an instruction or two.
constexpr bool is_transcendental(TileCode code) {
  // clang-format off
  switch (code) {
#define FUNCTION(Code, operands, accepts, loops, ...) case TileCode::k##Code: return std::string_view(#loops).starts_with("sleef");
#include "shardwise/tile/functions.def"
    default: return false;
  }
  // clang-format on
}

template <TileCode Code>
constexpr OpDef function(const MathFunction& op) {
  // The result of is_finite has another dtype, so its text has both types.
  const std::string_view format = Code == TileCode::kIsFinite    ? kFunctionalFormat
                                  : op.name.starts_with("chlo.") ? kUnaryFormat
                                                                 : kSameFormat;
  OpDef def = elementwise_row(op.name, infer_code<Code>, tile_code<Code>, op.vjp, op.no_vjp_reason, format, op.doc,
                              op.linear, op.commutative);
  if (is_transcendental(Code)) def.cost = cost_of_function;
  return runnable_if(def, verify_function);
}

using enum TileCode;

constexpr OpDef with_integers(OpDef def, IntegersFn integers) {
  def.integers = integers;
  return def;
}

// Copies of operands 1 and 2, where the predicate is whole.
constexpr OpDef select_row(OpDef def) {
  def.linear = {Linear::kJoint, kAllReducers};
  def.joint = 0b110;
  def.integers = integers_of_select;
  return def;
}

constexpr OpDef bitcast_row(OpDef def) {
  def.rule = rule_bitcast_convert;
  def.prepare = prepare_bitcast_convert;
  return def;
}

constexpr OpDef kElementwiseOps[] = {
// clang-format off
#define FUNCTION(Code, operands, accepts, loops, op) function<k##Code>(op),
#include "shardwise/tile/functions.def"
    // clang-format on
    // square takes what negate takes: all numbers.
    elementwise_row("chlo.square", infer_code<kNegate>, tile_square, vjp_square, {}, kUnaryFormat,
                    "x * x (CHLO square)."),
    with_integers(
        elementwise_row(
            "stablehlo.compare", infer_compare, tile_compare, not_differentiable, kTruth,
            "$comparison_direction `,` operands ( `,` $compare_type:comparison_type^ )? attr-dict `:` functional-type",
            "EQ, NE, LT, LE, GT, GE of two tensors; TOTALORDER orders floats by sign and bits (StableHLO compare)."),
        integers_of_compare),
    select_row(elementwise_row("stablehlo.select", infer_select, tile_code<kSelect>, vjp_select, {},
                               "operands attr-dict `:` select-type",
                               "pred ? on_true : on_false; pred may be a scalar (StableHLO select).")),
    with_integers(
        elementwise_row(
            "stablehlo.clamp", infer_clamp, tile_code<kClamp>, vjp_clamp, {}, kSameFormat,
            "minimum(maximum(x, min), max); operands are min, x, max; bounds may be scalars (StableHLO clamp)."),
        integers_of_clamp),
    // linear_in (partitioning/linearity.h) narrows this to the conversions that do not round or wrap.
    elementwise_row("stablehlo.convert", infer_convert, tile_code<kConvert>, vjp_convert, {}, kSameFormat,
                    "To another dtype; floats to integers are cut and saturate, NaN gives 0 (StableHLO convert).",
                    {Linear::kFirst, Reducer::kSum}),
    bitcast_row(elementwise_row("stablehlo.bitcast_convert", infer_bitcast_convert, tile_code<kBitcast>,
                                not_differentiable, kBitwise, kFunctionalFormat,
                                "The same bits as another dtype; a last dim holds the parts of a wider one (StableHLO "
                                "bitcast_convert).")),
    elementwise_row("stablehlo.reduce_precision", infer_reduce_precision, tile_reduce_precision, vjp_reduce_precision,
                    {}, "operands `,` `format` `=` custom<exponent_mantissa> attr-dict `:` same-or-functional-type",
                    "Rounds to fewer exponent and mantissa bits (StableHLO reduce_precision)."),
};

static_assert(all_complete(kElementwiseOps));

}  // namespace

std::span<const OpDef> elementwise_ops() { return kElementwiseOps; }

// Batches the operands. An unbatched scalar beside tensors (a select predicate, a clamp bound) may stay a scalar.
void batch_elementwise(BatchContext& context) {
  const OpView op = context.op();
  const TensorType& type = op.result_type();
  Builder& builder = context.builder();
  const Dims shape = with_leading(context.size(), type.shape);
  // Only select and clamp have three operands, and scalars beside tensors.
  const bool takes_scalars = op.operand_count() == 3;
  std::vector<ValueId> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const bool scalar = op.operand_type(i).ndim() == 0;
    if (scalar && takes_scalars && !context.is_batched(i) && (type.ndim() != 0 || i != 1)) {
      operands.push_back(context.operand(i));
    } else if (scalar && type.ndim() != 0) {
      // A batched scalar is one number per example, for all elements of this example.
      operands.push_back(build_broadcast(builder, context.operand(i), shape, Dims{0}));
    } else {
      operands.push_back(context.batched(i));
    }
  }
  // select's two data operands must agree in shape.
  if (takes_scalars && type.ndim() == 0) {
    for (size_t i = 1; i < 3; ++i) {
      if (builder.module().type(operands[i]).ndim() == 0) operands[i] = context.batched(i);
    }
  }
  const std::array declared{builder.context().tensor(type.dtype, shape)};
  context.set_result(0, builder.create(op.def(), operands, attrs_of(op), declared));
}

namespace {

// Handles scalar operands beside tensors, and computes splats once instead of for each element.
void run_elementwise(KernelContext& context, const TileProgram& program, const TensorType& type) {
  bool all_splat = true;
  for (size_t i = 0; i < program.input_count(); ++i) all_splat = all_splat && context.operand(i).is_splat();
  const bool one_element = all_splat && type.size() > 1;
  const NdArray result = one_element ? NdArray::empty(type.dtype, {1}) : context.allocate_result();
  std::vector<NdArray> inputs;
  for (size_t i = 0; i < program.input_count(); ++i) {
    const NdArray& operand = context.operand(i);
    const bool whole = operand.shape() == result.shape() && !one_element;
    const NdArray first(operand.dtype(), Dims{1}, Dims{0}, operand.data(), operand.owner());
    inputs.push_back(whole ? operand : broadcast_scalar(first, result.shape()));
  }
  run_tiles(program, inputs, std::array{result}, pool_of(context));
  if (one_element) context.set_result(0, broadcast_scalar(result, type.shape));
}

// The bits of an element, the lowest first, as the elements of the other dtype.
void regroup_bits(KernelContext& context) {
  const NdArray to = context.allocate_result(), from = context.operand(0).contiguous();
  const bool splits = to.size() > from.size();
  const NdArray &wide = splits ? from : to, &narrow = splits ? to : from;
  const auto item = static_cast<size_t>(item_size(wide.dtype()));
  const int step = bit_width(narrow.dtype()), parts = bit_width(wide.dtype()) / step;
  const uint64_t mask = (uint64_t{1} << step) - 1;
  context.parallel_for(wide.size(), int64_t{1} << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      uint64_t bits = 0;
      std::byte* whole = wide.data() + i * static_cast<int64_t>(item);
      std::byte* part = narrow.data() + i * parts;
      if (splits) std::memcpy(&bits, whole, item);
      for (int k = 0; k < parts; ++k) {
        if (splits) {
          part[k] = static_cast<std::byte>(bits >> (k * step) & mask);
        } else {
          bits |= (std::to_integer<uint64_t>(part[k]) & mask) << (k * step);
        }
      }
      if (!splits) std::memcpy(whole, &bits, item);
    }
  });
}

}  // namespace

std::optional<Kernel> prepare_elementwise(const OpView& op, const KernelTypes& types) {
  TileBuilder tiles;
  std::vector<uint32_t> registers;
  for (const TensorType& operand : types.operands) registers.push_back(tiles.input(operand.dtype));
  tiles.output(op.def().tile(tiles, op, registers));
  return [program = std::move(tiles).build(), type = types.results[0]](KernelContext& context) {
    run_elementwise(context, program, type);
  };
}

// Items of another size are the same bytes under another shape. Elements of less than a byte have a byte each.
std::optional<Kernel> prepare_bitcast_convert(const OpView& op, const KernelTypes& types) {
  const TensorType& type = types.results[0];
  if (types.operands[0].shape == type.shape) return prepare_elementwise(op, types);
  if (std::min(bit_width(types.operands[0].dtype), bit_width(type.dtype)) < 8) return regroup_bits;
  return [type](KernelContext& context) {
    const NdArray& from = context.operand(0);
    if (!from.is_contiguous()) {
      const NdArray to = context.allocate_result();
      Dims rows = row_major_strides(from.shape(), item_size(from.dtype()));
      return copy_array(context, NdArray(from.dtype(), from.shape(), std::move(rows), to.data(), to.owner()), from);
    }
    Dims strides = row_major_strides(type.shape, item_size(type.dtype));
    context.set_result(0, NdArray(type.dtype, type.shape, std::move(strides), from.data(), from.owner()));
  };
}

}  // namespace shardwise
