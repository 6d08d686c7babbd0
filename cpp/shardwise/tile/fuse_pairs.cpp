// SPDX-License-Identifier: Apache-2.0
//
// Instructions that do the work of two or three: a tile then is stored once instead of twice. The bits stay the same.
//
//   %2 = multiply %0, %1 ; %3 = add 0.5, %2             multiply_add: a step of Horner's scheme
//   %2 = add %0, %1 ; %3 = add %2, %k                   add_twice, of integers: a key that is added to a random word
//   %2 = rotate_left %0, 13 ; %3 = xor %2, %1           rotate_xor: a round of a random generator
//   %2 = less %0, 0 ; %3 = add %0, n ; %4 = select %2, %3, %0      wrap_negative: NumPy's index -1
#include <algorithm>
#include <initializer_list>
#include <vector>

#include "shardwise/tile/program.h"

namespace shardwise {

class TileBuilder::PairFuser {
 public:
  explicit PairFuser(TileBuilder& tiles) : tiles_(tiles), uses_(tiles.registers_.size()), makers_(uses_.size()) {
    for (Node& node : tiles_.nodes_) {
      makers_[node.result] = &node;
      for (size_t k = 0; k < node.operand_count; ++k) ++uses_[node.operands[k]];
    }
    for (const uint32_t reg : tiles_.outputs_) ++uses_[reg];
  }

  void run() {
    for (Node& node : tiles_.nodes_) {
      read_through_bitcasts(node);
      if (node.code == TileCode::kAdd) fuse_add(node);
      if (node.code == TileCode::kXor) fuse_xor(node);
      if (node.code == TileCode::kSelect) fuse_select(node);
    }
  }

 private:
  // A kernel reads bits, whatever dtype they had.
  void read_through_bitcasts(Node& node) {
    for (size_t k = 0; k < node.operand_count; ++k) {
      const Node* maker = makers_[node.operands[k]];
      if (maker == nullptr || maker->code != TileCode::kBitcast) continue;
      if (is_complex(maker->from) || is_complex(maker->to)) continue;  // a pair has two registers
      --uses_[node.operands[k]];
      node.operands[k] = maker->operands[0];
      ++uses_[node.operands[k]];
    }
  }

  // The instruction that makes an operand, where nothing else reads it.
  const Node* only_for(const Node& node, size_t k, TileCode code) const {
    const Node* maker = makers_[node.operands[k]];
    const bool fits = maker != nullptr && maker->code == code && uses_[node.operands[k]] == 1;
    return fits && (code == TileCode::kLess || maker->to == node.from) ? maker : nullptr;
  }

  // The operands keep their number of uses, at least: this instruction reads what the dropped one has read.
  static void become(Node& node, TileCode code, std::initializer_list<uint32_t> operands) {
    node.code = code;
    node.operand_count = static_cast<uint8_t>(operands.size());
    std::copy(operands.begin(), operands.end(), node.operands);
  }

  void fuse_add(Node& node) {
    if (is_complex(node.from) || node.from == DType::kBool) return;
    for (const size_t k : {0, 1}) {
      const uint32_t other = node.operands[1 - k];
      const Scalar* addend = tiles_.scalar_of(other);
      // Of two NaN, the first operand's wins, and a compiler may exchange operands: floats are fused where one is none.
      const bool any_order = !is_float(node.from) || (addend != nullptr && addend->real == addend->real);
      if (!any_order) continue;
      if (const Node* product = only_for(node, k, TileCode::kMultiply)) {
        return become(node, TileCode::kMultiplyAdd, {product->operands[0], product->operands[1], other});
      }
      if (is_float(node.from)) continue;
      if (const Node* sum = only_for(node, k, TileCode::kAdd)) {
        return become(node, TileCode::kAddTwice, {sum->operands[0], sum->operands[1], other});
      }
    }
  }

  void fuse_xor(Node& node) {
    for (const size_t k : {0, 1}) {
      const Node* turned = only_for(node, k, TileCode::kRotateLeft);
      if (turned == nullptr) continue;
      return become(node, TileCode::kRotateXor, {turned->operands[0], turned->operands[1], node.operands[1 - k]});
    }
  }

  void fuse_select(Node& node) {
    const uint32_t x = node.operands[2];
    if (!is_signed_integer(node.from)) return;
    const Node *less = only_for(node, 0, TileCode::kLess), *sum = only_for(node, 1, TileCode::kAdd);
    if (less == nullptr || sum == nullptr || less->operands[0] != x) return;
    const Scalar* zero = tiles_.scalar_of(less->operands[1]);
    if (zero == nullptr || zero->integer != 0) return;
    if (sum->operands[0] == x) return become(node, TileCode::kWrapNegative, {x, sum->operands[1]});
    if (sum->operands[1] == x) return become(node, TileCode::kWrapNegative, {x, sum->operands[0]});
  }

  TileBuilder& tiles_;
  std::vector<uint32_t> uses_;
  std::vector<Node*> makers_;  // of each register
};

void TileBuilder::fuse_pairs() { PairFuser(*this).run(); }

}  // namespace shardwise
