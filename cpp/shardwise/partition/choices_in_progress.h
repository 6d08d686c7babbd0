// SPDX-License-Identifier: Apache-2.0
//
// The choices of one kind (ir/pass.h) while a pass makes them: each is the best one, or the next one that is pinned.
//
//   ChoicesInProgress carries("carries", &Choices::carries, context);
//   carries.next([&] { return best; })      // the text that is pinned, or else the best one
//   check_all_made("carries", &Choices::carries, context)
#pragma once

#include <string>
#include <string_view>
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

class ChoicesInProgress {
 public:
  ChoicesInProgress(std::string_view kind, std::vector<std::string> Choices::* list, PassContext& context)
      : kind_(kind),
        made_(context.choices.*list),
        pinned_(context.pinned == nullptr ? nullptr : &((*context.pinned).*list)) {
    made_.clear();
  }

  template <class Best>
  std::string next(Best&& best) {
    if (pinned_ != nullptr && made_.size() >= pinned_->size()) {
      fail<ShardingError>("jit", "choices must be of this program", str("choices of ", made_.size(), " ", kind_),
                          "compile without choices");
    }
    made_.push_back(pinned_ == nullptr ? std::string(best()) : (*pinned_)[made_.size()]);
    return made_.back();
  }
  [[noreturn]] void fail_as_impossible() const {
    fail<ShardingError>("jit", "choices must be possible for the program on this mesh",
                        str(kind_, " ", made_.size() - 1, ": ", made_.back()), "compile without choices");
  }

 private:
  std::string_view kind_;
  std::vector<std::string>& made_;
  const std::vector<std::string>* pinned_;  // may be null
};

}  // namespace shardwise
