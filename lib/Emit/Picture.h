// What the pictures of a program share: its times, what of it is shown, colours
// and words.
#pragma once

#include "Cells.h"
#include "ppcc/Analysis/Analyses.h"
#include "ppcc/Analysis/Report/MemoryCurve.h"
#include "ppcc/Emit/Emitter.h"

namespace ppcc {

/// A colour of the screen, as in 0x56b4e9.
using Color = uint32_t;
inline std::string hexOf(Color color) { return fmt::format("#{:06x}", color); }

/// How a kind looks where there are no colours.
enum class Hatch { None, Rising, Falling, Dots, Cross, Across, Down, Grid };

/// How a kind looks, without regard to its chunk.
struct KindStyle {
  std::string label; ///< One or two letters, of no other kind.
  Color color;
  Hatch hatch;
};

/// An action or a group of compute actions with the time that it takes.
struct Box {
  RowRange rows;
  Time from, to;
};

/// What stands in a box: letters, and after or below them the microbatch.
struct BoxLabel {
  SmallString<8> letters;
  SmallString<12> number;

  BoxLabel(StringRef letters, const Action &action) : letters(letters) {
    if (action.hasMicrobatch())
      fmt::format_to(std::back_inserter(number), "{}", action.microbatch);
  }
};

/// A node of a box with its time.
struct NodeBox {
  ActionId row;  ///< Whose node it is.
  Action action; ///< The same, with the letters of the node.
  const GraphNode *node;
  Time from, to;
};

/// A program with the times of its actions, narrowed to what is shown.
class Picture {
public:
  /// Times the program on the transport of `context`, or by its data alone when
  /// it has no messages. Reports why it has no times, or that nothing of it is
  /// to be shown, and gives nothing then. O(actions + messages).
  static std::optional<Picture> make(const Program &program,
                                     EmitContext &context);

  const Program &program;
  const ProgramIndex &index;
  const std::string &transport; ///< On which it ran; `none` by data alone.
  const Simulation &times;
  std::vector<RankId> ranks; ///< Those that are shown, from top to bottom.
  Time from = 0, to = 0;     ///< The span that is shown.

  /// Calls `visit(Box)` for each action or group of a rank, in order, whether
  /// shown or not.
  template <class Visit> void forEachAnyBox(RankId rank, Visit visit) const {
    for (auto [row, end] : program.items(rank))
      while (row != end) {
        ActionId first = row;
        while (row != end && program.kindOf(row).occupiesRank())
          ++row.value;
        if (row != first)
          visit(boxOf({first, row}));
        else
          ++row.value; // A message.
      }
  }
  /// Calls `visit(Box)` for each shown action or group of a rank, in order:
  /// those that take time within the span and hold a shown microbatch.
  template <class Visit> void forEachBox(RankId rank, Visit visit) const {
    forEachAnyBox(rank, [&](const Box &box) {
      if (isShown(box))
        visit(box);
    });
  }

  /// The lanes on which its nodes run; none when it has no times of nodes.
  ArrayRef<std::string> lanes() const {
    return nodes ? ArrayRef(program.nodes().lanes) : ArrayRef<std::string>();
  }
  /// When the nodes of a box run, counted from its begin; null when it has no
  /// nodes, or no times of them. It stays until the next call.
  const NodeOrder *orderOf(const Box &box) const {
    return nodes ? nodes->of(program, box.rows.from, box.rows.to) : nullptr;
  }
  /// A node of a row, which has a graph.
  const GraphNode &nodeOf(ActionId row, uint32_t node) const {
    return nodes->graph(nodes->graphOf(program[row])).nodes[node];
  }
  /// Calls `visit(NodeBox)` for each node of a box that takes time within the
  /// span, in launch order. False when the box has no nodes, or no times of
  /// them.
  template <class Visit> bool forEachNode(const Box &box, Visit visit) const {
    const NodeOrder *order = orderOf(box);
    if (!order)
      return false;
    for (const NodeOrder::ScheduledNode &place : order->scheduled) {
      ActionId row(box.rows.from.value + place.member);
      Action action = program[row];
      const GraphNode &node = nodeOf(row, place.node);
      action.kind = node.part;
      NodeBox shown{row, action, &node, box.from + place.start,
                    box.from + place.end};
      if (shown.from < shown.to && shown.from < to && shown.to > from)
        visit(shown);
    }
    return true;
  }
  /// Calls `visit(Box)` for each shown action of a rank that runs beside its
  /// compute actions, in order.
  template <class Visit> void forEachAsyncBox(RankId rank, Visit visit) const {
    if (!program.kinds().hasAsync())
      return;
    for (ActionId row : program.rows(rank))
      if (Box box = boxOf(row); program.kindOf(row).isAsync() && isShown(box))
        visit(box);
  }
  uint8_t laneOf(const Box &box) const {
    return program.kindOf(box.rows.from).lane;
  }
  /// The lanes beside the compute actions on which something is shown of any
  /// rank.
  std::vector<uint8_t> asyncLanes;
  /// Those of one rank. O(actions of the rank).
  std::vector<uint8_t> asyncLanesOf(RankId rank) const;
  /// The lanes of nodes on which something is shown, and which of them a lane
  /// is.
  std::vector<uint32_t> nodeLanes;
  uint32_t lineOf(const GraphNode &node) const {
    return llvm::lower_bound(nodeLanes, node.lane) - nodeLanes.begin();
  }

  /// Whether a row of a shown rank lies within the span and is of a shown
  /// microbatch.
  bool isShown(ActionId row) const;
  Box boxOf(RowRange rows) const {
    size_t first = rows.from.value;
    return {rows, times.starts[first], times.ends[first]};
  }
  /// A row by itself.
  Box boxOf(ActionId row) const {
    return boxOf({row, ActionId(row.value + 1)});
  }
  /// Which of the shown ranks the rank is, if it is one.
  std::optional<size_t> indexOf(RankId rank) const {
    auto found = llvm::lower_bound(ranks, rank);
    return found != ranks.end() && *found == rank
               ? std::optional<size_t>(found - ranks.begin())
               : std::nullopt;
  }

  /// When other stages get what a row made, and when it needs what it reads
  /// from them; see hook in NodeGraphs.h.
  Time outputTime(ActionId row) const {
    return times.ends[row.value] - times.hookOffsetsOf(row).early;
  }
  Time inputTime(ActionId row) const {
    return times.starts[row.value] + times.hookOffsetsOf(row).late;
  }

  /// Calls `visit(time)` for the places of an axis within the span: multiples
  /// of the least of 1, 2 and 5 times a power of ten of time units, at least
  /// 10^-9, that divides it into at most `count` parts.
  template <class Visit> void forEachTick(uint64_t count, Visit visit) const {
    Time step = 1;
    for (unsigned i = 0; (to - from) / step > Time(count); ++i)
      step = i % 3 == 1 ? step / 2 * 5 : step * 2;
    for (Time time = (from + step - 1) / step * step; time <= to; time += step)
      visit(time);
  }
  /// What the scale of memory reaches to: what the shown ranks hold, and may.
  decimal::Sum maxMemory(MemoryCurve &curve) const;

  /// What is drawn of the shown ranks: nodes, boxes without nodes, and boxes
  /// beside the compute actions.
  size_t numParts() const;

  /// Which of its rank's stages a stage is, from 0, and of how many.
  uint32_t chunk(PipeId pipe, StageId stage) const {
    return chunks[stages(pipe, stage)];
  }
  /// The largest number of stages on one rank.
  uint32_t maxChunks = 1;

  const KindStyle &styleOf(KindId kind) const { return styles[kind.value]; }
  /// The fill of a compute action: the hue of its kind, the lighter the higher
  /// its chunk. Black text on it can be read, and people who take red for green
  /// or blue for yellow can tell the hues apart.
  Color fill(KindId kind, uint32_t chunk) const;
  Color fill(const Action &action) const {
    return fill(action.kind, chunk(action.pipe, action.stage));
  }
  /// The two letters of the nodes of each name.
  std::vector<std::string> nodeLabels;
  /// The stage follows from the row and the shade.
  BoxLabel labelOf(const Action &action) const {
    return {styleOf(action.kind).label, action};
  }
  /// The letters are those of its name, as the hue tells its kind.
  BoxLabel labelOf(const NodeBox &node) const {
    return {nodeLabels[node.node->name], node.action};
  }
  /// What an action of the kind computes, in words; for a declared one the lane
  /// on which it runs.
  std::string kindDescription(KindId kind) const;
  /// For a legend: its label, and what that stands for.
  std::string legendOf(KindId kind) const;
  /// The name of a chunk for a legend: that of the pipe where each rank has one
  /// stage of each, else `chunk 0`.
  std::string chunkName(uint32_t chunk) const;
  /// The name of the schedule with its parameters, how long it takes, and what
  /// that is by: `gpipe P=4 M=8: 33 on stream`.
  std::string title() const;

private:
  Picture(const Program &program, const TimedRun &timed)
      : program(program), index(Analyses(program).index()),
        transport(timed.transport), times(timed.simulation),
        stages(program.pipes()) {
    chooseStyles();
    if (!program.nodes().empty() && program.hasNodeCosts())
      nodes = std::make_unique<NodeOrders>(program);
  }

  bool narrow(EmitContext &context);
  void findLanes();
  void numberChunks();
  void chooseStyles();

  bool isShown(const Box &box) const;

  std::unique_ptr<NodeOrders> nodes; ///< Null without times of nodes.
  std::optional<std::pair<uint32_t, uint32_t>> microbatches;
  bool chunksArePipes = false;
  StageNumbering stages;
  std::vector<uint32_t> chunks; ///< By stage of all pipes.
  std::vector<KindStyle> styles;
};

/// The text for XML and HTML, where it stands between tags.
std::string escapedMarkup(StringRef text);

} // namespace ppcc
