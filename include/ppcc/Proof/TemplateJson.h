// Templates as JSON: rows of numbers, in the columns of docs/program-format.md.
#pragma once

#include "ppcc/Proof/Template.h"

#include "llvm/Support/JSON.h"

namespace ppcc::proof {

/// The names of the numbers of a row.
ArrayRef<StringRef> familyColumns();

/// The rows, by rank; without the columns `phase` and `site` unless it
/// `hasSites`.
void writeRows(raw_ostream &out, const Template &program, bool hasSites = true);

/// How many phases and sites rows may refer to.
struct SiteCounts {
  size_t phases = 0, sites = 0;
};

/// Lists of lists of numbers.
using NumberLists = std::vector<std::vector<int64_t>>;

/// The template of so many microbatches, four numbers a pipe, and of these rows
/// of ranks, which have the columns `phase` and `site` where `sites` is given.
/// What is wrong, or nothing: then all numbers refer to what there is.
std::string makeTemplate(const NumberLists &microbatches,
                         std::vector<NumberLists> actions, const Topology &head,
                         std::optional<SiteCounts> sites, Template &program);

/// The lists of lists of numbers that JSON holds under a key; nothing when it
/// holds something else, or more than `maxSize`.
std::optional<NumberLists> readNumbers(const llvm::json::Value *value,
                                       size_t maxSize = SIZE_MAX);

} // namespace ppcc::proof
