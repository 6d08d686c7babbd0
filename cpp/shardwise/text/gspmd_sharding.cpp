// SPDX-License-Identifier: Apache-2.0
#include "shardwise/text/gspmd_sharding.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/text_words.h"

namespace shardwise {
namespace {

constexpr int64_t kMostDevices = int64_t{1} << 40;
constexpr std::string_view kSubject = "mhlo.sharding";

// A digit of the device number: the devices share what comes before it, of size `pre`, and after it.
struct Digit {
  int64_t pre = 1, size = 1;
};

struct Tiling {
  enum class Kind : uint8_t { kReplicated, kTiled, kMaximal, kManual, kUnknown } kind = Kind::kReplicated;
  int64_t device = 0;                     // of a maximal one
  std::vector<std::vector<Digit>> tiles;  // by dim; those that replicate, or are manual, come last
  std::vector<bool> trailing;             // for each of these, whether the axes are manual instead
  int64_t devices = 1;
};

[[noreturn]] void refuse(std::string_view requirement, std::string_view sharding) {
  // JAX can lower every program with Shardy, so this is the way out of each refusal.
  fail<ShardingError>(kSubject, std::string(requirement), quote(std::string(sharding)),
                      "lower the program with jax_use_shardy_partitioner=True");
}

class TilingReader {
 public:
  explicit TilingReader(std::string_view text) : text_(text), rest_(text) {}

  Tiling read() {
    expect("{");
    Tiling tiling;
    if (take("maximal device=")) {
      tiling.kind = Tiling::Kind::kMaximal;
      tiling.device = number();
    } else if (take("manual")) {
      tiling.kind = Tiling::Kind::kManual;
    } else if (take("unknown")) {
      tiling.kind = Tiling::Kind::kUnknown;
    } else if (take("devices=[")) {
      read_tiles(tiling);
    } else if (!take("replicated")) {
      refuse("a sharding must be replicated, maximal or tiled over devices", text_);
    }
    expect("}");
    if (!rest_.empty()) refuse("a sharding must end after its '}'", text_);
    return tiling;
  }

 private:
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) refuse(str("a sharding must have '", word, "' before '", rest_, "'"), text_);
  }
  int64_t number() {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{} || value < 0) refuse("a sharding must have a number here", text_);
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }
  Dims numbers() {
    Dims found;
    do found.push_back(number());
    while (take(","));
    return found;
  }

  void read_tiles(Tiling& tiling) {
    tiling.kind = Tiling::Kind::kTiled;
    const Dims sizes = numbers();
    expect("]");
    for (const int64_t size : sizes) {
      // Checked before the product is formed: the sizes come from the text.
      if (size < 1 || size > kMostDevices / tiling.devices) refuse("the tiles must be on 1 to 2^40 devices", text_);
      tiling.devices *= size;
    }
    // <=[8] counts the devices in order, and <=[4,2]T(1,0) transposes a grid of them. Older texts list them: 0,2,1,3.
    std::vector<Digit> digits = take("<=[") ? iota_digits(tiling.devices) : listed_digits(tiling.devices);
    read_flags(tiling);
    if (tiling.trailing.size() > sizes.size()) refuse("a sharding must have a tile dim for each replication", text_);
    for (const int64_t size : sizes) tiling.tiles.push_back(take_digits(digits, size));
  }

  // Major first, in the order in which the tiles take them: <=[4,2]T(1,0).
  std::vector<Digit> iota_digits(int64_t devices) {
    const Dims sizes = numbers();
    expect("]");
    Dims dims(sizes.size());
    std::iota(dims.begin(), dims.end(), 0);
    Dims order = dims;
    if (take("T(")) {
      order = numbers();
      expect(")");
    }
    // Sorted to check that the order is a permutation.
    Dims sorted = order;
    std::ranges::sort(sorted);
    int64_t count = 1;
    std::vector<Digit> all;
    for (const int64_t size : sizes) {
      if (size < 1 || size > devices / count) refuse("the devices must be as many as the tiles", text_);
      all.push_back({count, size});
      count *= size;
    }
    if (sorted != dims) refuse("the order of dims must be a permutation of them", text_);
    if (count != devices) refuse("the devices must be as many as the tiles", text_);
    std::vector<Digit> digits;
    for (const int64_t dim : order) digits.push_back(all[static_cast<size_t>(dim)]);
    return digits;
  }

  // The digits whose transposition gives a list: 0,2,1,3 is (2)2, (1)2.
  std::vector<Digit> listed_digits(int64_t devices) {
    Dims list = numbers();
    if (static_cast<int64_t>(list.size()) != devices) refuse("the devices must be as many as the tiles", text_);
    for (const int64_t device : list) {
      if (device >= devices) refuse_list();
    }
    std::vector<Digit> digits;
    // 0,2,1,3: the runs 0,2 and 1,3 of stride 2 are the digit (1)2; their heads 0,1 have stride 1, the digit (2)2.
    while (list.size() > 1) {
      const int64_t stride = list[1] - list[0];
      size_t run = 2;
      while (run < list.size() && list[run] - list[run - 1] == stride) ++run;
      while (list.size() % run != 0) --run;
      const auto size = static_cast<int64_t>(run);
      if (stride < 1 || run < 2 || devices % (stride * size) != 0) refuse_list();
      Dims heads;
      for (size_t i = 0; i < list.size(); i += run) {
        heads.push_back(list[i]);
        for (size_t k = 1; k < run; ++k) {
          if (list[i + k] != list[i] + static_cast<int64_t>(k) * stride) refuse_list();
        }
      }
      digits.insert(digits.begin(), Digit{devices / (stride * size), size});
      list = std::move(heads);
    }
    if (list[0] != 0) refuse_list();
    return digits;
  }
  [[noreturn]] void refuse_list() { refuse("the listed devices must be a transposed grid of 0, 1, 2, …", text_); }

  void read_flags(Tiling& tiling) {
    while (take(" ")) {
      if (take("last_tile_dim_replicate")) {
        tiling.trailing = {false};
      } else if (take("last_tile_dims={")) {
        do {
          take(" ");
          const bool is_manual = take("manual");
          if (!is_manual && !take("replicated")) refuse("the last tile dims must be replicated or manual", text_);
          tiling.trailing.push_back(is_manual);
        } while (take(","));
        expect("}");
      } else {
        refuse("a tiling must be followed by last_tile_dim_replicate, last_tile_dims or nothing", text_);
      }
    }
  }

  std::vector<Digit> take_digits(std::vector<Digit>& digits, int64_t size) {
    std::vector<Digit> found;
    while (size > 1) {
      // Tiles [4,2] over <=[2,4]: dim 0 takes the digit of 2 and the major half of the digit of 4, dim 1 the rest.
      std::erase_if(digits, [](const Digit& digit) { return digit.size == 1; });
      if (digits.empty()) refuse("the devices must be as many as the tiles", text_);
      Digit& first = digits.front();
      const int64_t part = std::gcd(size, first.size);
      // One size must divide the other: a tile of 6 over a digit of 4 is no list of sub-axes.
      const bool aligned = part > 1 && (part == size || part == first.size);
      if (!aligned) refuse("the tiles must be products of dims of the devices", text_);
      found.push_back({first.pre, part});
      first = {first.pre * part, first.size / part};
      size /= part;
    }
    return found;
  }

  std::string_view text_, rest_;
};

}  // namespace

std::vector<std::string_view> gspmd_elements(std::string_view sharding) {
  if (!sharding.starts_with("{{")) return {sharding};
  std::vector<std::string_view> found;
  // Depth 0 is inside the outer braces. The braces of last_tile_dims={…} are inside an element and end none.
  int depth = 0;
  size_t start = 0;
  for (size_t i = 1; i + 1 < sharding.size(); ++i) {
    if (sharding[i] == '{' && depth++ == 0) start = i;
    if (sharding[i] == '}' && --depth == 0) found.push_back(sharding.substr(start, i + 1 - start));
  }
  return found;
}

Dims gspmd_open_dims(const std::string* config) {
  Dims dims;
  const size_t start = config == nullptr ? std::string::npos : config->find("unspecified_dims=[");
  bool continues = false;
  for (size_t i = start; i < (config == nullptr ? 0 : config->size()) && (*config)[i] != ']'; ++i) {
    const char c = (*config)[i];
    // Bounded, because the digits come from the text and a large dim is ignored anyway.
    if (is_digit(c) && !continues) dims.push_back(0);
    if (is_digit(c)) dims.back() = std::min<int64_t>(10 * dims.back() + (c - '0'), 1000);
    continues = is_digit(c);
  }
  return dims;
}

GspmdShardings::GspmdShardings(std::string_view program) {
  // Every digit begins and ends at a cut. [4,2]<=[8] has the cuts 1, 4 and 8: axes of 4 and 2.
  std::set<int64_t> cuts{1};
  const std::string_view word = text_words::kGspmdSharding;
  for (size_t at = program.find(word); at != program.npos; at = program.find(word, at + 1)) {
    const size_t open = program.find('"', at), close = open == program.npos ? open : program.find('"', open + 1);
    if (close == program.npos) break;
    for (const std::string_view each : gspmd_elements(program.substr(open + 1, close - open - 1))) {
      try {
        const Tiling tiling = TilingReader(each).read();
        devices_ = std::max(devices_, tiling.devices);
        cuts.insert(tiling.devices);
        for (const std::vector<Digit>& digits : tiling.tiles) {
          for (const Digit& digit : digits) cuts.insert({digit.pre, digit.pre * digit.size});
        }
      } catch (const ShardingError&) {
        continue;  // its line is known when it is read
      }
    }
  }
  std::vector<int64_t> ends(cuts.begin(), cuts.end());
  for (size_t i = 1; i < ends.size(); ++i) {
    // No axes refine the cuts 1, 2, 3 and 6. One axis of all devices has each digit as a sub-axis.
    if (ends[i] % ends[i - 1] != 0) ends = {1, devices_};
  }
  for (size_t i = 1; i < ends.size(); ++i) {
    axes_.push_back({str("_axis_", i - 1), ends[i] / ends[i - 1]});
  }
}

MeshPtr GspmdShardings::mesh(Module& module) {
  if (!mesh_) {
    // "mesh" is JAX's name for a mesh, unless the program declares one of that name.
    const std::string name = module.find_mesh("mesh") == nullptr ? "mesh" : "gspmd_mesh";
    mesh_ = module.declare_mesh(std::make_shared<const Mesh>(name, axes_));
  }
  return mesh_;
}

// A digit is an axis, several axes, or a sub-axis: on one axis of 6, the digit of 3 after 2 is "_axis_0":(2)3.
void GspmdShardings::append_axes(AxisList& axes, int64_t first, int64_t size) const {
  int64_t pre = 1;
  for (size_t axis = 0; axis < axes_.size(); ++axis) {
    const int64_t begin = std::max(pre, first), end = std::min(pre * axes_[axis].size, first * size);
    if (begin < end) append_merged(axes, AxisRef{static_cast<int32_t>(axis), begin / pre, end / begin});
    pre *= axes_[axis].size;
  }
}

std::vector<RawAxisRef> GspmdShardings::manual_axes(std::string_view text, Module& module) {
  const Tiling tiling = TilingReader(text).read();
  const MeshPtr all = mesh(module);
  std::vector<RawAxisRef> names;
  if (tiling.kind == Tiling::Kind::kManual) {
    for (const MeshAxis& axis : axes_) names.push_back({.name = axis.name, .sub = {}});
    return names;
  }
  AxisList axes;
  const size_t tiled = tiling.tiles.size() - tiling.trailing.size();
  for (size_t i = 0; i < tiling.trailing.size(); ++i) {
    if (!tiling.trailing[i]) continue;
    for (const Digit& digit : tiling.tiles[tiled + i]) append_axes(axes, digit.pre, digit.size);
  }
  for (const AxisRef& axis : axes) {
    if (axis.size != all->axis_size(axis.axis)) refuse("a manual axis must be a whole axis", text);
    names.push_back({.name = std::string(all->axis_name(axis.axis)), .sub = {}});
  }
  if (names.empty()) refuse("the calls around a manual region must have manual axes", text);
  return names;
}

TensorSharding GspmdShardings::read(std::string_view text, int64_t ndim, const Dims& open, Module& module,
                                    bool in_manual_region) {
  const Tiling tiling = TilingReader(text).read();
  const bool has_manual =
      tiling.kind == Tiling::Kind::kManual || std::ranges::find(tiling.trailing, true) != tiling.trailing.end();
  if (has_manual && !in_manual_region) {
    // JAX prints a shard_map without Shardy as custom calls around its ops. Shardings of ops have no meaning there.
    refuse("a manual sharding must be that of a call of @Sharding in a manual region", text);
  }
  if (tiling.kind == Tiling::Kind::kMaximal) {
    const std::string name = str("maximal_mesh_", tiling.device);
    // Shardy's form of "on one device" is a mesh without axes and with one device id.
    MeshPtr mesh = module.find_mesh(name);
    if (mesh == nullptr) {
      mesh = module.declare_mesh(std::make_shared<const Mesh>(name, std::vector<MeshAxis>{}, Dims{tiling.device}));
    }
    return {.mesh = mesh, .dims = {}, .replicated = {}, .unreduced = {}};
  }
  // A value of a manual region has no sharding along its axes, and these may be all.
  if (tiling.kind == Tiling::Kind::kUnknown || tiling.kind == Tiling::Kind::kManual)
    return TensorSharding::open(mesh(module), ndim);
  TensorSharding sharding = TensorSharding::fully_replicated(mesh(module), ndim);
  for (const int64_t dim : open) {
    if (dim >= 0 && dim < ndim) sharding.dims[static_cast<size_t>(dim)].open = true;
  }
  if (tiling.kind == Tiling::Kind::kReplicated) return sharding;
  const size_t tiled = tiling.tiles.size() - tiling.trailing.size();
  if (tiled != static_cast<size_t>(ndim)) refuse(str("a sharding must have ", ndim, " tiled dims"), text);
  // A tiling over fewer devices leaves the rest undefined.
  if (tiling.devices != devices_) refuse(str("all shardings of a text must be over ", devices_, " devices"), text);
  for (size_t dim = 0; dim < tiled; ++dim) {
    for (const Digit& digit : tiling.tiles[dim]) append_axes(sharding.dims[dim].axes, digit.pre, digit.size);
  }
  return sharding;
}

}  // namespace shardwise
