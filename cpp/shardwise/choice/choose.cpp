// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/choose.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>

#include "shardwise/base/settings.h"
#include "shardwise/choice/candidates/free_results.h"
#include "shardwise/choice/choice_prices.h"
#include "shardwise/choice/choice_text.h"
#include "shardwise/choice/free_arguments.h"
#include "shardwise/choice/graph/program_graph.h"
#include "shardwise/choice/greedy/greedy_walk.h"
#include "shardwise/choice/refinement.h"
#include "shardwise/choice/unify_meshes.h"
#include "shardwise/choice/verify_choice.h"

namespace shardwise {
namespace {

// A walk sees an op and not the graph, so that what is best for each op need not be best for all of them: by time, the
// cheapest of several walks is taken. That of bytes is among them, so no other objective finds a faster program.
struct Walk {
  bool is_by_time;
  CandidateScope scope;
};
constexpr Walk kWalks[] = {
    {true, CandidateScope::kSuggested}, {true, CandidateScope::kAll}, {false, CandidateScope::kSuggested}};

std::span<const Walk> walks(Objective objective) {
  return objective == Objective::kTime ? std::span(kWalks) : std::span(kWalks).last(1);
}

// Reports list the ways of the walk that looks at most.
void explain_by(const Choice& widest, Choice& best) {
  if (&widest == &best) return;
  best.ways = widest.ways;
  for (const auto& [op, next] : widest.next_best) {
    if (widest.ops[op.index] == best.ops[op.index]) best.next_best[op] = next;
  }
}

// The part of a value by which `found` is above `known`; below zero where it is less.
double part_above(int64_t found, int64_t known) {
  return (static_cast<double>(found) - static_cast<double>(known)) / static_cast<double>(std::max<int64_t>(known, 1));
}

// By time, clearly less of it is worth hardly more bytes: 6 % less time, 0.1 % more bytes.
constexpr double kClearGain = 1.0 / 32, kMostForGain = 1.0 / 64;

// Less of what counts. By time, no more work and hardly more bytes: the graph prices ops alone, so that it does not see what
// passes behind it save, such as chains of exchanges that become one.
bool is_better(const Price& found, const Price& known, Objective objective) {
  if (objective == Objective::kBytes) return found.bytes < known.bytes;
  if (found.ps >= known.ps || found.work > known.work) return false;
  const double gain = -part_above(found.ps, known.ps);
  return part_above(found.bytes, known.bytes) <= (gain < kClearGain ? 0 : kMostForGain * gain);
}

// A graph contains only versions and ways near one choice, so a second graph around its solution may find a better one.
constexpr int kMostRounds = 4;
constexpr int64_t kGain = 200;  // a 200th: each round takes a third of the time of all before it

bool gains_much(const Choice& found, const Choice& known) {
  return known.price.ps - found.price.ps > known.price.ps / kGain ||
         known.price.bytes - found.price.bytes > known.price.bytes / kGain;
}

// Owns everything that the walks over one program share.
struct SearchedProgram {
  SearchedProgram(Module& searched, const CompileOptions& options)
      : module(searched),
        costs(module, options),
        calls(module),
        keys(module, calls),
        placements(module),
        linearity(module),
        requested(module, linearity, placements),
        lists(placements, costs) {}

  Module& module;
  Costs costs;
  CallGraph calls;
  OpKeys keys;
  ProgramPlacements placements;
  ProgramLinearity linearity;
  RequestedSums requested;
  CandidateLists lists;
  WalkedProgram walked{module, calls, keys, linearity, placements, requested, costs, lists};
};

// The choice of a program for the placements that its arguments have now.
class Search {
 public:
  // `open`: results of main that may be wherever they are made.
  Search(Module& module, PassContext& context, std::unordered_set<ValueId> open = {})
      : context_(context), program_(module, context.options), prices_(module, program_.placements, program_.costs) {
    program_.placements.open(std::move(open));
  }

  const Choice& choice() const { return *best_; }
  SearchedProgram& program() { return program_; }
  void run();
  // Makes it the choice of the compilation.
  void finish(std::vector<size_t> whole_arguments, std::vector<Choice::PlacedResult> placed_results);

 private:
  void run(const Walk& walk);

  PassContext& context_;
  SearchedProgram program_;
  ChoicePrices prices_;
  std::shared_ptr<Choice> best_;
  std::shared_ptr<Choice> widest_;  // by the walk that looks at most
};

void Search::run(const Walk& walk) {
  context_.choice = nullptr;
  program_.costs.set_are_times(walk.is_by_time);
  greedy_choice(program_.walked, walk.scope, context_);
  context_.choice->price = prices_.of(*context_.choice);
  if (widest_ == nullptr || walk.scope == CandidateScope::kAll) widest_ = context_.choice;
}

void Search::run() {
  for (const Walk& walk : walks(context_.options.objective)) {
    run(walk);
    if (best_ == nullptr || context_.choice->price < best_->price) best_ = context_.choice;
  }
  const Objective objective = context_.options.objective;
  program_.costs.set_are_times(objective == Objective::kTime);
  Refinement refinement(program_.walked, prices_, context_, [objective](const Price& found, const Price& known) {
    return is_better(found, known, objective);
  });
  for (int round = 0; round < kMostRounds; ++round) {
    const auto refined = refinement.around(*best_);
    if (refined == nullptr) break;
    const bool gains = gains_much(*refined, *best_);
    best_ = refined;
    if (!gains) break;
  }
}

void Search::finish(std::vector<size_t> whole_arguments, std::vector<Choice::PlacedResult> placed_results) {
  const bool is_asked = context_.pinned != nullptr && !context_.pinned->asked.empty();
  if (is_asked && context_.options.objective == Objective::kBytes) run({false, CandidateScope::kAll});
  context_.choice = best_;
  explain_by(*widest_, *best_);
  best_->whole_arguments = std::move(whole_arguments);
  best_->placed_results = std::move(placed_results);
  best_->is_state_last = context_.options.state_last;
  best_->at_loops = prices_.at_loops(*best_);
  best_->work = prices_.work(*best_);
  if (settings().verify) verify_choice(program_.module, *best_);
  program_.requested.warn_of_refused(*best_, context_.warnings);
  context_.counters.add("choose.plans", program_.costs.planner().plans());
  context_.counters.add("choose.new_plans", program_.costs.planner().new_plans());
}

// Searches with whole free arguments. If that is not cheaper, it returns null and the arguments are split as before.
std::unique_ptr<Search> search_with_whole(FreeArguments& arguments, Module& module, const Choice& known,
                                          PassContext& context) {
  arguments.make_whole();
  auto found = std::make_unique<Search>(module, context);
  found->run();
  if (!is_better(found->choice().price, known.price, context.options.objective)) {
    arguments.split_all();
    return nullptr;
  }
  if (!arguments.split_again(found->choice())) return found;
  auto smaller = std::make_unique<Search>(module, context);
  smaller->run();
  if (smaller->choice().price <= found->choice().price) return smaller;
  arguments.make_whole();
  return found;
}

constexpr int64_t kShareAtLoops = 32;  // a smaller share than a 32nd is not worth a second search

// Returns the part of a price that the objective minimizes.
int64_t measured(const PassContext& context, const Price& price) {
  return context.options.objective == Objective::kBytes ? price.bytes : price.ps;
}

// Searches with free results where they are made if they may be anywhere. If that is not cheaper, it returns null and they are
// placed as before.
std::unique_ptr<Search> search_with_open(FreeResults& results, Module& module, const Choice& known,
                                         PassContext& context) {
  Search open(module, context, results.values());
  open.run();
  if (!results.place(open.choice(), open.program().placements, open.program().costs)) return nullptr;
  auto found = std::make_unique<Search>(module, context);
  found->run();
  if (measured(context, found->choice().price) < measured(context, known.price)) return found;
  results.place_as_before();
  return nullptr;
}

}  // namespace

bool may_gain_with_state_last(const PassContext& context) {
  return measured(context, context.choice->at_loops) > measured(context, context.choice->price) / kShareAtLoops;
}

bool takes_less(const PassContext& found, const PassContext& known) {
  return measured(found, found.choice->price) < measured(known, known.choice->price);
}

ChoiceProblem choice_problem(Module& module, const Choice& known, const CompileOptions& options) {
  SearchedProgram program(module, options);
  program.costs.set_are_times(options.objective == Objective::kTime);
  OpOptions options_of_ops(program.walked);
  const ProgramGraph graph(program.walked, options_of_ops, known);
  return {graph.costs(), graph.known_picks(), picks_around(graph.costs(), graph.known_picks(), {})};
}

Module choose(Module module, PassContext& context) {
  // Before placements are read: afterwards, only real differences of meshes are left.
  unify_meshes(module);
  auto search = std::make_unique<Search>(module, context);
  search->run();
  FreeResults results(module, context.options.free_results);
  if (!results.is_empty()) {
    if (auto other = search_with_open(results, module, search->choice(), context)) search = std::move(other);
  }
  FreeArguments arguments(module, context.options.captured);
  // A limit of memory keeps them split.
  if (!arguments.is_empty() && context.options.memory_limit == 0) {
    if (auto other = search_with_whole(arguments, module, search->choice(), context)) search = std::move(other);
  }
  search->finish(arguments.whole(), results.placed());
  return module;
}

}  // namespace shardwise
