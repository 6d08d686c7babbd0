// SPDX-License-Identifier: Apache-2.0
//
// Runs single ops on arrays, without passes or runtime:
//
//   NdArray y = run_op("stablehlo.transpose", {x}, {{"permutation", IntArray{1, 0}}});
//   rule_text("stablehlo.transpose", {x}, …)        "([j, i])->([i, j]) {i=4, j=2}"
//   check_vjp(name, operands, attrs, …)             against central differences, in float64
//   check_batch(name, operands, batched, attrs, …)  against the op on every example
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "prepared.h"
#include "shardwise/base/error.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rule/rule_attribute.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/registry.h"
#include "shardwise/ops/shared/scalars.h"
#include "shardwise/tile/table.h"

namespace shardwise::test {

inline const std::vector<DType>& all_dtypes() {
  static const std::vector<DType> dtypes = [] {
    std::vector<DType> list;
    // Complex numbers have tests of their own: their elements are no doubles.
    for (int i = 0; i < kTileDTypeCount; ++i) {
      if (!is_complex(static_cast<DType>(i))) list.push_back(static_cast<DType>(i));
    }
    return list;
  }();
  return dtypes;
}

inline double as_double(const Scalar& scalar) {
  if (is_float(scalar.dtype)) return scalar.real;
  return is_unsigned_integer(scalar.dtype) ? static_cast<double>(scalar.natural) : static_cast<double>(scalar.integer);
}

inline Scalar scalar_from(DType dtype, double value) {
  return is_float(dtype) ? Scalar::of_float(dtype, value) : scalar_of(dtype, static_cast<int64_t>(value));
}

inline void put(const NdArray& array, int64_t linear, double value) {
  int64_t offset = 0;
  for (size_t d = array.shape().size(); d-- > 0;) {
    offset += linear % array.shape()[d] * array.strides()[d];
    linear /= array.shape()[d];
  }
  store(scalar_from(array.dtype(), value), array.data() + offset);
}

inline NdArray make_array(DType dtype, Dims shape, const std::function<double(int64_t)>& element) {
  NdArray array = NdArray::empty(dtype, std::move(shape));
  for (int64_t i = 0; i < array.size(); ++i) put(array, i, element(i));
  return array;
}

inline NdArray array_of(DType dtype, Dims shape, const std::vector<double>& elements) {
  return make_array(dtype, std::move(shape), [&](int64_t i) { return elements[static_cast<size_t>(i)]; });
}

// Small integers, of which every dtype can hold sums: 0 or 1 for booleans, 0 … 4 for unsigned, -4 … 4 else.
inline NdArray random_array(DType dtype, Dims shape, uint32_t seed = 1) {
  std::mt19937 random(seed);
  const int low = dtype == DType::kBool || is_unsigned_integer(dtype) ? 0 : -4;
  std::uniform_int_distribution<int> value(low, dtype == DType::kBool ? 1 : 4);
  return make_array(dtype, std::move(shape), [&](int64_t) { return value(random); });
}

inline NdArray random_reals(DType dtype, Dims shape, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> value(-1, 1);
  return make_array(dtype, std::move(shape), [&](int64_t) { return value(random); });
}

// The same elements in memory that goes backwards along dim 0 and has gaps along the last dim.
inline NdArray in_odd_strides(const NdArray& array) {
  if (array.ndim() == 0) return array;
  Dims shape = array.shape();
  shape.back() = shape.back() * 2 + 1;
  const NdArray memory = NdArray::empty(array.dtype(), shape);
  Dims strides = memory.strides();
  strides.back() *= 2;
  std::byte* data = memory.data();
  if (array.size() != 0) data += (array.shape()[0] - 1) * strides[0];
  strides[0] = -strides[0];
  const NdArray view(array.dtype(), array.shape(), strides, data, memory.owner());
  view.copy_from(array);
  return view;
}

// Column-major memory.
inline NdArray column_major(const NdArray& array) {
  Dims reversed(array.shape().rbegin(), array.shape().rend());
  const NdArray memory = NdArray::empty(array.dtype(), reversed);
  const NdArray view(array.dtype(), array.shape(), Dims(memory.strides().rbegin(), memory.strides().rend()),
                     memory.data(), memory.owner());
  view.copy_from(array);
  return view;
}

inline std::vector<double> elements(const NdArray& array) {
  std::vector<double> list;
  for (int64_t i = 0; i < array.size(); ++i) list.push_back(as_double(array.scalar_at(i)));
  return list;
}

// A module whose values can be evaluated op by op.
class TestGraph {
 public:
  TestGraph() : module_((register_ops(), std::make_shared<Context>())) {
    module_.functions.push_back(
        {.name = "main", .visibility = Visibility::kPublic, .body = module_.add_region(), .result_shardings = {}});
  }
  Module& module() { return module_; }
  Builder builder() { return {module_, module_.main().body}; }

  ValueId input(const NdArray& array) {
    const ValueId value =
        module_.add_argument(module_.main().body, module_.context().tensor(array.dtype(), array.shape()));
    values_[value] = array;
    return value;
  }
  OpId create(std::string_view name, const std::vector<ValueId>& operands, const Attrs& attrs,
              const std::optional<TensorType>& declared) {
    std::vector<TypeId> types;
    if (declared) types.push_back(module_.context().intern(*declared));
    return builder().create_op(name, operands, attrs, types);
  }
  NdArray evaluate(ValueId value);
  // Largest pieces that parallel_for makes; they run from the last to the first.
  int64_t piece = 1 << 30;

 private:
  Module module_;
  std::unordered_map<ValueId, NdArray> values_;
};

class TestKernelContext : public KernelContext {
 public:
  TestKernelContext(std::vector<TensorType> types, std::vector<NdArray> operands, int64_t piece, bool may_take = false)
      : types_(std::move(types)),
        operands_(std::move(operands)),
        results_(types_.size()),
        piece_(piece),
        may_take_(may_take) {}
  const NdArray& operand(size_t i) const override { return operands_[i]; }
  std::optional<NdArray> take_operand(size_t i) override {
    if (!may_take_) return std::nullopt;
    const NdArray own = NdArray::empty(operands_[i].dtype(), operands_[i].shape());
    own.copy_from(operands_[i]);
    return operands_[i] = own;
  }
  NdArray allocate_result(size_t i) override {
    results_[i] = NdArray::empty(types_[i].dtype, types_[i].shape);
    return results_[i];
  }
  void set_result(size_t i, NdArray view) override { results_[i] = std::move(view); }
  void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) override {
    const int64_t piece = std::max(piece_, grain);
    for (int64_t i = ceil_div(count, piece); i-- > 0;) body(i * piece, std::min((i + 1) * piece, count));
  }
  const NdArray& result(size_t i) const { return results_[i]; }

 private:
  std::vector<TensorType> types_;
  std::vector<NdArray> operands_, results_;
  int64_t piece_;
  bool may_take_;
};

inline bool same_bytes(const NdArray& a, const NdArray& b) {
  const NdArray left = a.contiguous(), right = b.contiguous();
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         (left.nbytes() == 0 || std::memcmp(left.data(), right.data(), static_cast<size_t>(left.nbytes())) == 0);
}

inline NdArray TestGraph::evaluate(ValueId value) {
  if (const auto it = values_.find(value); it != values_.end()) return it->second;
  const OpView op(module_, module_.value(value).op);
  std::vector<NdArray> operands;
  for (ValueId operand : op.operands()) operands.push_back(evaluate(operand));
  const Kernel kernel = prepared(op);
  const std::vector<TensorType> types = OwnTypes(op).results;
  TestKernelContext context(types, operands, piece), taking(types, operands, piece, true);
  kernel(context);
  kernel(taking);
  for (size_t i = 0; i < op.result_count(); ++i) {
    const NdArray& result = context.result(i);
    EXPECT_TRUE(same_bytes(result, taking.result(i))) << op.name() << " in the memory of its operands";
    EXPECT_EQ(result.shape(), op.result_type(i).shape) << op.name();
    EXPECT_EQ(result.dtype(), op.result_type(i).dtype) << op.name();
    values_[op.result(i)] = result;
  }
  return values_.at(value);
}

inline NdArray run_op(std::string_view name, const std::vector<NdArray>& operands, const Attrs& attrs = {},
                      const std::optional<TensorType>& declared = {}) {
  TestGraph graph;
  std::vector<ValueId> values;
  for (const NdArray& operand : operands) values.push_back(graph.input(operand));
  return graph.evaluate(graph.module().result(graph.create(name, values, attrs, declared)));
}

inline std::string rule_text(std::string_view name, const std::vector<Dims>& shapes, const Attrs& attrs = {},
                             const std::optional<Dims>& declared = {}) {
  TestGraph graph;
  std::vector<ValueId> values;
  for (const Dims& shape : shapes) values.push_back(graph.input(NdArray::empty(DType::kF32, shape)));
  std::optional<TensorType> type;
  if (declared) type = TensorType{DType::kF32, *declared};
  const OpView op(graph.module(), graph.create(name, values, attrs, type));
  return text(op.def().rule(op));
}

template <class E>
std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const E& error) {
    return error.what();
  }
  return "no such error";
}

// Builds the op's result from operands; for ops with regions, by their build function.
using BuildOp = std::function<ValueId(Builder&, const std::vector<ValueId>&)>;

inline BuildOp op_builder(std::string name, Attrs attrs = {}, std::optional<TensorType> declared = {}) {
  return [=](Builder& builder, const std::vector<ValueId>& operands) {
    std::vector<TypeId> types;
    if (declared) types.push_back(builder.context().intern(*declared));
    return builder.module().result(builder.create_op(name, operands, attrs, types));
  };
}

class TestVjpContext : public VjpContext {
 public:
  TestVjpContext(TestGraph& graph, OpView op, ValueId cotangent)
      : builder_(graph.builder()), op_(op), cotangent_(cotangent), cotangents(op.operand_count()) {}
  OpView op() const override { return op_; }
  Builder& builder() override { return builder_; }
  ValueId operand(size_t i) const override { return op_.operand(i); }
  ValueId result(size_t i) const override { return op_.result(i); }
  ValueId cotangent(size_t) override { return cotangent_; }
  bool needs(size_t i) const override { return is_float(op_.operand_type(i).dtype); }
  void set(size_t i, ValueId value) override { cotangents[i] = value; }

 private:
  Builder builder_;
  OpView op_;
  ValueId cotangent_;

 public:
  std::vector<ValueId> cotangents;
};

inline double dot_product(const NdArray& a, const NdArray& b) {
  const auto x = elements(a), y = elements(b);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

inline void check_vjp(const BuildOp& build, const std::vector<NdArray>& operands, double tolerance = 1e-7) {
  TestGraph graph;
  std::vector<ValueId> values;
  for (const NdArray& operand : operands) values.push_back(graph.input(operand));
  Builder builder = graph.builder();
  const ValueId result = build(builder, values);
  const TensorType type = graph.module().type(result);
  const NdArray weights = random_reals(DType::kF64, type.shape, 7);
  TestVjpContext vjp(graph, OpView(graph.module(), graph.module().value(result).op), graph.input(weights));
  vjp.op().def().vjp(vjp);
  const auto loss = [&](size_t moved, const NdArray& by, double step) {
    TestGraph other;
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < operands.size(); ++i) {
      const NdArray& array = operands[i];
      inputs.push_back(other.input(i != moved ? array : make_array(array.dtype(), array.shape(), [&](int64_t e) {
        return as_double(array.scalar_at(e)) + step * as_double(by.scalar_at(e));
      })));
    }
    Builder inner = other.builder();
    return dot_product(other.evaluate(build(inner, inputs)), weights);
  };
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!is_float(operands[i].dtype())) continue;
    ASSERT_TRUE(vjp.cotangents[i]) << "no cotangent of operand " << i;
    const NdArray gradient = graph.evaluate(vjp.cotangents[i]);
    ASSERT_EQ(gradient.shape(), operands[i].shape());
    const NdArray direction = random_reals(DType::kF64, operands[i].shape(), 11);
    const double step = 1e-5;
    const double expected = (loss(i, direction, step) - loss(i, direction, -step)) / (2 * step);
    EXPECT_NEAR(dot_product(gradient, direction), expected, tolerance * (1 + std::abs(expected))) << "operand " << i;
  }
}

class TestBatchContext : public BatchContext {
 public:
  TestBatchContext(TestGraph& graph, OpView op, std::vector<ValueId> operands, std::vector<bool> is_batched,
                   int64_t size)
      : builder_(graph.builder()),
        op_(op),
        operands_(std::move(operands)),
        is_batched_(std::move(is_batched)),
        size_(size) {}
  OpView op() const override { return op_; }
  Builder& builder() override { return builder_; }
  int64_t size() const override { return size_; }
  bool is_batched(size_t i) const override { return is_batched_[i]; }
  ValueId operand(size_t i) const override { return operands_[i]; }
  ValueId batched(size_t i) override {
    if (is_batched_[i]) return operands_[i];
    const Dims shape = builder_.module().type(operands_[i]).shape;
    Dims wide{size_}, dims;
    for (size_t d = 0; d < shape.size(); ++d) {
      wide.push_back(shape[d]);
      dims.push_back(static_cast<int64_t>(d) + 1);
    }
    return build_broadcast(builder_, operands_[i], wide, dims);
  }
  void set_result(size_t, ValueId value) override { result = value; }
  ValueId result;

 private:
  Builder builder_;
  OpView op_;
  std::vector<ValueId> operands_;
  std::vector<bool> is_batched_;
  int64_t size_;
};

// Batched operands come with their leading dim.
inline void check_batch(const BuildOp& build, const std::vector<NdArray>& operands,
                        const std::vector<bool>& is_batched) {
  int64_t size = 0;
  const auto example = [&](size_t operand, int64_t index) {
    const NdArray& array = operands[operand];
    if (!is_batched[operand]) return array;
    const NdArray row = array.sliced(0, index, 1);
    return NdArray(row.dtype(), Dims(row.shape().begin() + 1, row.shape().end()),
                   Dims(row.strides().begin() + 1, row.strides().end()), row.data(), row.owner());
  };
  TestGraph graph;
  std::vector<ValueId> wide, single;
  for (size_t i = 0; i < operands.size(); ++i) {
    wide.push_back(graph.input(operands[i]));
    single.push_back(graph.input(example(i, 0)));
    if (is_batched[i]) size = operands[i].shape()[0];
  }
  Builder builder = graph.builder();
  const ValueId one = build(builder, single);
  TestBatchContext batch(graph, OpView(graph.module(), graph.module().value(one).op), wide, is_batched, size);
  batch.op().def().batch(batch);
  const NdArray all = graph.evaluate(batch.result);
  ASSERT_EQ(all.ndim(), graph.module().type(one).ndim() + 1);
  ASSERT_EQ(all.shape()[0], size);
  for (int64_t index = 0; index < size; ++index) {
    TestGraph other;
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < operands.size(); ++i) inputs.push_back(other.input(example(i, index)));
    Builder inner = other.builder();
    const NdArray expected = other.evaluate(build(inner, inputs));
    EXPECT_EQ(elements(all.sliced(0, index, 1)), elements(expected)) << "example " << index;
  }
}

}  // namespace shardwise::test
