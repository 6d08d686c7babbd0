// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/window/cumulative_kernels.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>

#include "shardwise/ops/shared/reduce_operations.h"
#include "shardwise/ops/shared/strided_kernels.h"

namespace shardwise {
namespace {

using reduce_loops::dispatch_floats;
using reduce_loops::dispatch_integers;
using reduce_loops::Sum;

constexpr int64_t kSegment = 256;  // neighbouring elements of a row that run side by side
// Rows that do, where the dim itself lies along memory: enough to hide the latency of additions. Lines of rows that are
// 4 KiB apart share a set of the cache, which holds few of them.
constexpr int64_t kRows = 4;
constexpr int64_t kScanGrain = 1 << 15;

// Running values of up to kWidth elements side by side.
template <class Op, int64_t kWidth>
struct Running {
  using Item = typename Op::Item;
  typename Op::Value values[kWidth];

  void start(Item init) { std::fill_n(values, kWidth, Op::load(init)); }
  Item step(int64_t lane, Item item) {
    values[lane] = Op::combine(values[lane], Op::load(item));
    return Op::store(values[lane]);
  }
};

template <int64_t kWidth>
struct Running<Sum<float>, kWidth> {
  using Item = float;
  double values[kWidth];

  void start(float init) { std::fill_n(values, kWidth, static_cast<double>(init)); }
  float step(int64_t lane, float item) {
    values[lane] += static_cast<double>(item);
    return static_cast<float>(values[lane]);
  }
};

// The rounding errors of additions (Knuth's two-sum) are added up apart. Their sum is NaN once the total is not finite,
// and then unused.
template <int64_t kWidth>
struct Running<Sum<double>, kWidth> {
  using Item = double;
  double sums[kWidth], rests[kWidth];

  void start(double init) {
    std::fill_n(sums, kWidth, init);
    std::fill_n(rests, kWidth, 0.0);
  }
  double step(int64_t lane, double item) {
    const double before = sums[lane], sum = before + item, added = sum - before;
    rests[lane] += (before - (sum - added)) + (item - added);
    sums[lane] = sum;
    const double whole = sum + rests[lane];
    return whole == whole ? whole : sum;
  }
};

// (outer, count, inner) in row-major order, scanned along the middle.
struct ScanShape {
  int64_t outer = 1, count = 1, inner = 1;
  bool reverse = false;
};

// `lanes` neighbours, `lane_stride` items apart, over all rows. With kWidth, the loop over them has no end to check,
// and running values stay in registers.
template <class Running, int64_t kWidth = 0>
void scan_lanes(const ScanShape& shape, const typename Running::Item* from, typename Running::Item* to,
                typename Running::Item init, int64_t lanes, int64_t lane_stride) {
  const int64_t width = kWidth > 0 ? kWidth : lanes;
  Running running;
  running.start(init);
  for (int64_t k = 0; k < shape.count; ++k) {
    const int64_t row = (shape.reverse ? shape.count - 1 - k : k) * shape.inner;
    if (lane_stride == 1) {
      for (int64_t lane = 0; lane < width; ++lane) to[row + lane] = running.step(lane, from[row + lane]);
    } else {
      for (int64_t lane = 0; lane < width; ++lane) {
        const int64_t place = row + lane * lane_stride;
        to[place] = running.step(lane, from[place]);
      }
    }
  }
}

template <class Op>
void scan_items(KernelContext& context, const ScanShape& shape, const std::byte* from_bytes, std::byte* to_bytes,
                const std::byte* init_bytes) {
  using Item = typename Op::Item;
  const auto* from = reinterpret_cast<const Item*>(from_bytes);
  auto* to = reinterpret_cast<Item*>(to_bytes);
  Item init;
  std::memcpy(&init, init_bytes, sizeof(init));
  const bool along = shape.inner == 1;  // memory: then whole rows run side by side
  const int64_t lanes = along ? shape.outer : shape.inner;
  // An integer addition has no latency to hide, and one row alone is read in order.
  const int64_t rows = std::is_integral_v<typename Op::Item> ? 1 : kRows;
  const int64_t most = along ? rows : kSegment;
  const int64_t segments = ceil_div(lanes, most), units = along ? segments : shape.outer * segments;
  const int64_t lane_stride = along ? shape.count : 1;
  const int64_t grain = std::max<int64_t>(kScanGrain / (shape.count * std::min(most, lanes)), 1);
  context.parallel_for(units, grain, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % segments * most, width = std::min(most, lanes - first);
      const int64_t start = unit / segments * shape.count * shape.inner + first * lane_stride;
      if (width == 1) {
        scan_lanes<Running<Op, 1>, 1>(shape, from + start, to + start, init, 1, 1);
      } else if (along && width == kRows) {
        scan_lanes<Running<Op, kRows>, kRows>(shape, from + start, to + start, init, kRows, lane_stride);
      } else {
        scan_lanes<Running<Op, kSegment>>(shape, from + start, to + start, init, width, lane_stride);
      }
    }
  });
}

using ScanFn = void (*)(KernelContext&, const ScanShape&, const std::byte*, std::byte*, const std::byte*);

// Products of complex numbers.
template <class T>
struct ComplexProduct : reduce_loops::Plain<std::complex<T>> {
  using Number = std::complex<T>;
  static Number combine(Number a, Number b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
};

ScanFn scan_of(DType dtype, Reducer reducer) {
  if (dtype == DType::kC64) return scan_items<ComplexProduct<float>>;
  if (dtype == DType::kC128) return scan_items<ComplexProduct<double>>;
  const auto of_items = []<class Op>() -> ScanFn { return scan_items<Op>; };
  constexpr std::string_view kName = "stablehlo.reduce_window";
  return is_float(dtype) ? dispatch_floats(kName, dtype, reducer, of_items)
                         : dispatch_integers(kName, dtype, reducer, of_items);
}

}  // namespace

bool has_scan(DType dtype, Reducer reducer) {
  return !is_complex(dtype) || reducer == Reducer::kSum || reducer == Reducer::kProd;
}

void scan(KernelContext& context, const NdArray& from, const NdArray& to, size_t dim, Prefix prefix, Reducer reducer,
          const NdArray& init) {
  if (from.size() == 0) return;
  if (is_complex(from.dtype()) && reducer == Reducer::kSum) {  // of the parts, side by side
    return scan(context, parts_of_complex(from), parts_of_complex(to), dim, prefix, reducer, parts_of_complex(init));
  }
  const DimSpan sizes = from.shape();
  const ScanShape shape{.outer = element_count(sizes.first(dim)),
                        .count = sizes[dim],
                        .inner = element_count(sizes.subspan(dim + 1)),
                        .reverse = prefix == Prefix::kReverse};
  scan_of(from.dtype(), reducer)(context, shape, from.data(), to.data(), init.data());
}

}  // namespace shardwise
