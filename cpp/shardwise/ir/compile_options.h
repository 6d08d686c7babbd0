// SPDX-License-Identifier: Apache-2.0
//
// The options of a compilation that a user may set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace shardwise {

// How propagation resolves conflicts between annotations:
//   kBasic       only axes on which all tensors of an op agree propagate
//   kAggressive  each tensor takes the axes that it can, the larger source first; the rest becomes a reshard
enum class Strategy : uint8_t { kBasic, kAggressive };

// The objective of the partitioner:
//   kTime    operations, memory and transfers of a device on the hardware, one after the other
//   kBytes   the bytes that a device receives: work may be repeated, and a message passed on from device to device
enum class Objective : uint8_t { kTime, kBytes };

// Where products overlap with the collective that brings their operand or takes their result (partition/window_einsums.h):
//   kMemory   where the program would not fit in its memory limit otherwise
//   kTime     there, and where it takes less time
//   kAlways   wherever it is possible
//   kNever    nowhere
enum class WindowedEinsum : uint8_t { kMemory, kTime, kAlways, kNever };

struct CompileOptions {
  Strategy strategy = Strategy::kAggressive;
  bool conservative = false;      // propagate full axes only, and nothing along dims whose elements are exchanged
  bool strict_divisible = false;  // shrink shardings of uneven inputs and outputs, as Shardy does
  Objective objective = Objective::kTime;
  std::string hardware = "default";       // the name of a file, or its JSON (cost/hardware_json.h)
  int64_t memory_limit = 0;               // bytes of a device; 0: none
  std::vector<size_t> donated = {};       // arguments whose memory a run may free or reuse
  std::vector<size_t> captured = {};      // arguments that the function closes over, and that no sharding places
  std::vector<size_t> free_results = {};  // that no sharding places, and that may be split along another dim
  // The compiler sets this one: propagation takes the arguments that the program updates, and their results, last.
  bool state_last = false;
  std::string shard_update = {};  // the axes that weight updates are split over, {"data"}; empty: none
  // The most bytes that one combined collective may have; 0 combines none. The default is that of XLA's flag
  // xla_gpu_all_reduce_combine_threshold_bytes: 30 MiB and 7 bytes (xla/service/collective_utils.h).
  int64_t combine_bytes = (int64_t{30} << 20) + 7;
  WindowedEinsum windowed_einsum = WindowedEinsum::kMemory;
  std::string gather_dtype = {};  // in which products receive weights whose updates are split; empty: their own

  bool is_by_bytes() const { return objective == Objective::kBytes; }
};

// The names of values. The second functions throw ShardingError for another name.
std::string_view name(Strategy strategy);
void set_strategy(CompileOptions& options, std::string_view name);
void set_objective(CompileOptions& options, std::string_view name);
void set_memory_limit(CompileOptions& options, std::string_view bytes);
void set_combine_bytes(CompileOptions& options, std::string_view bytes);
void set_windowed_einsum(CompileOptions& options, std::string_view name);
void set_donated(CompileOptions& options, std::string_view numbers);  // "0,3"
void set_captured(CompileOptions& options, std::string_view numbers);
void set_free_results(CompileOptions& options, std::string_view numbers);
inline void set_hardware(CompileOptions& options, std::string_view text) { options.hardware = text; }
inline void set_shard_update(CompileOptions& options, std::string_view axes) { options.shard_update = axes; }
inline void set_gather_dtype(CompileOptions& options, std::string_view dtype) { options.gather_dtype = dtype; }

// A new option is a field above, a row here, and a field of Python's PropagationOptions or PartitionOptions.
struct CompileOption {
  std::string_view name;
  bool CompileOptions::* flag = nullptr;                           // of a switch
  void (*set)(CompileOptions&, std::string_view value) = nullptr;  // of other options
};
inline constexpr CompileOption kCompileOptions[] = {
    {.name = "strategy", .set = set_strategy},
    {.name = "conservative", .flag = &CompileOptions::conservative},
    {.name = "strict_divisible", .flag = &CompileOptions::strict_divisible},
    {.name = "objective", .set = set_objective},
    {.name = "hardware", .set = set_hardware},
    {.name = "memory_limit", .set = set_memory_limit},
    {.name = "donated", .set = set_donated},
    {.name = "captured", .set = set_captured},
    {.name = "free_results", .set = set_free_results},
    {.name = "shard_update", .set = set_shard_update},
    {.name = "gather_dtype", .set = set_gather_dtype},
    {.name = "combine_bytes", .set = set_combine_bytes},
    {.name = "windowed_einsum", .set = set_windowed_einsum},
};

// Options that a pass reads: bit i is for kCompileOptions[i].
using OptionSet = uint32_t;
inline constexpr OptionSet kAllOptions = ~OptionSet{0};
consteval OptionSet option(std::string_view name) {
  for (size_t i = 0; i < std::size(kCompileOptions); ++i) {
    if (kCompileOptions[i].name == name) return OptionSet{1} << i;
  }
  throw "no such option";  // does not compile
}
inline constexpr OptionSet kOptionsOfPrices = option("objective") | option("hardware");

}  // namespace shardwise
