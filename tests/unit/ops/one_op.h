// SPDX-License-Identifier: Apache-2.0
//
// Ops by themselves: a graph whose values can be computed kernel by kernel, without passes or a runtime.
//
//   ComputedGraph graph;
//   ValueId x = graph.input(floats(DType::kF32, {1, 4}));
//   graph.array(graph.builder().create("stablehlo.sqrt", {x})).scalar_at(1).real      // 2
#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prepared.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ops/build/decomposition.h"
#include "shardwise/ops/registry.h"

namespace shardwise {

class OneKernel : public KernelContext {
 public:
  OneKernel(OpView op, std::vector<NdArray> operands) : op_(op), operands_(std::move(operands)) {}
  const NdArray& operand(size_t i) const override { return operands_[i]; }
  std::optional<NdArray> take_operand(size_t) override { return std::nullopt; }
  NdArray allocate_result(size_t i) override {
    result_ = NdArray::empty(op_.result_type(i).dtype, op_.result_type(i).shape);
    return result_;
  }
  void set_result(size_t, NdArray view) override { result_ = std::move(view); }
  void parallel_for(int64_t count, int64_t, const std::function<void(int64_t, int64_t)>& body) override {
    body(0, count / 3);  // uneven pieces, as from several threads
    body(count / 3, count);
  }
  const NdArray& result() const { return result_; }

 private:
  OpView op_;
  std::vector<NdArray> operands_;
  NdArray result_;
};

// A function under construction whose values can be computed.
class ComputedGraph {
 public:
  ComputedGraph()
      : module_((register_ops(), std::make_shared<Context>())),
        region_(module_.add_region()),
        builder_(module_, region_) {}

  Builder& builder() { return builder_; }
  Module& module() { return module_; }
  ValueId input(const NdArray& array) {
    const ValueId id = module_.add_argument(region_, module_.context().tensor(array.dtype(), array.shape()));
    arrays_.emplace(id, array);
    return id;
  }
  OpView defining_op(ValueId id) const { return OpView(module_, module_.value(id).op); }
  NdArray array(ValueId id) {
    for (size_t i = 0; i < module_.region(region_).ops.size(); ++i) evaluate(module_.region(region_).ops[i]);
    return arrays_.at(id);
  }

 private:
  void evaluate(OpId id) {
    const OpView op(module_, id);
    const ValueId result = op.result();
    if (arrays_.contains(result)) return;
    if (op.def().prepare == nullptr) {
      const size_t known = module_.region(region_).ops.size();
      const ValueId by = append_decomposition(builder_, op).at(0);
      for (size_t i = known; i < module_.region(region_).ops.size(); ++i) evaluate(module_.region(region_).ops[i]);
      arrays_.emplace(result, arrays_.at(by));
      return;
    }
    std::vector<NdArray> operands;
    for (ValueId operand : op.operands()) operands.push_back(arrays_.at(operand));
    OneKernel kernel(op, operands);
    prepared(op)(kernel);
    arrays_.emplace(result, kernel.result());
  }

  Module module_;
  RegionId region_;
  Builder builder_;
  std::map<ValueId, NdArray> arrays_;
};

inline NdArray from_scalars(DType dtype, const std::vector<Scalar>& values) {
  const NdArray array = NdArray::empty(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    store(values[i], array.data() + static_cast<int64_t>(i) * item_size(dtype));
  return array;
}

inline NdArray floats(DType dtype, std::initializer_list<double> values) {
  std::vector<Scalar> scalars;
  for (double value : values) scalars.push_back(Scalar::of_float(dtype, value));
  return from_scalars(dtype, scalars);
}

inline Scalar truth(bool value) { return Scalar::of_int(DType::kBool, value); }

inline bool has(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

inline std::string short_name(const OpDef& def) { return std::string(def.name.substr(def.name.find('.') + 1)); }
inline size_t arity(const OpDef& def) {
  const std::string op = short_name(def);
  if (has(op, {"select", "clamp"})) return 3;
  if (has(op, {"add", "subtract", "multiply", "divide", "remainder", "power", "atan2", "maximum", "minimum", "and",
               "or", "xor", "shift_left", "shift_right_arithmetic", "shift_right_logical", "compare"})) {
    return 2;
  }
  return 1;
}
}  // namespace shardwise
