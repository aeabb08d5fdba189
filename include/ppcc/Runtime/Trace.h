// Writes what happened in a run as a trace that Perfetto and Chrome open, in
// the form of `ppcc --emit=trace`; see docs/traces.md.
#pragma once

#include "ppcc/Runtime/Recorder.h"

#include <map>
#include <ostream>
#include <set>
#include <span>
#include <tuple>

namespace ppcc::rt {

namespace detail {

class TraceWriter {
public:
  TraceWriter(std::ostream &out, const Program &program, const Trace &trace)
      : out(out), program(program), trace(trace) {}

  void write() {
    for (uint32_t rank = 0; rank != program.numRanks; ++rank)
      assignThreads(rank);
    out << "{\n\"displayTimeUnit\": \"ms\",\n\"otherData\": {\"format\": "
           "\"ppcc.trace\", \"version\": 1, \"title\": "
        << Text{concat(program.name, ": a run")}
        << ", \"microseconds_per_unit\": 1000},\n\"traceEvents\": [";
    for (uint32_t rank = 0; rank != program.numRanks; ++rank) {
      names(rank);
      slices(rank);
    }
    writeFlows();
    for (uint32_t rank = 0; rank != program.numRanks; ++rank)
      activations(rank);
    out << "\n]\n}\n";
  }

private:
  /// Threads of a rank: one for each member of a group, then for each other
  /// rank one for sends and one for receives.
  static constexpr uint32_t firstMessageThread = 1000;

  /// An action as it is drawn. `from` is later than its start where the one
  /// before it on its thread had not ended.
  struct Slice {
    const TraceEvent *event;
    Row row;
    uint32_t rank, thread, peer; ///< peer: of a message, the other rank.
    int64_t from;
  };
  /// The stage and microbatch of a pipe that an action makes a slot of.
  using ValueKey = std::tuple<uint8_t, uint16_t, uint32_t, uint8_t>;

  /// In quotes.
  struct Text {
    std::string text;

    friend std::ostream &operator<<(std::ostream &out, const Text &quoted) {
      out << '"';
      for (char c : quoted.text) {
        if (c == '"' || c == '\\')
          out << '\\' << c;
        else if (static_cast<unsigned char>(c) < 0x20)
          out << "\\u00" << "0123456789abcdef"[c >> 4 & 1]
              << "0123456789abcdef"[c & 15];
        else
          out << c;
      }
      return out << '"';
    }
  };
  /// Nanoseconds in microseconds.
  struct Time {
    int64_t nanoseconds;

    friend std::ostream &operator<<(std::ostream &out, Time time) {
      out << time.nanoseconds / 1000;
      int64_t rest = time.nanoseconds % 1000;
      if (rest == 0)
        return out;
      std::string digits = std::to_string(1000 + rest);
      digits[0] = '.';
      digits.erase(digits.find_last_not_of('0') + 1);
      return out << digits;
    }
  };

  const Kind &kindOf(const Row &row) const { return program.kinds[row.kind]; }
  bool isCompute(const Row &row) const { return kindOf(row).runsOnStage(); }
  bool sends(const Row &row) const {
    return kindOf(row).kindClass == KindClass::Send;
  }
  /// A rank that has not ended its action yet is not to be seen in it.
  static int64_t endOf(const Slice &slice) {
    return std::max(slice.event->end, slice.from + 1);
  }

  /// Gives each event of a rank its thread.
  void assignThreads(uint32_t rank) {
    const Recorder &recorder = trace.rank(rank);
    std::map<uint32_t, int64_t> ends; // By thread.
    uint32_t lane = 0;
    firstOfRank.push_back(all.size());
    for (const TraceEvent &event : recorder.all()) {
      Row row = program.ranks[rank].row(event.row);
      row.microbatch = event.microbatch;
      Slice slice{&event, row, rank, 0, 0, event.start};
      if (isCompute(row)) {
        lane = row.joined() && recorder.concurrent() ? lane + 1 : 0;
        slice.thread = lane;
      } else {
        slice.peer = program.pipes[row.pipe].rankOfStage[row.peer];
        slice.thread = firstMessageThread + 2 * slice.peer + !sends(row);
      }
      earliest = std::min(earliest, event.start);
      if (event.end == TraceEvent::open)
        continue;
      int64_t &end = ends.try_emplace(slice.thread, INT64_MIN).first->second;
      slice.from = std::max(event.start, end);
      end = endOf(slice);
      for (uint8_t bit : {slot::Output, slot::InputGrad})
        if (isCompute(row) && kindOf(row).defines & bit)
          producers[{row.pipe, row.stage, row.microbatch, bit}] = all.size();
      if (!isCompute(row) && !sends(row))
        receives[{made(row, row.peer), row.stage}] = all.size();
      all.push_back(slice);
    }
  }
  /// What a message carries, made by a stage.
  ValueKey made(const Row &row, uint16_t stage) const {
    return {row.pipe, stage, row.microbatch, kindOf(row).defines};
  }
  std::span<const Slice> slicesOf(uint32_t rank) const {
    bool isLast = rank + 1 == firstOfRank.size();
    size_t first = firstOfRank[rank],
           end = isLast ? all.size() : firstOfRank[rank + 1];
    return std::span(all).subspan(first, end - first);
  }

  /// Begins an event; its fields follow.
  void event(const char *phase, uint32_t rank, uint32_t thread) {
    out << (isFirst ? "\n" : ",\n") << "{\"ph\":\"" << phase
        << "\",\"pid\":" << rank << ",\"tid\":" << thread;
    isFirst = false;
  }
  template <class Value> void field(const char *name, const Value &value) {
    out << ",\"" << name << "\":" << value;
  }
  /// Says how a rank or a thread is called, or where it stands.
  template <class Value>
  void property(uint32_t rank, uint32_t thread, const char *name,
                const char *key, const Value &value) {
    event("M", rank, thread);
    field("name", Text{name});
    out << ",\"args\":{\"" << key << "\":" << value << "}}";
  }

  void names(uint32_t rank) {
    property(rank, 0, "process_name", "name", Text{concat("rank ", rank)});
    property(rank, 0, "process_sort_index", "sort_index", rank);
    std::set<uint32_t> threads{0};
    for (const Slice &slice : slicesOf(rank))
      threads.insert(slice.thread);
    for (uint32_t thread : threads) {
      property(rank, thread, "thread_name", "name", Text{threadName(thread)});
      property(rank, thread, "thread_sort_index", "sort_index", thread);
    }
  }
  static std::string threadName(uint32_t thread) {
    if (thread == 0)
      return "compute";
    if (thread < firstMessageThread)
      return concat("compute, overlapped ", thread);
    uint32_t message = thread - firstMessageThread;
    return concat(message % 2 == 0 ? "sends to rank " : "receives from rank ",
                  message / 2);
  }

  void slices(uint32_t rank) {
    for (bool computes : {true, false})
      for (const Slice &slice : slicesOf(rank))
        if (isCompute(slice.row) == computes)
          this->slice(slice);
  }

  void slice(const Slice &slice) {
    const Row &row = slice.row;
    event("X", slice.rank, slice.thread);
    field("ts", Time{slice.from - earliest});
    field("dur", Time{endOf(slice) - slice.from});
    field("name", Text{actionName(program, row)});
    field("cat", Text{kindOf(row).mnemonic});
    out << ",\"args\":{\"stage\":" << row.stage;
    if (row.microbatch != Row::noMicrobatch)
      field("microbatch", row.microbatch);
    if (program.pipes.size > 1)
      field("pipe", Text{program.pipes[row.pipe].name});
    if (row.phase() != 0)
      field("phase", Text{program.phases[row.phase()]});
    if (std::string location = locationOf(program, row.site); !location.empty())
      field("source", Text{location});
    if (!isCompute(row) && !sends(row)) {
      field("posted", Time{slice.event->start - earliest});
      field("waited", Time{slice.event->waited});
    }
    out << "}}";
  }

  /// An arrow from each action through the message that carries its result to
  /// the action that reads it. What clocks that differ would turn back is left
  /// out.
  void writeFlows() {
    uint64_t id = 0;
    for (const Slice &send : all) {
      if (isCompute(send.row) || !sends(send.row))
        continue;
      ValueKey what = made(send.row, send.row.stage), read = what;
      std::get<1>(read) = send.row.peer;
      const Slice *maker = find(producers, what),
                  *reader = find(producers, read),
                  *receive = find(receives, std::pair(what, send.row.peer));
      if (!maker || !reader || reader->from < send.from)
        continue;
      writeFlow("s", id, *maker, maker->from);
      writeFlow("t", id, send, send.from);
      if (receive)
        if (int64_t at = std::max(receive->from, send.from);
            at < endOf(*receive) && at <= reader->from)
          writeFlow("t", id, *receive, at);
      writeFlow("f", id++, *reader, reader->from);
    }
  }
  template <class Key>
  const Slice *find(const std::map<Key, size_t> &map, const Key &key) const {
    auto found = map.find(key);
    return found == map.end() ? nullptr : &all[found->second];
  }
  void writeFlow(const char *phase, uint64_t id, const Slice &slice,
                 int64_t at) {
    event(phase, slice.rank, slice.thread);
    field("ts", Time{at - earliest});
    field("id", id);
    out << ",\"name\":\"message\",\"cat\":\"message\""
        << (*phase == 'f' ? ",\"bp\":\"e\"}" : "}");
  }

  /// How many activations a rank holds, from each change on.
  void activations(uint32_t rank) {
    std::map<int64_t, int> changes;
    for (const Slice &slice : slicesOf(rank)) {
      if (!isCompute(slice.row))
        continue;
      uint8_t defines = kindOf(slice.row).defines;
      if (defines & slot::Output)
        ++changes[slice.from];
      if (defines & slot::WeightGrad)
        --changes[endOf(slice)];
    }
    int64_t held = 0;
    for (auto [at, change] : changes) {
      held += change;
      event("C", rank, 0);
      field("ts", Time{at - earliest});
      out << ",\"name\":\"activations\",\"args\":{\"activations\":" << held
          << "}}";
    }
  }

  std::ostream &out;
  const Program &program;
  const Trace &trace;
  std::vector<Slice> all; ///< By rank.
  std::vector<size_t> firstOfRank;
  std::map<ValueKey, size_t> producers;
  std::map<std::pair<ValueKey, uint16_t>, size_t> receives; ///< By reader, too.
  int64_t earliest = INT64_MAX;
  bool isFirst = true;
};

} // namespace detail

/// Writes the trace of a run of the program, with all ranks that it has events
/// of. O(events * log(events)).
inline void writeTrace(std::ostream &out, const Program &program,
                       const Trace &trace) {
  detail::TraceWriter(out, program, trace).write();
}

} // namespace ppcc::rt
