#include "ppcc/Proof/TemplateJson.h"

#include "ppcc/IR/Program.h"

using namespace ppcc;
using namespace ppcc::proof;
namespace json = llvm::json;

ArrayRef<StringRef> ppcc::proof::familyColumns() {
  static constexpr StringRef columns[] = {
      "kind",  "pipe", "stage", "microbatch", "peer",  "phase",
      "group", "site", "per_n", "per_turn",   "window"};
  return columns;
}

/// No number of a template is further from 0; so sums of a few fit.
static constexpr int64_t most = int64_t(1) << 40;

void ppcc::proof::writeLists(
    json::OStream &json, StringRef key, size_t count,
    function_ref<std::vector<int64_t>(size_t)> numbers) {
  json.attributeBegin(key);
  json.rawValue([&](raw_ostream &out) {
    out << '[';
    for (size_t i = 0; i != count; ++i) {
      out << (i == 0 ? "[" : ",[");
      llvm::interleave(numbers(i), out, ",");
      out << ']';
    }
    out << ']';
  });
  json.attributeEnd();
}

void ppcc::proof::writeRanges(json::OStream &json, const Template &program) {
  writeLists(json, "microbatches", program.pipes.size(), [&](size_t pipe) {
    const auto &[first, count] = program.pipes[pipe];
    return std::vector<int64_t>{first.c, first.n, count.c, count.n};
  });
}

void ppcc::proof::writeRows(json::OStream &json, const Template &program) {
  json.attributeBegin("actions");
  json.rawValue([&](raw_ostream &out) {
    StringRef before = "[\n";
    for (const auto &rows : program.ranks) {
      out << std::exchange(before, ",\n") << '[';
      int64_t groups = 0;
      for (size_t i = 0; i != rows.size(); ++i) {
        const Row &row = rows[i];
        bool last = i + 1 == rows.size() || !rows[i + 1].joined;
        bool grouped = row.joined || !last;
        bool isWide = row.microbatch == Action::noMicrobatch;
        out << (i == 0 ? "[" : ",[") << row.kind.value << ',' << row.pipe.value
            << ',' << row.stage.value << ',' << (isWide ? -1 : row.microbatch.c)
            << ','
            << (row.peer.value == Action::noPeer ? -1 : int64_t(row.peer.value))
            << ',' << row.phase.value << ',' << (grouped ? groups : -1) << ','
            << row.site.value << ',' << row.microbatch.n << ','
            << row.microbatch.j << ','
            << (row.window == noWindow ? -1 : int64_t(row.window)) << ']';
        groups += grouped && last;
      }
      out << ']';
    }
    out << (program.ranks.empty() ? "[]" : "\n]");
  });
  json.attributeEnd();
}

std::optional<std::vector<std::vector<int64_t>>>
ppcc::proof::readNumbers(const json::Value *value, size_t most) {
  const json::Array *lists = value ? value->getAsArray() : nullptr;
  if (!lists || lists->size() > most)
    return std::nullopt;
  std::vector<std::vector<int64_t>> result;
  for (const json::Value &item : *lists) {
    const json::Array *numbers = item.getAsArray();
    if (!numbers)
      return std::nullopt;
    auto &list = result.emplace_back();
    for (const json::Value &number : *numbers) {
      auto integer = number.getAsInteger();
      if (!integer)
        return std::nullopt;
      list.push_back(*integer);
    }
  }
  return result;
}

static std::string readRank(const json::Value &from, const Head &head,
                            bool looksAtSites, std::vector<Row> &rows) {
  auto numbers = readNumbers(&from);
  if (!numbers)
    return "`actions` holds something else than lists of numbers";
  int64_t group = -1, window = -1;
  for (const std::vector<int64_t> &row : *numbers) {
    if (row.size() != familyColumns().size())
      return "an action has other columns";
    auto within = [&](size_t column, int64_t least, size_t end) {
      return row[column] >= least && row[column] < int64_t(end);
    };
    if (!within(0, 0, head.kinds.size()) || !within(1, 0, head.pipes.size()) ||
        !within(2, 0, head.pipes[row[1]].numStages()) ||
        !within(4, -1, head.pipes[row[1]].numStages()))
      return "an action has a kind, pipe, stage or peer that is not there";
    const KindInfo &kind = head.kinds[KindId(row[0])];
    bool isWide = kind.scope != KindScope::Microbatch;
    if (kind.hasFarEnd() || (isWide && (row[3] != -1 || row[8] || row[9])))
      return "an action of a declared kind has no microbatch, or goes between "
             "ranks";
    if ((row[4] >= 0) != !kind.isCompute())
      return "an action has a peer and is no message, or the other way round";
    if (looksAtSites &&
        (!within(5, 0, head.phases.size()) || !within(7, 0, head.sites.size())))
      return "an action has a phase or site that is not there";
    for (size_t column : {3, 8, 9})
      if (!within(column, -most, most))
        return "a microbatch is too large";
    if (!within(10, -1, UINT32_MAX) || !within(6, -1, UINT32_MAX) ||
        (row[10] != window && row[10] >= 0 && row[10] < int64_t(rows.size()) &&
         llvm::any_of(
             rows,
             [&](const Row &other) {
               return other.window == uint32_t(row[10]);
             })))
      return "the actions of a window do not stand together";
    if (row[10] < 0 && row[9] != 0)
      return "an action takes turns and stands in no window";
    bool joined = !rows.empty() && row[6] >= 0 && row[6] == group;
    if (joined && row[10] != window)
      return "a group is in a window and outside";
    group = row[6];
    window = row[10];
    rows.push_back(
        {KindId(row[0]), PipeId(row[1]), StageId(row[2]),
         row[4] < 0 ? StageId(Action::noPeer) : StageId(row[4]), joined,
         window < 0 ? noWindow : uint32_t(window),
         isWide ? Action::noMicrobatch : Affine{row[3], row[8], row[9]}, 0,
         PhaseId(row[5]), SiteId(row[7])});
  }
  return "";
}

std::string ppcc::proof::readTemplate(const json::Object &from,
                                      const Head &head, bool looksAtSites,
                                      Template &program) {
  program.head = &head;
  auto ranges = readNumbers(from.get("microbatches"));
  if (!ranges || ranges->size() != head.pipes.size())
    return "`microbatches` is no list of four numbers a pipe";
  for (const std::vector<int64_t> &range : *ranges) {
    if (range.size() != 4 || llvm::any_of(range, [](int64_t number) {
          return number < -most || number > most;
        }))
      return "`microbatches` is no list of four numbers a pipe";
    program.pipes.push_back({{range[0], range[1], 0}, {range[2], range[3], 0}});
  }
  const json::Array *ranks = from.getArray("actions");
  if (!ranks || ranks->size() != head.numRanks)
    return "`actions` is no list of a list a rank";
  for (const json::Value &rank : *ranks)
    if (std::string fault =
            readRank(rank, head, looksAtSites, program.ranks.emplace_back());
        !fault.empty())
      return fault;
  return "";
}
