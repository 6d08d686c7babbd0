// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/region_writer.h"

#include "shardwise/ir/value_names.h"

namespace shardwise {

void RegionWriter::enter_function(const Function& source, const Function& made) {
  builder_ = Builder(builder_.module(), made.body);
  values_.enter_function(source.body);
  const bool is_main = &source == &source_.main();
  for (const ValueId argument : source_.region(source.body).arguments) {
    const Value& known = source_.value(argument);
    const PlacementId home = is_main ? placements_.of(known.sharding, known.type) : placements_.declared(argument);
    values_.add(argument, copied_argument(argument), home,
                {.kind = Cause::kMainArgument, .detail = argument_text(source_, argument)});
  }
}

ValueId RegionWriter::copied_argument(ValueId source) {
  Module& target = builder_.module();
  const Value& known = source_.value(source);
  const ValueId made = target.add_argument(builder_.region(), known.type, known.loc);
  target.value(made).origin = known.origin;
  return made;
}

void RegionWriter::leave_function(const Function& source, Function& made) {
  const std::vector<ValueId>& results = source_.region(source.body).results;
  const std::string_view owner = &source == &source_.main() ? std::string_view() : source.name;
  // The shardings that are written down are those that the results now have, closed and without priorities.
  made.result_shardings.clear();
  for (size_t i = 0; i < results.size(); ++i) {
    const OpId op = source_.value(results[i]).op;
    builder_.set_loc(op ? source_.op(op).loc : source_.value(results[i]).loc, source_.op(op).origin);
    const PlacementId placement = placements_.result(source, i);
    add_result(results[i], placement, {.kind = Cause::kResult, .of = owner, .index = i});
    made.result_shardings.push_back(placements_.sharding(placement));
  }
}

void RegionWriter::enter(RegionId source, std::span<const PlacementId> carries) {
  Module& target = builder_.module();
  // A copy of the builder remembers the region and the location to come back to.
  outside_.push_back(builder_);
  builder_ = Builder(target, target.add_region());
  values_.enter(source);
  const std::vector<ValueId>& arguments = source_.region(source).arguments;
  for (size_t i = 0; i < arguments.size(); ++i) values_.add(arguments[i], copied_argument(arguments[i]), carries[i]);
}

RegionId RegionWriter::leave(const OpView& op, RegionId source, std::span<const PlacementId> placements) {
  builder_.set_loc(op.loc(), source_.op(op.id()).origin);
  const std::vector<ValueId>& results = source_.region(source).results;
  for (size_t i = 0; i < results.size(); ++i) {
    add_result(results[i], placements[i], {.kind = Cause::kResultOfRegion, .of = op.name(), .index = i});
  }
  return close();
}

RegionId RegionWriter::leave_condition(const OpView& op, RegionId source) {
  builder_.set_loc(op.loc(), source_.op(op.id()).origin);
  const ValueId predicate = source_.region(source).results[0];
  // Whole, so that all devices leave the loop together: a collective in it waits for each of them.
  const PlacementId whole = placements_.replicated(source_.value(predicate).type);
  add_result(predicate, whole, {.kind = Cause::kCondition, .of = op.name()});
  return close();
}

void RegionWriter::add_result(ValueId result, PlacementId placement, const Cause& cause) {
  const ValueId made = values_.get(result, placement, cause);
  builder_.module().region(builder_.region()).results.push_back(made);
}

RegionId RegionWriter::close() {
  values_.leave();
  const RegionId made = builder_.region();
  builder_ = outside_.back();
  outside_.pop_back();
  return made;
}

}  // namespace shardwise
