// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/repeated_rows.h"

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shardwise/choice/memory/aligned_scans.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/partition/rebuilt_scan.h"

namespace shardwise {
namespace {

// The scans of a region, which are made anew while rows are saved and dropped.
class RowStacks {
 public:
  explicit RowStacks(const RepeatedRows& rows) : rows_(rows) {
    for (size_t i = 0; i <= rows.here.at; ++i) {
      const OpId scan = rows.block.steps[i].op;
      if (row_course(rows.module, scan)) makers_.push_back(scan);
    }
  }

  // Scans in front of the peak, as they were.
  const std::vector<OpId>& makers() const { return makers_; }
  LoopParts parts_of(OpId scan) const { return loop_parts(OpView(rows_.module, now(scan))); }
  ValueId stack_of(uint32_t node) const { return stack_of_.at(node); }

  // The node of the rows of an input of a scan as it is now, if a scan makes them that had a node for them.
  std::optional<uint32_t> node_of(const LoopParts::Input& input) const {
    const OpId maker = rows_.module.value(input.stack).op;
    if (input.offset != 0 || input.border || !maker || !row_course(rows_.module, maker)) return std::nullopt;
    for (const LoopParts::Output& output : loop_parts(OpView(rows_.module, maker)).outputs) {
      const auto row = rows_.here.rows.find(output.row);
      if (output.stack == input.stack && row != rows_.here.rows.end()) return row->second;
    }
    return std::nullopt;
  }

  // Every row that is kept gets a stack. `nodes`: once each.
  void save(const std::vector<uint32_t>& nodes) {
    for (const OpId scan : makers_) {
      note_stacks(scan);
      std::vector<ValueId> values;
      std::vector<uint32_t> added;
      for (const uint32_t v : nodes) {
        const SavedNode& node = rows_.peak.nodes[v];
        if (node.kind != SavedKind::kRow || node.scan != scan || stack_of_.contains(v)) continue;
        values.push_back(node.value);
        added.push_back(v);
      }
      if (values.empty()) continue;
      const std::vector<ValueId> stacks = rebuild(scan, parts_of(scan).inputs, {}, values);
      note_stacks(scan);
      for (size_t i = 0; i < added.size(); ++i) stack_of_[added[i]] = stacks[i];
    }
  }

  std::vector<ValueId> rebuild(OpId scan, std::span<const LoopParts::Input> inputs, std::span<const ValueId> dropped,
                               std::span<const ValueId> added) {
    RebuiltScan made = rebuild_scan(rows_.module, rows_.rewrite, now(scan), inputs, dropped, added);
    rebuilt_[scan] = made.op;
    return std::move(made.stacks);
  }

  void drop_unread() {
    for (const OpId scan : makers_) {
      std::vector<ValueId> unread;
      for (const LoopParts::Output& output : parts_of(scan).outputs) {
        if (rows_.module.uses(output.stack).empty()) unread.push_back(output.stack);
      }
      if (!unread.empty()) rebuild(scan, parts_of(scan).inputs, unread, {});
    }
  }

 private:
  OpId now(OpId scan) const {
    const auto rebuilt = rebuilt_.find(scan);
    return rebuilt == rebuilt_.end() ? scan : rebuilt->second;
  }

  void note_stacks(OpId scan) {
    for (const LoopParts::Output& output : parts_of(scan).outputs) {
      const auto row = rows_.here.rows.find(output.row);
      if (row != rows_.here.rows.end()) stack_of_[row->second] = output.stack;
    }
  }

  const RepeatedRows& rows_;
  std::vector<OpId> makers_;
  std::unordered_map<OpId, OpId> rebuilt_;          // the last scan that took the place of one
  std::unordered_map<uint32_t, ValueId> stack_of_;  // by node of a row
};

// A scan that reads rows, and which of them it gets otherwise.
struct RowReader {
  OpId scan;
  std::vector<uint32_t> repeated = {};        // nodes that are copied in its body
  std::vector<uint32_t> read = {};            // nodes of rows that these copies read
  std::unordered_set<uint32_t> reached = {};  // all nodes that they need
};

RowReader row_reader(const RepeatedRows& rows, const RowStacks& stacks, OpId scan) {
  RowReader reader{.scan = scan};
  for (const LoopParts::Input& input : stacks.parts_of(scan).inputs) {
    const std::optional<uint32_t> node = stacks.node_of(input);
    if (node && rows.saved.is_repeated[*node]) reader.repeated.push_back(*node);
  }
  std::vector<uint32_t> open = reader.repeated;
  reader.reached.insert(open.begin(), open.end());
  while (!open.empty()) {
    const uint32_t v = open.back();
    open.pop_back();
    const SavedKind kind = rows.peak.nodes[v].kind;
    const bool is_kept = rows.saved.is_kept[v];
    if (kind == SavedKind::kRowOfStack || (kind == SavedKind::kRow && is_kept)) reader.read.push_back(v);
    if (kind == SavedKind::kRowOfStack || is_kept) continue;
    for (const uint32_t operand : rows.peak.values[v].operands) {
      if (reader.reached.insert(operand).second) open.push_back(operand);
    }
  }
  std::ranges::sort(reader.read);
  return reader;
}

class ReaderWriter {
 public:
  ReaderWriter(const RepeatedRows& rows, RowStacks& stacks, const RowReader& reader, LateCopies& outside)
      : rows_(rows),
        stacks_(stacks),
        reader_(reader),
        outside_(outside),
        body_(stacks.parts_of(reader.scan).body),
        inside_(rows.module, rows.rewrite, rows.rewrite.begin(body_),
                [this](ValueId value) { return rows_.module.value(value).op && is_of_makers(value); }) {}

  CopiedOps write(const std::unordered_set<ValueId>& repeated) {
    std::vector<std::pair<ValueId, uint32_t>> replaced;
    for (const LoopParts::Input& input : stacks_.parts_of(reader_.scan).inputs) {
      const std::optional<uint32_t> node = stacks_.node_of(input);
      const bool is_repeated = node && std::ranges::find(reader_.repeated, *node) != reader_.repeated.end();
      if (is_repeated) replaced.emplace_back(input.row, *node);
      if (!is_repeated) inputs_.push_back(input);
    }
    for (const uint32_t v : reader_.read) inside_.use(rows_.peak.nodes[v].value, row_of(v));
    // What is itself copied in front of the scan.
    for (const uint32_t v : reader_.reached) {
      const SavedNode& node = rows_.peak.nodes[v];
      const bool is_outside = node.kind == SavedKind::kStep && repeated.contains(node.value);
      if (is_outside) inside_.use(node.value, outside_(node.value));
    }
    use_other_names();
    for (const auto& [row, node] : replaced) rows_.rewrite.replace(row, inside_(rows_.peak.nodes[node].value));
    inside_.sink();
    stacks_.rebuild(reader_.scan, inputs_, {}, {});
    return inside_.ops();
  }

 private:
  bool is_of_makers(ValueId value) const {
    return std::ranges::any_of(
        stacks_.makers(), [&](OpId maker) { return is_inside(rows_.module, value, stacks_.parts_of(maker).body); });
  }

  // A row that one scan reads of another has two.
  void use_other_names() {
    for (const OpId maker : stacks_.makers()) {
      for (const LoopParts::Input& input : stacks_.parts_of(maker).inputs) {
        const auto node = rows_.here.rows.find(input.row);
        if (node == rows_.here.rows.end() || !reader_.reached.contains(node->second)) continue;
        const ValueId own = rows_.peak.nodes[node->second].value;
        if (own != input.row) inside_.use(input.row, inside_(own));
      }
    }
  }

  // The argument of the body for the rows of a node: one that it has, or a new one.
  ValueId row_of(uint32_t v) {
    const SavedNode& node = rows_.peak.nodes[v];
    LoopParts::Input wanted = node.input;
    if (node.kind == SavedKind::kRow) {
      wanted.stack = stacks_.stack_of(v);
    } else {
      wanted.stack = outside_(node.input.stack);
      if (node.input.border) wanted.border = outside_(node.input.border);
    }
    for (const LoopParts::Input& input : inputs_) {
      const bool is_same =
          input.stack == wanted.stack && input.offset == wanted.offset && input.border == wanted.border;
      if (is_same) return input.row;
    }
    wanted.row = add_row_argument(rows_.module, body_, node.value);
    inputs_.push_back(wanted);
    return wanted.row;
  }

  const RepeatedRows& rows_;
  RowStacks& stacks_;
  const RowReader& reader_;
  LateCopies& outside_;
  const RegionId body_;
  LateCopies inside_;
  std::vector<LoopParts::Input> inputs_;
};

}  // namespace

CopiedOps write_repeated_rows(const RepeatedRows& rows, const std::unordered_set<ValueId>& repeated,
                              LateCopies& outside) {
  RowStacks stacks(rows);
  std::vector<RowReader> readers;
  std::vector<uint32_t> read;
  for (size_t i = rows.here.at; i < rows.block.steps.size(); ++i) {
    if (!row_course(rows.module, rows.block.steps[i].op)) continue;
    RowReader reader = row_reader(rows, stacks, rows.block.steps[i].op);
    if (reader.repeated.empty()) continue;
    read.insert(read.end(), reader.read.begin(), reader.read.end());
    readers.push_back(std::move(reader));
  }
  CopiedOps made;
  if (readers.empty()) return made;
  std::ranges::sort(read);
  read.erase(std::unique(read.begin(), read.end()), read.end());
  stacks.save(read);
  for (const RowReader& reader : readers) {
    const CopiedOps copies = ReaderWriter(rows, stacks, reader, outside).write(repeated);
    made.insert(made.end(), copies.begin(), copies.end());
  }
  stacks.drop_unread();
  return made;
}

}  // namespace shardwise
