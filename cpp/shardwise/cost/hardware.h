// SPDX-License-Identifier: Apache-2.0
//
// Hardware: the rates of one kind of machine, read from a JSON file (hardware_json.h). Times are computed from it and
// from nothing else.
//
//   const Hardware& h100 = *builtin_hardware("h100_sxm");
//   h100.peak(ComputeUnit::kMatrix, DType::kBF16).flops       // 989'170'291'507'200 in a second
//   h100.compute_time(ComputeUnit::kMatrix, DType::kBF16, 1'000'000'000)   // 1'010'949 ps, without launch
//   h100.memory_time(1 << 20)                                 // 312'792 ps at 3.35 TB/s
//   h100.tiers[0].name                                        // "nvlink": 8 devices, 450 GB/s each way
//
// Rates are per device and second, as integers: a device is what a mesh has, such as one core of a TPU v3. Times are
// picoseconds, rounded up and saturated (price.h). The launch overhead is a field of its own, because `lower` and
// `upper` bounds of a program treat it differently.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardwise/base/dims.h"
#include "shardwise/base/dtype.h"

namespace shardwise {

// Which part of a device computes: products, other arithmetic, or functions such as exp and tanh.
enum class ComputeUnit : uint8_t { kMatrix, kVector, kTranscendental };
inline constexpr int kComputeUnitCount = 3;
std::string_view name(ComputeUnit unit);  // "matrix"

// The share of a peak rate that an amount of work reaches, by its size in flops or bytes. Without points it is 1, the
// roofline.
//
//   step      {1 MB: 0.6, 10 MB: 0.75}    from 1 MB on 0.6, from 10 MB on 0.75; below, the first share
//   linear    the same at the points; between them the time is linear in the size, as latency plus size over rate
//
// More work never takes less time: at the step of 10 MB above, 9.9 MB would take longer than 10 MB, so that it takes
// the time of 10 MB (it could be padded).
struct Efficiency {
  static constexpr int64_t kOne = 1'000'000;  // shares are millionths, so that times are integers
  struct Point {
    int64_t size = 0;
    int64_t millionths = kOne;
    friend bool operator==(const Point&, const Point&) = default;
  };
  bool is_linear = false;
  std::vector<Point> points = {};  // by size

  // At `rate` per second where the share is 1.
  int64_t time(int64_t size, int64_t rate) const;
  friend bool operator==(const Efficiency&, const Efficiency&) = default;
};

// A row of the table of peaks.
struct PeakRow {
  std::string name;  // "bf16", or "tf32", a format of products that is no dtype of arrays
  int64_t flops = 0;
  friend bool operator==(const PeakRow&, const PeakRow&) = default;
};

// The rate of a dtype, and the row that it follows from.
struct Peak {
  int64_t flops = 0;
  std::string_view row;  // "i32" for i16, where the file has no i16
};

enum class Topology : uint8_t { kSwitch, kFatTree, kRing, kTorus };
std::string_view name(Topology topology);  // "fat_tree"

// Links that join units: devices in the innermost tier, groups of the tier inside in the others.
struct Tier {
  static constexpr int64_t kUnlimited = 0;
  std::string name = {};  // "nvlink"
  Topology topology = Topology::kSwitch;
  int64_t size = kUnlimited;  // units that it joins at most; the last tier joins any number
  // Bytes in a second, one way. Of a switch or a fat tree: of each device. Of a ring or a torus: of each link between
  // two units; the devices of a unit share it.
  int64_t bandwidth = 1;
  int64_t latency_ps = 0;      // of one message between neighbors
  Efficiency efficiency = {};  // by the bytes that a device receives over this tier
  Dims shape = {};             // of a torus, at most: {16, 20, 28}
  // A ring closes only if its length is a multiple of this number (TPU v4: 4) and, if the second is not zero, equal to
  // it (TPU v5e: 16). 0: no ring of a torus closes.
  int64_t wrap_multiple = 1;
  int64_t wrap_length = 0;
  bool wraps_only_all = false;  // of a slice of a torus, no ring closes unless all do (TPU v4: none of 2 x 4 x 4)

  bool closes(int64_t length) const;                     // whether a ring of so many units has its wraparound link
  bool closes(int64_t length, const Dims& slice) const;  // ... which is a dim of a slice
};

struct Hardware {
  std::string name;
  std::string description;
  std::array<std::vector<PeakRow>, kComputeUnitCount> peaks;
  std::array<Efficiency, kComputeUnitCount> efficiency;  // by flops
  std::string default_dot = "f32";  // the row of peaks that serves a float32 product of precision DEFAULT
  int64_t memory_bandwidth = 1;     // bytes in a second
  Efficiency memory_efficiency;     // by bytes
  int64_t memory_bytes = 0;         // capacity
  int64_t reserved_bytes = 0;       // of it, not for programs
  int64_t launch_ps = 0;            // of one kernel
  bool fused_attention = false;     // dot, row reductions, dot run as one kernel
  std::vector<Tier> tiers;          // from the inside out
  std::string json;                 // the whole document; equal documents describe equal hardware
  size_t hash = 0;                  // of `json`

  // A dtype without a row is computed like the narrowest listed one of its kind, float or integer, that is not narrower;
  // one wider than all of its kind at the rate of the widest, divided by the ratio of bits; a product of such a dtype at
  // the rate of the vector unit, if that is lower. Where the file lists none of the kind, the other kind serves. A unit
  // without rows is the vector unit. The rate of a complex dtype is that of its parts, because flops count operations on
  // parts: 8 for a product that is added to a sum, instead of 2.
  Peak peak(ComputeUnit unit, DType dtype) const;
  // By the name of a row, "tf32", or of a dtype, "i16"; nothing for other names.
  std::optional<Peak> peak_named(ComputeUnit unit, std::string_view row_name) const;
  // Of a product: as above, but a float32 product of precision DEFAULT has the peak of `default_dot`.
  Peak dot_peak(DType dtype, bool is_default_precision) const;

  int64_t compute_time(ComputeUnit unit, DType dtype, int64_t flops) const;
  int64_t dot_time(DType dtype, bool is_default_precision, int64_t flops) const;
  int64_t memory_time(int64_t bytes) const;
  int64_t usable_bytes() const { return memory_bytes - reserved_bytes; }

  friend bool operator==(const Hardware& a, const Hardware& b) { return a.hash == b.hash && a.json == b.json; }
};

using HardwarePtr = std::shared_ptr<const Hardware>;

// The files that the library has. Each is read once. Null for an unknown name.
HardwarePtr builtin_hardware(std::string_view name);
std::vector<std::string> builtin_hardware_names();  // sorted; "default" first
// The file `default`, which serves where the user names none.
const HardwarePtr& default_hardware();

}  // namespace shardwise
