// Reads and writes certificates.
#include "ppcc/IR/Text.h"
#include "ppcc/Proof/Certificate.h"
#include "ppcc/Proof/TemplateJson.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/VirtualFileSystem.h"

using namespace ppcc;
using namespace ppcc::proof;
namespace json = llvm::json;

namespace {

/// By rank, one number after another: start and end of each row.
void writeTimes(json::OStream &out, StringRef name, const Times &times) {
  writeLists(out, name, times.ranks.size(), [&](size_t rank) {
    std::vector<int64_t> numbers;
    for (const Times::OfRow &row : times.ranks[rank])
      for (const Affine &f : {row.start, row.end})
        numbers.insert(numbers.end(), {f.c, f.n, f.j});
    return numbers;
  });
}

void writeEvidence(json::OStream &out, const Evidence &evidence) {
  std::string head;
  llvm::raw_string_ostream text(head);
  printProgram(evidence.head, text);
  out.attribute("head", head);
  out.attribute("base", evidence.base);
  out.attribute("step", evidence.step);
  auto writeTemplate = [&](StringRef name, const Template &program) {
    out.attributeObject(name, [&] {
      writeRanges(out, program);
      writeRows(out, program);
    });
  };
  writeTemplate("data", evidence.byData);
  if (!evidence.carried.ranks.empty())
    writeTemplate("carried", evidence.carried);
  out.attributeArray("orders", [&] {
    for (const Shown &shown : evidence.shown)
      out.object([&] {
        out.attribute("transport", shown.transport);
        writeTimes(out, "order", shown.order);
      });
  });
  if (evidence.times) {
    writeTimes(out, "times", *evidence.times);
    writeLists(out, "durations", evidence.durations.size(),
               [&](size_t rank) { return evidence.durations[rank]; });
  }
  if (!evidence.rooms.empty()) {
    writeLists(out, "holdings", evidence.holdings.size(), [&](size_t rank) {
      std::vector<int64_t> numbers;
      for (Holding holding : evidence.holdings[rank])
        numbers.insert(numbers.end(), {holding.takes, holding.gives});
      return numbers;
    });
    writeLists(out, "rooms", 1, [&](size_t) { return evidence.rooms; });
  }
  writeLists(out, "circle", evidence.circle.size(), [&](size_t i) {
    const Event &event = evidence.circle[i];
    return std::vector<int64_t>{event.rank, event.row, event.isEnd,
                                event.turn.c, event.turn.n};
  });
}

void writeClaim(json::OStream &out, const Claim &claim) {
  out.attribute("modulus", claim.modulus);
  out.attribute("residue", claim.residue);
  out.attribute("from", claim.from);
  out.attribute("to", claim.to ? json::Value(*claim.to) : json::Value(nullptr));
  out.attribute("verdict", claim.verdict);
  if (claim.makespan)
    out.attributeObject("makespan", [&] {
      out.attribute("slope", claim.makespan->slope.text());
      out.attribute("intercept", claim.makespan->intercept.text());
      out.attribute("exact", claim.makespan->isExact);
    });
  else
    out.attribute("makespan", nullptr);
  out.attribute("reason", claim.reason);
  if (claim.evidence)
    out.attributeObject("evidence",
                        [&] { writeEvidence(out, *claim.evidence); });
  else
    out.attribute("evidence", nullptr);
}

/// Why a file is no certificate.
struct Refusal {
  std::string why;
};
[[noreturn]] void refuse(std::string why) { throw Refusal{std::move(why)}; }

class Reader {
public:
  Certificate read(StringRef text) {
    auto value = json::parse(text);
    if (!value)
      refuse(llvm::toString(value.takeError()));
    const json::Object &file = object(*value);
    if (string(file, "format") != "ppcc.certificate" ||
        integer(file, "version") != 1)
      refuse("it is no ppcc.certificate of version 1");
    Certificate result;
    result.schedule = string(file, "schedule");
    result.free = string(file, "for");
    if (const json::Object *params = file.getObject("params"))
      for (const auto &[name, param] : *params)
        if (auto text = param.getAsString())
          result.params.push_back({name.str(), "text", text->str()});
    for (const json::Value &transport : array(file, "transports"))
      result.transports.push_back(text_(transport));
    for (const json::Value &range : array(file, "ranges"))
      result.claims.push_back(claim(object(range)));
    return result;
  }

private:
  static const json::Object &object(const json::Value &value) {
    const json::Object *found = value.getAsObject();
    return found ? *found : (refuse("an object is something else"), *found);
  }
  static std::string text_(const json::Value &value) {
    auto found = value.getAsString();
    return found ? found->str() : (refuse("a text is something else"), "");
  }
  static const json::Value &at(const json::Object &from, StringRef key) {
    const json::Value *found = from.get(key);
    if (!found)
      refuse(fmt::format("there is no key `{}`", key));
    return *found;
  }
  static std::string string(const json::Object &from, StringRef key) {
    return text_(at(from, key));
  }
  static int64_t integer(const json::Object &from, StringRef key) {
    auto found = at(from, key).getAsInteger();
    if (!found)
      refuse(fmt::format("`{}` is no integer", key));
    return *found;
  }
  static const json::Array &array(const json::Object &from, StringRef key) {
    const json::Array *found = at(from, key).getAsArray();
    if (!found)
      refuse(fmt::format("`{}` is no list", key));
    return *found;
  }

  static Rational rational(const json::Object &from, StringRef key) {
    std::string text = string(from, key);
    auto [numerator, denominator] = StringRef(text).split('/');
    int64_t a = 0, b = 1;
    if (numerator.getAsInteger(10, a) ||
        (!denominator.empty() && denominator.getAsInteger(10, b)) || b <= 0)
      refuse(fmt::format("`{}` is no quotient", key));
    return Rational::of(a, b);
  }

  Claim claim(const json::Object &from) {
    Claim claim;
    claim.modulus = integer(from, "modulus");
    claim.residue = integer(from, "residue");
    claim.from = integer(from, "from");
    if (!at(from, "to").getAsNull())
      claim.to = integer(from, "to");
    if (claim.modulus < 1 || claim.residue < 0 ||
        claim.residue >= claim.modulus || claim.from < 1 ||
        claim.from > INT32_MAX || claim.modulus > INT32_MAX ||
        (claim.to && (*claim.to < claim.from)))
      refuse("a range is none");
    claim.verdict = string(from, "verdict");
    claim.reason = string(from, "reason");
    if (!at(from, "makespan").getAsNull()) {
      const json::Object &span = object(at(from, "makespan"));
      auto exact = at(span, "exact").getAsBoolean();
      if (!exact)
        refuse("`exact` is neither true nor false");
      claim.makespan =
          Formula{rational(span, "slope"), rational(span, "intercept"), *exact};
    }
    if (!at(from, "evidence").getAsNull())
      claim.evidence = evidence(object(at(from, "evidence")), claim);
    return claim;
  }

  std::shared_ptr<const Evidence> evidence(const json::Object &from,
                                           const Claim &claim) {
    auto result = std::make_shared<Evidence>();
    result->head = head(string(from, "head"));
    result->base = integer(from, "base");
    result->step = integer(from, "step");
    if (result->base < 1 || result->step < 1 || result->base > claim.from ||
        result->step > INT32_MAX)
      refuse("`base` or `step` is out of range");
    int64_t last =
        claim.to ? (*claim.to - result->base) / result->step : endless;
    auto readInto = [&](StringRef key, Template &program) {
      std::string fault = readTemplate(object(at(from, key)),
                                       result->head.head(), false, program);
      program.last = last;
      if (!fault.empty())
        refuse(fault);
    };
    readInto("data", result->byData);
    if (from.get("carried"))
      readInto("carried", result->carried);
    const Template &whole =
        result->carried.ranks.empty() ? result->byData : result->carried;
    for (const json::Value &item : array(from, "orders")) {
      const json::Object &shown = object(item);
      std::string transport = string(shown, "transport");
      result->shown.push_back(
          {transport, times(at(shown, "order"),
                            transport == "data" ? result->byData : whole)});
    }
    if (const json::Value *found = from.get("times")) {
      auto durations = readNumbers(from.get("durations"));
      // Those by data alone have the rows of that template.
      const Template &timed = durations && matches(*durations, result->byData)
                                  ? result->byData
                                  : whole;
      if (!durations || !matches(*durations, timed))
        refuse("`durations` has other rows");
      result->times = times(*found, timed);
      result->durations = std::move(*durations);
    }
    if (from.get("holdings"))
      readMemory(from, *result);
    auto circle = readNumbers(from.get("circle"));
    if (!circle)
      refuse("`circle` is no list of events");
    for (const std::vector<int64_t> &event : *circle) {
      if (event.size() != 5 || event[2] < 0 || event[2] > 1 || event[0] < 0 ||
          event[0] >= int64_t(result->byData.ranks.size()) || event[1] < 0 ||
          event[1] >= int64_t(result->byData.ranks[event[0]].size()))
        refuse("an event is of a row that is not there");
      result->circle.push_back({uint32_t(event[0]), uint32_t(event[1]),
                                event[2] != 0, Affine{event[3], event[4], 0}});
    }
    return result;
  }

  static void readMemory(const json::Object &from, Evidence &result) {
    auto rooms = readNumbers(from.get("rooms"), 1),
         holdings = readNumbers(from.get("holdings"));
    const auto &ranks = result.byData.ranks;
    if (!rooms || rooms->size() != 1 || rooms->front().size() != ranks.size() ||
        !holdings || holdings->size() != ranks.size())
      refuse("there is memory of other ranks");
    result.rooms = std::move(rooms->front());
    for (const auto &[list, rows] : llvm::zip(*holdings, ranks)) {
      if (list.size() != 2 * rows.size())
        refuse("there is memory of other rows");
      auto &ofRank = result.holdings.emplace_back();
      for (size_t i = 0; i != rows.size(); ++i)
        ofRank.push_back({list[2 * i], list[2 * i + 1]});
    }
  }

  static bool matches(const std::vector<std::vector<int64_t>> &lists,
                      const Template &program) {
    return lists.size() == program.ranks.size() &&
           llvm::all_of(llvm::zip(lists, program.ranks), [](auto both) {
             return std::get<0>(both).size() == std::get<1>(both).size();
           });
  }

  static Times times(const json::Value &from, const Template &program) {
    auto numbers = readNumbers(&from, program.ranks.size());
    if (!numbers || numbers->size() != program.ranks.size())
      refuse("there are numbers for other ranks");
    Times result;
    for (const auto &[list, rows] : llvm::zip(*numbers, program.ranks)) {
      if (list.size() != 6 * rows.size())
        refuse("there are numbers for other rows");
      auto &ofRank = result.ranks.emplace_back(rows.size());
      for (size_t i = 0; i != rows.size(); ++i) {
        const int64_t *at = &list[6 * i];
        ofRank[i] = {{at[0], at[1], at[2]}, {at[3], at[4], at[5]}};
      }
    }
    return result;
  }

  Program head(const std::string &text) {
    SourceManager sources(new llvm::vfs::InMemoryFileSystem);
    std::string first;
    DiagnosticEngine diags([&](const Diagnostic &found) {
      if (first.empty())
        first = found.message;
    });
    uint32_t file =
        sources.add("head", llvm::MemoryBuffer::getMemBufferCopy(text, "head"));
    auto program = parseProgram(file, sources, diags);
    if (!program || program->size() != 0)
      refuse("`head` is no head: " + first);
    return std::move(*program);
  }
};

} // namespace

void ppcc::proof::writeCertificate(const Certificate &certificate,
                                   raw_ostream &out) {
  json::OStream stream(out, 1);
  stream.object([&] {
    stream.attribute("format", "ppcc.certificate");
    stream.attribute("version", 1);
    stream.attribute("schedule", certificate.schedule);
    stream.attributeObject("params", [&] {
      for (const ProgramParam &param : certificate.params)
        stream.attribute(param.name, param.value);
    });
    stream.attribute("for", certificate.free);
    stream.attributeArray("transports", [&] {
      for (const std::string &transport : certificate.transports)
        stream.value(transport);
    });
    stream.attributeArray("ranges", [&] {
      for (const Claim &claim : certificate.claims)
        stream.object([&] { writeClaim(stream, claim); });
    });
  });
  out << '\n';
}

llvm::Expected<Certificate> ppcc::proof::readCertificate(StringRef text) {
  try {
    return Reader().read(text);
  } catch (const Refusal &refusal) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), refusal.why);
  }
}
