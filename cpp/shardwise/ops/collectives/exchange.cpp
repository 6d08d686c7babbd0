// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/collectives/exchange.h"

#include <algorithm>
#include <tuple>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/mesh/other_mesh.h"
#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {
namespace {

// Products of two of these fit in 64 bits.
constexpr int64_t kMost = int64_t{1} << 60;

const AttrArray& list_of(const Attribute& attribute, std::string_view op, std::string_view what) {
  const AttrArray* list = std::get_if<AttrArray>(&attribute.base());
  if (list == nullptr) fail<ShardingError>(op, str(what, " must be a list"));
  return *list;
}

// One dim of `to` or `from`.
class Fields {
 public:
  Fields(const Mesh& mesh, const Attribute& entry, std::string_view op, std::string_view place)
      : mesh_(mesh), op_(op), place_(place) {
    const AttrDict* dict = std::get_if<AttrDict>(&entry.base());
    if (dict == nullptr) fail<ShardingError>(op, str("a dim of '", place, "' must be a dictionary"));
    attrs_ = Attrs(dict->fields);
  }

  AxisList axes() const {
    if (attrs_.find("axes") == nullptr) return {};
    const AxesAttr* axes = attrs_.find<AxesAttr>("axes");
    if (axes == nullptr) fail<ShardingError>(op_, str("'axes' in '", place_, "' must be a list of axes"));
    return resolve(mesh_, axes->axes);
  }
  int64_t get(std::string_view name, int64_t missing) const {
    if (attrs_.find(name) == nullptr) return missing;
    const IntAttr* found = attrs_.find<IntAttr>(name);
    if (found == nullptr) fail<ShardingError>(op_, str("'", name, "' in '", place_, "' must be an integer"));
    return found->value;
  }

 private:
  const Mesh& mesh_;
  std::string_view op_, place_;
  Attrs attrs_;
};

// Saturates, so that the checks below see a number that is too large, not one that has wrapped around.
int64_t times(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::numeric_limits<int64_t>::max() : result;
}

// The defaults of exchange.h: a field is left out of the text where it follows from the others.
ExchangeTarget target_of(const Fields& fields) {
  ExchangeTarget to{.axes = fields.axes(), .rows = fields.get("rows", 0)};
  to.step = fields.get("step", to.rows);
  to.size = fields.get("size", times(to.rows, product(to.axes)));
  return to;
}

ExchangeSource source_of(const Fields& fields, int64_t block, int64_t end) {
  ExchangeSource from{.axes = fields.axes(), .block = block};
  from.size = fields.get("size", times(block, product(from.axes)));
  from.scale = fields.get("scale", 1);
  from.offset = fields.get("offset", 0);
  from.holes = fields.get("holes", 1);
  from.begin = fields.get("begin", 0);
  from.end = fields.get("end", end);
  return from;
}

// The map of an op that does not exist yet. `operands` are the local shapes.
ExchangeMap read_map(const Module& module, const Attrs& attrs, std::string_view op, std::span<const Dims> operands) {
  const MeshPtr mesh = named_mesh(module, attrs, "mesh", op);
  const MeshPtr from_mesh = attrs.find("from_mesh") == nullptr ? mesh : named_mesh(module, attrs, "from_mesh", op);
  const Attribute *to = attrs.find("to"), *from = attrs.find("from");
  if (to == nullptr || from == nullptr) fail<ShardingError>(op, "attributes 'to' and 'from' must say what is sent");
  ExchangeMap map;
  if (from_mesh != mesh) {
    // An exchange moves elements between devices of one program; two meshes may only order these in two ways.
    if (!are_over_same_devices(*mesh, *from_mesh)) {
      fail<MeshError>(
          op, "both meshes must be over the same devices",
          str(from_mesh->reference(), " ", from_mesh->text(), " and ", mesh->reference(), " ", mesh->text()));
    }
    map.to_mesh = mesh;
    map.from_mesh = from_mesh;
  }
  for (const Attribute& dim : list_of(*to, op, "'to'")) map.to.push_back(target_of(Fields(*mesh, dim, op, "to")));
  const AttrArray& lists = list_of(*from, op, "'from'");
  // There may be one operand more than lists, the fill.
  if (lists.size() > operands.size()) {
    fail<ShardingError>(op, "'from' must have a list for each operand", str(lists.size(), " for ", operands.size()));
  }
  for (size_t k = 0; k < lists.size(); ++k) {
    const AttrArray& dims = list_of(lists[k], op, "an operand in 'from'");
    const size_t ndim = operands[k].size();
    if (dims.size() != ndim || map.to.size() != ndim) {
      fail<ShardingError>(op, "'to' and 'from' must have one entry for each dim",
                          str(map.to.size(), " and ", dims.size(), " for ", ndim, " dims of operand ", k));
    }
    std::vector<ExchangeSource>& sources = map.from.emplace_back();
    for (size_t d = 0; d < ndim; ++d) {
      sources.push_back(source_of(Fields(*from_mesh, dims[d], op, "from"), operands[k][d], map.to[d].size));
    }
  }
  return map;
}

bool in_bounds(int64_t value, int64_t least) { return value >= least && value <= kMost; }

void check(const InferContext& op, const ExchangeTarget& to, size_t dim) {
  const int64_t tiles = product(to.axes);
  if (in_bounds(to.rows, 0) && in_bounds(to.step, 0) && in_bounds(to.size, 0) && in_bounds(times(to.step, tiles), 0)) {
    return;
  }
  op.fail_shape("rows, step and size of the result must be from 0 to 2^60",
                str("rows ", to.rows, ", step ", to.step, ", size ", to.size, " on dim ", dim));
}

void check(const InferContext& op, const ExchangeTarget& to, const ExchangeSource& from, size_t dim) {
  // The smallest int64 has no magnitude; 0 is refused below.
  const int64_t scale = from.scale > -kMost && from.scale <= kMost ? std::abs(from.scale) : 0;
  const bool is_bounded = from.offset > -kMost && from.offset < kMost &&
                          // The lower bound 1 also refuses a scale of 0, which would read
                          // one row for all rows of the result.
                          in_bounds(from.holes, 1) && in_bounds(times(scale, std::max(to.size, from.holes)), 1) &&
                          in_bounds(times(from.holes, std::max<int64_t>(from.size, 1)), 1);
  if (!is_bounded) {
    op.fail_shape("scale must not be 0, holes must be at least 1, and all products with sizes at most 2^60",
                  str("scale ", from.scale, ", offset ", from.offset, ", holes ", from.holes, " on dim ", dim));
  }
  // The last shard may be padded, so the size may be smaller than what the shards hold.
  if (!in_bounds(from.size, 0) || from.size > times(from.block, product(from.axes))) {
    op.fail_shape("the shards of an operand must cover its size",
                  str(product(from.axes), " shards of ", from.block, " for ", from.size, " on dim ", dim));
  }
}

// An axis in two dims would leave only the diagonal tiles.
void check_disjoint(const InferContext& op, const std::vector<const AxisList*>& dims, std::string_view place) {
  AxisList seen;
  for (const AxisList* axes : dims) {
    for (const AxisRef& axis : *axes) {
      if (overlaps(seen, axis)) {
        fail<ShardingError>(op.name(), str("the axes of all dims in '", place, "' must be disjoint"),
                            str("axis ", axis.axis, " twice"));
      }
      seen.push_back(axis);
    }
  }
}

// Boxes are disjoint if they are so along any one dim.
bool are_apart(const std::vector<ExchangeSource>& a, const std::vector<ExchangeSource>& b) {
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d].end <= b[d].begin || b[d].end <= a[d].begin) return true;
  }
  return false;
}

// An exchange is pure movement: nothing tells which of two elements to keep. Sorted along a dim, the boxes fall into
// groups that do not touch, so that only boxes of one group are compared. Parts of a grid end up alone.
void check_apart(const InferContext& op, const ExchangeMap& map, std::vector<size_t> operands, size_t dim = 0,
                 size_t unsplit = 0) {
  const size_t ndim = map.to.size();
  if (operands.size() < 2) return;
  if (unsplit == ndim) {
    for (size_t i = 1; i < operands.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (are_apart(map.from[operands[i]], map.from[operands[j]])) continue;
        const auto [first, second] = std::minmax(operands[i], operands[j]);
        op.fail_shape("no element of the result may come from two operands",
                      str("operands ", first, " and ", second, ", which overlap"), "give them 'begin' and 'end'");
      }
    }
    return;
  }
  const auto source = [&](size_t k) -> const ExchangeSource& { return map.from[k][dim]; };
  std::ranges::sort(operands, {}, [&](size_t k) { return std::tuple(source(k).begin, source(k).end, k); });
  std::vector<std::vector<size_t>> groups;
  int64_t end = 0;
  for (const size_t k : operands) {
    if (groups.empty() || source(k).begin >= end) {
      groups.emplace_back();
      end = source(k).end;
    }
    end = std::max(end, source(k).end);
    groups.back().push_back(k);
  }
  const size_t left = groups.size() == 1 ? unsplit + 1 : 0;
  for (std::vector<size_t>& group : groups) check_apart(op, map, std::move(group), (dim + 1) % ndim, left);
}

void check(const InferContext& op, const ExchangeMap& map) {
  std::vector<const AxisList*> axes;
  for (size_t d = 0; d < map.to.size(); ++d) {
    check(op, map.to[d], d);
    axes.push_back(&map.to[d].axes);
  }
  check_disjoint(op, axes, "to");
  std::vector<size_t> operands;
  for (size_t k = 0; k < map.from.size(); ++k) {
    axes.clear();
    for (size_t d = 0; d < map.to.size(); ++d) {
      check(op, map.to[d], map.from[k][d], d);
      axes.push_back(&map.from[k][d].axes);
    }
    check_disjoint(op, axes, "from");
    operands.push_back(k);
  }
  check_apart(op, map, std::move(operands));
}

}  // namespace

MeshPtr named_mesh(const Module& module, const Attrs& attrs, std::string_view name, std::string_view op) {
  const Symbol* symbol = attrs.find<Symbol>(name);
  if (symbol == nullptr) {
    fail<MeshError>(op, str("attribute '", name, "' must name a mesh"),
                    attrs.find(name) == nullptr ? "none" : "another attribute");
  }
  MeshPtr mesh = module.find_mesh(symbol->name);
  if (mesh == nullptr) fail<MeshError>(op, "the mesh must be declared in the module", "@" + symbol->name);
  return mesh;
}

void infer_exchange(const InferContext& op, std::vector<TypeId>& results) {
  // On global values, before `localize`: nothing moves yet.
  if (op.attrs().find("mesh") == nullptr) {
    op.expect_operands(1);
    results.push_back(op.operand_type(0));
    return;
  }
  std::vector<Dims> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(op.operand(i).shape);
  const ExchangeMap map = read_map(op.module(), op.attrs(), op.name(), operands);
  if (map.from.empty()) op.fail_shape("takes at least one operand", op.operand_types_text());
  const size_t moved = map.from.size();
  expect_shape(op, op.operand_count() == moved || (op.operand_count() == moved + 1 && op.operand(moved).ndim() == 0),
               "takes one operand for each list in 'from', and a scalar for what none of them has");
  for (size_t i = 1; i < op.operand_count(); ++i) {
    expect_dtype(op, op.operand(i).dtype == op.operand(0).dtype, "operands must have the same dtype");
  }
  check(op, map);
  Dims shape;
  for (const ExchangeTarget& to : map.to) shape.push_back(to.rows);
  results.push_back(op.context().tensor(op.operand(0).dtype, shape));
}

ExchangeMap exchange_map(const OpView& op) {
  std::vector<Dims> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(op.operand_type(i).shape);
  return read_map(op.module(), op.attrs(), op.name(), operands);
}

bool has_fill(const OpView& op) {
  // The fill has no list in 'from'.
  return op.operand_count() > std::get<AttrArray>(op.attrs().find("from")->base()).size();
}

}  // namespace shardwise
