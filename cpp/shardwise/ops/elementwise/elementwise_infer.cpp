// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/elementwise/elementwise_infer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/narrow_float.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {
namespace {

constexpr std::array<std::pair<std::string_view, TileCode>, 6> kDirections{{
    {"EQ", TileCode::kEqual},
    {"NE", TileCode::kNotEqual},
    {"LT", TileCode::kLess},
    {"LE", TileCode::kLessEqual},
    {"GT", TileCode::kGreater},
    {"GE", TileCode::kGreaterEqual},
}};

std::optional<TileCode> find_direction(std::string_view direction) {
  for (const auto& [name, code] : kDirections) {
    if (name == direction) return code;
  }
  return std::nullopt;
}

void expect_accepted(const InferContext& op, TileCode code, size_t operand) {
  if (accepts(code, op.operand(operand).dtype)) return;
  op.fail_dtype(str("operands must be ", accepted_dtypes(code)), op.operand(operand).text(), "convert it first");
}

void expect_same_shape(const InferContext& op, size_t a, size_t b) {
  expect_shape(op, op.operand(a).shape == op.operand(b).shape, "operands must have the same shape",
               "broadcast one of them first");
}

void expect_same_shape_or_scalar(const InferContext& op, std::string_view what, size_t operand, size_t data) {
  if (op.operand(operand).ndim() == 0 || op.operand(operand).shape == op.operand(data).shape) return;
  op.fail_shape(str(what, " must be a scalar or have the shape of the data"), op.operand_types_text(),
                "broadcast it first");
}

TypeId of_dtype(const InferContext& op, size_t operand, DType dtype) {
  return op.context().tensor(dtype, op.operand(operand).shape);
}

}  // namespace

TileCode comparison_code(std::string_view direction) {
  const std::optional<TileCode> code = find_direction(direction);
  check_internal(code.has_value(), "a comparison direction that infer let through is unknown");
  return *code;
}

void infer_same(const InferContext& op, TileCode code, std::vector<TypeId>& results) {
  const auto count = static_cast<size_t>(operand_count(code));
  op.expect_operands(count);
  expect_accepted(op, code, 0);
  if (count == 2) {
    op.expect_same_dtype(0, 1);
    expect_same_shape(op, 0, 1);
  }
  const DType dtype = op.operand(0).dtype;
  if (code == TileCode::kIsFinite) {
    results.push_back(of_dtype(op, 0, DType::kBool));
  } else if (code == TileCode::kAbs && is_complex(dtype)) {
    // The absolute value of a complex number is a real one.
    results.push_back(of_dtype(op, 0, part_of_complex(dtype)));
  } else {
    results.push_back(op.operand_type(0));
  }
}

void infer_compare(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(2);
  op.expect_same_dtype(0, 1);
  expect_same_shape(op, 0, 1);
  const std::string& direction = op.attr<EnumAttr>("comparison_direction").value;
  if (!find_direction(direction)) op.fail_shape("comparison_direction must be EQ, NE, LT, LE, GT or GE", direction);
  if (op.attrs().find("compare_type") != nullptr) {
    const std::string& type = op.attr<EnumAttr>("compare_type").value;
    const DType dtype = op.operand(0).dtype;
    // Constraint of the specification, in which booleans compare as unsigned integers.
    const bool fits = is_complex(dtype)          ? type == "FLOAT"
                      : is_float(dtype)          ? type == "FLOAT" || type == "TOTALORDER"
                      : is_signed_integer(dtype) ? type == "SIGNED"
                                                 : type == "UNSIGNED";
    if (!fits) {
      op.fail_dtype("compare_type must be FLOAT or TOTALORDER for floats, SIGNED for signed integers, else UNSIGNED",
                    type + " for " + op.operand(0).text());
    }
  }
  results.push_back(of_dtype(op, 0, DType::kBool));
}

void infer_select(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(3);
  if (op.operand(0).dtype != DType::kBool) {
    op.fail_dtype("the predicate must be i1", op.operand(0).text(), "compare it with something first");
  }
  op.expect_same_dtype(1, 2);
  expect_same_shape(op, 1, 2);
  expect_same_shape_or_scalar(op, "the predicate", 0, 1);
  results.push_back(op.operand_type(1));
}

void infer_clamp(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(3);
  op.expect_same_dtype(0, 1);
  op.expect_same_dtype(1, 2);
  expect_same_shape_or_scalar(op, "min", 0, 1);
  expect_same_shape_or_scalar(op, "max", 2, 1);
  results.push_back(op.operand_type(1));
}

void infer_convert(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  const TensorType& result = op.declared_result();
  if (result.shape != op.operand(0).shape) {
    op.fail_shape("the result must have the operand's shape", op.operand(0).text() + " -> " + result.text(),
                  "reshape or broadcast it first");
  }
  results.push_back(op.declared()[0]);
}

// One wide element corresponds to several narrow ones, along an additional last dim.
void infer_bitcast_convert(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  const TensorType& operand = op.operand(0);
  // The dtype is in no attribute: the declared type is the only place that has it.
  const TensorType& result = op.declared_result();
  // tensor<4xf32> -> tensor<4x2xf16>. A boolean has a whole byte in memory, and complex numbers have two parts, so the
  // specification's bits of these exist nowhere.
  const auto special = [](DType dtype) { return dtype == DType::kBool || is_complex(dtype); };
  const int from = bit_width(operand.dtype), to = bit_width(result.dtype);
  Dims narrower = from > to ? result.shape : operand.shape;
  const Dims& wider = from > to ? operand.shape : result.shape;
  bool fits = operand.dtype == result.dtype || (!special(operand.dtype) && !special(result.dtype));
  if (fits && from != to) {
    const int ratio = std::max(from, to) / std::min(from, to);
    fits = std::max(from, to) % std::min(from, to) == 0 && !narrower.empty() && narrower.back() == ratio;
    if (fits) narrower.pop_back();
  }
  if (!fits || narrower != wider) {
    op.fail_dtype("operand and result must have the same bits: equal widths, or the narrower one more dim for the rest",
                  operand.text() + " -> " + result.text());
  }
  results.push_back(op.declared()[0]);
}

void infer_reduce_precision(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  if (!is_float(op.operand(0).dtype))
    op.fail_dtype("operands must be floats", op.operand(0).text(), "convert it first");
  const auto& exponent = op.attr<IntAttr>("exponent_bits");
  const auto& mantissa = op.attr<IntAttr>("mantissa_bits");
  if (exponent.bits != 32 || mantissa.bits != 32) {
    op.fail_dtype("exponent_bits and mantissa_bits must be i32", str("i", exponent.bits, " and i", mantissa.bits));
  }
  if (exponent.value < 1 || mantissa.value < 0) {
    op.fail_shape("exponent_bits must be at least 1 and mantissa_bits at least 0",
                  str(exponent.value, " and ", mantissa.value));
  }
  results.push_back(op.operand_type(0));
}

}  // namespace shardwise
