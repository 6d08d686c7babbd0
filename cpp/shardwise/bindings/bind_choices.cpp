// SPDX-License-Identifier: Apache-2.0
#include <pybind11/stl.h>

#include "shardwise/bindings/choice_rows.h"
#include "shardwise/compiler/assigned_names.h"
#include "shardwise/ir/value_names.h"

namespace py = pybind11;

namespace shardwise {

namespace {

std::vector<ChosenText> texts_from(const ChosenTextRows& rows) {
  std::vector<ChosenText> texts;
  for (const auto& [at, chosen] : rows) texts.push_back({at, chosen});
  return texts;
}

ChosenTextRows rows_of(const std::vector<ChosenText>& texts) {
  ChosenTextRows rows;
  for (const ChosenText& text : texts) rows.emplace_back(text.at, text.chosen);
  return rows;
}

ChosenOpRow row_of(const ChosenOp& op) { return {op.at, op.op, op.method, op.operands, op.results}; }

PriceRow row_of(const Price& price) { return {price.ps, price.bytes, price.rounds, price.work}; }

std::vector<ChosenOpRow> rows_of(const std::vector<ChosenOp>& ops) {
  std::vector<ChosenOpRow> rows;
  for (const ChosenOp& op : ops) rows.push_back(row_of(op));
  return rows;
}

ChoiceRows choices_of_unit(const CompileUnit& unit) {
  const Choices made = choices_of(*unit.context.choice, unit.module->context());
  ChosenPlanRows plans;
  for (const ChosenPlan& plan : made.plans) plans.emplace_back(plan.at, plan.moves);
  return {made.program,          rows_of(made.ops),       std::move(plans), rows_of(made.sources),
          rows_of(made.carries), rows_of(made.exchanges), made.propagation};
}

// (key, file, line) of each op that is chosen alone.
std::vector<std::tuple<std::string, std::string, int64_t>> places_of_choices(const CompileUnit& unit) {
  std::vector<std::tuple<std::string, std::string, int64_t>> places;
  for (const Choice::NamedOp& named : unit.context.choice->named_ops) {
    const ResolvedSource source = unit.module->context().resolve(named.loc);
    places.emplace_back(named.key.text(), source.file, source.line);
  }
  return places;
}

PriceRow choice_price(const CompileUnit& unit) { return row_of(unit.context.choice->price); }

// A reshape: the variable of its operand and that of its result, and both shapes.
using ReshapeRow = std::tuple<std::string, std::string, std::vector<int64_t>, std::vector<int64_t>>;

// (kind, op, file, line, column, variable of the value that is split, its dim, the axes of that, the other dim to split, the
// reshape that loses the split or that made the value)
using LostSplitRow = std::tuple<std::string, std::string, std::string, int64_t, int64_t, std::string, int64_t,
                                std::vector<std::string>, int64_t, std::optional<ReshapeRow>>;

// (file, line, column, variable, op, flops of one device, flops on the whole, executions as count, numerator and
// denominator, axes of devices that repeat them, the dim that these could split, the split that was lost)
using WorkRow =
    std::tuple<std::string, int64_t, int64_t, std::string, std::string, int64_t, int64_t,
               std::tuple<int64_t, int64_t, int64_t>, std::vector<std::string>, int64_t, std::optional<LostSplitRow>>;

std::vector<std::string> names_of_axes(const Mesh& mesh, const AxisList& axes) {
  std::vector<std::string> names;
  for (const AxisRef& axis : axes) names.push_back(mesh.axis_name(axis.axis));
  return names;
}

constexpr double kRepeatedShare = 0.1;  // of all work, as in reports/work.py

LostSplitRow row_of_lost(const Context& context, const Mesh& mesh, const LostSplit& lost) {
  const ResolvedSource source = context.resolve(lost.loc);
  const char* const kinds[] = {"row", "reshape", "op", "no rule"};
  std::optional<ReshapeRow> reshape;
  if (lost.reshape) {
    const auto& [operand, result, from, to] = *lost.reshape;
    reshape.emplace(variable_of(context, operand), variable_of(context, result),
                    std::vector<int64_t>(from.begin(), from.end()), std::vector<int64_t>(to.begin(), to.end()));
  }
  return {kinds[lost.kind],
          std::string(lost.name),
          source.file,
          source.line,
          source.column,
          variable_of(context, lost.value),
          static_cast<int64_t>(lost.dim),
          names_of_axes(mesh, lost.axes),
          lost.instead,
          std::move(reshape)};
}

// Whether ops that lost the split of a tensor repeat enough work for a warning, which reports/work.py words.
bool loses_splits(const CompileUnit& unit) {
  const Choice& choice = *unit.context.choice;
  if (choice.mesh == nullptr) return false;
  const auto devices = static_cast<double>(choice.mesh->device_count());
  double all = 0, repeated = 0;
  for (const OpWork& work : choice.work) {
    const auto& [numerator, denominator] = work.executions.factor;
    const double runs =
        static_cast<double>(work.executions.count) * static_cast<double>(numerator) / static_cast<double>(denominator);
    all += runs * static_cast<double>(work.flops);
    if (work.lost) repeated += runs * (static_cast<double>(work.flops) - static_cast<double>(work.whole) / devices);
  }
  return repeated > kRepeatedShare * all;
}

std::vector<WorkRow> work_of_unit(const CompileUnit& unit) {
  const Choice& choice = *unit.context.choice;
  std::vector<WorkRow> rows;
  for (const OpWork& work : choice.work) {
    const ResolvedSource source = unit.module->context().resolve(work.loc);
    const std::tuple executions{work.executions.count, work.executions.factor.numerator,
                                work.executions.factor.denominator};
    std::vector<std::string> axes;
    if (!work.repeated.empty()) axes = names_of_axes(*choice.mesh, work.repeated);
    std::optional<LostSplitRow> lost;
    if (work.lost) lost = row_of_lost(unit.module->context(), *choice.mesh, *work.lost);
    rows.emplace_back(source.file, source.line, source.column, assigned_whole(source.variable), std::string(work.name),
                      work.flops, work.whole, executions, std::move(axes), work.dim, std::move(lost));
  }
  return rows;
}

}  // namespace

WayRows rows_of(const std::vector<PricedWay>& ways) {
  WayRows rows;
  for (const PricedWay& way : ways) {
    const std::optional<Price>& price = way.price;
    rows.emplace_back(row_of(way.how), price ? std::optional(row_of(*price)) : std::nullopt, way.error);
  }
  return rows;
}

std::string variable_of(const Context& context, LocId loc) {
  const std::string name = context.name_of(loc);
  if (const std::optional<TextNames> text = text_names(name)) return name_in_text(text->names, 0);
  return name.empty() ? assigned_whole(context.resolve(loc).variable) : name;
}

std::shared_ptr<const Choices> choices_from_python(const std::optional<ChoiceRows>& rows) {
  if (!rows) return nullptr;
  auto choices = std::make_shared<Choices>();
  const auto& [program, ops, plans, sources, carries, exchanges, propagation] = *rows;
  choices->program = program;
  choices->propagation = propagation;
  for (const auto& [at, op, method, operands, results] : ops) {
    choices->ops.push_back({at, op, method, operands, results});
  }
  for (const auto& [at, moves] : plans) choices->plans.push_back({at, moves});
  choices->sources = texts_from(sources);
  choices->carries = texts_from(carries);
  choices->exchanges = texts_from(exchanges);
  return choices;
}

void bind_choices(py::class_<CompileUnit, UnitPtr>& units) {
  units.def("choices", &choices_of_unit)
      .def("places_of_choices", &places_of_choices)
      .def("choice_price", &choice_price)
      .def("work", &work_of_unit)
      .def("loses_splits", &loses_splits);
}

}  // namespace shardwise
