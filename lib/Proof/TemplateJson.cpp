// Reads templates, and lists of numbers, from JSON.
#include "ppcc/Proof/TemplateJson.h"

using namespace ppcc;
using namespace ppcc::proof;
namespace json = llvm::json;

ArrayRef<StringRef> ppcc::proof::familyColumns() {
  static constexpr StringRef columns[] = {
      "kind",  "pipe", "stage", "microbatch",    "peer", "phase",
      "group", "site", "per_n", "per_iteration", "loop"};
  return columns;
}

/// No number of a template is further from 0; so sums of a few fit.
static constexpr int64_t maxMagnitude = int64_t(1) << 40;

std::optional<NumberLists> ppcc::proof::readNumbers(const json::Value *value,
                                                    size_t maxSize) {
  const json::Array *lists = value ? value->getAsArray() : nullptr;
  if (!lists || lists->size() > maxSize)
    return std::nullopt;
  NumberLists result;
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

static std::string readRank(NumberLists &numbers, const Topology &head,
                            std::optional<SiteCounts> sites,
                            std::vector<Row> &rows) {
  int64_t group = -1, loop = -1;
  std::set<int64_t> windows;
  for (std::vector<int64_t> &row : numbers) {
    if (row.size() + (sites ? 0 : 2) != familyColumns().size())
      return "an action has other columns";
    if (!sites) {
      row.insert(row.begin() + 5, 0);
      row.insert(row.begin() + 7, 0);
    }
    auto within = [&](size_t column, int64_t min, size_t end) {
      return row[column] >= min && row[column] < int64_t(end);
    };
    if (!within(0, 0, head.kinds.size()) || !within(1, 0, head.pipes.size()) ||
        !within(2, 0, head.pipes[row[1]].numStages()) ||
        !within(4, -1, head.pipes[row[1]].numStages()))
      return "an action has a kind, pipe, stage or peer that is not there";
    const KindInfo &kind = head.kinds[KindId(row[0])];
    bool isPerStageOrRank = kind.scope != KindScope::Microbatch;
    if (kind.isMove() ||
        (isPerStageOrRank && (row[3] != -1 || row[8] || row[9])))
      return "an action of a declared kind has no microbatch, or goes between "
             "ranks";
    if ((row[4] >= 0) != !kind.isCompute())
      return "an action has a peer and is not a message, or is a message "
             "without a peer";
    if (sites && (!within(5, 0, sites->phases) || !within(7, 0, sites->sites)))
      return "an action has a phase or site that is not there";
    for (size_t column : {3, 8, 9})
      if (!within(column, -maxMagnitude, maxMagnitude))
        return "a microbatch is too large";
    if (!within(10, -1, UINT32_MAX) || !within(6, -1, UINT32_MAX) ||
        (row[10] != loop && row[10] >= 0 && !windows.insert(row[10]).second))
      return "the actions of a loop are not adjacent";
    if (row[10] < 0 && row[9] != 0)
      return "an action has iterations and is in no loop";
    bool joined = !rows.empty() && row[6] >= 0 && row[6] == group;
    if (joined && row[10] != loop)
      return "a group is in a loop and outside";
    group = row[6];
    loop = row[10];
    rows.push_back(
        {KindId(row[0]), PipeId(row[1]), StageId(row[2]),
         row[4] < 0 ? StageId(noPeer) : StageId(row[4]), joined,
         loop < 0 ? noLoop : uint32_t(loop),
         isPerStageOrRank ? noMicrobatch : Affine{row[3], row[8], row[9]}, 0,
         PhaseId(row[5]), SiteId(row[7])});
  }
  return "";
}

std::string ppcc::proof::makeTemplate(const NumberLists &microbatches,
                                      std::vector<NumberLists> actions,
                                      const Topology &head,
                                      std::optional<SiteCounts> sites,
                                      Template &program) {
  program.head = &head;
  if (microbatches.size() != head.pipes.size())
    return "`microbatches` is not a list of four numbers a pipe";
  for (const std::vector<int64_t> &range : microbatches) {
    if (range.size() != 4 || llvm::any_of(range, [](int64_t number) {
          return number < -maxMagnitude || number > maxMagnitude;
        }))
      return "`microbatches` is not a list of four numbers a pipe";
    program.pipes.push_back({{range[0], range[1], 0}, {range[2], range[3], 0}});
  }
  if (actions.size() != head.numRanks)
    return "`actions` is not a list of a list a rank";
  for (NumberLists &rank : actions)
    if (std::string fault =
            readRank(rank, head, sites, program.ranks.emplace_back());
        !fault.empty())
      return fault;
  return "";
}
