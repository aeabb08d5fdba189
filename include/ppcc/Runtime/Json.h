// Reads program.json at run time. Needs nlohmann-json (nlohmann-json3-dev).
#pragma once

#include "ppcc/Runtime/Check.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <deque>
#include <istream>
#include <limits>
#include <memory>

namespace ppcc::rt {

namespace detail {
class JsonReader;
}

/// A program and the memory that it lies in.
class LoadedProgram {
public:
  LoadedProgram() = default;
  LoadedProgram(LoadedProgram &&) = default;
  LoadedProgram &operator=(LoadedProgram &&) = default;

  const Program &program() const { return view; }
  operator const Program &() const { return view; }

private:
  friend class detail::JsonReader;

  // All of these keep their addresses when the program is moved.
  std::deque<std::string> texts;
  std::vector<Kind> kinds;
  std::vector<Pipe> pipes;
  std::deque<std::vector<uint32_t>> ranksOfStages;
  std::deque<std::vector<SkipEdge>> skipEdges;
  std::deque<std::vector<uint16_t>> gaps;
  std::deque<std::vector<EdgeTensors>> edgeTensors;
  std::deque<std::vector<Tensor>> tensors;
  std::deque<std::vector<int64_t>> dims;
  std::deque<std::vector<int32_t>> meetingStages;
  std::vector<const char *> phases, files;
  std::vector<Site> sites;
  std::deque<std::vector<Row>> rows;
  std::deque<std::vector<Segment>> segments;
  std::vector<RankProgram> ranks;
  std::vector<RankPair> preconnect;
  Program view{};
};

namespace detail {

/// Takes the events of the parser; the tree of the file is never built. Every
/// number is checked before it is stored, every index before it is used.
class JsonReader {
public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  /// The program, whole. Throws Error.
  LoadedProgram take() {
    for (const char *name :
         {"format", "version", "schedule", "ranks", "backward", "kinds",
          "phases", "pipes", "files", "sites", "columns", "actions"})
      require(seen(name), std::string("there is no key `") + name + "`");
    Program &view = loaded.view;
    require(loaded.rows.size() == view.numRanks,
            "there are actions for " + std::to_string(loaded.rows.size()) +
                " of " + std::to_string(view.numRanks) + " ranks");
    requireForRanks("buffers", buffers.size());
    requireForRanks("peak_activations", activations.size());
    requireForRanks("loops", loops.size());
    for (size_t i = 0; i != loaded.rows.size(); ++i) {
      RankProgram &rank = loaded.ranks.emplace_back();
      rank.rows = list(loaded.rows[i]);
      rank.segments = list(addSegments(i));
      if (!buffers.empty())
        rank.receiveBuffers = buffers[i];
      if (!activations.empty())
        rank.peakActivations = activations[i];
    }
    endRestores();
    view.abi = abiNumber;
    view.kinds = list(loaded.kinds);
    view.pipes = list(loaded.pipes);
    view.phases = list(loaded.phases);
    view.files = list(loaded.files);
    view.sites = list(loaded.sites);
    view.ranks = list(loaded.ranks);
    view.preconnect = list(loaded.preconnect);
    checkHead(view);
    for (uint32_t rank = 0; rank != view.numRanks; ++rank)
      if (!view.ranks[rank].segments.empty())
        checkRows(view, rank, Wiring(view, rank));
    return std::move(loaded);
  }

  // The events.

  bool null() { return other(); }
  bool number_float(number_float_t, const string_t &) { return other(); }
  bool binary(binary_t &) { return other(); }

  bool boolean(bool value) {
    if (depth == 1 && section == "backward")
      loaded.view.hasBackward = value;
    else
      unexpected(true);
    return true;
  }

  bool number_integer(number_integer_t value) {
    if (skipping())
      return true;
    return number(value);
  }
  bool number_unsigned(number_unsigned_t value) {
    if (skipping())
      return true;
    if (value > uint64_t(INT64_MAX))
      refuse("a number is too large");
    return number(static_cast<int64_t>(value));
  }

  bool string(string_t &value) {
    if (skipping())
      return true;
    if (depth == 1 && section == "format")
      require(value == "ppcc.program", "`" + value + "` is no ppcc.program");
    else if (depth == 1 && section == "schedule")
      loaded.view.name = keep(value);
    else if (depth == 2 && section == "phases")
      loaded.phases.push_back(keep(value));
    else if (depth == 2 && section == "files")
      loaded.files.push_back(keep(value));
    else if (depth == 2 && section == "columns")
      addColumn(value);
    else if (depth == 3 && section == "kinds" && inner == "letters")
      loaded.kinds.back().letters = keep(value);
    else if (depth == 3 && section == "kinds" && inner == "class")
      className = value;
    else if (depth == 3 && section == "kinds" && inner == "restores")
      restores.emplace_back(loaded.kinds.size() - 1, value);
    else if (depth == 3 && section == "kinds" && inner == "collective")
      loaded.kinds.back().meeting = meetingOf(value);
    else if (depth == 3 && section == "pipes" && inner == "name")
      loaded.pipes.back().name = keep(value);
    else
      unexpected(!addTensorText(value));
    return true;
  }

  bool start_object(size_t) {
    open();
    if (depth == 1 || skipping())
      return true;
    if (depth == 3 && section == "kinds") {
      loaded.kinds.emplace_back();
      className.clear();
    } else if (depth == 3 && section == "pipes") {
      loaded.pipes.push_back({"", 0, 0, {}, {}, {}, 1, {}});
      loaded.ranksOfStages.emplace_back();
      loaded.skipEdges.emplace_back();
      loaded.gaps.emplace_back();
      loaded.edgeTensors.emplace_back();
      numbers.clear();
    } else {
      unexpected(!beginTensors());
      return true;
    }
    innerSeen.clear();
    inner.clear();
    return true;
  }

  bool key(string_t &name) {
    if (depth == 1) {
      section = name;
      inActions = name == "actions";
      skips = !isOneOf(name, {"format", "version", "schedule", "ranks",
                              "backward", "kinds", "phases", "pipes", "files",
                              "sites", "columns", "actions", "loops", "buffers",
                              "peak_activations", "preconnect"});
      if (!skips) {
        require(!seen(name), "there are two keys `" + name + "`");
        keysSeen.push_back(name);
      }
    } else if (!skipping() && depth == 3) {
      require(!isAmong(innerSeen, name),
              "there are two keys `" + name + "` in `" + section + "`");
      innerSeen.push_back(name);
      inner = name;
    } else if (!skipping() && inTensors()) {
      (depth == 5 ? edgeKey : tensorKey) = name;
    }
    return true;
  }

  bool end_object() {
    if (!skipping() && depth == 3 && section == "kinds")
      endKind();
    if (!skipping() && depth == 3 && section == "pipes")
      endPipe();
    if (!skipping() && inTensors())
      endTensors();
    --depth;
    return true;
  }

  bool start_array(size_t) {
    open();
    if (depth == 1)
      refuse("it is no object");
    if (skipping())
      return true;
    numbers.clear();
    if (inActions && depth == 4)
      return true;
    if (section == "actions" && depth == 2) {
      beginActions();
    } else if (section == "actions" && depth == 3) {
      loaded.rows.emplace_back();
      group = -1;
    } else if (section == "loops" && depth == 3) {
      loops.emplace_back();
    } else {
      bool isList = depth == 2 &&
                    isOneOf(section, {"kinds", "phases", "pipes", "files",
                                      "sites", "columns", "loops", "buffers",
                                      "peak_activations", "preconnect"});
      bool isInner =
          depth == 4 && isOneOf(inner, {"microbatches", "rank_of_stage",
                                        "skip_edges", "gaps", "collective"});
      unexpected(!isList && !isInner && !inNumbers() && !isListOfTensors());
    }
    return true;
  }

  bool end_array() {
    if (!skipping()) {
      if (inActions && depth == 4)
        endAction();
      else if (section == "sites" && depth == 3)
        endSite();
      else if (section == "preconnect" && depth == 3)
        endPair();
      else if (section == "loops" && depth == 4)
        endLoop();
      else if (section == "pipes" && depth == 4 && inner == "microbatches")
        endRange();
      else if (section == "pipes" && depth == 5 && inner == "skip_edges")
        endSkipEdge();
      else if (inCollective())
        endCollective();
      else if (inTensors())
        endTensorNumbers();
    }
    --depth;
    return true;
  }

  bool parse_error(size_t position, const std::string &,
                   const nlohmann::detail::exception &error) {
    throw Error("program.json, byte " + std::to_string(position) + ": " +
                error.what());
  }

private:
  static constexpr size_t maxDepth = 64;
  static constexpr const char *columnNames[] = {
      "kind", "pipe", "stage", "microbatch", "peer", "phase", "group", "site"};
  static constexpr size_t numColumns = std::size(columnNames);
  enum Column {
    KindOf,
    PipeOf,
    StageOf,
    MicrobatchOf,
    PeerOf,
    PhaseOf,
    GroupOf,
    SiteOf
  };

  [[noreturn]] static void refuse(const std::string &what) {
    throw Error("program.json: " + what);
  }
  static void require(bool good, const std::string &what) {
    if (!good)
      refuse(what);
  }
  template <class T> static List<T> list(const std::vector<T> &from) {
    return {from.data(), from.size()};
  }
  /// A list that may be absent has an entry a rank.
  void requireForRanks(const char *name, size_t size) const {
    require(size == 0 || size == loaded.view.numRanks,
            std::string("there are `") + name + "` for " +
                std::to_string(size) + " of " +
                std::to_string(loaded.view.numRanks) + " ranks");
  }

  // Where the parser stands.

  bool skipping() const { return skips; }
  static bool isOneOf(const std::string &name,
                      std::initializer_list<const char *> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }
  static bool isAmong(const std::vector<std::string> &names,
                      const std::string &name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }
  bool seen(const std::string &name) const { return isAmong(keysSeen, name); }
  void open() {
    if (++depth > maxDepth)
      refuse("it is nested too deeply");
  }
  /// The parser is in a list whose numbers mean something together.
  bool inNumbers() const {
    return (isOneOf(section, {"sites", "preconnect"}) && depth == 3) ||
           (section == "loops" && depth == 4) ||
           (section == "pipes" && depth == 4 && inner == "microbatches") ||
           (section == "pipes" && depth == 5 && inner == "skip_edges");
  }
  /// In the list of stages that do an action together.
  bool inCollective() const {
    return section == "kinds" && depth == 4 && inner == "collective";
  }
  /// In what edges of a pipe carry: a list (depth 4) of objects (5) with a list
  /// (6) of tensors (7), whose sizes are lists (8).
  bool inTensors() const {
    return section == "pipes" && inner == "tensors" && depth >= 4;
  }
  /// In the two stages of an edge.
  bool inEdge() const { return depth == 6 && edgeKey == "edge"; }
  /// In a tensor, or in its sizes.
  bool inTensor(size_t at) const { return depth == at && edgeKey == "carries"; }
  bool inDims() const { return inTensor(8) && tensorKey == "dims"; }
  /// In one of the lists of what edges carry.
  bool isListOfTensors() const {
    return inTensors() && (depth == 4 || inEdge() || inTensor(6) || inDims());
  }
  /// Whether the value belongs to a key that this engine does not know.
  bool isUnknown() const {
    if (depth < 3 || (section != "kinds" && section != "pipes"))
      return false;
    if (!isOneOf(inner, {"", "letters", "class", "name", "microbatches",
                         "rank_of_stage", "skip_edges", "gaps", "slices",
                         "restores", "collective", "tensors"}))
      return true;
    if (!inTensors() || depth < 5)
      return false;
    return !isOneOf(edgeKey, {"", "edge", "shapes", "carries"}) ||
           (edgeKey == "carries" && depth >= 7 &&
            !isOneOf(tensorKey, {"", "name", "type", "dims"}));
  }
  /// Refuses the value if it is wrong, unless it belongs to an unknown key.
  void unexpected(bool wrong) const {
    require(!wrong || skipping() || isUnknown(),
            "the value of `" + section + "` is of another form");
  }
  bool other() {
    unexpected(true);
    return true;
  }

  // What values mean.

  bool number(int64_t value) {
    if (inActions && depth == 4) {
      addNumber(value);
      return true;
    }
    if (depth == 1 && section == "version")
      require(value >= 1 && value <= 3,
              "it has version " + std::to_string(value) +
                  ", this engine reads versions 1, 2 and 3");
    else if (depth == 1 && section == "ranks")
      loaded.view.numRanks = within(value, 1u << 20, "ranks");
    else if (section == "buffers" && depth == 2)
      buffers.push_back(within(value, UINT32_MAX, "buffers"));
    else if (section == "peak_activations" && depth == 2)
      activations.push_back(within(value, UINT32_MAX, "peak_activations"));
    else if (inNumbers() || (inTensors() && (inEdge() || inDims())))
      addNumber(value);
    else if (inCollective())
      addMember(value);
    else if (section == "pipes" && inner == "rank_of_stage" && depth == 4)
      loaded.ranksOfStages.back().push_back(
          within(value, UINT32_MAX, "rank_of_stage"));
    else if (section == "pipes" && inner == "gaps" && depth == 4)
      loaded.gaps.back().push_back(
          uint16_t(within(value, Row::noPeer - 1, "gaps")));
    else if (section == "pipes" && inner == "slices" && depth == 3)
      loaded.pipes.back().slices = within(value, UINT32_MAX, "slices");
    else
      unexpected(true);
    return true;
  }

  // These run once a number: their messages are made only when needed.
  static uint32_t within(int64_t value, uint32_t limit, const char *what) {
    if (value < 0 || value > int64_t(limit))
      refuse(std::string(what) + ": " + std::to_string(value) +
             " is not in 0.." + std::to_string(limit));
    return static_cast<uint32_t>(value);
  }
  void addNumber(int64_t value) {
    if (numbers.size() == maxNumbers)
      refuse("a list of `" + section + "` is too long");
    numbers.push_back(value);
  }

  const char *keep(const std::string &text) {
    require(text.find('\0') == std::string::npos, "a text holds a zero byte");
    return loaded.texts.emplace_back(text).c_str();
  }

  void addColumn(const std::string &name) {
    auto known =
        std::find(std::begin(columnNames), std::end(columnNames), name);
    require(columns.size() < maxNumbers, "there are too many columns");
    columns.push_back(static_cast<size_t>(known - std::begin(columnNames)));
  }

  void beginActions() {
    require(seen("columns"), "`columns` does not come before `actions`");
    for (size_t column = 0; column != numColumns; ++column) {
      auto at = std::find(columns.begin(), columns.end(), column);
      require(at != columns.end(),
              std::string("there is no column `") + columnNames[column] + "`");
      position[column] = static_cast<size_t>(at - columns.begin());
    }
  }

  void endAction() {
    if (numbers.size() != columns.size())
      refuse("an action has " + std::to_string(numbers.size()) +
             " numbers for " + std::to_string(columns.size()) + " columns");
    auto at = [&](Column column) { return numbers[position[column]]; };
    Row row{};
    row.kind = uint8_t(within(at(KindOf), UINT8_MAX, "kind"));
    row.pipe = uint8_t(within(at(PipeOf), UINT8_MAX, "pipe"));
    row.stage = uint16_t(within(at(StageOf), Row::noPeer - 1, "stage"));
    row.microbatch =
        at(MicrobatchOf) == -1
            ? Row::noMicrobatch
            : within(at(MicrobatchOf), Row::noMicrobatch - 1, "microbatch");
    row.peer = at(PeerOf) == -1
                   ? Row::noPeer
                   : uint16_t(within(at(PeerOf), Row::noPeer - 1, "peer"));
    row.phaseAndJoined =
        uint16_t(within(at(PhaseOf), Row::joinedBit - 1, "phase"));
    row.site = within(at(SiteOf), UINT32_MAX, "site");
    if (at(GroupOf) != -1 && at(GroupOf) == group)
      row.phaseAndJoined |= Row::joinedBit;
    group = at(GroupOf);
    if (loaded.rows.back().size() == UINT32_MAX)
      refuse("a rank has too many rows");
    loaded.rows.back().push_back(row);
  }

  /// First row, rows, turns, advance.
  void endLoop() {
    require(numbers.size() == 4, "a loop is not four numbers");
    require(numbers[3] >= INT32_MIN && numbers[3] <= INT32_MAX,
            "a loop adds too much to microbatches");
    loops.back().push_back({within(numbers[0], UINT32_MAX, "loops"),
                            within(numbers[1], UINT32_MAX, "loops"),
                            within(numbers[2], UINT32_MAX, "loops"),
                            static_cast<int32_t>(numbers[3])});
  }

  /// The loops of a rank, and what stands between them.
  const std::vector<Segment> &addSegments(size_t rank) {
    std::vector<Segment> &segments = loaded.segments.emplace_back();
    uint64_t next = 0, end = loaded.rows[rank].size();
    auto flatUntil = [&](uint64_t row) {
      if (next != row)
        segments.push_back({next, static_cast<uint32_t>(row - next), 1, 0});
    };
    if (!loops.empty())
      for (const Segment &loop : loops[rank]) {
        require(loop.firstRow >= next && loop.firstRow + loop.rows <= end,
                "a loop of rank " + std::to_string(rank) +
                    " overlaps the one before it, or leaves the actions");
        flatUntil(loop.firstRow);
        segments.push_back(loop);
        next = loop.firstRow + loop.rows;
      }
    flatUntil(end);
    return segments;
  }

  void endSite() {
    require(numbers.size() >= 4, "a site has fewer than 4 numbers");
    require(numbers[0] >= -1 && numbers[0] <= INT32_MAX, "a site has no file");
    loaded.sites.push_back({int32_t(numbers[0]),
                            within(numbers[1], UINT32_MAX, "line"),
                            within(numbers[2], UINT32_MAX, "column"),
                            within(numbers[3], UINT32_MAX, "caller")});
  }

  void endPair() {
    require(numbers.size() == 2, "a pair of `preconnect` is not two numbers");
    loaded.preconnect.push_back({within(numbers[0], UINT32_MAX, "preconnect"),
                                 within(numbers[1], UINT32_MAX, "preconnect")});
  }

  void endRange() {
    require(numbers.size() == 2, "`microbatches` are not two numbers");
    uint32_t first = within(numbers[0], UINT32_MAX, "microbatches"),
             end = within(numbers[1], UINT32_MAX, "microbatches");
    require(first <= end, "a pipe's `microbatches` end before they begin");
    loaded.pipes.back().firstMicrobatch = first;
    loaded.pipes.back().numMicrobatches = end - first;
  }

  void endSkipEdge() {
    require(numbers.size() == 2, "a skip edge is not two numbers");
    loaded.skipEdges.back().push_back(
        {uint16_t(within(numbers[0], Row::noPeer - 1, "skip_edges")),
         uint16_t(within(numbers[1], Row::noPeer - 1, "skip_edges"))});
  }

  void endPipe() {
    loaded.pipes.back().rankOfStage = list(loaded.ranksOfStages.back());
    loaded.pipes.back().skipEdges = list(loaded.skipEdges.back());
    loaded.pipes.back().gaps = list(loaded.gaps.back());
    loaded.pipes.back().tensors = list(loaded.edgeTensors.back());
    inner.clear();
  }

  /// These two are false where nothing of this kind is known.
  bool beginTensors() {
    if (!inTensors())
      return false;
    if (depth == 5) {
      edge = {0, 0, false, {}};
      edgeKey.clear();
      isPlaced = false;
      loaded.tensors.emplace_back();
    } else if (inTensor(7)) {
      loaded.tensors.back().push_back({nullptr, nullptr, {}});
      tensorKey.clear();
    } else {
      return false;
    }
    return true;
  }
  bool addTensorText(const std::string &text) {
    if (!inTensors())
      return false;
    if (depth == 5 && edgeKey == "shapes") {
      require(text == "each", "shapes cannot be sent `" + text + "`");
      edge.shapesVary = true;
    } else if (inTensor(7) && tensorKey == "name") {
      loaded.tensors.back().back().name = keep(text);
    } else if (inTensor(7) && tensorKey == "type") {
      loaded.tensors.back().back().type = keep(text);
    } else {
      return false;
    }
    return true;
  }
  void endTensorNumbers() {
    if (inEdge()) {
      require(numbers.size() == 2, "an edge has no two stages");
      edge.from = uint16_t(within(numbers[0], Row::noPeer - 1, "edge"));
      edge.to = uint16_t(within(numbers[1], Row::noPeer - 1, "edge"));
      isPlaced = true;
    } else if (inDims()) {
      for (int64_t dim : numbers)
        if (dim < -1)
          refuse("a tensor has the size " + std::to_string(dim));
      loaded.tensors.back().back().dims =
          list(loaded.dims.emplace_back(numbers));
    }
  }
  void endTensors() {
    if (depth == 5) {
      require(isPlaced, "tensors are on no edge");
      edge.tensors = list(loaded.tensors.back());
      loaded.edgeTensors.back().push_back(edge);
    } else if (inTensor(7)) {
      const Tensor &tensor = loaded.tensors.back().back();
      require(tensor.name && tensor.type, "a tensor has no name, or no type");
    }
  }

  /// What the engine knows by these letters.
  Kind kindOf(const std::string &letters) {
    using enum KindClass;
    static constexpr Kind kinds[] = {
        {"F", Compute, slot::Output, 0},
        {"B", Compute, slot::InputGrad | slot::WeightGrad, slot::Output},
        {"I", Compute, slot::InputGrad, slot::Output},
        {"W", Compute, slot::WeightGrad, slot::InputGrad},
        {"SEND_F", Send, slot::Output, 0},
        {"RECV_F", Recv, slot::Output, 0},
        {"SEND_B", Send, slot::InputGrad, 0},
        {"RECV_B", Recv, slot::InputGrad, 0},
    };
    for (const Kind &kind : kinds)
      if (letters == kind.letters)
        return kind;
    throw Error("program.json: this engine does not know the action `" +
                letters + "`");
  }

  static Meeting meetingOf(const std::string &word) {
    if (word == "all")
      return Meeting::All;
    if (word == "replicas")
      return Meeting::Replicas;
    require(word.rfind("outside ", 0) == 0,
            "no ranks are called `" + word + "`");
    return Meeting::Outside;
  }

  void addMember(int64_t stage) {
    if (stage <= -int64_t(Row::noPeer) || stage >= Row::noPeer)
      refuse("no action is of stage " + std::to_string(stage));
    members.push_back(static_cast<int32_t>(stage));
  }
  void endCollective() {
    Kind &kind = loaded.kinds.back();
    kind.meeting = Meeting::Stages;
    kind.stages =
        list(loaded.meetingStages.emplace_back(std::exchange(members, {})));
  }

  /// Kinds may name those behind them.
  void endRestores() {
    for (const auto &[number, letters] : restores) {
      auto found = std::find_if(
          loaded.kinds.begin(), loaded.kinds.end(),
          [&](const Kind &kind) { return letters == kind.letters; });
      require(found != loaded.kinds.end(),
              "there is no kind `" + letters + "` to restore");
      loaded.kinds[number].restores = found->defines;
    }
  }

  void endKind() {
    static constexpr const char *names[] = {"compute", "send", "recv",
                                            "declared"};
    Kind &kind = loaded.kinds.back();
    require(kind.letters, "a kind has no letters");
    for (size_t i = 0; i + 1 != loaded.kinds.size(); ++i)
      require(std::strcmp(loaded.kinds[i].letters, kind.letters) != 0,
              "kind `" + std::string(kind.letters) + "` is there twice");
    if (className == "declared")
      kind.kindClass = KindClass::Declared;
    else
      kind = kindOf(kind.letters);
    require(className == names[size_t(kind.kindClass)],
            "kind `" + std::string(kind.letters) + "` is of class `" +
                className + "`");
    inner.clear();
  }

  static constexpr size_t maxNumbers = 64;

  LoadedProgram loaded;
  std::string section, inner; ///< The key at the top, and that within it.
  std::string className;
  std::string edgeKey, tensorKey; ///< The keys within `tensors`.
  EdgeTensors edge{};             ///< That which is being read.
  bool isPlaced = false;          ///< Its stages are known.
  std::vector<std::pair<size_t, std::string>> restores; ///< Kind, and which.
  std::vector<std::string> keysSeen, innerSeen; ///< At the top, and within it.
  size_t depth = 0;
  bool inActions = false, skips = false;
  std::vector<int64_t> numbers; ///< Of the list that is being read.
  std::vector<int32_t> members; ///< The same, of `collective`.
  // By rank; empty where the file has none.
  std::vector<uint32_t> buffers, activations;
  std::vector<std::vector<Segment>> loops;
  std::vector<size_t> columns; ///< numColumns for one that is unknown.
  size_t position[numColumns] = {};
  int64_t group = -1; ///< Of the action before.
};

} // namespace detail

/// Reads what `ppcc --emit=json` writes. O(file). Throws Error, with what is
/// wrong, for a file of another version, one that is cut off, and one whose
/// numbers do not fit together.
inline LoadedProgram readJson(std::istream &in) {
  detail::JsonReader reader;
  nlohmann::json::sax_parse(in, &reader);
  return reader.take();
}
inline LoadedProgram readJson(const std::string &text) {
  detail::JsonReader reader;
  nlohmann::json::sax_parse(text, &reader);
  return reader.take();
}

} // namespace ppcc::rt
