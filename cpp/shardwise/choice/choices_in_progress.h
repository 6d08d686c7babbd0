// SPDX-License-Identifier: Apache-2.0
//
// The choices of one kind (ir/pass.h) while a pass makes them: each is the best one, or the next one that is pinned.
//
//   ChoicesInProgress carries("carries", &Choices::carries, context);
//   carries.next([&] { return best; })      // the choice that is pinned, or else the best one
//   check_all_made("carries", &Choices::carries, context)
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/pass.h"

namespace shardwise {

// Throws ShardingError if more choices of this kind are pinned than were made.
template <class Choice>
void check_all_made(std::string_view kind, std::vector<Choice> Choices::* list, const PassContext& context) {
  const size_t made = (context.choices.*list).size();
  if (context.pinned == nullptr || ((*context.pinned).*list).size() == made) return;
  fail<ShardingError>("jit", "choices must be of this program",
                      str("choices of ", ((*context.pinned).*list).size(), " ", kind, " where it has ", made),
                      "compile without choices");
}

[[noreturn]] inline void fail_as_impossible(std::string_view subject, const std::string& choice) {
  fail<ShardingError>(subject, "choices must be possible for the program on this mesh", choice,
                      "compile without choices");
}

template <class Choice>
class ChoicesInProgress {
 public:
  ChoicesInProgress(std::string_view kind, std::vector<Choice> Choices::* list, PassContext& context)
      : kind_(kind),
        made_(context.choices.*list),
        pinned_(context.pinned == nullptr ? nullptr : &((*context.pinned).*list)) {
    made_.clear();
  }

  // Null: none are pinned. `subject` asks for it.
  const Choice* next_pinned(std::string_view subject = "jit") const {
    if (pinned_ == nullptr) return nullptr;
    if (made_.size() < pinned_->size()) return &(*pinned_)[made_.size()];
    fail<ShardingError>(subject, "choices must be of this program", str("choices of ", made_.size(), " ", kind_),
                        "compile without choices");
  }
  void add(Choice choice) { made_.push_back(std::move(choice)); }

  template <class Best>
  Choice next(Best&& best) {
    const Choice* pinned = next_pinned();
    add(pinned == nullptr ? Choice(best()) : *pinned);
    return made_.back();
  }
  // The last one of several texts.
  [[noreturn]] void refuse() const { fail_as_impossible("jit", str(kind_, " ", made_.size() - 1, ": ", made_.back())); }

  bool is_pinned() const { return pinned_ != nullptr; }
  size_t made_count() const { return made_.size(); }
  size_t pinned_count() const { return pinned_->size(); }

 private:
  std::string_view kind_;
  std::vector<Choice>& made_;
  const std::vector<Choice>* pinned_;  // may be null
};

using TextChoices = ChoicesInProgress<std::string>;

}  // namespace shardwise
