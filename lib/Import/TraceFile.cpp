// Reads what profilers measured.
#include "ppcc/Import/TraceFile.h"
#include "ppcc/Basic/Diagnostics/Simulation.h"

#include "JsonReader.h"

using namespace ppcc;

namespace {

class TraceReader : JsonReader {
public:
  TraceReader(uint32_t file, SourceManager &sources, DiagnosticEngine &diags,
              function_ref<void(const TraceEvent &)> visit)
      : JsonReader(sources.text(file), file, sources, diags,
                   reportShape<diag::TraceShape>),
        visit(visit) {}

  bool read() {
    if (peek() == '[')
      readEvents();
    else
      readTop();
    expectEnd();
    return isGood();
  }

private:
  void readTop() {
    bool hasEvents = false;
    bool isObject = object([&](StringRef key) {
      if (key != "traceEvents")
        return skip();
      hasEvents = true;
      readEvents();
    });
    if (!isObject || !hasEvents)
      wrong("the file", "an object with `traceEvents`, or a list of events");
  }

  void readEvents() {
    list("traceEvents", [&] { readEvent(); });
  }

  void readEvent() {
    TraceEvent event;
    bool isComplete = false, hasName = false;
    std::optional<Time> duration;
    bool isObject = object([&](StringRef key) {
      if (key == "ph") {
        isComplete = string() == "X";
      } else if (key == "name") {
        auto name = string();
        hasName = name.has_value();
        event.name = name.value_or("");
        event.place = lastPlace();
      } else if (key == "dur") {
        duration = time();
        if (!duration || *duration < 0)
          wrong("dur", "a number from 0 to 10^9");
      } else if (key == "ts") {
        event.start = time();
      } else if (key == "args" && peek() == '{') {
        object([&](StringRef argument) {
          if (argument == "waited")
            event.waited = time();
          else
            skip();
        });
      } else {
        skip();
      }
    });
    if (!isObject)
      return wrong("traceEvents", "a list of objects");
    if (!isComplete || !hasName || !duration || *duration < 0)
      return;
    event.duration = *duration;
    visit(event);
  }

  std::optional<Time> time() {
    auto text = scalar();
    return text ? decimal::round(*text, cost::scale) : std::nullopt;
  }

  function_ref<void(const TraceEvent &)> visit;
};

} // namespace

bool ppcc::readTrace(uint32_t file, SourceManager &sources,
                     DiagnosticEngine &diags,
                     function_ref<void(const TraceEvent &)> visit) {
  return TraceReader(file, sources, diags, visit).read();
}
