// The program of one number of microbatches, from what `ppcc --for M` writes. A
// part of Json.h.
#pragma once

#include "ppcc/Runtime/Json.h"

namespace ppcc::rt {

namespace detail {

/// Programs by the value of a parameter.
class Families : JsonValues {
public:
  /// What they share, and the list of them. Throws Error.
  explicit Families(json shared) : file(std::move(shared)) {
    section = "families";
    for (const json &family : items(member(file, "families")))
      requireJson(number(family, "from") >= 1 && number(family, "modulus") >= 1,
                  notParametric);
  }

  LoadedProgram at(int64_t value) const {
    const json &family = familyOf(value);
    int64_t n = (value - number(family, "from")) / number(family, "modulus");
    JsonReader reader;
    auto give = [&](const std::string &key, const json &what) {
      if (reader.beginKey(key))
        reader.onValue(key, what);
    };
    for (const auto &[key, what] : file.items())
      if (key != "families" && key != "pipes")
        give(key, what);
    for (const char *key : {"phases", "sites", "preconnect"})
      give(key, member(family, key));
    json pipes = items(member(file, "pipes"));
    const json &ranges = items(member(family, "microbatches"));
    requireJson(pipes.size() == ranges.size(), notParametric);
    for (size_t i = 0; i != pipes.size(); ++i) {
      auto range = numbers(ranges[i], 4);
      int64_t first = sum(range[0], range[1], n);
      pipes[i]["microbatches"] = {first, first + sum(range[2], range[3], n)};
    }
    give("pipes", pipes);
    give("columns", {"kind", "pipe", "stage", "microbatch", "peer", "phase",
                     "group", "site"});
    reader.beginKey("actions");
    reader.beginActions();
    json loops = json::array();
    for (const json &rank : items(member(family, "actions"))) {
      reader.beginRank();
      loops.push_back(addRows(rank, n, reader));
    }
    give("loops", loops);
    return reader.finish();
  }

private:
  static constexpr size_t columns = 11, group = 6;
  static constexpr int64_t most = int64_t(1) << 32;
  static constexpr const char *notParametric =
      "it is not a program for all values of a parameter";

  const json &member(const json &object, const char *key) const {
    const json *found = find(object, key);
    requireJson(found, notParametric);
    return *found;
  }
  int64_t number(const json &object, const char *key) const {
    return integer(member(object, key));
  }
  std::vector<int64_t> numbers(const json &list, size_t count) const {
    auto result = JsonValues::numbers(list, count, count, notParametric);
    for (int64_t number : result)
      requireJson(number > -most && number < most, notParametric);
    return result;
  }
  static int64_t sum(int64_t constant, int64_t factor, int64_t n) {
    __int128 value = __int128(factor) * n + constant;
    requireJson(value > -most && value < most,
                "a number is too large for this value");
    return static_cast<int64_t>(value);
  }

  const json &familyOf(int64_t value) const {
    for (const json &family : file["families"]) {
      int64_t from = number(family, "from");
      const json &to = member(family, "to");
      if (value < from || (!to.is_null() && value > integer(to)) ||
          (value - from) % number(family, "modulus") != 0)
        continue;
      if (family.contains("actions"))
        return family;
      refuseJson("there is no program for ", value, ": ",
                 family.value("reason", "it is not valid"));
    }
    refuseJson("there is no program for ", value);
  }

  /// Adds the rows of a rank; gives its loops. A window whose rows advance by
  /// different numbers is written out.
  json addRows(const json &rank, int64_t n, JsonReader &reader) const {
    json loops = json::array();
    std::vector<std::vector<int64_t>> rows;
    for (const json &row : items(rank))
      rows.push_back(numbers(row, columns));
    int64_t next = 0, groups = 0, last = -1;
    auto add = [&](const std::vector<int64_t> &row, int64_t iteration,
                   bool first) {
      std::vector<int64_t> values(row.begin(), row.begin() + 8);
      values[3] = sum(sum(row[3], row[8], n), row[9], iteration);
      // Iterations that are written out have groups of their own.
      if (row[group] >= 0 && (first || row[group] != last))
        ++groups;
      last = row[group];
      if (row[group] >= 0)
        values[group] = groups - 1;
      reader.addRow(values);
      ++next;
    };
    for (size_t begin = 0, end; begin != rows.size(); begin = end) {
      int64_t loop = rows[begin][10];
      end = begin + 1;
      bool isLoop = loop >= 0;
      while (loop >= 0 && end != rows.size() && rows[end][10] == loop)
        isLoop &= rows[end++][9] == rows[begin][9];
      int64_t iterations = loop < 0 ? 1 : n + 1,
              written = isLoop ? 1 : iterations;
      if (isLoop)
        loops.push_back(
            {next, int64_t(end - begin), iterations, rows[begin][9]});
      for (int64_t iteration = 0; iteration != written; ++iteration)
        for (size_t i = begin; i != end; ++i)
          add(rows[i], iteration, i == begin && loop >= 0);
    }
    return loops;
  }

  json file;
};

inline LoadedProgram JsonReader::parametric() {
  requireJson(seen("schedule"), "there is no key `schedule`");
  const Families &families = loaded.keep(Families(std::move(shared)));
  view = Program::parametric(
      view.name,
      [](const void *all, int64_t value) {
        return static_cast<const Families *>(all)->at(value);
      },
      &families);
  return std::move(loaded);
}

} // namespace detail

inline LoadedProgram Program::at(int64_t microbatches) const {
  if (!instance)
    throw Error("the program is for one number of microbatches");
  return instance(families, microbatches);
}

} // namespace ppcc::rt
