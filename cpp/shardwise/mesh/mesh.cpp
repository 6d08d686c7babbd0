// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/mesh.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

constexpr int64_t kUnset = -1;

bool is_iota(DimSpan ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

std::string axes_text(const std::vector<MeshAxis>& axes) {
  return str("[", join(axes, ", ", [](const MeshAxis& axis) { return str(quote(axis.name), "=", axis.size); }), "]");
}

}  // namespace

constinit const Dims Mesh::kIota{};

Mesh::Mesh(std::string symbol_name, std::vector<MeshAxis> axes, Dims device_ids)
    : name_(std::move(symbol_name)), axes_(std::move(axes)) {
  verify_axes();
  verify(device_ids);
  strides_.resize(axes_.size());
  // Row-major: the last axis has stride 1, so that x=2, y=3 has the strides 3 and 1.
  for (size_t i = axes_.size(); i-- > 0;) {
    strides_[i] = device_count_;
    device_count_ *= axes_[i].size;
  }
  // A normal form, so that meshes with default ids compare equal and print without ids.
  if (axes_.empty() ? !device_ids.empty() : !is_iota(device_ids)) order(std::move(device_ids));

  hash_ = std::hash<std::string>{}(name_);
  for (const MeshAxis& axis : axes_) {
    hash_ = hash_combine(hash_, std::hash<std::string>{}(axis.name));
    hash_ = hash_combine(hash_, std::hash<int64_t>{}(axis.size));
  }
  for (int64_t id : this->device_ids()) hash_ = hash_combine(hash_, std::hash<int64_t>{}(id));
}

void Mesh::verify_axes() const {
  int64_t count = 1;
  for (size_t i = 0; i < axes_.size(); ++i) {
    const MeshAxis& axis = axes_[i];
    if (axis.size < 1) {
      fail<MeshError>("mesh", "the size of an axis must be at least 1", str(quote(axis.name), "=", axis.size),
                      "leave the axis out or give it size 1");
    }
    for (size_t j = 0; j < i; ++j) {
      if (axes_[j].name == axis.name) {
        fail<MeshError>("mesh", "axis names must differ", quote(axis.name) + " twice in " + axes_text(axes_),
                        "rename one of them");
      }
    }
    // Divide rather than multiply: the product may overflow.
    if (axis.size > std::numeric_limits<int64_t>::max() / count) {
      fail<MeshError>("mesh", "the number of devices must fit in 63 bits", axes_text(axes_), "use smaller axes");
    }
    count *= axis.size;
  }
}

void Mesh::verify(DimSpan device_ids) const {
  for (int64_t id : device_ids) {
    if (id < 0) fail<MeshError>("mesh", "device ids must not be negative", std::to_string(id));
  }
  // The one id of a maximal mesh may be any device, so it is not checked against a number of devices.
  if (axes_.empty()) {
    if (device_ids.size() > 1) {
      fail<MeshError>("mesh", "a mesh without axes must have at most one device id",
                      std::to_string(device_ids.size()) + " ids", "name the axis that holds them");
    }
    return;
  }
  if (device_ids.empty()) return;
  int64_t count = 1;
  for (const MeshAxis& axis : axes_) count *= axis.size;
  if (count != static_cast<int64_t>(device_ids.size())) {
    fail<MeshError>("mesh", "the number of device ids must be the product of the axis sizes",
                    str(device_ids.size(), " ids for the ", count, " devices of ", axes_text(axes_)),
                    "give one id per device, or none for 0, 1, 2, …");
  }
  std::vector<bool> seen(device_ids.size(), false);
  for (int64_t id : device_ids) {
    // There are as many ids as devices, so ids in range without a repetition are a permutation.
    if (id >= count || seen[static_cast<size_t>(id)]) {
      fail<MeshError>("mesh", "device ids must be a permutation of 0 to " + std::to_string(count - 1),
                      std::to_string(id) + (id >= count ? "" : " twice"));
    }
    seen[static_cast<size_t>(id)] = true;
  }
}

void Mesh::order(Dims device_ids) {
  Order order{std::move(device_ids), {}};
  // The id of a maximal mesh may be any number, so it is not an index of a table.
  if (!axes_.empty()) order.logical_indices.assign(order.ids.size(), kUnset);
  for (size_t i = 0; i < order.logical_indices.size(); ++i) {
    order.logical_indices[static_cast<size_t>(order.ids[i])] = static_cast<int64_t>(i);
  }
  order_ = std::make_shared<const Order>(std::move(order));
}

std::optional<int> Mesh::find_axis(std::string_view name) const {
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == name) return static_cast<int>(i);
  }
  return std::nullopt;
}

void Mesh::expect_runnable(std::string_view operation) const {
  if (device_count_ <= kMostDevicesToRun) return;
  fail<MeshError>(
      operation,
      str("a mesh must have at most ", kMostDevicesToRun, " devices, whose shards are all kept in this process"),
      str(device_count_, " devices of ", text()),
      "for a larger mesh only compile the program: sw.jit(f).lower(...).compile()");
}

int64_t Mesh::device_at(int64_t logical_index) const {
  if (logical_index < 0 || logical_index >= device_count_) {
    fail<MeshError>("mesh " + reference(), "a logical index must be from 0 to " + std::to_string(device_count_ - 1),
                    std::to_string(logical_index));
  }
  // A mesh without ids needs no table, so one of millions of devices takes constant memory.
  return order_ ? order_->ids[static_cast<size_t>(logical_index)] : logical_index;
}

int64_t Mesh::logical_index(int64_t device) const {
  if (is_maximal() && device == device_ids()[0]) return 0;
  if (is_maximal() || device < 0 || device >= device_count_) {
    fail<MeshError>("mesh " + reference(),
                    is_maximal() ? "the only device is " + std::to_string(device_ids()[0])
                                 : "a device id must be from 0 to " + std::to_string(device_count_ - 1),
                    std::to_string(device));
  }
  return order_ ? order_->logical_indices[static_cast<size_t>(device)] : device;
}

// The hash first: a mesh may have millions of device ids.
bool operator==(const Mesh& a, const Mesh& b) { return a.hash_ == b.hash_ && a.name_ == b.name_ && a.same_devices(b); }

bool Mesh::same_devices(const Mesh& other) const {
  return axes_ == other.axes_ && (order_ == other.order_ || device_ids() == other.device_ids());
}

bool Mesh::same_ignoring_order(const Mesh& other) const {
  return axes_ == other.axes_ && is_maximal() == other.is_maximal();
}

std::string Mesh::text() const {
  const std::string ids = device_ids().empty() ? std::string() : str(", device_ids=", device_ids());
  return str("<", axes_text(axes_), ids, ">");
}

std::string Mesh::reference() const { return name_.empty() ? "mesh" + text() : symbol_text(name_); }

bool equal(const MeshPtr& a, const MeshPtr& b) { return a == b || (a && b && *a == *b); }

std::string quote(std::string_view name) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string text = "\"";
  for (char c : name) {
    // A plain char may be signed: a byte of UTF-8 would then be a negative index of kHex.
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      text += "\\\\";
    } else if (c == '"' || byte < 0x20 || byte >= 0x7f) {
      text += {'\\', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      text += c;
    }
  }
  return text + "\"";
}

std::string symbol_text(std::string_view name) { return "@" + (is_word(name) ? std::string(name) : quote(name)); }

}  // namespace shardwise
