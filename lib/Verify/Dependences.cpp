// Checks that no rank waits for itself along the data, and explains the
// shortest cycle of waits where one does.
#include "CycleReporter.h"
#include "ppcc/Verify/Passes.h"

using namespace ppcc;

namespace {

/// Tells the user of a cycle of ranks, in each of which a row needs one of the
/// next.
class DataCycleReporter : CycleReporter {
public:
  using CycleReporter::CycleReporter;

  void reportCycle() const {
    ActionId first = cycle[0].blocked;
    if (cycle.size() == 1) {
      ActionId needed = cycle[0].need.row;
      report<diag::RankWaitsForItself>(first, rankOf(first))
          .note(place(first), "rank {} waits in {} for `{}`", rankOf(first),
                withPhase(first), cell(needed))
          .note(place(needed), "rank {} runs {} {}", rankOf(first),
                withPhase(needed),
                areTogether(first, needed) ? "in the same group"
                                           : "only after that");
      return;
    }
    auto builder = report<diag::RanksWaitInCycle>(first, rankList(ranks()));
    forEachWait(builder, "ranks", [&](size_t i) { noteWait(builder, i); });
    ActionId last = cycle.back().need.row;
    if (last != first)
      builder.note(place(last), "rank {} runs {}{}", rankOf(last),
                   withPhase(last), after(last, first));
  }

private:
  /// Where `needed` stands, seen from `blocked` on the same rank.
  std::string after(ActionId needed, ActionId blocked) const {
    if (needed == blocked)
      return "";
    return fmt::format(" {} `{}`",
                       areTogether(needed, blocked) ? "together with"
                                                    : "only after",
                       cell(blocked));
  }

  /// Rank i runs what rank i - 1 waits for only after an action that waits for
  /// rank i + 1.
  void noteWait(DiagnosticEngine::Builder &builder, size_t i) const {
    ActionId blocked = cycle[i].blocked, needed = cycle[i].need.row,
             awaited = i == 0 ? blocked : cycle[i - 1].need.row;
    std::string waits =
        awaited == blocked
            ? "waits in " + withPhase(blocked)
            : fmt::format("runs `{}`{}{}, which waits", cell(awaited),
                          after(awaited, blocked), phaseOf(blocked));
    builder.note(place(blocked), "rank {} {} for `{}` from rank {}",
                 rankOf(blocked), waits, cell(needed), rankOf(needed));
  }
};

} // namespace

void ppcc::verifyDependences(const Program &program, PassContext &context) {
  const ProgramIndex *index = indexOf(program, context);
  if (!index)
    return;
  EventGraph graph(program, *index, nullptr,
                   {nullptr, /*inProgramOrder=*/true});
  if (!graph.run())
    DataCycleReporter(program, context, graph).reportCycle();
}
