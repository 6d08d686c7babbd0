// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/rehearsed_kernel.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace shardwise {
namespace {

struct HasAllResults {};  // thrown through a kernel, which would compute now

class RehearsedKernelContext final : public KernelContext {
 public:
  RehearsedKernelContext(KernelContext& run, size_t results) : run_(run), has_(results, false) {}

  const NdArray& operand(size_t i) const override { return run_.operand(i); }

  // The kernel writes the taken buffer as soon as it is a result.
  std::optional<NdArray> take_operand(size_t i) override {
    std::optional<NdArray> taken = run_.take_operand(i);
    takes_ = takes_ || taken;
    return taken;
  }

  NdArray allocate_result(size_t) override {
    for (size_t i = 0; i < has_.size(); ++i) {
      // All missing results, because the kernel would ask for them before or after it computes this one.
      if (!has_[i]) run_.allocate_result(i);
    }
    throw HasAllResults();
  }

  void set_result(size_t i, NdArray view) override {
    run_.set_result(i, std::move(view));
    has_[i] = true;
    // A kernel that took nothing only made a view, and ends by itself.
    if (takes_ && std::find(has_.begin(), has_.end(), false) == has_.end()) throw HasAllResults();
  }

  // Fills memory of the kernel's own, such as one row of an iota: nobody reads it here.
  void parallel_for(int64_t, int64_t, const std::function<void(int64_t, int64_t)>&) override {}

 private:
  KernelContext& run_;
  std::vector<bool> has_;
  bool takes_ = false;
};

}  // namespace

// An exception ends the kernel, so that kernels need no code for rehearsals.
void rehearse_kernel(const OpDef& def, const Kernel& kernel, size_t results, KernelContext& context) {
  if (results == 0) return;  // it would have its effect, such as to print
  if (!def.traits.shares_memory) {
    for (size_t i = 0; i < results; ++i) context.allocate_result(i);
    return;
  }
  RehearsedKernelContext rehearsed(context, results);
  try {
    kernel(rehearsed);
  } catch (const HasAllResults&) {
  }
}

}  // namespace shardwise
