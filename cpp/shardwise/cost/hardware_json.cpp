// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/hardware_json.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/cost/embedded_hardware.h"
#include "shardwise/cost/price.h"
#include "shardwise/mesh/mesh.h"
#include "shardwise/mesh/read_json.h"

namespace shardwise {
namespace {

constexpr std::string_view kFormat = "shardwise.hardware";
constexpr int64_t kVersion = 1;
// A slice is found by trying shapes (torus_slice.h).
constexpr int64_t kMostTorusUnits = int64_t{1} << 20;
constexpr size_t kMostTorusDims = 4;

const EmbeddedHardware* embedded(std::string_view name) {
  for (const EmbeddedHardware& file : embedded_hardware()) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

// The document with what its base has and it leaves out.
JsonNode with_base(const JsonNode& document) {
  if (!document.has("base")) return document;
  const JsonNode base = document.at("base");
  const EmbeddedHardware* file = embedded(base.string());
  if (!file) {
    base.fail_form("must be the name of a built-in file", quote(base.string()), "see sw.hardware.list() for the names");
  }
  // A number of this file has its own source, not that of the number that it replaces.
  const JsonNode whole = with_base(JsonNode::parse(file->json, std::string(file->name), false));
  return document.without("base").merged_onto(whole, {"value", "points"});
}

// What reports print.
std::string name_in(const JsonNode& node) {
  const JsonNode name = node.at("name");
  std::string text = name.string();
  if (text.empty()) name.fail_form("must not be empty");
  return text;
}

// Reads single values, and their sources.
class ValueReader {
 public:
  explicit ValueReader(const JsonNode& document) {
    if (!document.has("sources")) return;
    for (const auto& [key, source] : document.at("sources").members()) {
      source.expect_object({"title", "url", "license"});
      for (const char* text : {"title", "license"}) static_cast<void>(source.at(text).string());
      if (source.has("url")) static_cast<void>(source.at("url").string());
      sources_.insert(key);
    }
  }

  // A value is written alone, or with its source: {"value": 3.35e12, "source": "vendor", "note": "…"}.
  JsonNode value_of(const JsonNode& node) const {
    if (!node.is_object()) return node;
    node.expect_object({"value", "source", "note"});
    if (node.has("note")) static_cast<void>(node.at("note").string());
    if (node.has("source")) expect_source(node.at("source"));
    return node.at("value");
  }
  // Of flops or bytes in a second.
  int64_t rate(const JsonNode& node) const {
    return whole(node, at_least(node, 1, "must be at least 1 per second"), "must be below 2^62 per second");
  }
  int64_t byte_count(const JsonNode& node) const {
    return whole(node, at_least(node, 0, "must be a number of bytes of at least 0"), "must be below 2^62 bytes");
  }
  // As picoseconds. Less than one of them would be read as nothing.
  int64_t seconds(const JsonNode& node) const {
    const double seconds = at_least(node, 0, "must be a number of seconds of at least 0");
    if (seconds > 0 && seconds < 1e-12) value_of(node).fail_form("must be 0 or at least 1e-12", float_text(seconds));
    return whole(node, seconds * 1e12, "must be below 4.6e6 seconds");
  }
  // A factor or a relative error.
  void factor(const JsonNode& node) const { static_cast<void>(at_least(node, 0, "must be a number of at least 0")); }
  bool flag(const JsonNode& node) const { return value_of(node).boolean(); }

  int64_t unit_count(const JsonNode& node) const {
    const JsonNode value = value_of(node);
    const int64_t count = value.integer();
    if (count < 1) value.fail_form("must be a number of units of at least 1", str(count));
    if (count >= kSaturated) value.fail_form("must be a number of units below 2^62", str(count));
    return count;
  }

  Efficiency efficiency(const JsonNode& node) const {
    node.expect_object({"interpolation", "points", "source", "note"});
    if (node.has("source")) expect_source(node.at("source"));
    if (node.has("note")) static_cast<void>(node.at("note").string());
    Efficiency table;
    if (node.has("interpolation")) {
      const std::string kind = node.at("interpolation").string();
      if (kind != "step" && kind != "linear") node.at("interpolation").fail_form("must be step or linear", quote(kind));
      table.is_linear = kind == "linear";
    }
    for (const JsonNode& point : node.at("points").items()) add_point(point, table);
    if (table.points.empty()) node.at("points").fail_form("must have a point at least");
    return table;
  }

 private:
  void expect_source(const JsonNode& source) const {
    if (!sources_.contains(source.string())) source.fail_form("must be a key of sources", quote(source.string()));
  }

  double at_least(const JsonNode& node, double least, std::string_view must_hold) const {
    const JsonNode value = value_of(node);
    const double number = value.number();
    if (!(number >= least)) value.fail_form(must_hold, float_text(number));
    return number;
  }
  // A larger number would be taken for the largest quantity.
  int64_t whole(const JsonNode& node, double quantity, std::string_view must_hold) const {
    const int64_t rounded = whole_quantity(std::round(quantity));
    if (rounded >= kSaturated) value_of(node).fail_form(must_hold, float_text(value_of(node).number()));
    return rounded;
  }
  void add_point(const JsonNode& node, Efficiency& table) const {
    const std::vector<JsonNode> pair = node.items();
    if (pair.size() != 2) node.fail_form("must be [size, share]", str(pair.size(), " elements"));
    const double share = pair[1].number();
    if (!(share > 0 && share <= 1)) pair[1].fail_form("must be a share above 0 and at most 1", float_text(share));
    const Efficiency::Point point{byte_count(pair[0]),
                                  std::max<int64_t>(1, whole_quantity(std::round(share * Efficiency::kOne)))};
    if (!table.points.empty()) {
      const Efficiency::Point& last = table.points.back();
      if (point.size <= last.size) pair[0].fail_form("must be larger than the size before it", str(point.size));
      // size / share is the time.
      if (table.is_linear &&
          widened(point.size) * widened(last.millionths) < widened(last.size) * widened(point.millionths)) {
        node.fail_form("must not take less time than the smaller size before it, which it does at this share",
                       float_text(share), "use interpolation step, or a smaller share");
      }
    }
    table.points.push_back(point);
  }

  std::set<std::string> sources_;
};

class TierReader {
 public:
  explicit TierReader(const ValueReader& values) : values_(values) {}

  Tier read(const JsonNode& node) const {
    node.expect_object({"name", "topology", "size", "shape", "wraparound", "bandwidth", "latency", "efficiency"});
    Tier tier;
    tier.name = name_in(node);
    tier.topology = topology(node.at("topology"));
    tier.bandwidth = values_.rate(node.at("bandwidth"));
    if (node.has("latency")) tier.latency_ps = values_.seconds(node.at("latency"));
    if (node.has("efficiency")) tier.efficiency = values_.efficiency(node.at("efficiency"));
    if (tier.topology == Topology::kTorus) {
      read_torus(node, tier);
      return tier;
    }
    for (const char* key : {"shape", "wraparound"}) {
      if (node.has(key)) node.fail_form(str("must have \"", key, "\" only if its topology is torus"));
    }
    if (node.has("size") || tier.topology == Topology::kRing) tier.size = values_.unit_count(node.at("size"));
    return tier;
  }

  static Topology topology(const JsonNode& node) {
    const std::string text = node.string();
    for (const Topology topology : {Topology::kSwitch, Topology::kFatTree, Topology::kRing, Topology::kTorus}) {
      if (text == name(topology)) return topology;
    }
    node.fail_form("must be switch, fat_tree, ring or torus", quote(text));
  }

  void read_torus(const JsonNode& node, Tier& tier) const {
    if (node.has("size")) node.fail_form("must have no \"size\" as a torus: the product of its shape is the size");
    const JsonNode shape = values_.value_of(node.at("shape"));
    tier.size = 1;
    for (const JsonNode& dim : shape.items()) {
      tier.shape.push_back(values_.unit_count(dim));
      tier.size = saturated_product(tier.size, tier.shape.back());
    }
    if (tier.shape.empty() || tier.shape.size() > kMostTorusDims || tier.size > kMostTorusUnits) {
      shape.fail_form(str("must have 1 to ", kMostTorusDims, " dims with a product of at most ", kMostTorusUnits),
                      str(tier.shape));
    }
    if (node.has("wraparound")) read_wraparound(value_of_wraparound(node.at("wraparound")), tier);
  }

  // An object may be the rule itself: {"multiple_of": 4}.
  JsonNode value_of_wraparound(const JsonNode& node) const { return node.has("value") ? values_.value_of(node) : node; }

  void read_wraparound(const JsonNode& node, Tier& tier) const {
    if (node.is_object()) {
      node.expect_object({"multiple_of", "length", "every_dim"});
      if (node.has("multiple_of") == node.has("length")) node.fail_form("must have one of multiple_of and length");
      const bool is_length = node.has("length");
      const JsonNode length = node.at(is_length ? "length" : "multiple_of");
      (is_length ? tier.wrap_length : tier.wrap_multiple) = values_.unit_count(length);
      if (length.integer() > std::ranges::max(tier.shape)) {
        length.fail_form("must be at most the largest dim of shape", str(length.integer()));
      }
      tier.wraps_only_all = node.has("every_dim") && node.at("every_dim").boolean();
      return;
    }
    const std::string rule = node.string();
    if (rule != "always" && rule != "never") {
      node.fail_form("must be \"always\", \"never\", {\"multiple_of\": n} or {\"length\": n}", quote(rule));
    }
    tier.wrap_multiple = rule == "always" ? 1 : 0;
  }

  const ValueReader& values_;
};

class HardwareReader {
 public:
  explicit HardwareReader(JsonNode document) : document_(std::move(document)), values_(document_) {}

  Hardware read() {
    document_.expect_object({"format", "version", "name", "description", "base", "sources", "peak_flops", "default_dot",
                             "memory", "launch", "fused_attention", "efficiency", "tiers", "calibration"});
    Hardware hardware;
    hardware.name = name_in(document_);
    if (document_.has("description")) hardware.description = document_.at("description").string();
    read_peaks(hardware);
    read_memory(hardware);
    if (document_.has("launch")) hardware.launch_ps = values_.seconds(document_.at("launch"));
    if (document_.has("fused_attention")) hardware.fused_attention = values_.flag(document_.at("fused_attention"));
    read_efficiencies(hardware);
    read_tiers(hardware);
    if (document_.has("calibration")) check_calibration(document_.at("calibration"), hardware);
    hardware.json = document_.text();
    hardware.hash = std::hash<std::string>{}(hardware.json);
    return hardware;
  }

 private:
  void read_peaks(Hardware& hardware) const {
    const JsonNode peaks = document_.at("peak_flops");
    peaks.expect_object({"matrix", "vector", "transcendental"});
    for (int unit = 0; unit < kComputeUnitCount; ++unit) {
      const std::string key(name(static_cast<ComputeUnit>(unit)));
      if (static_cast<ComputeUnit>(unit) == ComputeUnit::kTranscendental && !peaks.has(key)) continue;
      read_rows(peaks.at(key), hardware.peaks[static_cast<size_t>(unit)]);
    }
    if (!document_.has("default_dot")) return;
    const JsonNode row = values_.value_of(document_.at("default_dot"));
    hardware.default_dot = row.string();
    if (!peaks.at("matrix").has(hardware.default_dot)) {
      row.fail_form("must be a key of peak_flops.matrix", quote(hardware.default_dot));
    }
  }

  void read_rows(const JsonNode& table, std::vector<PeakRow>& rows) const {
    bool has_dtype = false;
    for (const auto& [key, value] : table.members()) {
      const auto dtype = dtype_from_mlir(key);
      if ((!dtype || bit_width(*dtype) == 0 || is_complex(*dtype)) && key != "tf32") {
        table.fail_form("must have dtypes as keys, such as bf16, f32, i8, or tf32", quote(key));
      }
      has_dtype = has_dtype || dtype.has_value();
      rows.push_back({key, values_.rate(value)});
    }
    if (!has_dtype) table.fail_form("must have the peak of one dtype at least");
  }

  void read_memory(Hardware& hardware) const {
    const JsonNode memory = document_.at("memory");
    memory.expect_object({"bandwidth", "capacity", "reserved"});
    hardware.memory_bandwidth = values_.rate(memory.at("bandwidth"));
    hardware.memory_bytes = values_.byte_count(memory.at("capacity"));
    if (hardware.memory_bytes == 0) memory.at("capacity").fail_form("must be a number of bytes above 0", "0");
    if (!memory.has("reserved")) return;
    hardware.reserved_bytes = values_.byte_count(memory.at("reserved"));
    if (hardware.reserved_bytes > hardware.memory_bytes) {
      memory.at("reserved").fail_form("must be at most memory.capacity", std::to_string(hardware.reserved_bytes));
    }
  }

  void read_efficiencies(Hardware& hardware) const {
    if (!document_.has("efficiency")) return;
    const JsonNode tables = document_.at("efficiency");
    tables.expect_object({"matrix", "vector", "transcendental", "memory"});
    for (int unit = 0; unit < kComputeUnitCount; ++unit) {
      const std::string key(name(static_cast<ComputeUnit>(unit)));
      if (tables.has(key)) hardware.efficiency[static_cast<size_t>(unit)] = values_.efficiency(tables.at(key));
    }
    if (tables.has("memory")) hardware.memory_efficiency = values_.efficiency(tables.at("memory"));
  }

  void read_tiers(Hardware& hardware) const {
    const std::vector<JsonNode> tiers = document_.at("tiers").items();
    const TierReader reader(values_);
    if (tiers.empty()) document_.at("tiers").fail_form("must have a tier at least", {});
    for (size_t i = 0; i < tiers.size(); ++i) {
      hardware.tiers.push_back(reader.read(tiers[i]));
      const std::string& own = hardware.tiers[i].name;
      if (std::ranges::count(hardware.tiers, own, &Tier::name) > 1) {
        tiers[i].at("name").fail_form("must differ from the names of the tiers before it", quote(own));
      }
      if (hardware.tiers[i].size == Tier::kUnlimited && i + 1 < tiers.size()) {
        tiers[i].fail_form("must have \"size\", because a tier without size joins any number and is the last");
      }
    }
  }

  // Reports read it; no price depends on it.
  void check_calibration(const JsonNode& node, const Hardware& hardware) const {
    node.expect_object({"constants", "fitted_on", "steps", "mean_error", "max_error", "left_out_error"});
    const auto constants = node.at("constants").members();
    if (constants.empty()) node.at("constants").fail_form("must have the constant of a term at least");
    for (const auto& [term, constant] : constants) {
      if (!is_term(term, hardware)) {
        node.at("constants")
            .fail_form("must have matrix, attention, memory or \"tiers.\" with the name of a tier as keys",
                       quote(term));
      }
      values_.factor(constant);
    }
    if (node.at("fitted_on").string().empty()) node.at("fitted_on").fail_form("must not be empty");
    const int64_t steps = node.at("steps").integer();
    if (steps < 1) node.at("steps").fail_form("must be a number of steps of at least 1", str(steps));
    for (const char* error : {"mean_error", "max_error", "left_out_error"}) values_.factor(node.at(error));
  }

  static bool is_term(std::string_view term, const Hardware& hardware) {
    constexpr std::string_view kOfTier = "tiers.";
    if (!term.starts_with(kOfTier)) return term == "matrix" || term == "attention" || term == "memory";
    return std::ranges::count(hardware.tiers, term.substr(kOfTier.size()), &Tier::name) > 0;
  }

  const JsonNode document_;
  const ValueReader values_;
};

void expect_format(const JsonNode& document) {
  document.expect_object();
  const JsonNode format = document.at("format");
  if (format.string() != kFormat) format.fail_form(str("must be ", kFormat), quote(format.string()));
  const JsonNode version = document.at("version");
  if (version.integer() < 1 || version.integer() > kVersion) {
    version.fail_form(str("must be from 1 to ", kVersion), str(version.integer()),
                      version.integer() > kVersion ? "use a newer shardwise" : "");
  }
  // Not from the base: two kinds of hardware of one name could not be told apart in a report.
  static_cast<void>(name_in(document));
}

}  // namespace

HardwarePtr hardware_from_json(std::string_view json, std::string_view file, bool has_places) {
  if (json.size() > kMostHardwareBytes) {
    throw ParseError(error_message(file, str("must have at most ", kMostHardwareBytes >> 20, " MiB"), {}, {}));
  }
  const JsonNode document = JsonNode::parse(json, std::string(file), has_places);
  expect_format(document);
  return std::make_shared<const Hardware>(HardwareReader(with_base(document)).read());
}

HardwarePtr hardware_called(std::string_view text) {
  HardwarePtr hardware = text.starts_with("{") ? hardware_from_json(text, "hardware") : builtin_hardware(text);
  if (hardware != nullptr) return hardware;
  fail<ShardingError>("compile", str("hardware must be one of ", join(builtin_hardware_names(), ", "), ", or JSON"),
                      text);
}

HardwarePtr builtin_hardware(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, HardwarePtr, std::less<>> read;
  const std::scoped_lock lock(mutex);
  if (const auto found = read.find(name); found != read.end()) return found->second;
  const EmbeddedHardware* file = embedded(name);
  if (!file) return nullptr;
  return read.emplace(name, hardware_from_json(file->json, name)).first->second;
}

std::vector<std::string> builtin_hardware_names() {
  std::set<std::string> sorted;
  for (const EmbeddedHardware& file : embedded_hardware()) sorted.insert(std::string(file.name));
  sorted.erase("default");
  std::vector<std::string> names{"default"};
  names.insert(names.end(), sorted.begin(), sorted.end());
  return names;
}

const HardwarePtr& default_hardware() {
  static const HardwarePtr hardware = builtin_hardware("default");
  return hardware;
}

}  // namespace shardwise
