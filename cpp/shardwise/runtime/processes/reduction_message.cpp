// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/processes/reduction_message.h"

#include <algorithm>
#include <cstring>

#include "shardwise/base/array_view.h"
#include "shardwise/runtime/array_copies.h"
#include "shardwise/runtime/axis_pieces.h"
#include "shardwise/runtime/memory/buffer_pool.h"

namespace shardwise {
namespace {

int64_t elements_of_one(const Shards& shards) { return element_count(shards.local_shape()); }

}  // namespace

std::vector<Pack> packed(std::span<const Shards> operands, std::span<const Reducer> reducers) {
  std::vector<Pack> packs;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Shards& operand = operands[i];
    auto found = std::ranges::find_if(packs, [&](const Pack& pack) {
      // One fold serves all elements of a pack, so that they must agree in all that it depends on.
      return pack.dtype == operand.dtype() && pack.reducer == reducers[i] && pack.axes == operand.axes();
    });
    if (found == packs.end()) found = packs.insert(found, {operand.dtype(), reducers[i], operand.axes()});
    found->members.push_back(i);
    found->elements += elements_of_one(operand);
  }
  return packs;
}

std::vector<Pack> packs_of_one(std::span<const Shards> operands) {
  std::vector<Pack> packs;
  for (size_t i = 0; i < operands.size(); ++i) {
    packs.push_back({operands[i].dtype(), Reducer::kNone, operands[i].axes(), {i}, elements_of_one(operands[i])});
  }
  return packs;
}

ReductionMessage::ReductionMessage(std::vector<Pack>& packs, int64_t rows) : rows_(rows) {
  // Kernels would copy items at unaligned addresses. The largest item is complex128.
  constexpr int64_t kAlignment = 16;
  for (Pack& pack : packs) {
    pack.length = ceil_div(pack.elements, rows);
    pack.begin = row_bytes_;
    row_bytes_ += pack.nbytes();
    if (packs.size() > 1) row_bytes_ = ceil_div(row_bytes_, kAlignment) * kAlignment;
  }
}

ReductionMessage ReductionMessage::of_rows(int64_t rows) const {
  ReductionMessage other = *this;
  other.rows_ = rows;
  other.memory_ = pooled_empty(DType::kU8, {rows * row_bytes_});
  return other;
}

void ReductionMessage::fill(const std::vector<Pack>& packs, std::span<const Shards> operands) {
  if (is_operand(packs)) {
    const NdArray only = dense(operands[0].stack());
    memory_ = NdArray(DType::kU8, {only.nbytes()}, {1}, only.data(), only.owner());
    return;
  }
  memory_ = pooled_empty(DType::kU8, {rows_ * row_bytes_});
  for (const Pack& pack : packs) write(pack, operands);
}

// Whether the memory of the one operand has the form of the message.
bool ReductionMessage::is_operand(const std::vector<Pack>& packs) const {
  const Pack& pack = packs[0];
  return packs.size() == 1 && pack.members.size() == 1 && rows_ * pack.length == pack.elements &&
         (rows_ == 1 || pack.axes.empty());
}

void ReductionMessage::write(const Pack& pack, std::span<const Shards> operands) const {
  int64_t begin = 0;
  for (size_t i : pack.members) {
    const Shards& operand = operands[i];
    write(pack, begin, operand.is_stacked() ? operand.stacked() : operand.stack());
    begin += elements_of_one(operand);
  }
  // The padding is folded with the rest, and must not be memory that was never written.
  const int64_t padding = rows_ * pack.length - begin;
  if (padding == 0) return;
  const Dims shape = concatenated(sizes_of(pack.axes), Dims{padding});
  write(pack, begin, NdArray::full(pack.dtype, shape, Scalar::of_int(pack.dtype, 0)));
}

// Writes the elements of all own devices, from element `begin` of the pack on.
void ReductionMessage::write(const Pack& pack, int64_t begin, const NdArray& array) const {
  const NdArray source = dense(array);
  const int64_t item = item_size(pack.dtype);
  const int64_t devices = product(pack.axes);
  const int64_t size = source.size() / devices;
  for (int64_t done = 0; done < size;) {
    const int64_t row = (begin + done) / pack.length;
    const int64_t at = (begin + done) % pack.length;
    const int64_t count = std::min(size - done, pack.length - at);
    for (int64_t device = 0; device < devices; ++device) {
      std::byte* const to = memory_.data() + row * row_bytes_ + pack.begin + (device * pack.length + at) * item;
      std::memcpy(to, source.data() + (device * size + done) * item, static_cast<size_t>(count * item));
    }
    done += count;
  }
}

NdArray ReductionMessage::part(const Pack& pack, DimSpan leading) const {
  Dims shape = concatenated(to_dims(leading), sizes_of(pack.axes));
  shape.push_back(pack.length);
  Dims strides = row_major_strides(shape, item_size(pack.dtype));
  int64_t stride = row_bytes_;
  for (size_t d = leading.size(); d-- > 0; stride *= shape[d]) strides[d] = stride;
  return {pack.dtype, std::move(shape), std::move(strides), memory_.data() + pack.begin, memory_.owner()};
}

void unpack(const Pack& pack, const Shards& sums, std::span<const Shards> operands, std::vector<Shards>& results) {
  const NdArray all = dense(sums.stack());
  int64_t begin = 0;
  for (size_t i : pack.members) {
    const Dims local = operands[i].local_shape();
    const int64_t size = element_count(local);
    const auto last = static_cast<size_t>(all.ndim() - 1);
    results[i] = {sums.axes(), split_dim(all.sliced(all.ndim() - 1, begin, size), last, local)};
    begin += size;
  }
}

}  // namespace shardwise
