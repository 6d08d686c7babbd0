// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/shared/custom_call_def.h"

#include <map>
#include <mutex>
#include <shared_mutex>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

// Calls are looked up on every thread that compiles, and registered rarely.
struct Table {
  std::shared_mutex mutex;
  std::map<std::string, CustomCallPtr, std::less<>> calls;
};

Table& table() {
  static auto* all = new Table;  // never destroyed: threads may compile while the process exits
  return *all;
}

}  // namespace

CustomCallPtr find_custom_call(std::string_view name) {
  Table& all = table();
  const std::shared_lock lock(all.mutex);
  const auto found = all.calls.find(name);
  return found == all.calls.end() ? nullptr : found->second;
}

void register_custom_call(CustomCallDef def) {
  Table& all = table();
  const std::unique_lock lock(all.mutex);
  const auto found = all.calls.find(def.name);
  // A notebook cell that defines a call may run again, but our own calls must keep their meaning.
  if (found != all.calls.end() && !found->second->is_replaceable) {
    fail<ShapeError>("register_custom_call", "a name must not be one that shardwise defines", def.name,
                     "choose another one");
  }
  std::string name = def.name;
  // A new definition, not a change of the old one: a compilation that runs now goes on with what it has found.
  all.calls[std::move(name)] = std::make_shared<CustomCallDef>(std::move(def));
}

void set_custom_call_vjp(std::string_view name, std::function<void(VjpContext&)> vjp) {
  Table& all = table();
  const std::unique_lock lock(all.mutex);
  const auto found = all.calls.find(name);
  check_internal(found != all.calls.end() && !found->second->vjp, "a gradient is added to a definition without one");
  // Copied for the same reason.
  CustomCallDef def = *found->second;
  def.vjp = std::move(vjp);
  found->second = std::make_shared<CustomCallDef>(std::move(def));
}

const std::string& custom_call_target(const OpView& op) { return op.attrs().get<std::string>("call_target_name"); }

}  // namespace shardwise
