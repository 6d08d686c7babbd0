// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/choice.h"

#include "shardwise/base/text.h"

namespace shardwise {

std::string OpKey::text() const { return ordinal == 0 ? str(origin.index) : str(origin.index, ".", ordinal); }

size_t Choice::HashOfKey::operator()(const VersionKey& key) const {
  return hash_combine(hash_combine(key.value.index, key.placement.index), key.region.index);
}

Choice& choice_of(PassContext& context) {
  if (context.choice == nullptr) context.choice = std::make_shared<Choice>();
  return *context.choice;
}

}  // namespace shardwise
