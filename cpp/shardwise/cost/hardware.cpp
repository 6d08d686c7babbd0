// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/hardware.h"

#include <algorithm>

#include "shardwise/cost/price.h"

namespace shardwise {
namespace {

constexpr std::array<std::string_view, kComputeUnitCount> kUnitNames{"matrix", "vector", "transcendental"};
constexpr std::array<std::string_view, 4> kTopologyNames{"switch", "fat_tree", "ring", "torus"};

// Rounded up.
int64_t time_of_share(int64_t size, int64_t rate, int64_t millionths) {
  if (rate <= 0 || millionths <= 0) return size > 0 ? kSaturated : 0;
  constexpr Wide128 kScale = Wide128{1'000'000'000'000} * Efficiency::kOne;
  const Wide128 divisor = widened(rate) * widened(millionths);
  return saturated((widened(std::min(size, kSaturated)) * kScale + divisor - 1) / divisor);
}

int64_t step_time(std::span<const Efficiency::Point> points, int64_t size, int64_t rate) {
  int64_t share = points.front().millionths;
  int64_t padded = kSaturated;  // the time of a larger size that has a larger share
  for (const Efficiency::Point& point : points) {
    if (point.size <= size) {
      share = point.millionths;
    } else {
      padded = std::min(padded, time_of_share(point.size, rate, point.millionths));
    }
  }
  return std::min(padded, time_of_share(size, rate, share));
}

int64_t linear_time(std::span<const Efficiency::Point> points, int64_t size, int64_t rate) {
  const auto above = std::ranges::upper_bound(points, size, {}, &Efficiency::Point::size);
  if (above == points.begin()) return time_of_share(size, rate, points.front().millionths);
  if (above == points.end()) return time_of_share(size, rate, points.back().millionths);
  const Efficiency::Point& below = *(above - 1);
  const int64_t least = time_of_share(below.size, rate, below.millionths);
  const int64_t most = std::max(least, time_of_share(above->size, rate, above->millionths));
  const Wide128 width = widened(above->size - below.size);
  const Wide128 more = widened(most - least) * widened(size - below.size);
  return saturated_sum(least, saturated((more + width - 1) / width));
}

// Of the rows of floats or of the others: the narrowest that is not narrower than `bits`, or else the widest.
const PeakRow* nearest_row(std::span<const PeakRow> rows, int bits, bool is_of_floats) {
  const PeakRow* best = nullptr;
  int best_bits = 0;
  for (const PeakRow& row : rows) {
    const auto dtype = dtype_from_mlir(row.name);
    if (!dtype || is_float(*dtype) != is_of_floats) continue;
    const int row_bits = bit_width(*dtype);
    const bool is_nearer = best_bits >= bits ? row_bits >= bits && row_bits < best_bits : row_bits > best_bits;
    if (best && !is_nearer) continue;
    best = &row;
    best_bits = row_bits;
  }
  return best;
}

const PeakRow* row_named(std::span<const PeakRow> rows, std::string_view name) {
  const auto found = std::ranges::find(rows, name, &PeakRow::name);
  return found == rows.end() ? nullptr : &*found;
}

// Of `bits` more than the row has, a lower rate by the ratio.
int64_t flops_at_width(const PeakRow& row, int bits) {
  const int row_bits = bit_width(*dtype_from_mlir(row.name));
  if (row_bits >= bits) return row.flops;
  return std::max<int64_t>(1, saturated(widened(row.flops) * widened(row_bits) / widened(bits)));
}

Peak peak_of_rows(std::span<const PeakRow> rows, DType part) {
  const int bits = bit_width(part);
  const PeakRow* row = row_named(rows, mlir_name(part));
  if (!row) row = nearest_row(rows, bits, is_float(part));
  if (!row) row = nearest_row(rows, bits, !is_float(part));
  return row ? Peak{flops_at_width(*row, bits), row->name} : Peak{};
}

// Whether the row of a peak is of fewer bits than the dtype, so that the unit cannot compute it.
bool is_wider(DType part, const Peak& peak) {
  const auto row = dtype_from_mlir(peak.row);
  return row && bit_width(part) > bit_width(*row);
}

}  // namespace

std::string_view name(ComputeUnit unit) { return kUnitNames[static_cast<size_t>(unit)]; }
std::string_view name(Topology topology) { return kTopologyNames[static_cast<size_t>(topology)]; }

int64_t Efficiency::time(int64_t size, int64_t rate) const {
  if (points.empty()) return time_of_share(size, rate, kOne);
  return is_linear ? linear_time(points, size, rate) : step_time(points, size, rate);
}

bool Tier::closes(int64_t length) const {
  if (topology == Topology::kRing) return length == size;
  return wrap_multiple > 0 && length % wrap_multiple == 0 && (wrap_length == 0 || length == wrap_length);
}

bool Tier::closes(int64_t length, const Dims& slice) const {
  if (wraps_only_all && !std::ranges::all_of(slice, [&](int64_t dim) { return closes(dim); })) return false;
  return closes(length);
}

Peak Hardware::peak(ComputeUnit unit, DType dtype) const {
  const DType part = is_complex(dtype) ? part_of_complex(dtype) : dtype;
  const auto& rows = peaks[static_cast<size_t>(unit)];
  const Peak of_vector = peak_of_rows(peaks[static_cast<size_t>(ComputeUnit::kVector)], part);
  if (rows.empty()) return of_vector;
  const Peak peak = peak_of_rows(rows, part);
  const bool is_on_vector = unit == ComputeUnit::kMatrix && is_wider(part, peak) && of_vector.flops < peak.flops;
  return is_on_vector ? of_vector : peak;
}

std::optional<Peak> Hardware::peak_named(ComputeUnit unit, std::string_view row_name) const {
  if (const PeakRow* row = row_named(peaks[static_cast<size_t>(unit)], row_name)) return Peak{row->flops, row->name};
  const auto dtype = dtype_from_mlir(row_name);
  return dtype && bit_width(*dtype) > 0 ? std::optional(peak(unit, *dtype)) : std::nullopt;
}

Peak Hardware::dot_peak(DType dtype, bool is_default_precision) const {
  const DType part = is_complex(dtype) ? part_of_complex(dtype) : dtype;
  if (part == DType::kF32 && is_default_precision) {
    const PeakRow* row = row_named(peaks[static_cast<size_t>(ComputeUnit::kMatrix)], default_dot);
    if (row) return {row->flops, row->name};
  }
  return peak(ComputeUnit::kMatrix, part);
}

int64_t Hardware::compute_time(ComputeUnit unit, DType dtype, int64_t flops) const {
  return efficiency[static_cast<size_t>(unit)].time(flops, peak(unit, dtype).flops);
}

int64_t Hardware::dot_time(DType dtype, bool is_default_precision, int64_t flops) const {
  return efficiency[static_cast<size_t>(ComputeUnit::kMatrix)].time(flops, dot_peak(dtype, is_default_precision).flops);
}

int64_t Hardware::memory_time(int64_t bytes) const { return memory_efficiency.time(bytes, memory_bandwidth); }

}  // namespace shardwise
