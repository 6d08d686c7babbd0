// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/entry_function.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/walk.h"

namespace shardwise {
namespace {

constexpr std::string_view kMain = "main";

// Also those in lists: called_computations = [@compare].
void append_symbols(const Attribute& attribute, std::vector<std::string>& names) {
  if (const auto* symbol = std::get_if<Symbol>(&attribute.base())) names.push_back(symbol->name);
  const auto* elements = std::get_if<AttrArray>(&attribute.base());
  if (elements == nullptr) return;
  for (const Attribute& element : *elements) append_symbols(element, names);
}

void rename_symbols(Attribute& attribute, std::string_view from, const std::string& to) {
  Attribute::variant& value = attribute;
  if (auto* symbol = std::get_if<Symbol>(&value)) {
    if (symbol->name == from) symbol->name = to;
  } else if (auto* elements = std::get_if<AttrArray>(&value)) {
    for (Attribute& element : *elements) rename_symbols(element, from, to);
  }
}

class EntryChooser {
 public:
  explicit EntryChooser(Module& module) : module_(module) {
    for (const Function& function : module.functions) bodies_.emplace(function.name, function.body);
  }

  void run(std::string_view name) {
    if (!bodies_.contains(std::string(name))) {
      fail<UnsupportedError>("program", "the function must be one of the program", name);
    }
    reach(std::string(name));
    std::erase_if(module_.functions, [&](const Function& function) { return !reached_.contains(function.name); });
    if (name != kMain && reached_.contains(std::string(kMain))) rename_main();
    // Module::main() is the first function where none is called main.
    std::ranges::stable_partition(module_.functions, [&](const Function& function) { return function.name == name; });
    for (Function& function : module_.functions) {
      function.visibility = function.name == name ? Visibility::kPublic : Visibility::kPrivate;
    }
  }

 private:
  void reach(std::string first) {
    std::vector<std::string> waiting{std::move(first)};
    while (!waiting.empty()) {
      const std::string name = std::move(waiting.back());
      waiting.pop_back();
      const auto body = bodies_.find(name);
      if (body == bodies_.end() || !reached_.insert(name).second) continue;
      // By all symbols, not only by calls: a reduction may name its combiner, and a composite its decomposition.
      walk(module_, body->second, [&](OpId op) {
        for (const auto& entry : module_.attrs(op).entries()) append_symbols(entry.second, waiting);
      });
    }
  }

  void rename_main() {
    std::string name;
    for (int64_t i = 0; name.empty() || bodies_.contains(name); ++i) name = str(kMain, "_", i);
    walk(module_, [&](OpId op) {
      Attrs attrs = module_.attrs(op);
      for (const auto& [key, value] : module_.attrs(op).entries()) {
        Attribute renamed = value;
        rename_symbols(renamed, kMain, name);
        attrs.set(key, std::move(renamed));
      }
      if (attrs != module_.attrs(op)) module_.op(op).attrs = module_.context().intern(attrs);
    });
    std::ranges::find(module_.functions, kMain, &Function::name)->name = name;
  }

  Module& module_;
  std::unordered_map<std::string, RegionId> bodies_;  // of all functions
  std::unordered_set<std::string> reached_;
};

}  // namespace

Module entry_function(Module module, std::string_view name) {
  EntryChooser(module).run(name);
  return module;
}

}  // namespace shardwise
