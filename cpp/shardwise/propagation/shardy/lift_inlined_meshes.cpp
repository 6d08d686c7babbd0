// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/shardy/lift_inlined_meshes.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/propagation/map_shardings.h"

namespace shardwise {
namespace {

class Lifter {
 public:
  explicit Lifter(Module& module) : module_(module) { keep_first_of_equal(); }

  MeshPtr symbol_of(const MeshPtr& mesh) {
    const auto& meshes = module_.meshes;
    const auto found = std::ranges::find_if(meshes, [&](const MeshPtr& known) { return known->same_devices(*mesh); });
    if (found != meshes.end()) return *found;
    return module_.declare_mesh(std::make_shared<const Mesh>(new_name(*mesh), mesh->axes(), mesh->device_ids()));
  }

  // Renames attributes that refer to a merged mesh: `mesh = @same`, also in the replica groups of a collective.
  void rename(OpId op) {
    Attrs attrs = module_.attrs(op);
    for (const auto& [name, value] : module_.attrs(op).entries()) {
      Attribute renamed = value;
      if (auto* along = std::get_if<StructAttr>(&renamed)) {
        for (auto& [field, inner] : along->fields) rename(field, inner);
      } else {
        rename(name, renamed);
      }
      attrs.set(name, std::move(renamed));
    }
    if (attrs != module_.attrs(op)) module_.op(op).attrs = module_.context().intern(attrs);
  }
  bool has_dropped() const { return !dropped_.empty(); }

 private:
  void rename(std::string_view name, Attribute& value) const {
    const auto* symbol = std::get_if<Symbol>(&value.base());
    const auto dropped = symbol == nullptr || name != "mesh" ? dropped_.end() : dropped_.find(symbol->name);
    if (dropped != dropped_.end()) value = Symbol{dropped->second};
  }

  void keep_first_of_equal() {
    std::vector<MeshPtr> kept;
    for (const MeshPtr& mesh : module_.meshes) {
      const auto first = std::ranges::find_if(kept, [&](const MeshPtr& known) { return known->same_devices(*mesh); });
      if (first == kept.end()) {
        kept.push_back(mesh);
      } else {
        dropped_.emplace(mesh->name(), (*first)->name());
      }
    }
    module_.meshes = std::move(kept);
  }

  bool is_taken(const std::string& name) const {
    // Functions and meshes share one table of symbols. The name of a dropped mesh may still be in an attribute.
    return module_.find_mesh(name) != nullptr || dropped_.contains(name) ||
           std::ranges::any_of(module_.functions, [&](const Function& function) { return function.name == name; });
  }

  std::string new_name(const Mesh& mesh) {
    std::string base = "mesh";
    if (mesh.is_empty()) base = "empty_mesh";
    if (mesh.is_maximal()) base = str("maximal_mesh_", mesh.device_ids()[0]);
    if (!is_taken(base)) return base;
    while (is_taken(str(base, "_", next_))) ++next_;
    return str(base, "_", next_);
  }

  Module& module_;
  std::unordered_map<std::string, std::string> dropped_;  // to the name that replaces it
  int next_ = 0;
};

}  // namespace

void lift_inlined_meshes(Module& module) {
  Lifter lifter(module);
  map_shardings(module, [&](const TensorSharding& sharding) {
    TensorSharding lifted = sharding;
    lifted.mesh = lifter.symbol_of(sharding.mesh);
    return lifted;
  });
  if (!lifter.has_dropped()) return;
  walk(module, [&](OpId op) { lifter.rename(op); });
}

}  // namespace shardwise
