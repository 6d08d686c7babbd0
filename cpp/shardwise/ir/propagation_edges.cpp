// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/propagation_edges.h"

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/attribute_printer.h"
#include "shardwise/ir/text_words.h"
#include "shardwise/mesh/sharding_text.h"

namespace shardwise {
namespace {

struct Node {
  bool is_result = false;
  int64_t index = 0;
  friend bool operator==(const Node&, const Node&) = default;
  std::string text() const { return str(is_result ? "result-" : "operand-", index); }
};

struct Edge {
  RawAxisRef axis;
  Node source;
  std::vector<Node> targets;
};

struct Step {
  int64_t number = 0;
  std::vector<Edge> edges;
};

// At least one item: an empty list of steps, edges or targets records nothing.
template <class Item>
std::vector<Item> parse_list(SdyCursor& cursor, Item (*parse)(SdyCursor& cursor)) {
  std::vector<Item> items;
  cursor.expect("[", "before a list of propagation edges");
  do items.push_back(parse(cursor));
  while (cursor.take(","));
  cursor.expect("]", "after a list of propagation edges");
  return items;
}

Node parse_node(SdyCursor& cursor) {
  Node node;
  node.is_result = cursor.take("result-");
  if (!node.is_result) cursor.expect("operand-", "or 'result-' and a number");
  node.index = cursor.take_integer("the number of an operand or result");
  return node;
}

Edge parse_edge(SdyCursor& cursor) {
  Edge edge;
  cursor.expect("{", "before an axis");
  edge.axis = parse_axis(cursor);
  cursor.expect("=", "after an axis");
  edge.source = parse_node(cursor);
  cursor.expect("->", "after the source of an axis");
  edge.targets = parse_list(cursor, parse_node);
  cursor.expect("}", "after the targets of an axis");
  return edge;
}

Step parse_step(SdyCursor& cursor) {
  Step step;
  cursor.expect("{", "before a step");
  cursor.expect("step-", "and a number");
  step.number = cursor.take_integer("a step");
  cursor.expect("=", "after a step");
  step.edges = parse_list(cursor, parse_edge);
  cursor.expect("}", "after a step");
  return step;
}

[[noreturn]] void refuse(const OpView& op, std::string_view must_hold, std::string_view got) {
  fail<ShardingError>(op.name(), str("in its propagation edges ", must_hold), got);
}

void verify_step(const OpView& op, const Step& step) {
  if (step.number < 0) refuse(op, "a step must not be negative", std::to_string(step.number));
  for (const Edge& edge : step.edges) {
    for (size_t i = 0; i < edge.targets.size(); ++i) {
      const Node& target = edge.targets[i];
      if (target == edge.source) refuse(op, "a source must not be a target", target.text());
      const auto before = std::span(edge.targets).first(i);
      if (std::ranges::find(before, target) != before.end()) refuse(op, "a target must be named once", target.text());
    }
  }
}

// An edge names axes without a mesh, so the shardings around it must agree on one.
MeshPtr common_mesh(const OpView& op) {
  MeshPtr common;
  const auto see = [&](ValueId value) {
    const ShardingId id = op.module().value(value).sharding;
    if (!id) return;
    const MeshPtr& mesh = op.module().context().sharding(id).mesh;
    if (common != nullptr && !equal(common, mesh)) {
      refuse(op, "the shardings must be of one mesh", str(common->reference(), " and ", mesh->reference()));
    }
    common = mesh;
  };
  for (ValueId operand : op.operands()) see(operand);
  for (size_t i = 0; i < op.result_count(); ++i) see(op.result(i));
  if (common == nullptr) refuse(op, "an operand or a result must have a sharding", "none");
  return common;
}

void verify_node(const OpView& op, const Node& node) {
  const size_t count = node.is_result ? op.result_count() : op.operand_count();
  if (node.index >= 0 && node.index < static_cast<int64_t>(count)) return;
  refuse(op, str("there are ", count, node.is_result ? " results" : " operands", ", counted from 0"), node.text());
}

}  // namespace

void verify_propagation_edges(const OpView& op, const Attribute& value) {
  const auto* edges = std::get_if<StructAttr>(&value.base());
  // The attribute parser keeps the body as text because it is not a list of fields.
  const std::string* body =
      edges == nullptr || edges->name != text_words::kPropagationEdges || edges->fields.size() != 1
          ? nullptr
          : std::get_if<std::string>(&edges->fields[0].second.base());
  if (body == nullptr) {
    fail<ShardingError>(op.name(), "its propagation edges must be #sdy.propagation_edges<[…]>", attribute_text(value));
  }
  std::vector<Step> steps;
  try {
    SdyCursor cursor(*body);
    steps = parse_list(cursor, parse_step);
    cursor.expect_end();
  } catch (const ParseError& error) {
    // The error's line and column refer to the attribute's text; the caller adds those of the op.
    fail<ShardingError>(op.name(), "its propagation edges must be #sdy.propagation_edges<[…]>", error.message());
  }
  std::set<int64_t> numbers;
  for (const Step& step : steps) {
    verify_step(op, step);
    // Steps need not be in order, but each has one entry.
    if (!numbers.insert(step.number).second) {
      refuse(op, "a step must be given once", str("step-", step.number, " again"));
    }
  }
  const MeshPtr mesh = common_mesh(op);
  for (const Step& step : steps) {
    for (const Edge& edge : step.edges) {
      if (!mesh->find_axis(edge.axis.name)) {
        refuse(op, str("an axis must be of mesh ", mesh->reference()), quote(edge.axis.name));
      }
      verify_node(op, edge.source);
      for (const Node& target : edge.targets) verify_node(op, target);
    }
  }
}

}  // namespace shardwise
