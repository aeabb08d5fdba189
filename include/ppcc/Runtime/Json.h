// Reads program.json at run time. Needs nlohmann-json (nlohmann-json3-dev).
#pragma once

#include "ppcc/Runtime/Check.h"
#include "ppcc/Runtime/JsonEvents.h"

#include <array>
#include <memory>
#include <set>
#include <span>

namespace ppcc::rt {

namespace detail {
class JsonReader;
} // namespace detail

/// A program and the memory that it lies in.
class LoadedProgram {
public:
  const Program &program() const { return view; }
  operator const Program &() const { return view; }
  LoadedProgram at(int64_t microbatches) const { return view.at(microbatches); }

private:
  friend class detail::JsonReader;

  /// Keeps a value for as long as there is the program, or a copy of it.
  template <class T> const T &keep(T &&value) {
    auto kept = std::make_shared<const T>(std::move(value));
    memory.push_back(kept);
    return *kept;
  }

  std::vector<std::shared_ptr<const void>> memory;
  Program view{};
};

namespace detail {

/// Builds the program of the values that JsonEvents hands on. Every number is
/// checked before it is stored, every index before it is used.
class JsonReader : JsonValues {
public:
  /// The program, whole. Throws Error.
  LoadedProgram finish() {
    if (seen("families"))
      return parametric();
    for (const Key &key : keys())
      requireJson(!key.isRequired || seen(key.name), "there is no key `",
                  key.name, "`");
    requireJson(rows.size() == view.numRanks, "there are actions for ",
                rows.size(), " of ", view.numRanks, " ranks");
    requireForRanks("buffers", buffers.size());
    requireForRanks("peak_activations", activations.size());
    requireForRanks("loops", loops.size());
    std::vector<RankProgram> ranks(rows.size());
    for (size_t i = 0; i != ranks.size(); ++i) {
      ranks[i].segments = keep(segmentsOf(i));
      ranks[i].rows = keep(std::move(rows[i]));
      if (!buffers.empty())
        ranks[i].receiveBuffers = buffers[i];
      if (!activations.empty())
        ranks[i].peakActivations = activations[i];
    }
    view.ranks = keep(std::move(ranks));
    view.abi = abiVersion;
    checkHead(view);
    for (uint32_t rank = 0; rank != view.numRanks; ++rank)
      if (!view.ranks[rank].segments.empty())
        checkRows(view, rank, Wiring(view, rank));
    return std::move(loaded);
  }

  // What JsonEvents calls.

  bool beginKey(const std::string &name) {
    if (!findKey(name))
      return false;
    requireJson(keysSeen.insert(name).second, "there are two keys `", name,
                "`");
    return true;
  }
  void onValue(const std::string &name, const json &value) {
    section = name;
    const Key &key = *findKey(name);
    (this->*key.onValue)(value);
    if (key.isShared)
      shared[name] = value;
  }
  void beginActions() {
    requireJson(seen("columns"), "`columns` does not come before `actions`");
    for (size_t column = 0; column != numColumns; ++column) {
      auto at = std::find(columns.begin(), columns.end(), columnNames[column]);
      requireJson(at != columns.end(), "there is no column `",
                  columnNames[column], "`");
      position[column] = static_cast<size_t>(at - columns.begin());
    }
  }
  void beginRank() {
    rows.emplace_back();
    group = -1;
  }
  void addRow(const std::vector<int64_t> &numbers) {
    requireJson(numbers.size() == columns.size(), "an action has ",
                numbers.size(), " numbers for ", columns.size(), " columns");
    std::array<int64_t, numColumns> values;
    for (size_t i = 0; i != numColumns; ++i)
      values[i] = numbers[position[i]];
    auto [kind, pipe, ofStage, microbatch, peer, phase, ofGroup, site] = values;
    Row row{};
    row.kind = uint8_t(checkedRange(kind, UINT8_MAX, "kind"));
    row.pipe = uint8_t(checkedRange(pipe, UINT8_MAX, "pipe"));
    row.stage = stage(ofStage, "stage");
    row.microbatch =
        microbatch == -1
            ? Row::noMicrobatch
            : checkedRange(microbatch, Row::noMicrobatch - 1, "microbatch");
    row.peer = peer == -1 ? Row::noPeer : stage(peer, "peer");
    row.phaseAndJoined =
        uint16_t(checkedRange(phase, Row::joinedBit - 1, "phase"));
    row.site = checkedRange(site, UINT32_MAX, "site");
    if (ofGroup != -1 && ofGroup == group)
      row.phaseAndJoined |= Row::joinedBit;
    group = ofGroup;
    requireJson(rows.back().size() != UINT32_MAX, "a rank has too many rows");
    rows.back().push_back(row);
  }

private:
  struct Key {
    const char *name;
    void (JsonReader::*onValue)(const json &); ///< Null for `actions`.
    bool isRequired = true;
    bool isShared = false; ///< By the programs of one for all.
  };
  static std::span<const Key> keys() {
    static constexpr Key all[] = {
        {"format", &JsonReader::readFormat, true, true},
        {"version", &JsonReader::readVersion, true, true},
        {"schedule", &JsonReader::readSchedule, true, true},
        {"ranks", &JsonReader::readRanks, true, true},
        {"backward", &JsonReader::readBackward, true, true},
        {"transports", &JsonReader::readTexts<&Program::transports>, false,
         true},
        {"preconnect", &JsonReader::readPreconnect, false},
        {"buffers", &JsonReader::readCounts<&JsonReader::buffers>, false},
        {"peak_activations", &JsonReader::readCounts<&JsonReader::activations>,
         false},
        {"kinds", &JsonReader::readKinds, true, true},
        {"phases", &JsonReader::readTexts<&Program::phases>},
        {"pipes", &JsonReader::readPipes, true, true},
        {"files", &JsonReader::readTexts<&Program::files>, true, true},
        {"sites", &JsonReader::readSites},
        {"columns", &JsonReader::readColumns},
        {"actions", nullptr},
        {"loops", &JsonReader::readLoops, false},
        {"families", &JsonReader::readFamilies, false, true},
    };
    return all;
  }
  static const Key *findKey(const std::string &name) {
    for (const Key &key : keys())
      if (name == key.name)
        return &key;
    return nullptr;
  }

  static constexpr const char *columnNames[] = {
      "kind", "pipe", "stage", "microbatch", "peer", "phase", "group", "site"};
  static constexpr size_t numColumns = std::size(columnNames);

  /// A list that may be absent has an entry a rank.
  void requireForRanks(const char *name, size_t size) const {
    requireJson(size == 0 || size == view.numRanks, "there are `", name,
                "` for ", size, " of ", view.numRanks, " ranks");
  }
  bool seen(const char *name) const { return keysSeen.contains(name); }

  // ---- Values ----

  template <class T> ArrayView<T> keep(std::vector<T> &&values) {
    const std::vector<T> &kept = loaded.keep(std::move(values));
    return {kept.data(), kept.size()};
  }
  const char *keepText(const json &value) {
    const std::string &text = string(value);
    requireJson(text.find('\0') == std::string::npos,
                "a text holds a zero byte");
    return loaded.keep(std::string(text)).c_str();
  }
  /// What `read` makes of each item of a list; of none where that is null.
  template <class Read> auto each(const json *value, Read read) {
    std::vector<decltype(read(*value))> result;
    if (value)
      for (const json &item : items(*value))
        result.push_back(read(item));
    return result;
  }

  // ---- Keys ----

  void readFormat(const json &value) {
    requireJson(string(value) == "ppcc.program", "`", string(value),
                "` is not a ppcc.program");
  }
  void readVersion(const json &value) {
    int64_t version = integer(value);
    requireJson(version >= 1 && version <= 3, "it has version ", version,
                ", this engine reads versions 1, 2 and 3");
  }
  void readSchedule(const json &value) { view.name = keepText(value); }
  void readRanks(const json &value) {
    view.numRanks = checkedRange(value, 1u << 20, "ranks");
  }
  void readBackward(const json &value) {
    if (!value.is_boolean())
      refuseType(section);
    view.hasBackward = value.get<bool>();
  }
  void readPreconnect(const json &value) {
    view.preconnect = keep(each(&value, [&](const json &item) {
      auto pair =
          numbers(item, 2, 2, "a pair of `preconnect` is not two numbers");
      return RankPair{checkedRange(pair[0], UINT32_MAX, "preconnect"),
                      checkedRange(pair[1], UINT32_MAX, "preconnect")};
    }));
  }
  template <auto Field> void readTexts(const json &value) {
    view.*Field =
        keep(each(&value, [&](const json &text) { return keepText(text); }));
  }
  /// A number a rank.
  template <auto Field> void readCounts(const json &value) {
    this->*Field = each(&value, [&](const json &number) {
      return checkedRange(number, UINT32_MAX, section.c_str());
    });
  }
  void readSites(const json &value) {
    view.sites = keep(each(&value, [&](const json &item) {
      auto site = numbers(item, 4, SIZE_MAX, "a site has fewer than 4 numbers");
      requireJson(site[0] >= -1 && site[0] <= INT32_MAX, "a site has no file");
      return Site{int32_t(site[0]), checkedRange(site[1], UINT32_MAX, "line"),
                  checkedRange(site[2], UINT32_MAX, "column"),
                  checkedRange(site[3], UINT32_MAX, "caller")};
    }));
  }
  void readColumns(const json &value) {
    columns = each(&value, [&](const json &name) { return string(name); });
    requireJson(columns.size() <= maxNumbers, "there are too many columns");
  }

  // ---- Kinds ----

  void readKinds(const json &value) {
    std::vector<Kind> kinds;
    for (const json &item : items(value)) {
      const json *mnemonic = find(item, "mnemonic");
      requireJson(mnemonic, "a kind has no mnemonic");
      requireJson(!findKind(string(*mnemonic), kinds), "kind `",
                  string(*mnemonic), "` is there twice");
      kinds.push_back(kind(item, *mnemonic));
    }
    // Kinds may name those after them.
    for (size_t i = 0; i != kinds.size(); ++i)
      if (const json *mnemonic = find(value[i], "restores")) {
        const Kind *restored = findKind(string(*mnemonic), kinds);
        requireJson(restored, "there is no kind `", string(*mnemonic),
                    "` to restore");
        kinds[i].restores = restored->defines;
      }
    view.kinds = keep(std::move(kinds));
  }
  static const Kind *findKind(const std::string &mnemonic,
                              std::span<const Kind> kinds) {
    for (const Kind &kind : kinds)
      if (mnemonic == kind.mnemonic)
        return &kind;
    return nullptr;
  }

  /// What the engine knows by their mnemonics.
  static constexpr Kind builtInKinds[] = {
      {"F", KindClass::Compute, slot::Output, 0},
      {"B", KindClass::Compute, slot::InputGrad | slot::WeightGrad,
       slot::Output},
      {"I", KindClass::Compute, slot::InputGrad, slot::Output},
      {"W", KindClass::Compute, slot::WeightGrad, slot::InputGrad},
      {"SEND_F", KindClass::Send, slot::Output, 0},
      {"RECV_F", KindClass::Recv, slot::Output, 0},
      {"SEND_B", KindClass::Send, slot::InputGrad, 0},
      {"RECV_B", KindClass::Recv, slot::InputGrad, 0},
  };

  Kind kind(const json &value, const json &mnemonic) {
    const json *given = find(value, "class");
    std::string className = given ? string(*given) : "";
    Kind kind{};
    if (className == "declared") {
      kind.mnemonic = keepText(mnemonic);
      kind.kindClass = KindClass::Declared;
    } else {
      const Kind *known = findKind(string(mnemonic), builtInKinds);
      requireJson(known, "this engine does not know the action `",
                  string(mnemonic), "`");
      kind = *known;
    }
    requireJson(className == kindClassNames[size_t(kind.kindClass)], "kind `",
                string(mnemonic), "` is of class `", className, "`");
    if (const json *collective = find(value, "collective"))
      readCollective(*collective, kind);
    return kind;
  }

  void readCollective(const json &value, Kind &kind) {
    if (value.is_array()) {
      kind.collective = Collective::Stages;
      kind.stages = keep(each(&value, [&](const json &item) {
        int64_t stage = integer(item);
        requireJson(stage > -int64_t(Row::noPeer) && stage < Row::noPeer,
                    "no action is of stage ", stage);
        return static_cast<int32_t>(stage);
      }));
      return;
    }
    const std::string &word = string(value);
    if (word.starts_with("outside "))
      kind.collective = Collective::Outside;
    using enum Collective;
    for (Collective collective : {All, Replicas, To, From})
      if (word == collectiveNames[size_t(collective)])
        kind.collective = collective;
    requireJson(kind.collective != None, "no ranks are called `", word, "`");
  }

  // ---- Pipes ----

  void readPipes(const json &value) {
    view.pipes =
        keep(each(&value, [&](const json &item) { return pipe(item); }));
  }

  Pipe pipe(const json &value) {
    Pipe pipe{"", 0, 0, {}, {}, {}, 1, {}};
    if (const json *name = find(value, "name"))
      pipe.name = keepText(*name);
    if (const json *range = find(value, "microbatches")) {
      auto ends = numbers(*range, 2, 2, "`microbatches` are not two numbers");
      pipe.firstMicrobatch = checkedRange(ends[0], UINT32_MAX, "microbatches");
      uint32_t end = checkedRange(ends[1], UINT32_MAX, "microbatches");
      requireJson(pipe.firstMicrobatch <= end,
                  "a pipe's `microbatches` end before they begin");
      pipe.numMicrobatches = end - pipe.firstMicrobatch;
    }
    if (const json *slices = find(value, "slices"))
      pipe.slices = checkedRange(*slices, UINT32_MAX, "slices");
    pipe.rankOfStage =
        keep(each(find(value, "rank_of_stage"), [&](const json &rank) {
          return checkedRange(rank, UINT32_MAX, "rank_of_stage");
        }));
    pipe.skipEdges =
        keep(each(find(value, "skip_edges"), [&](const json &edge) {
          auto ends = numbers(edge, 2, 2, "a skip edge is not two numbers");
          return SkipEdge{stage(ends[0], "skip_edges"),
                          stage(ends[1], "skip_edges")};
        }));
    pipe.gaps = keep(each(find(value, "gaps"), [&](const json &gap) {
      return stage(integer(gap), "gaps");
    }));
    pipe.tensors = keep(each(find(value, "tensors"), [&](const json &edge) {
      return edgeTensors(edge);
    }));
    return pipe;
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
    if (shapes)
      requireJson(string(*shapes) == "each", "shapes cannot be sent `",
                  string(*shapes), "`");
    bool varies = false;
    edge.tensors = keep(each(find(value, "carries"), [&](const json &item) {
      const json *name = find(item, "name"), *type = find(item, "type");
      requireJson(name && type, "a tensor has no name, or no type");
      auto dims = each(find(item, "dims"), [&](const json &dim) {
        requireJson(integer(dim) >= -1, "a tensor has the size ", integer(dim));
        varies |= integer(dim) == -1;
        return integer(dim);
      });
      return Tensor{keepText(*name), keepText(*type), keep(std::move(dims))};
    }));
    requireJson(edge.shapesVary == varies,
                "shapes are sent exactly if a size is -1");
    return edge;
  }

  // ---- Families ----

  void readFamilies(const json &value) { items(value); }
  LoadedProgram parametric();

  // ---- Loops ----

  /// Of each: first row, rows, iterations, advance.
  void readLoops(const json &value) {
    auto segment = [&](const json &item) {
      auto loop = numbers(item, 4, 4, "a loop is not four numbers");
      requireJson(loop[3] >= INT32_MIN && loop[3] <= INT32_MAX,
                  "a loop adds too much to microbatches");
      return Segment{checkedRange(loop[0], UINT32_MAX, "loops"),
                     checkedRange(loop[1], UINT32_MAX, "loops"),
                     checkedRange(loop[2], UINT32_MAX, "loops"),
                     static_cast<int32_t>(loop[3])};
    };
    loops =
        each(&value, [&](const json &rank) { return each(&rank, segment); });
  }

  /// The loops of a rank, and what stands between them.
  std::vector<Segment> segmentsOf(size_t rank) const {
    std::vector<Segment> segments;
    uint64_t next = 0, end = rows[rank].size();
    auto flatUntil = [&](uint64_t row) {
      if (next != row)
        segments.push_back({next, static_cast<uint32_t>(row - next), 1, 0});
    };
    if (!loops.empty())
      for (const Segment &loop : loops[rank]) {
        requireJson(loop.firstRow >= next && loop.firstRow + loop.rows <= end,
                    "a loop of rank ", rank,
                    " overlaps the one before it, or leaves the actions");
        flatUntil(loop.firstRow);
        segments.push_back(loop);
        next = loop.firstRow + loop.rows;
      }
    flatUntil(end);
    return segments;
  }

  LoadedProgram loaded;
  Program &view = loaded.view;
  json shared;
  std::set<std::string, std::less<>> keysSeen;
  std::vector<std::string> columns;
  std::vector<std::vector<Row>> rows; ///< By rank.
  // The same; empty where the file has none.
  std::vector<uint32_t> buffers, activations;
  std::vector<std::vector<Segment>> loops;
  size_t position[numColumns] = {};
  int64_t group = -1; ///< Of the action before.
};

} // namespace detail

/// Reads what `ppcc --emit=json` writes, from a stream or a text; of
/// `ppcc --for M`, a program of which at(M) gives others. O(file). Throws
/// Error, with what is wrong, for a file of another version, one that is cut
/// off, and one whose numbers do not fit together.
template <class Input> LoadedProgram readJson(Input &&in) {
  detail::JsonReader reader;
  detail::JsonEvents<detail::JsonReader> events(reader);
  nlohmann::json::sax_parse(in, &events);
  return reader.finish();
}

} // namespace ppcc::rt

#include "ppcc/Runtime/Families.h"
