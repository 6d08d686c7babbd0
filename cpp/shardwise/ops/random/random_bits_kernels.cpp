// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/random/random_bits_kernels.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "shardwise/tile/lines.h"

namespace shardwise {
namespace {

constexpr int64_t kPiece = 4096;  // elements of one call

struct Counter {
  uint64_t low = 0, high = 0;
  // 128 bits in two halves: the sum is smaller than its addend exactly when it wraps around.
  Counter plus(uint64_t blocks) const { return {low + blocks, high + (low + blocks < low ? 1 : 0)}; }
};

uint32_t low_word(uint64_t x) { return static_cast<uint32_t>(x); }
uint32_t high_word(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

// The four words of kRandomLanes blocks, from `counter` on.
void philox(uint64_t key, Counter counter, uint32_t (&x)[4][kRandomLanes]) {
  for (uint64_t l = 0; l < kRandomLanes; ++l) {
    const Counter at = counter.plus(l);
    x[0][l] = low_word(at.low), x[1][l] = high_word(at.low);
    x[2][l] = low_word(at.high), x[3][l] = high_word(at.high);
  }
  line_kernels().philox(key, x);
}

// Words [begin, begin + words.size()) of a Philox stream.
void philox_words(uint64_t key, Counter counter, int64_t begin, std::span<uint32_t> words) {
  uint32_t x[4][kRandomLanes];
  int64_t block = begin / 4;
  // A part may begin inside a block: its first words are made and dropped.
  size_t skip = static_cast<size_t>(begin % 4);
  for (size_t out = 0; out < words.size(); block += kRandomLanes) {
    philox(key, counter.plus(static_cast<uint64_t>(block)), x);
    // Words of a block are in four rows, one per word, because the lanes of a vector are blocks.
    for (size_t word = skip; word < 4 * kRandomLanes && out < words.size(); ++word)
      words[out++] = x[word % 4][word / 4];
    skip = 0;
  }
}

// Both words of blocks [begin, begin + words.size() / 2), one pair after the other.
void three_fry_words(uint64_t key, uint64_t counter, std::span<uint32_t> words) {
  uint32_t x[2][kRandomLanes];
  for (size_t out = 0; out < words.size(); counter += kRandomLanes) {
    line_kernels().three_fry(key, counter, x);
    const size_t blocks = std::min<size_t>((words.size() - out) / 2, kRandomLanes);
    for (size_t l = 0; l < blocks; ++l) {
      words[out + 2 * l] = x[0][l];
      words[out + 2 * l + 1] = x[1][l];
    }
    out += 2 * blocks;
  }
}

// The shape of 32-bit blocks, and the dim that is halved in it. A scalar is one element.
struct Halves {
  Dims shape;
  size_t dim = 0;

  explicit Halves(DimSpan whole) : shape(whole.empty() ? Dims{1} : to_dims(whole)) {
    const auto even = std::ranges::find_if(shape, [](int64_t size) { return size % 2 == 0; });
    dim = static_cast<size_t>((even == shape.end() ? std::ranges::max_element(shape) : even) - shape.begin());
    shape[dim] = ceil_div(shape[dim], 2);
  }
};

// A run of neighbours along the last dim.
class Row {
 public:
  Row(BitGenerator generator, std::span<const uint64_t> state, const Dims& shape)
      : generator_(generator), state_(state), shape_(shape), halves_(shape) {}

  // Words of the elements from `start` on, `per_element` for each.
  void words(const Dims& start, int64_t count, int64_t per_element, std::vector<uint32_t>& found) {
    found.resize(static_cast<size_t>(count * per_element));
    if (generator_ == BitGenerator::kPhilox) {
      const Counter counter{state_[1], state_.size() > 2 ? state_[2] : state_[0]};
      return philox_words(state_[0], counter, linear(start, shape_) * per_element, found);
    }
    if (per_element == 2) return three_fry_words(state_[0], counter(linear(start, shape_)), found);
    Dims block = start.empty() ? Dims{0} : start;
    // Halved along the last dim, neighbours are the words of one block; otherwise a row has one word of each block.
    const bool is_last = halves_.dim + 1 == halves_.shape.size();
    const auto which = static_cast<size_t>(block[halves_.dim] % 2);
    block[halves_.dim] /= 2;
    const auto blocks = static_cast<size_t>(is_last ? (static_cast<int64_t>(which) + count + 1) / 2 : count);
    pairs_.resize(2 * blocks);
    three_fry_words(state_[0], counter(linear(block, halves_.shape)), pairs_);
    for (size_t i = 0; i < found.size(); ++i) found[i] = pairs_[is_last ? which + i : 2 * i + which];
  }

 private:
  static int64_t linear(const Dims& index, const Dims& shape) {
    int64_t at = 0;
    for (size_t dim = 0; dim < index.size(); ++dim) at = at * shape[dim] + index[dim];
    return at;
  }
  uint64_t counter(int64_t block) const { return state_[1] + static_cast<uint64_t>(block); }

  BitGenerator generator_;
  std::span<const uint64_t> state_;
  const Dims& shape_;
  Halves halves_;
  std::vector<uint32_t> pairs_;
};

void store_words(const std::vector<uint32_t>& words, std::byte* to, int64_t item_size) {
  if (item_size >= 4) {
    std::memcpy(to, words.data(), words.size() * sizeof(uint32_t));
  } else if (item_size == 2) {
    for (size_t i = 0; i < words.size(); ++i) reinterpret_cast<uint16_t*>(to)[i] = static_cast<uint16_t>(words[i]);
  } else {
    for (size_t i = 0; i < words.size(); ++i) reinterpret_cast<uint8_t*>(to)[i] = static_cast<uint8_t>(words[i]);
  }
}

}  // namespace

int64_t block_count(BitGenerator generator, DimSpan shape, int64_t item_size) {
  const int64_t words = element_count(shape) * (item_size == 8 ? 2 : 1);
  if (generator == BitGenerator::kPhilox) return ceil_div(words, 4);
  return item_size == 8 ? element_count(shape) : element_count(Halves(shape).shape);
}

void generate_bits(KernelContext& context, BitGenerator generator, std::span<const uint64_t> state, const Dims& shape,
                   const Dims& start, const NdArray& to) {
  if (to.size() == 0) return;
  const int64_t item = item_size(to.dtype()), per_element = item == 8 ? 2 : 1;
  const int64_t length = shape.empty() ? 1 : to.shape().back(), rows = to.size() / length;
  const int64_t pieces = ceil_div(length, kPiece);
  // About 16,384 elements to a task, also if rows are short.
  const int64_t grain = std::max<int64_t>(4 * kPiece / std::min(length, kPiece), 1);
  context.parallel_for(rows * pieces, grain, [&](int64_t begin, int64_t end) {
    Row row(generator, state, shape);
    std::vector<uint32_t> words;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t first = unit % pieces * kPiece, count = std::min(kPiece, length - first);
      Dims at = start;
      int64_t rest = unit / pieces;
      const size_t ndim = at.size();
      if (ndim > 0) at[ndim - 1] += first;
      // The row of the part as digits, the last dim excluded, added to the first index of the part.
      for (size_t dim = std::max<size_t>(ndim, 1) - 1; dim-- > 0;) {
        at[dim] += rest % to.shape()[dim];
        rest /= to.shape()[dim];
      }
      row.words(at, count, per_element, words);
      store_words(words, to.data() + (unit / pieces * length + first) * item, item);
    }
  });
}

}  // namespace shardwise
