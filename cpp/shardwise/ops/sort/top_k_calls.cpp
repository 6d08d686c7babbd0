// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/sort/top_k_calls.h"

#include <algorithm>
#include <optional>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/build/along_last_dim.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/shared/custom_call_def.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/sort/comparators.h"
#include "shardwise/ops/sort/top_k.h"

namespace shardwise {
namespace {

constexpr std::string_view kApproxTopK = "ApproxTopK", kTopK = "mhlo.topk";
constexpr std::string_view kFromText = "lower it with JAX again";

[[noreturn]] void refuse(std::string_view target, const std::string& requirement, const std::string& found) {
  fail<ShapeError>(str("custom_call @", target), requirement, found, std::string(kFromText));
}

std::string call_types_text(const OpView& op) {
  const std::vector<ValueId> results = list_of_results(op.module(), op.id());
  return str("(", types_text(op.module(), op.operands()), ") -> (", types_text(op.module(), results), ")");
}

const Attribute* field(const OpView& op, std::string_view dictionary, std::string_view name) {
  const auto* fields = op.attrs().find<AttrDict>(dictionary);
  if (fields == nullptr) return nullptr;
  const auto found = std::ranges::find(fields->fields, name, &NamedAttribute::first);
  return found == fields->fields.end() ? nullptr : &found->second;
}

int64_t integer_field(const OpView& op, std::string_view dictionary, std::string_view name) {
  const Attribute* found = field(op, dictionary, name);
  const auto* value = found == nullptr ? nullptr : std::get_if<IntAttr>(&found->base());
  if (value != nullptr) return value->value;
  refuse(custom_call_target(op), str(dictionary, " must have the integer ", name),
         found == nullptr ? "none" : "another");
}

// ---- ApproxTopK ----------------------------------------------------------------------------------------------------

struct ApproxTopK {
  size_t dim = 0;
  int64_t count = 0;    // of elements that are returned
  RegionId comparator;  // the body of the function
};

std::optional<RegionId> comparator_of(const OpView& op) {
  const auto* names = op.attrs().find<AttrArray>("called_computations");
  if (names == nullptr || names->size() != 1) return std::nullopt;
  const auto* name = std::get_if<Symbol>(&names->front().base());
  if (name == nullptr) return std::nullopt;
  const auto found = std::ranges::find(op.module().functions, name->name, &Function::name);
  if (found == op.module().functions.end()) return std::nullopt;
  return found->body;
}

bool compares_operands(const OpView& op, RegionId comparator) {
  const Region& body = op.module().region(comparator);
  return body.arguments.size() == op.operand_count() &&
         compares_scalars(op.module(), body, [&](size_t i) { return op.operand_type(i).dtype; });
}

ApproxTopK read_approx_top_k(const OpView& op) {
  constexpr std::string_view kConfig = "mhlo.backend_config";
  const size_t count = op.result_count();
  if (count == 0 || op.operand_count() != 2 * count) {
    refuse(kApproxTopK, "there must be an operand and a scalar for each result", call_types_text(op));
  }
  const Dims& shape = op.operand_type(0).shape;
  const auto ndim = static_cast<int64_t>(shape.size());
  // JAX writes -1 for the last dim.
  const int64_t written = integer_field(op, kConfig, "reduction_dim"), dim = written < 0 ? written + ndim : written;
  if (dim < 0 || dim >= ndim) {
    refuse(kApproxTopK, "reduction_dim must be a dim of the operands", str(written, " for ", call_types_text(op)));
  }
  ApproxTopK call{.dim = static_cast<size_t>(dim), .count = 0, .comparator = {}};
  for (size_t i = 0; i < count; ++i) {
    const TensorType& operand = op.operand_type(i);
    const TensorType& result = op.result_type(i);
    Dims expected = shape;
    // The size along the reduced dim is the call's own; all other sizes are the operand's.
    if (result.shape.size() == shape.size()) expected[call.dim] = result.shape[call.dim];
    const bool fits = operand.shape == shape && op.operand_type(count + i) == TensorType{operand.dtype, {}} &&
                      result == TensorType{operand.dtype, expected} &&
                      expected[call.dim] == op.result_type().shape[call.dim] && expected[call.dim] <= shape[call.dim];
    if (!fits)
      refuse(kApproxTopK, "operands, scalars and results must fit, apart from reduction_dim", call_types_text(op));
  }
  call.count = op.result_type().shape[call.dim];
  const Attribute* aggregates = field(op, kConfig, "aggregate_to_topk");
  const bool* is_final = aggregates == nullptr ? nullptr : std::get_if<bool>(&aggregates->base());
  const int64_t k = integer_field(op, kConfig, "top_k");
  // Unless the call aggregates, it may return more than k candidates; exact winners are good candidates.
  if (is_final != nullptr && *is_final ? call.count != k : call.count < k) {
    refuse(kApproxTopK, str("results must have top_k = ", k, " elements along reduction_dim"), call_types_text(op));
  }
  const std::optional<RegionId> comparator = comparator_of(op);
  if (!comparator || !compares_operands(op, *comparator)) {
    refuse(kApproxTopK,
           "called_computations must be a function of the module that compares two scalars of each operand",
           call_types_text(op));
  }
  call.comparator = *comparator;
  return call;
}

// Dims in which `dim` is the last one; or the way back.
Dims order_with_last(size_t ndim, size_t dim, bool back) {
  Dims order = identity_dims(static_cast<int64_t>(ndim));
  const auto at = order.begin() + static_cast<int64_t>(dim);
  // 3 dims, dim 0: [1, 2, 0], and back [2, 0, 1].
  back ? std::rotate(at, order.end() - 1, order.end()) : std::rotate(at, at + 1, order.end());
  return order;
}

bool is_iota_along(const Module& module, ValueId value, size_t dim) {
  const std::optional<OpView> iota = made_by(module, value, "stablehlo.iota");
  if (!iota || module.value(value).sharding) return false;
  return iota->attrs().get_int("iota_dimension") == static_cast<int64_t>(dim);
}

// By the floats of operand 0; the smallest are the largest of the negated ones.
void decompose_to_top_k(DecomposeContext& context, const ApproxTopK& call, bool descending) {
  const OpView op = context.op();
  Builder& builder = context.builder();
  const size_t ndim = op.operand_type(0).shape.size();
  const Dims order = order_with_last(ndim, call.dim, false), back = order_with_last(ndim, call.dim, true);
  const auto turned = [&](ValueId value) { return descending ? value : builder.create("stablehlo.negate", {value}); };
  const Winners found = build_top_k(builder, turned(build_transpose(builder, context.operand(0), order)), call.count);
  context.set_result(0, build_transpose(builder, turned(found.values), back));
  for (size_t i = 1; i < op.result_count(); ++i) {
    const ValueId operand = context.operand(i);
    // JAX's approx_max_k passes an iota for the indices: these are the places themselves, no gather is needed.
    const ValueId taken = is_iota_along(op.module(), operand, call.dim)
                              ? build_convert(builder, found.places, op.operand_type(i).dtype)
                              : build_take_along_last(builder, build_transpose(builder, operand, order), found.places);
    context.set_result(i, build_transpose(builder, taken, back));
  }
}

void decompose_to_sort(DecomposeContext& context, const ApproxTopK& call) {
  const OpView op = context.op();
  Builder& builder = context.builder();
  Module& module = builder.module();
  const size_t count = op.result_count();
  std::vector<ValueId> operands = operands_of(context);
  operands.resize(count);  // without the scalars
  const RegionId comparator = GraphCopy(module, module).region(call.comparator);
  const Attrs attrs{{"dimension", IntAttr{static_cast<int64_t>(call.dim)}}, {"is_stable", true}};
  const OpId sorted = builder.create_op("stablehlo.sort", operands, attrs, {}, {&comparator, 1});
  for (size_t i = 0; i < count; ++i) {
    const ValueId all = module.result(sorted, static_cast<uint32_t>(i));
    context.set_result(i, build_slice_along(builder, all, call.dim, 0, call.count));
  }
}

void decompose_approx_top_k(DecomposeContext& context) {
  const OpView op = context.op();
  const ApproxTopK call = read_approx_top_k(op);
  const std::optional<std::vector<SortKey>> keys = lexicographic_keys(op.module(), call.comparator);
  // top_k orders only by operand 0; any other comparator runs as the sort that the call is defined by.
  const bool by_floats = keys && keys->size() == 1 && keys->front().operand == 0 && is_float(op.operand_type(0).dtype);
  by_floats ? decompose_to_top_k(context, call, keys->front().descending) : decompose_to_sort(context, call);
}

// ---- mhlo.topk -----------------------------------------------------------------------------------------------------

struct TopK {
  int64_t k = 0;
  bool largest = true;
};

TopK read_top_k(const OpView& op) {
  constexpr std::string_view kConfig = "mhlo.attributes";
  const Attribute* largest = field(op, kConfig, "largest");
  const bool* is_largest = largest == nullptr ? nullptr : std::get_if<bool>(&largest->base());
  const TopK call{.k = integer_field(op, kConfig, "k"), .largest = is_largest == nullptr || *is_largest};
  bool fits = op.operand_count() == 1 && op.result_count() == 2 && !op.operand_type(0).shape.empty();
  if (fits) {
    const TensorType& operand = op.operand_type(0);
    Dims shape = operand.shape;
    // Integers cannot be negated: the smallest one has no positive counterpart.
    fits = call.k >= 0 && call.k <= shape.back() && (call.largest || is_float(operand.dtype));
    shape.back() = call.k;
    fits = fits && op.result_type(0) == TensorType{operand.dtype, shape} &&
           op.result_type(1) == TensorType{DType::kI32, shape};
  }
  if (!fits)
    refuse(kTopK, str("results must be the k = ", call.k, " elements of each row, and int32 places"),
           call_types_text(op));
  return call;
}

void decompose_top_k(DecomposeContext& context) {
  const TopK call = read_top_k(context.op());
  Builder& builder = context.builder();
  const auto turned = [&](ValueId value) { return call.largest ? value : builder.create("stablehlo.negate", {value}); };
  const Winners found = build_top_k(builder, turned(context.operand(0)), call.k);
  context.set_result(0, turned(found.values));
  context.set_result(1, found.places);
}

}  // namespace

void register_top_k_calls() {
  register_custom_call({.name = std::string(kApproxTopK),
                        .check = [](const OpView& op) { read_approx_top_k(op); },
                        .decompose = decompose_approx_top_k});
  register_custom_call(
      {.name = std::string(kTopK), .check = [](const OpView& op) { read_top_k(op); }, .decompose = decompose_top_k});
}

}  // namespace shardwise
