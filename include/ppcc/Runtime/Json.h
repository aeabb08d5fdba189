// Reads program.json at run time. Needs nlohmann-json (nlohmann-json3-dev).
#pragma once

#include "ppcc/Runtime/Check.h"
#include "ppcc/Runtime/JsonEvents.h"

#include <deque>
#include <istream>
#include <limits>
#include <memory>

namespace ppcc::rt {

namespace detail {
class Families;
class JsonReader;
} // namespace detail

/// A program and the memory that it lies in.
class LoadedProgram {
public:
  LoadedProgram() = default;
  LoadedProgram(LoadedProgram &&) = default;
  LoadedProgram &operator=(LoadedProgram &&) = default;

  const Program &program() const { return view; }
  operator const Program &() const { return view; }
  LoadedProgram at(int64_t microbatches) const { return view.at(microbatches); }

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
  std::vector<const char *> phases, files, transports;
  std::vector<Site> sites;
  std::deque<std::vector<Row>> rows;
  std::deque<std::vector<Segment>> segments;
  std::vector<RankProgram> ranks;
  std::vector<RankPair> preconnect;
  std::shared_ptr<const detail::Families> families; ///< Of one for all.
  Program view{};
};

namespace detail {

/// Builds the program of the values that JsonEvents hands on. Every number is
/// checked before it is stored, every index before it is used.
class JsonReader {
public:
  using json = nlohmann::json;

  /// The program, whole. Throws Error.
  LoadedProgram take() {
    if (seen("families"))
      return forAll();
    for (const Key &key : keys())
      requireJson(!key.isRequired || seen(key.name),
                  std::string("there is no key `") + key.name + "`");
    Program &view = loaded.view;
    requireJson(loaded.rows.size() == view.numRanks,
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
    view.abi = abiNumber;
    view.kinds = list(loaded.kinds);
    view.pipes = list(loaded.pipes);
    view.phases = list(loaded.phases);
    view.files = list(loaded.files);
    view.sites = list(loaded.sites);
    view.ranks = list(loaded.ranks);
    view.preconnect = list(loaded.preconnect);
    view.transports = list(loaded.transports);
    checkHead(view);
    for (uint32_t rank = 0; rank != view.numRanks; ++rank)
      if (!view.ranks[rank].segments.empty())
        checkRows(view, rank, Wiring(view, rank));
    return std::move(loaded);
  }

  // What JsonEvents calls.

  bool begins(const std::string &name) {
    bool isKnown = false;
    for (const Key &key : keys())
      isKnown |= name == key.name;
    if (isKnown) {
      requireJson(!seen(name), "there are two keys `" + name + "`");
      keysSeen.push_back(name);
    }
    return isKnown;
  }
  void take(const std::string &name, const json &value) {
    section = name;
    for (const Key &key : keys())
      if (name == key.name) {
        (this->*key.take)(value);
        if (key.isShared)
          shared[name] = value;
      }
  }
  void beginActions() {
    requireJson(seen("columns"), "`columns` does not come before `actions`");
    for (size_t column = 0; column != numColumns; ++column) {
      auto at = std::find(columns.begin(), columns.end(), columnNames[column]);
      requireJson(at != columns.end(), std::string("there is no column `") +
                                           columnNames[column] + "`");
      position[column] = static_cast<size_t>(at - columns.begin());
    }
  }
  void beginRank() {
    loaded.rows.emplace_back();
    group = -1;
  }
  void addRow(const std::vector<int64_t> &numbers) {
    if (numbers.size() != columns.size())
      refuseJson("an action has " + std::to_string(numbers.size()) +
                 " numbers for " + std::to_string(columns.size()) + " columns");
    auto at = [&](Column column) { return numbers[position[column]]; };
    Row row{};
    row.kind = uint8_t(within(at(KindOf), UINT8_MAX, "kind"));
    row.pipe = uint8_t(within(at(PipeOf), UINT8_MAX, "pipe"));
    row.stage = stage(at(StageOf), "stage");
    row.microbatch =
        at(MicrobatchOf) == -1
            ? Row::noMicrobatch
            : within(at(MicrobatchOf), Row::noMicrobatch - 1, "microbatch");
    row.peer = at(PeerOf) == -1 ? Row::noPeer : stage(at(PeerOf), "peer");
    row.phaseAndJoined =
        uint16_t(within(at(PhaseOf), Row::joinedBit - 1, "phase"));
    row.site = within(at(SiteOf), UINT32_MAX, "site");
    if (at(GroupOf) != -1 && at(GroupOf) == group)
      row.phaseAndJoined |= Row::joinedBit;
    group = at(GroupOf);
    if (loaded.rows.back().size() == UINT32_MAX)
      refuseJson("a rank has too many rows");
    loaded.rows.back().push_back(row);
  }

private:
  struct Key {
    const char *name;
    void (JsonReader::*take)(const json &); ///< Null for `actions`.
    bool isRequired = true;
    bool isShared = false; ///< By the programs of one for all.
  };
  static const std::vector<Key> &keys() {
    static const std::vector<Key> keys = {
        {"format", &JsonReader::readFormat, true, true},
        {"version", &JsonReader::readVersion, true, true},
        {"schedule", &JsonReader::readSchedule, true, true},
        {"ranks", &JsonReader::readRanks, true, true},
        {"backward", &JsonReader::readBackward, true, true},
        {"transports", &JsonReader::readTransports, false, true},
        {"preconnect", &JsonReader::readPreconnect, false},
        {"buffers", &JsonReader::readBuffers, false},
        {"peak_activations", &JsonReader::readPeakActivations, false},
        {"kinds", &JsonReader::readKinds, true, true},
        {"phases", &JsonReader::readPhases},
        {"pipes", &JsonReader::readPipes, true, true},
        {"files", &JsonReader::readFiles, true, true},
        {"sites", &JsonReader::readSites},
        {"columns", &JsonReader::readColumns},
        {"actions", nullptr},
        {"loops", &JsonReader::readLoops, false},
        {"families", &JsonReader::readFamilies, false, true},
    };
    return keys;
  }

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

  template <class T> static List<T> list(const std::vector<T> &from) {
    return {from.data(), from.size()};
  }
  /// A list that may be absent has an entry a rank.
  void requireForRanks(const char *name, size_t size) const {
    requireJson(size == 0 || size == loaded.view.numRanks,
                std::string("there are `") + name + "` for " +
                    std::to_string(size) + " of " +
                    std::to_string(loaded.view.numRanks) + " ranks");
  }
  bool seen(const std::string &name) const {
    return std::find(keysSeen.begin(), keysSeen.end(), name) != keysSeen.end();
  }

  // ---- Values ----

  // These run once a number: their messages are made only when needed.
  static uint32_t within(int64_t value, uint32_t limit, const char *what) {
    if (value < 0 || value > int64_t(limit))
      refuseJson(std::string(what) + ": " + std::to_string(value) +
                 " is not in 0.." + std::to_string(limit));
    return static_cast<uint32_t>(value);
  }
  static uint16_t stage(int64_t value, const char *what) {
    return static_cast<uint16_t>(within(value, Row::noPeer - 1, what));
  }
  int64_t integer(const json &value) const {
    if (!value.is_number_integer())
      refuseForm(section);
    return value.get<int64_t>();
  }
  uint32_t within(const json &value, uint32_t limit, const char *what) const {
    return within(integer(value), limit, what);
  }
  const std::string &string(const json &value) const {
    if (!value.is_string())
      refuseForm(section);
    return value.get_ref<const std::string &>();
  }
  const char *keep(const json &value) {
    const std::string &text = string(value);
    requireJson(text.find('\0') == std::string::npos,
                "a text holds a zero byte");
    return loaded.texts.emplace_back(text).c_str();
  }
  const json &items(const json &value) const {
    if (!value.is_array())
      refuseForm(section);
    return value;
  }
  /// The first numbers of a list that has `least` of them; `message` else.
  std::vector<int64_t> numbers(const json &value, size_t least, size_t most,
                               const char *message) const {
    std::vector<int64_t> result;
    for (const json &number : items(value))
      result.push_back(integer(number));
    requireJson(result.size() >= least && result.size() <= most, message);
    return result;
  }
  /// The value of a key of an object; null when there is none.
  const json *find(const json &object, const char *key) const {
    if (!object.is_object())
      refuseForm(section);
    auto found = object.find(key);
    return found == object.end() ? nullptr : &*found;
  }

  /// Calls `visit` with the items of the list under a key, if it is there.
  template <class Visit>
  void each(const json &object, const char *key, Visit visit) const {
    if (const json *list = find(object, key))
      for (const json &item : items(*list))
        visit(item);
  }

  // ---- Keys ----

  void readFormat(const json &value) {
    requireJson(string(value) == "ppcc.program",
                "`" + string(value) + "` is no ppcc.program");
  }
  void readVersion(const json &value) {
    int64_t version = integer(value);
    requireJson(version >= 1 && version <= 3,
                "it has version " + std::to_string(version) +
                    ", this engine reads versions 1, 2 and 3");
  }
  void readSchedule(const json &value) { loaded.view.name = keep(value); }
  void readRanks(const json &value) {
    loaded.view.numRanks = within(value, 1u << 20, "ranks");
  }
  void readBackward(const json &value) {
    if (!value.is_boolean())
      refuseForm(section);
    loaded.view.hasBackward = value.get<bool>();
  }
  void readPreconnect(const json &value) {
    for (const json &item : items(value)) {
      auto pair =
          numbers(item, 2, 2, "a pair of `preconnect` is not two numbers");
      loaded.preconnect.push_back({within(pair[0], UINT32_MAX, "preconnect"),
                                   within(pair[1], UINT32_MAX, "preconnect")});
    }
  }
  void readTransports(const json &value) {
    for (const json &transport : items(value))
      loaded.transports.push_back(keep(transport));
  }
  void readBuffers(const json &value) {
    for (const json &number : items(value))
      buffers.push_back(within(number, UINT32_MAX, "buffers"));
  }
  void readPeakActivations(const json &value) {
    for (const json &number : items(value))
      activations.push_back(within(number, UINT32_MAX, "peak_activations"));
  }
  void readPhases(const json &value) {
    for (const json &phase : items(value))
      loaded.phases.push_back(keep(phase));
  }
  void readFiles(const json &value) {
    for (const json &file : items(value))
      loaded.files.push_back(keep(file));
  }
  void readSites(const json &value) {
    for (const json &item : items(value)) {
      auto site = numbers(item, 4, SIZE_MAX, "a site has fewer than 4 numbers");
      requireJson(site[0] >= -1 && site[0] <= INT32_MAX, "a site has no file");
      loaded.sites.push_back({int32_t(site[0]),
                              within(site[1], UINT32_MAX, "line"),
                              within(site[2], UINT32_MAX, "column"),
                              within(site[3], UINT32_MAX, "caller")});
    }
  }
  void readColumns(const json &value) {
    for (const json &name : items(value))
      columns.push_back(string(name));
    requireJson(columns.size() <= maxNumbers, "there are too many columns");
  }

  // ---- Kinds ----

  void readKinds(const json &value) {
    for (const json &kind : items(value))
      readKind(kind);
    // Kinds may name those behind them.
    for (size_t i = 0; i != loaded.kinds.size(); ++i)
      if (const json *letters = find(value[i], "restores"))
        loaded.kinds[i].restores = kindCalled(string(*letters)).defines;
  }

  void readKind(const json &value) {
    static constexpr const char *names[] = {"compute", "send", "recv",
                                            "declared"};
    const json *letters = find(value, "letters"),
               *kindClass = find(value, "class");
    requireJson(letters, "a kind has no letters");
    for (const Kind &other : loaded.kinds)
      requireJson(string(*letters) != other.letters,
                  "kind `" + string(*letters) + "` is there twice");
    std::string className = kindClass ? string(*kindClass) : "";
    Kind kind{};
    if (className == "declared") {
      kind.letters = keep(*letters);
      kind.kindClass = KindClass::Declared;
    } else {
      kind = builtIn(string(*letters));
    }
    requireJson(className == names[size_t(kind.kindClass)],
                "kind `" + string(*letters) + "` is of class `" + className +
                    "`");
    if (const json *meeting = find(value, "collective"))
      readMeeting(*meeting, kind);
    loaded.kinds.push_back(kind);
  }

  /// What the engine knows by these letters.
  static Kind builtIn(const std::string &letters) {
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
    refuseJson("this engine does not know the action `" + letters + "`");
  }

  void readMeeting(const json &value, Kind &kind) {
    if (value.is_array()) {
      kind.meeting = Meeting::Stages;
      std::vector<int32_t> &stages = loaded.meetingStages.emplace_back();
      for (int64_t stage : numbers(value, 0, SIZE_MAX, "")) {
        if (stage <= -int64_t(Row::noPeer) || stage >= Row::noPeer)
          refuseJson("no action is of stage " + std::to_string(stage));
        stages.push_back(static_cast<int32_t>(stage));
      }
      kind.stages = list(stages);
      return;
    }
    const std::string &word = string(value);
    bool isOutside = word.rfind("outside ", 0) == 0;
    if (word == "to" || word == "from") {
      kind.meeting = word == "to" ? Meeting::To : Meeting::From;
      return;
    }
    requireJson(isOutside || word == "all" || word == "replicas",
                "no ranks are called `" + word + "`");
    kind.meeting = isOutside       ? Meeting::Outside
                   : word == "all" ? Meeting::All
                                   : Meeting::Replicas;
  }

  const Kind &kindCalled(const std::string &letters) const {
    for (const Kind &kind : loaded.kinds)
      if (letters == kind.letters)
        return kind;
    refuseJson("there is no kind `" + letters + "` to restore");
  }

  // ---- Pipes ----

  void readPipes(const json &value) {
    for (const json &item : items(value)) {
      Pipe pipe{"", 0, 0, {}, {}, {}, 1, {}};
      if (const json *name = find(item, "name"))
        pipe.name = keep(*name);
      if (const json *range = find(item, "microbatches")) {
        auto ends = numbers(*range, 2, 2, "`microbatches` are not two numbers");
        pipe.firstMicrobatch = within(ends[0], UINT32_MAX, "microbatches");
        uint32_t end = within(ends[1], UINT32_MAX, "microbatches");
        requireJson(pipe.firstMicrobatch <= end,
                    "a pipe's `microbatches` end before they begin");
        pipe.numMicrobatches = end - pipe.firstMicrobatch;
      }
      if (const json *slices = find(item, "slices"))
        pipe.slices = within(*slices, UINT32_MAX, "slices");
      auto &ranks = loaded.ranksOfStages.emplace_back();
      each(item, "rank_of_stage", [&](const json &rank) {
        ranks.push_back(within(rank, UINT32_MAX, "rank_of_stage"));
      });
      auto &edges = loaded.skipEdges.emplace_back();
      each(item, "skip_edges", [&](const json &edge) {
        auto ends = numbers(edge, 2, 2, "a skip edge is not two numbers");
        edges.push_back(
            {stage(ends[0], "skip_edges"), stage(ends[1], "skip_edges")});
      });
      auto &gaps = loaded.gaps.emplace_back();
      each(item, "gaps", [&](const json &gap) {
        gaps.push_back(stage(integer(gap), "gaps"));
      });
      auto &tensors = loaded.edgeTensors.emplace_back();
      each(item, "tensors",
           [&](const json &edge) { tensors.push_back(edgeTensors(edge)); });
      pipe.rankOfStage = list(ranks);
      pipe.skipEdges = list(edges);
      pipe.gaps = list(gaps);
      pipe.tensors = list(tensors);
      loaded.pipes.push_back(pipe);
    }
  }

  /// What an edge carries.
  EdgeTensors edgeTensors(const json &value) {
    const json *ends = find(value, "edge"), *shapes = find(value, "shapes");
    requireJson(ends, "tensors are on no edge");
    auto stages = numbers(*ends, 2, 2, "an edge has no two stages");
    EdgeTensors edge{stage(stages[0], "edge"),
                     stage(stages[1], "edge"),
                     shapes != nullptr,
                     {}};
    requireJson(!shapes || string(*shapes) == "each",
                "shapes cannot be sent `" + (shapes ? string(*shapes) : "") +
                    "`");
    auto &tensors = loaded.tensors.emplace_back();
    each(value, "carries", [&](const json &item) {
      const json *name = find(item, "name"), *type = find(item, "type"),
                 *dims = find(item, "dims");
      requireJson(name && type, "a tensor has no name, or no type");
      auto &sizes = loaded.dims.emplace_back();
      if (dims)
        sizes = numbers(*dims, 0, SIZE_MAX, "");
      for (int64_t size : sizes)
        if (size < -1)
          refuseJson("a tensor has the size " + std::to_string(size));
      tensors.push_back({keep(*name), keep(*type), list(sizes)});
    });
    edge.tensors = list(tensors);
    return edge;
  }

  // ---- Families ----

  void readFamilies(const json &value) { items(value); }
  LoadedProgram forAll();

  // ---- Loops ----

  /// Of each: first row, rows, turns, advance.
  void readLoops(const json &value) {
    for (const json &ofRank : items(value)) {
      std::vector<Segment> &segments = loops.emplace_back();
      for (const json &item : items(ofRank)) {
        auto loop = numbers(item, 4, 4, "a loop is not four numbers");
        requireJson(loop[3] >= INT32_MIN && loop[3] <= INT32_MAX,
                    "a loop adds too much to microbatches");
        segments.push_back({within(loop[0], UINT32_MAX, "loops"),
                            within(loop[1], UINT32_MAX, "loops"),
                            within(loop[2], UINT32_MAX, "loops"),
                            static_cast<int32_t>(loop[3])});
      }
    }
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
        requireJson(loop.firstRow >= next && loop.firstRow + loop.rows <= end,
                    "a loop of rank " + std::to_string(rank) +
                        " overlaps the one before it, or leaves the actions");
        flatUntil(loop.firstRow);
        segments.push_back(loop);
        next = loop.firstRow + loop.rows;
      }
    flatUntil(end);
    return segments;
  }

  LoadedProgram loaded;
  json shared;
  std::string section; ///< The key that is being read.
  std::vector<std::string> keysSeen, columns;
  // By rank; empty where the file has none.
  std::vector<uint32_t> buffers, activations;
  std::vector<std::vector<Segment>> loops;
  size_t position[numColumns] = {};
  int64_t group = -1; ///< Of the action before.
};

template <class Input> LoadedProgram readJson(Input &in) {
  JsonReader reader;
  JsonEvents<JsonReader> events(reader);
  nlohmann::json::sax_parse(in, &events);
  return reader.take();
}

} // namespace detail

/// Reads what `ppcc --emit=json` writes; of `ppcc --for M`, a program of which
/// at(M) gives others. O(file). Throws Error, with what is
/// wrong, for a file of another version, one that is cut off, and one whose
/// numbers do not fit together.
inline LoadedProgram readJson(std::istream &in) { return detail::readJson(in); }
inline LoadedProgram readJson(const std::string &text) {
  return detail::readJson(text);
}

} // namespace ppcc::rt

#include "ppcc/Runtime/Families.h"
