// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/regions_in_progress.h"

namespace shardwise {

void RegionsInProgress::enter_function(const Function& source, const Function& made) {
  builder_ = Builder(builder_.module(), made.body);
  values_.enter_function();
  const bool is_main = &source == &source_.main();
  for (const ValueId argument : source_.region(source.body).arguments) values_.add_argument(argument, is_main);
}

void RegionsInProgress::leave_function(const Function& source, Function& made) {
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

void RegionsInProgress::enter(const OpView& op, RegionId source, double trips) {
  Module& target = builder_.module();
  // A copy of the builder remembers the region and the location to come back to.
  outside_.push_back(builder_);
  builder_ = Builder(target, target.add_region());
  values_.enter(trips);
  const std::vector<ValueId>& arguments = source_.region(source).arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Value& argument = source_.value(arguments[i]);
    const ValueId made = target.add_argument(builder_.region(), argument.type, argument.loc);
    target.value(made).origin = argument.origin;
    values_.add(arguments[i], made, placements_.declared(op.result(i)));
  }
}

RegionId RegionsInProgress::leave(const OpView& op, RegionId source, std::span<const PlacementId> placements) {
  builder_.set_loc(op.loc(), source_.op(op.id()).origin);
  const std::vector<ValueId>& results = source_.region(source).results;
  for (size_t i = 0; i < results.size(); ++i) {
    add_result(results[i], placements[i], {.kind = Cause::kResultOfRegion, .of = op.name(), .index = i});
  }
  return close();
}

RegionId RegionsInProgress::leave_condition(const OpView& op, RegionId source) {
  builder_.set_loc(op.loc(), source_.op(op.id()).origin);
  const ValueId predicate = source_.region(source).results[0];
  // Whole, so that all devices leave the loop together: a collective in it waits for each of them.
  const PlacementId whole = placements_.replicated(source_.value(predicate).type);
  add_result(predicate, whole, {.kind = Cause::kCondition, .of = op.name()});
  return close();
}

void RegionsInProgress::add_result(ValueId result, PlacementId placement, const Cause& cause) {
  const ValueId made = values_.get(result, placement, cause);
  builder_.module().region(builder_.region()).results.push_back(made);
}

RegionId RegionsInProgress::close() {
  values_.leave();
  const RegionId made = builder_.region();
  builder_ = outside_.back();
  outside_.pop_back();
  return made;
}

}  // namespace shardwise
