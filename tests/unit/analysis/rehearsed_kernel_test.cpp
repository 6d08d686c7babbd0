// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/rehearsed_kernel.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/walk.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

// Notes which operands are read before all results are there.
class ReadingContext final : public KernelContext {
 public:
  explicit ReadingContext(const OpView& op) : op_(op) {
    for (size_t i = 0; i < op.operand_count(); ++i) {
      operands_.push_back(NdArray::empty(op.operand_type(i).dtype, op.operand_type(i).shape));
    }
  }
  const NdArray& operand(size_t i) const override {
    read_.insert(i);
    return operands_[i];
  }
  std::optional<NdArray> take_operand(size_t) override { return std::nullopt; }
  NdArray allocate_result(size_t i) override {
    ++results_;
    return NdArray::empty(op_.result_type(i).dtype, op_.result_type(i).shape);
  }
  void set_result(size_t, NdArray) override { ++results_; }
  void parallel_for(int64_t, int64_t, const std::function<void(int64_t, int64_t)>&) override {}

  const std::set<size_t>& read() const { return read_; }
  size_t results() const { return results_; }

 private:
  const OpView& op_;
  std::vector<NdArray> operands_;
  mutable std::set<size_t> read_;
  size_t results_ = 0;
};

// A plan of a scatter is as large as its indices: a rehearsal must not make one.
void expect_reads_no_indices(const std::string& inputs, const std::string& updates, const std::string& types,
                             const std::string& body, size_t count) {
  const Module module =
      parse_program(R"(func.func @main(%t: tensor<8x4xbf16>, %i: tensor<5x1xi32>, %u: tensor<5x4xbf16>) {
  %0:)" + std::to_string(count) +
                    R"( = "stablehlo.scatter"()" + inputs + ", %i, " + updates + R"() <{
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({)" +
                    body + "}) : " + types + R"(
  return
})");
  walk(module, [&](OpId id) {
    const OpView op(module, id);
    if (op.name() != "stablehlo.scatter") return;
    std::vector<TensorType> operands, results;
    for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(op.operand_type(i));
    for (size_t i = 0; i < op.result_count(); ++i) results.push_back(op.result_type(i));
    ReadingContext context(op);
    rehearse_kernel(op.def(), op.def().prepare(op, {operands, results}).value(), results.size(), context);
    EXPECT_EQ(context.results(), count);
    EXPECT_FALSE(context.read().contains(count)) << "the indices";
  });
}

TEST(RehearsedKernel, AScatterEndsBeforeItReadsItsIndices) {
  const std::string one = "(tensor<8x4xbf16>, tensor<5x1xi32>, tensor<5x4xbf16>) -> tensor<8x4xbf16>";
  for (const std::string result :
       {"%s = stablehlo.add %a, %b : tensor<bf16>", "%s = stablehlo.add %b, %b : tensor<bf16>",
        "%s = stablehlo.divide %a, %b : tensor<bf16>"}) {
    expect_reads_no_indices(
        "%t", "%u", one,
        "^bb0(%a: tensor<bf16>, %b: tensor<bf16>):\n" + result + "\nstablehlo.return %s : tensor<bf16>\n", 1);
  }
  expect_reads_no_indices(
      "%t, %t", "%u, %u",
      "(tensor<8x4xbf16>, tensor<8x4xbf16>, tensor<5x1xi32>, tensor<5x4xbf16>, tensor<5x4xbf16>) -> "
      "(tensor<8x4xbf16>, tensor<8x4xbf16>)",
      "^bb0(%a: tensor<bf16>, %b: tensor<bf16>, %c: tensor<bf16>, %d: tensor<bf16>):\n"
      "stablehlo.return %c, %d : tensor<bf16>, tensor<bf16>\n",
      2);
}

}  // namespace
}  // namespace shardwise
