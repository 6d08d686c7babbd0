// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/shared/windows.h"

#include <algorithm>
#include <cmath>

#include "shardwise/base/text.h"
#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {
namespace {

void expect_positive(const InferContext& op, std::string_view name, const Dims& list) {
  if (std::all_of(list.begin(), list.end(), [](int64_t entry) { return entry > 0; })) return;
  op.fail_shape(str(name, " must be positive"), str(name, " = ", list, " for ", op.operand_types_text()),
                "1 leaves a dim as it is");
}

template <class T>
const T& expect_kind(const InferContext& op, const Attrs& attrs, std::string_view name) {
  const T* value = attrs.find<T>(name);
  // The attributes may be those of another op than `op`, which only gives errors their subject.
  return value != nullptr ? *value : op.attr<T>(name);  // which says what is wrong with it
}

void check_window(const InferContext& op, const Attrs& attrs, int64_t ndim) {
  constexpr std::string_view kLists[] = {"window_dimensions", "window_strides", "base_dilations", "window_dilations"};
  for (const std::string_view name : kLists) {
    if (name != kLists[0] && attrs.find(name) == nullptr) continue;  // only the sizes are required
    const IntArray& list = expect_kind<IntArray>(op, attrs, name);
    expect_length(op, name, list, ndim);
    expect_positive(op, name, list);
  }
  if (attrs.find("padding") == nullptr) return;
  const NdArray& padding = expect_kind<DenseAttr>(op, attrs, "padding").data;
  if (padding.dtype() != DType::kI64 || !equal(padding.shape(), Dims{ndim, 2})) {
    op.fail_shape("padding must be a low and a high count per dim",
                  str(TensorType{padding.dtype(), padding.shape()}.text(), " for ", op.operand_types_text()),
                  str("give a tensor<", ndim, "x2xi64>"));
  }
}

// By doubles, which round where the integers would overflow: no tensor is as large as that.
bool is_reasonable(const Window& window, size_t dim, int64_t size) {
  constexpr double kLimit = 4503599627370496.0;  // 2^52
  const auto of = [](int64_t value) { return static_cast<double>(value); };
  const double dilated = of(size) * of(window.base_dilations[dim]);
  const double spanned = of(window.sizes[dim]) * of(window.dilations[dim]);
  const double pads = std::abs(of(window.low[dim])) + std::abs(of(window.high[dim]));
  return dilated + spanned + pads + of(window.strides[dim]) < kLimit;
}

Dims list_or_ones(const Attrs& attrs, std::string_view name, int64_t ndim) {
  const IntArray* list = attrs.find<IntArray>(name);
  return list != nullptr ? *list : Dims(static_cast<size_t>(ndim), 1);
}

}  // namespace

Dims infer_windows(const InferContext& op, const Attrs& attrs, const Dims& shape) {
  const auto ndim = static_cast<int64_t>(shape.size());
  check_window(op, attrs, ndim);
  const Window window = Window::of(attrs, ndim);
  Dims sizes;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (!is_reasonable(window, dim, shape[dim])) {
      op.fail_shape("windows, dilations and padding must be far below 2^52",
                    str("a window over dim ", dim, " of ", op.operand(0).text()), "make them smaller");
    }
    sizes.push_back(window.result_size(dim, shape[dim]));
  }
  return sizes;
}

Window Window::trivial(int64_t ndim) {
  const Dims ones(static_cast<size_t>(ndim), 1), zeros(static_cast<size_t>(ndim), 0);
  return {ones, ones, ones, ones, zeros, zeros};
}

Window Window::of(const OpView& op) { return of(op.attrs(), op.operand_type(0).ndim()); }

Window Window::of(const Attrs& attrs, int64_t ndim) {
  Window window = trivial(ndim);
  window.sizes = list_or_ones(attrs, "window_dimensions", ndim);
  window.strides = list_or_ones(attrs, "window_strides", ndim);
  window.base_dilations = list_or_ones(attrs, "base_dilations", ndim);
  window.dilations = list_or_ones(attrs, "window_dilations", ndim);
  if (const DenseAttr* padding = attrs.find<DenseAttr>("padding")) {
    for (int64_t dim = 0; dim < ndim; ++dim) {
      window.low[static_cast<size_t>(dim)] = padding->data.scalar_at(2 * dim).integer;
      window.high[static_cast<size_t>(dim)] = padding->data.scalar_at(2 * dim + 1).integer;
    }
  }
  return window;
}

int64_t Window::padded_size(size_t dim, int64_t size) const {
  // StableHLO dilates between elements: 3 rows with dilation 2 are 5 places, x _ x _ x.
  const int64_t dilated = size == 0 ? 0 : (size - 1) * base_dilations[dim] + 1;
  return low[dim] + dilated + high[dim];
}

int64_t Window::result_size(size_t dim, int64_t size) const {
  const int64_t padded = padded_size(dim, size);
  // A window must fit whole: none over fewer places than it spans.
  return padded < spanned(dim) ? 0 : (padded - spanned(dim)) / strides[dim] + 1;
}

Range Window::range(size_t dim) const {
  return {.scale = strides[dim],
          // Padding (1, 1), window 3, stride 2: result i reads the places 2 i - 1 … 2 i + 1, and place -1 is padding.
          .offset = -low[dim],
          .window = sizes[dim],
          .dilation = dilations[dim],
          .holes = base_dilations[dim],
          .outside = Outside::kNeutral};
}

bool Window::is_trivial(size_t dim) const { return sizes[dim] == 1 && strides[dim] == 1 && !is_padded(dim); }

Prefix Window::prefix(size_t dim, int64_t size) const {
  const bool plain = strides[dim] == 1 && base_dilations[dim] == 1 && dilations[dim] == 1;
  // One element is its own prefix, and would be taken for a forward and a reverse one.
  if (!plain || size < 2 || sizes[dim] != size) return Prefix::kNone;
  if (low[dim] == size - 1 && high[dim] == 0) return Prefix::kForward;
  if (low[dim] == 0 && high[dim] == size - 1) return Prefix::kReverse;
  return Prefix::kNone;
}

void Window::set_prefix(size_t dim, int64_t size, Prefix prefix) {
  sizes[dim] = size;
  strides[dim] = base_dilations[dim] = dilations[dim] = 1;
  low[dim] = prefix == Prefix::kForward ? size - 1 : 0;
  high[dim] = prefix == Prefix::kForward ? 0 : size - 1;
}

Window Window::only(size_t dim) const {
  Window window = trivial(static_cast<int64_t>(sizes.size()));
  for (const auto list :
       {&Window::sizes, &Window::strides, &Window::base_dilations, &Window::dilations, &Window::low, &Window::high}) {
    (window.*list)[dim] = (this->*list)[dim];
  }
  return window;
}

// Base dilation 2 is one hole between neighbours.
Dims Window::interior() const { return shifted(base_dilations, -1); }

Attrs window_attrs(const Window& window) {
  const auto ndim = static_cast<int64_t>(window.sizes.size());
  const NdArray padding = NdArray::empty(DType::kI64, {ndim, 2});
  auto* entries = reinterpret_cast<int64_t*>(padding.data());
  for (size_t dim = 0; dim < window.sizes.size(); ++dim) {
    *entries++ = window.low[dim];
    *entries++ = window.high[dim];
  }
  return Attrs{{"base_dilations", window.base_dilations},
               {"padding", DenseAttr{padding}},
               {"window_dilations", window.dilations},
               {"window_dimensions", window.sizes},
               {"window_strides", window.strides}};
}

}  // namespace shardwise
