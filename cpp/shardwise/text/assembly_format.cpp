// SPDX-License-Identifier: Apache-2.0
#include "shardwise/text/assembly_format.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/text_words.h"
#include "shardwise/text/custom_directive.h"

namespace shardwise {
namespace {

constexpr std::pair<std::string_view, FormatKind> kDirectives[] = {
    {"operands", FormatKind::kOperands},
    {"attr-dict", FormatKind::kAttrDict},
    {"same-type", FormatKind::kSameType},
    {"same-or-functional-type", FormatKind::kSameOrFunctionalType},
    {"functional-type", FormatKind::kFunctionalType},
    {"operand-type", FormatKind::kOperandType},
    {"result-type", FormatKind::kResultType},
    {"select-type", FormatKind::kSelectType},
    {"complex-type", FormatKind::kComplexType},
};

class FormatParser {
 public:
  FormatParser(std::string_view op_name, std::string_view format) : op_name_(op_name), format_(format) {}

  AssemblyFormat run() {
    while (skip_space(), pos_ < format_.size()) element();
    if (in_group_) fail("'(' must be closed by ')?'");
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    check_internal(false, str("format of ", op_name_, ": ", what, ", at '", format_.substr(pos_), "'"));
    // The compiler does not know that check_internal never returns here, and fail is [[noreturn]].
    std::abort();  // not reached: check_internal throws
  }

  void skip_space() {
    while (pos_ < format_.size() && format_[pos_] == ' ') ++pos_;
  }
  bool take(std::string_view token) {
    if (format_.substr(pos_, token.size()) != token) return false;
    pos_ += token.size();
    return true;
  }
  std::string_view word() {
    const size_t start = pos_;
    auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; };
    while (pos_ < format_.size() && is_word(format_[pos_])) ++pos_;
    if (pos_ == start) fail("a word is missing");
    return format_.substr(start, pos_ - start);
  }
  // `($name)`, or nothing.
  // `custom<axes>($reduction_axes)` names the attribute that the directive prints.
  std::string_view argument() {
    if (!take("(")) return {};
    if (!take("$")) fail("an argument must be an attribute");
    const std::string_view name = word();
    if (!take(")")) fail("an argument must end with ')'");
    return name;
  }

  void element() {
    if (take("`")) {
      const size_t end = format_.find('`', pos_);
      if (end == std::string_view::npos) fail("a literal must end with '`'");
      add({.kind = FormatKind::kLiteral, .text = format_.substr(pos_, end - pos_)});
      pos_ = end + 1;
    } else if (take("(")) {
      // One level is all that StableHLO's forms need, and a group is then a count of elements.
      if (in_group_) fail("groups do not nest");
      in_group_ = true;
      group_ = result_.elements.size();
      add({.kind = FormatKind::kGroup});
    } else if (take(")?")) {
      end_group();
    } else if (take("$")) {
      attribute();
    } else {
      directive(word());
    }
  }

  void end_group() {
    if (!in_group_) fail("')?' must close a '('");
    FormatElement& group = result_.elements[group_];
    group.count = result_.elements.size() - group_ - 1;
    // As in MLIR, the attribute with '^' decides when printing: ( `,` $compare_type^ )? is
    // printed when compare_type is there.
    if (group.text.empty()) fail("a group must mark an attribute with '^'");
    // The parser decides by the literals at the start whether the group is there.
    if (result_.elements[group_ + 1].kind != FormatKind::kLiteral) fail("a group must start with a literal");
    in_group_ = false;
  }

  void attribute() {
    FormatElement element{.kind = FormatKind::kAttribute, .text = word()};
    // compare_type is #stablehlo<comparison_type FLOAT>: its mnemonic is not its name.
    element.mnemonic = take(":") ? word() : element.text;
    add(element);
    result_.attributes.push_back(element.text);
    mark(element.text);
  }

  void mark(std::string_view attribute_name) {
    if (!take("^")) return;
    if (!in_group_) fail("'^' must be inside a group");
    result_.elements[group_].text = attribute_name;
  }

  void directive(std::string_view name) {
    if (name == "operand") {
      if (!take("(")) fail("operand must have an index");
      const std::string index(word());
      if (!take(")")) fail("an index must end with ')'");
      if (!std::all_of(index.begin(), index.end(), ::isdigit) || index.size() > 3) fail("an index must be a number");
      add({.kind = FormatKind::kOperand, .count = std::stoul(index)});
    } else if (name == "sharding" || name == "optional-sharding") {
      const std::string_view attribute_name = argument();
      result_.sharding = attribute_name.empty() ? "sharding" : attribute_name;
      result_.sharding_optional = name == "optional-sharding";
      // Shown by the format, so attr-dict must not print it again.
      result_.attributes.push_back(result_.sharding);
      add({.kind = FormatKind::kSharding, .text = result_.sharding, .count = result_.sharding_optional ? 1U : 0U});
    } else if (name == "region-shardings") {
      columns(text_words::kInShardings, text_words::kOutShardings);
    } else if (name == "custom") {
      custom();
    } else {
      const auto* it = std::find_if(std::begin(kDirectives), std::end(kDirectives),
                                    [&](const auto& entry) { return entry.first == name; });
      if (it == std::end(kDirectives)) fail(str("unknown directive '", name, "'"));
      add({.kind = it->second});
    }
  }

  void custom() {
    if (!take("<")) fail("custom must be followed by <name>");
    const std::string_view name = word();
    if (!take(">")) fail("custom must be followed by <name>");
    const CustomDirective* directive = find_custom_directive(name);
    if (directive == nullptr) fail(str("unknown custom directive '", name, "'"));
    const std::string_view attribute_name = argument();
    // A directive with attributes of its own, as slice_ranges, takes no argument, and any other needs one. A directive
    // that is the whole text of an op may have either.
    if (attribute_name.empty() == directive->attributes.empty() && !directive->whole) {
      fail("the argument is missing or superfluous");
    }
    columns(directive->argument_shardings, directive->result_shardings);
    if (!attribute_name.empty()) result_.attributes.push_back(attribute_name);
    result_.attributes.insert(result_.attributes.end(), directive->attributes.begin(), directive->attributes.end());
    add({.kind = FormatKind::kCustom, .text = attribute_name, .custom = directive});
    mark(attribute_name);
  }

  void columns(std::string_view arguments, std::string_view results) {
    result_.argument_shardings = arguments;
    result_.result_shardings = results;
    for (const std::string_view column : {arguments, results}) {
      if (!column.empty()) result_.attributes.push_back(column);
    }
  }

  void add(const FormatElement& element) { result_.elements.push_back(element); }

  std::string_view op_name_, format_;
  size_t pos_ = 0;
  size_t group_ = 0;
  bool in_group_ = false;
  AssemblyFormat result_;
};

}  // namespace

bool AssemblyFormat::shows(std::string_view attribute) const {
  return std::find(attributes.begin(), attributes.end(), attribute) != attributes.end();
}

AssemblyFormat parse_format(std::string_view op_name, std::string_view format) {
  return FormatParser(op_name, format).run();
}

const AssemblyFormat& assembly_format(const OpDef& def) {
  // Texts are read and printed on several threads. The pointer keeps an entry in its place when the map grows.
  static std::mutex mutex;
  static std::unordered_map<const OpDef*, std::unique_ptr<AssemblyFormat>> formats;
  const std::lock_guard lock(mutex);
  std::unique_ptr<AssemblyFormat>& format = formats[&def];
  if (format == nullptr) format = std::make_unique<AssemblyFormat>(parse_format(def.name, def.format));
  return *format;
}

}  // namespace shardwise
