// SPDX-License-Identifier: Apache-2.0
//
// Replaces exchanges of a local program by others, and by local ops.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "shardwise/choice/choice_key.h"
#include "shardwise/choice/choice_text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/mesh/exchange.h"

namespace shardwise {

bool is_collective(const Module& module, OpId id, CollectiveKind kind);  // false for no op
ValueId fill_of(const OpView& exchange);                                 // none: zeros
bool same_fill(const Module& module, DType dtype, ValueId a, ValueId b);

// What becomes of exchanges that could be replaced: they are where that sends less, or where it is pinned.
class ExchangeChoices {
 public:
  explicit ExchangeChoices(PassContext& context)
      : made_(choice_of(context).exchanges), pinned_(pinned_entries("exchanges", &Choices::exchanges, context)) {
    made_.clear();
  }

  // Whether this rewrite of an exchange is made, which is possible: "merged", "joined", "sliced".
  template <class IsBetter>
  bool is_chosen(const OpView& exchange, std::string_view rewrite, IsBetter&& is_better) {
    const Module& module = exchange.module();
    return is_chosen(module, exchange.id(), keys_.next(module.op(exchange.id()).origin), rewrite, is_better);
  }
  // Of several exchanges of one value. Which of them there are depends on the sizes of axes.
  template <class IsBetter>
  bool is_chosen(const Module& module, ValueId exchanged, std::string_view rewrite, IsBetter&& is_better) {
    const std::string at = keys_.next(str("of ", module.value(exchanged).origin.index));
    return is_chosen(module, module.value(exchanged).op, at, rewrite, is_better);
  }
  void check_pins() const { pinned_.check_all_taken(); }

 private:
  template <class IsBetter>
  bool is_chosen(const Module& module, OpId op, std::string at, std::string_view rewrite, IsBetter&& is_better) {
    constexpr std::string_view kKept = "kept";
    const ChosenText* pinned = pinned_.take(at);
    const std::string text = pinned != nullptr ? pinned->chosen : std::string(is_better() ? rewrite : kKept);
    if (text != rewrite && text != kKept) {
      fail_as_impossible(
          module, op, {.kind = "exchanges", .at = at, .pinned = text, .possible = str(is_better() ? rewrite : kKept)});
    }
    made_.push_back({std::move(at), text});
    return text == rewrite;
  }

  std::vector<ChosenText>& made_;
  PinnedEntries<ChosenText> pinned_;
  DecisionKeys keys_;
};

class ExchangeRewrite {
 public:
  explicit ExchangeRewrite(Module& module) : module_(module), rewrite_(module) {}

  // Creates an exchange before `at`, with the cause of `at`.
  ValueId create(OpId at, std::span<const ValueId> operands, ValueId fill, const ExchangeMap& map);
  // A new value takes the place of the result of an exchange.
  void replace(OpId id, ValueId made);
  // Creates the replacement with `make(Builder&)`.
  template <class Make>
  void replace_by_local(OpId id, Make&& make) {
    const OpView op(module_, id);
    replace(id, rewrite_.insert(rewrite_.before(id), op.loc(), [&](Builder& builder) {
      builder.set_loc(op.loc(), module_.op(id).origin);
      return make(builder);
    }));
  }
  void move_before(OpId op, OpId next) { rewrite_.move(op, rewrite_.before(next)); }
  int64_t commit() {  // how many were replaced
    rewrite_.commit();
    return replaced_;
  }

 private:
  Module& module_;
  Rewrite rewrite_;
  int64_t replaced_ = 0;
};

}  // namespace shardwise
