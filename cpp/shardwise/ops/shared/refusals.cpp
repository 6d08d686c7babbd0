// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/shared/refusals.h"

#include <array>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/shared/custom_call_def.h"

namespace shardwise {
namespace {

constexpr std::string_view kHost = "it exchanges data with the host while the program runs";
constexpr std::string_view kChannel = "it exchanges data with another program while it runs";
constexpr std::string_view kPython = "it calls a Python function, which is not in the text";
constexpr std::string_view kNoCallback = "remove the callback, or use sw.from_jax";
constexpr std::string_view kSchedule = "shardwise decides when collectives run";
constexpr std::string_view kSynchronous = "lower the program without them";
constexpr std::string_view kQuantized = "no kernel computes with scales and zero points";
constexpr std::string_view kUnquantized = "use floats, or integers with their scales as operands";

using refusals::under;

constexpr Refusal read(std::string_view name, std::string_view reason, std::string_view way_out) {
  return {name, reason, way_out, Refusal::When::kRead};
}

// Each op, target or type that is refused; nothing else is without a kernel or a decomposition.
constexpr std::array kRefusals{
    under("outside of a manual computation", "stablehlo.all_reduce and other collectives between devices",
          "a program on whole arrays has one device there",
          "leave the collectives to shardwise, or use sdy.manual_computation"),
    under("along the free axes of a manual computation", "stablehlo.all_reduce and other collectives",
          "shardwise decides what is shared along these axes", "make the axes manual, too"),
    Refusal{"stablehlo.infeed", kHost, "pass the data as arguments"},
    Refusal{"stablehlo.outfeed", kHost, "return the data as results"},
    under("in a manual computation with free axes", "stablehlo.partition_id",
          "shardwise decides what is shared along these axes", "make the axes manual, too"),
    Refusal{"stablehlo.recv", kChannel, "pass the data as arguments"},
    Refusal{"stablehlo.send", kChannel, "return the data as results"},
    Refusal{"@xla_buffer_python_cpu_callback", kPython, kNoCallback},
    Refusal{"@xla_buffer_python_gpu_callback", kPython, kNoCallback},
    Refusal{"@xla_ffi_partitioned_python_cpu_callback", kPython, kNoCallback},
    Refusal{"@xla_ffi_partitioned_python_gpu_callback", kPython, kNoCallback},
    Refusal{"@xla_ffi_python_cpu_callback", kPython, kNoCallback},
    Refusal{"@xla_ffi_python_gpu_callback", kPython, kNoCallback},
    Refusal{"@xla_python_cpu_callback", kPython, kNoCallback},
    Refusal{"@xla_python_gpu_callback", kPython, kNoCallback},
    refusals::kUnknownTarget,
    refusals::kRngInLoop,
    under("in the region of a reduction, a scatter or a sort", "stablehlo.while",
          "such a region runs on many elements at once, each in as many steps", "compute it outside, on whole tensors"),
    refusals::kComplexRemainder,
    refusals::kComplexBessel,
    refusals::kNextAfter,
    refusals::kDynamicConv,
    refusals::kDynamicPad,
    refusals::kDynamicSlice,
    refusals::kSetDimensionSize,
    read("stablehlo.async_start", kSchedule, kSynchronous),
    read("stablehlo.async_done", kSchedule, kSynchronous),
    read("stablehlo.uniform_quantize", kQuantized, kUnquantized),
    read("stablehlo.uniform_dequantize", kQuantized, kUnquantized),
    read("!quant.uniform", kQuantized, kUnquantized),
    read("tensor<?>", refusals::kSizes, "lower the program with concrete shapes"),
};

}  // namespace

std::span<const Refusal> refusal_table() { return kRefusals; }

std::string refused_because(const Refusal& refusal) {
  return str("can be read, propagated and printed, but not run, because ", refusal.reason);
}

void register_refused_calls() {
  for (const Refusal& refusal : kRefusals) {
    // A target that is refused under a condition has a definition of its own, which checks it.
    if (!refusal.name.starts_with('@') || !refusal.condition.empty()) continue;
    register_custom_call({.name = std::string(refusal.name.substr(1)),
                          .check =
                              [&refusal](const OpView& op) {
                                fail<UnsupportedError>(str("custom_call @", custom_call_target(op)),
                                                       refused_because(refusal), {}, refusal.way_out);
                              },
                          .is_replaceable = true});
  }
}

}  // namespace shardwise
