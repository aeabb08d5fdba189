// Templates as JSON: rows of numbers, in the columns of docs/program-format.md.
#pragma once

#include "ppcc/Proof/Template.h"

#include "llvm/Support/JSON.h"

namespace ppcc::proof {

/// The names of the numbers of a row.
ArrayRef<StringRef> familyColumns();

/// A key with so many lists of numbers.
void writeLists(llvm::json::OStream &json, StringRef key, size_t count,
                function_ref<std::vector<int64_t>(size_t)> numbers);

/// The microbatches of pipes: first and count, each with what n adds.
void writeRanges(llvm::json::OStream &json, const Template &program);
/// The rows, by rank; without the columns `phase` and `site` unless it
/// `hasSites`.
void writeRows(llvm::json::OStream &json, const Template &program,
               bool hasSites = true);

/// How many phases and sites rows may refer to.
struct SiteCounts {
  size_t phases = 0, sites = 0;
};

/// Reads both from the keys `microbatches` and `actions`; rows have the columns
/// `phase` and `site` where `sites` is given. What is wrong, or nothing: then
/// all numbers refer to what there is.
std::string readTemplate(const llvm::json::Object &from, const Topology &head,
                         std::optional<SiteCounts> sites, Template &program);

/// Lists of lists of numbers that JSON holds under a key; nothing when it holds
/// something else, or more than `most`.
std::optional<std::vector<std::vector<int64_t>>>
readNumbers(const llvm::json::Value *value, size_t maxSize = SIZE_MAX);

} // namespace ppcc::proof
