// SPDX-License-Identifier: Apache-2.0
//
// Choices as Python passes them: tuples and lists of strings, which python/shardwise/programs/choices.py reads and writes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>

#include "shardwise/choice/choice_text.h"
#include "shardwise/compiler/driver.h"
#include "shardwise/compiler/priced_ways.h"

namespace shardwise {

// (at, op, method, operands, results)
using ChosenOpRow =
    std::tuple<std::string, std::string, std::string, std::vector<std::string>, std::vector<std::string>>;
using ChosenPlanRows = std::vector<std::pair<std::string, std::vector<std::string>>>;  // (at, moves) of each reshard
using ChosenTextRows = std::vector<std::pair<std::string, std::string>>;               // (at, text)
// The fingerprint of the program; ops; reshards; sources, carries and exchanges; the order of propagation.
using ChoiceRows = std::tuple<std::string, std::vector<ChosenOpRow>, ChosenPlanRows, ChosenTextRows, ChosenTextRows,
                              ChosenTextRows, std::string>;

std::shared_ptr<const Choices> choices_from_python(const std::optional<ChoiceRows>& rows);

using PriceRow = std::tuple<int64_t, int64_t, int64_t, int64_t>;  // picoseconds, bytes, rounds and flops
// (how, price or None, why it is impossible)
using WayRows = std::vector<std::tuple<ChosenOpRow, std::optional<PriceRow>, std::string>>;
WayRows rows_of(const std::vector<PricedWay>& ways);

// The name of a value in its text or by sw.name, or else the variable that holds it.
std::string variable_of(const Context& context, LocId loc);

using UnitPtr = std::shared_ptr<CompileUnit>;
// Adds the methods of a unit that return what `compile` decided.
void bind_choices(pybind11::class_<CompileUnit, UnitPtr>& units);

}  // namespace shardwise
