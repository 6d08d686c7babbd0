// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/elementwise/elementwise_vjp.h"

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/one_op.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ops/elementwise/elementwise.h"

namespace shardwise {
namespace {

class OneVjp : public VjpContext {
 public:
  OneVjp(ComputedGraph& graph, OpView op, ValueId cotangent)
      : graph_(graph), op_(op), cotangent_(cotangent), set_(op.operand_count()) {}
  OpView op() const override { return op_; }
  Builder& builder() override { return graph_.builder(); }
  ValueId operand(size_t i) const override { return op_.operand(i); }
  ValueId result(size_t i) const override { return op_.result(i); }
  ValueId cotangent(size_t) override { return cotangent_; }
  bool needs(size_t) const override { return true; }
  void set(size_t i, ValueId cotangent) override { set_[i] = cotangent; }
  ValueId operand_cotangent(size_t i) const { return set_[i]; }

 private:
  ComputedGraph& graph_;
  OpView op_;
  ValueId cotangent_;
  std::vector<ValueId> set_;
};

// Inside every op's domain, away from kinks; acosh and log need their own half-lines.
std::vector<double> domain(std::string_view op, size_t operand) {
  if (op == "acosh") return {1.25, 1.5, 2.5, 7.0};
  if (has(op, {"asin", "acos", "atanh"})) return {-0.7, -0.2, 0.3, 0.8};
  if (has(op, {"log", "sqrt", "rsqrt", "log_plus_one"}) || (op == "power" && operand == 0)) return {0.3, 0.9, 1.7, 4.0};
  if (op == "clamp")
    return operand == 0   ? std::vector{-1.0, 0.5, -1.0, -1.0}
           : operand == 1 ? std::vector{-2.0, 0.1, 0.3, 2.5}
                          : std::vector{1.0, 2.0, 3.0, 1.0};
  return operand == 0 ? std::vector{-1.3, -0.4, 0.6, 2.3} : std::vector{0.7, 1.9, -0.8, 1.1};
}

NdArray from_doubles(const std::vector<double>& values) {
  std::vector<Scalar> scalars;
  for (double value : values) scalars.push_back(Scalar::of_float(DType::kF64, value));
  return from_scalars(DType::kF64, scalars);
}

TEST(Elementwise, DerivativesAgainstDifferences) {
  for (const OpDef& def : elementwise_ops()) {
    const std::string op = short_name(def);
    if (def.vjp == not_differentiable || has(op, {"convert", "select", "reduce_precision"})) continue;
    SCOPED_TRACE(op);
    std::vector<std::vector<double>> points;
    for (size_t i = 0; i < arity(def); ++i) points.push_back(domain(op, i));
    const auto evaluate = [&](const std::vector<std::vector<double>>& at) {
      ComputedGraph graph;
      std::vector<ValueId> operands;
      for (const std::vector<double>& values : at) operands.push_back(graph.input(from_doubles(values)));
      return graph.array(graph.module().result(graph.builder().create_op(def, operands)));
    };
    ComputedGraph graph;
    std::vector<ValueId> operands;
    for (const std::vector<double>& values : points) operands.push_back(graph.input(from_doubles(values)));
    const OpId id = graph.builder().create_op(def, operands);
    const std::vector<double> g{1.0, -0.5, 2.0, 3.0};
    OneVjp vjp(graph, OpView(graph.module(), id), graph.input(from_doubles(g)));
    def.vjp(vjp);
    for (size_t k = 0; k < points.size(); ++k) {
      ASSERT_TRUE(vjp.operand_cotangent(k));
      const NdArray got = graph.array(vjp.operand_cotangent(k));
      const double step = 1e-6;
      std::vector<std::vector<double>> above = points, below = points;
      for (double& value : above[k]) value += step;
      for (double& value : below[k]) value -= step;
      const NdArray high = evaluate(above), low = evaluate(below);
      for (int64_t i = 0; i < 4; ++i) {
        const double want = g[static_cast<size_t>(i)] * (high.scalar_at(i).real - low.scalar_at(i).real) / (2 * step);
        EXPECT_NEAR(got.scalar_at(i).real, want, 2e-8 * (1 + std::fabs(want))) << "operand " << k << " lane " << i;
      }
    }
  }
}

TEST(Elementwise, DerivativesAtKinks) {
  ComputedGraph graph;
  const ValueId x = graph.input(from_doubles({1, 2, 3})), y = graph.input(from_doubles({1, 3, 2}));
  const ValueId g = graph.input(from_doubles({4, 4, 4}));
  const ValueId larger = graph.builder().create("stablehlo.maximum", {x, y});
  OneVjp vjp(graph, graph.defining_op(larger), g);
  graph.defining_op(larger).def().vjp(vjp);
  const NdArray dx = graph.array(vjp.operand_cotangent(0)), dy = graph.array(vjp.operand_cotangent(1));
  EXPECT_EQ(dx.scalar_at(0).real, 2);  // a tie is shared
  EXPECT_EQ(dy.scalar_at(0).real, 2);
  EXPECT_EQ(dx.scalar_at(1).real, 0);
  EXPECT_EQ(dy.scalar_at(1).real, 4);

  const ValueId zero = graph.input(from_doubles({0, 0, 2})), exponent = graph.input(from_doubles({0, 2, 0}));
  const ValueId power = graph.builder().create("stablehlo.power", {zero, exponent});
  OneVjp of_power(graph, graph.defining_op(power), g);
  graph.defining_op(power).def().vjp(of_power);
  for (size_t k : {0U, 1U}) {
    for (int64_t i = 0; i < 3; ++i)
      EXPECT_TRUE(std::isfinite(graph.array(of_power.operand_cotangent(k)).scalar_at(i).real));
  }

  const ValueId scalar = graph.input(from_doubles({2}).sliced(0, 0, 1));
  const ValueId bound =
      graph.builder().create("stablehlo.reshape", {scalar}, {}, {graph.module().context().tensor(DType::kF64, Dims{})});
  const auto gradient_of_bound = [&](ValueId high) {
    const ValueId clamped = graph.builder().create("stablehlo.clamp", {bound, x, high});
    OneVjp of_clamp(graph, graph.defining_op(clamped), g);
    graph.defining_op(clamped).def().vjp(of_clamp);
    EXPECT_EQ(graph.module().type(of_clamp.operand_cotangent(0)).ndim(), 0);
    return graph.array(of_clamp.operand_cotangent(0)).scalar_at(0).real;
  };
  EXPECT_EQ(gradient_of_bound(graph.input(from_doubles({3, 3, 3}))), 4);  // only the first element was below 2
  EXPECT_EQ(gradient_of_bound(y), 0);  // a lower bound above the upper one has no gradient, as in JAX
}

TEST(Elementwise, IntegersContributeNothing) {
  ComputedGraph graph;
  const ValueId x = graph.input(from_scalars(DType::kI32, {Scalar::of_int(DType::kI32, 7)}));
  const ValueId sum = graph.builder().create("stablehlo.add", {x, x});
  OneVjp vjp(graph, graph.defining_op(sum), x);
  graph.defining_op(sum).def().vjp(vjp);
  EXPECT_FALSE(vjp.operand_cotangent(0));
}

class OneBatch : public BatchContext {
 public:
  OneBatch(ComputedGraph& graph, OpView op, std::vector<ValueId> operands, std::vector<bool> batched, int64_t size)
      : graph_(graph), op_(op), operands_(std::move(operands)), batched_(std::move(batched)), size_(size) {}
  OpView op() const override { return op_; }
  Builder& builder() override { return graph_.builder(); }
  int64_t size() const override { return size_; }
  bool is_batched(size_t i) const override { return batched_[i]; }
  ValueId operand(size_t i) const override { return operands_[i]; }
  ValueId batched(size_t i) override {
    if (batched_[i]) return operands_[i];
    const TensorType& type = graph_.module().type(operands_[i]);
    Dims shape = type.shape, dims(type.shape.size());
    shape.insert(shape.begin(), size_);
    std::iota(dims.begin(), dims.end(), 1);
    return graph_.builder().create("stablehlo.broadcast_in_dim", {operands_[i]},
                                   {{"broadcast_dimensions", IntArray(dims)}},
                                   {graph_.module().context().tensor(type.dtype, shape)});
  }
  void set_result(size_t, ValueId value) override { result_ = value; }
  ValueId result() const { return result_; }

 private:
  ComputedGraph& graph_;
  OpView op_;
  std::vector<ValueId> operands_;
  std::vector<bool> batched_;
  int64_t size_;
  ValueId result_;
};

// Each row of the batched op is the op on that row, for every mix of batched operands and for scalar predicates.
TEST(Elementwise, BatchedRowsAreTheOpOnEachRow) {
  constexpr int64_t kRows = 3;
  const auto random = [](DType dtype, Dims shape) {
    const NdArray array = NdArray::empty(dtype, std::move(shape));
    for (int64_t i = 0; i < array.size(); ++i) {
      const Scalar value =
          dtype == DType::kBool ? truth(i % 2 == 0) : Scalar::of_float(dtype, static_cast<double>(i * 7 % 5) - 1.5);
      store(value, array.data() + i * item_size(dtype));
    }
    return array;
  };
  for (std::string_view name : {"stablehlo.add", "stablehlo.select", "stablehlo.clamp", "stablehlo.negate"}) {
    const OpDef& def = get_op(name);
    for (const Dims& shape : {Dims{}, Dims{4}}) {
      for (unsigned mask = 1; mask < (1U << arity(def)); ++mask) {
        for (bool scalars : {false, true}) {
          if (scalars && arity(def) != 3) continue;
          SCOPED_TRACE(std::string(name) + " mask " + std::to_string(mask) + (scalars ? " scalars" : ""));
          ComputedGraph graph;
          std::vector<ValueId> plain, mixed;
          std::vector<NdArray> arrays;
          std::vector<bool> batched;
          for (size_t i = 0; i < arity(def); ++i) {
            const bool scalar = scalars && (i == 0 || (i == 2 && name == "stablehlo.clamp"));
            Dims own = scalar ? Dims{} : shape;
            const DType dtype = name == "stablehlo.select" && i == 0 ? DType::kBool : DType::kF32;
            plain.push_back(graph.input(random(dtype, own)));
            batched.push_back((mask >> i & 1U) != 0);
            if (batched.back()) own.insert(own.begin(), kRows);
            arrays.push_back(random(dtype, own));
            mixed.push_back(graph.input(arrays.back()));
          }
          const OpId id = graph.builder().create_op(def, plain);
          OneBatch batch(graph, OpView(graph.module(), id), mixed, batched, kRows);
          def.batch(batch);
          const NdArray got = graph.array(batch.result());
          Dims whole = shape;
          whole.insert(whole.begin(), kRows);
          ASSERT_EQ(got.shape(), whole);
          for (int64_t row = 0; row < kRows; ++row) {
            ComputedGraph single;
            std::vector<ValueId> operands;
            for (size_t i = 0; i < arity(def); ++i) {
              NdArray part = arrays[i];
              if (batched[i]) {
                part = part.sliced(0, row, 1);
                part = NdArray(part.dtype(), Dims(part.shape().begin() + 1, part.shape().end()),
                               Dims(part.strides().begin() + 1, part.strides().end()), part.data(), part.owner());
              }
              operands.push_back(single.input(part));
            }
            const NdArray want = single.array(single.module().result(single.builder().create_op(def, operands)));
            const int64_t size = want.size();
            for (int64_t i = 0; i < size; ++i) EXPECT_EQ(got.scalar_at(row * size + i), want.scalar_at(i));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardwise
