// Reads and writes certificates.
#include "ppcc/IR/Text.h"
#include "ppcc/Proof/Certificate.h"
#include "ppcc/Proof/TemplateJson.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/VirtualFileSystem.h"

#include <bit>

using namespace ppcc;
using namespace ppcc::proof;
namespace json = llvm::json;

namespace {

/// What a list has of an item: its numbers, one after another.
template <class Item>
using Numbers = std::array<int64_t, sizeof(Item) / sizeof(int64_t)>;

/// By rank, what `lists` have of its rows.
template <class Item>
void writeItems(json::OStream &out, StringRef name,
                const std::vector<std::vector<Item>> &lists) {
  writeLists(out, name, lists.size(), [&](size_t rank) {
    std::vector<int64_t> numbers;
    for (const Item &item : lists[rank])
      llvm::append_range(numbers, std::bit_cast<Numbers<Item>>(item));
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
        writeItems(out, "order", shown.order.ranks);
      });
  });
  if (evidence.times) {
    writeItems(out, "times", evidence.times->ranks);
    writeItems(out, "durations", evidence.durations);
  }
  if (!evidence.rooms.empty()) {
    writeItems(out, "holdings", evidence.holdings);
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
    const json::Object &file = *need(value->getAsObject(), "format");
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
      result.transports.push_back(
          need(transport.getAsString(), "transports")->str());
    for (const json::Value &range : array(file, "ranges"))
      result.claims.push_back(claim(*need(range.getAsObject(), "ranges")));
    return result;
  }

private:
  /// What is there, and is what it should be.
  template <class Found> static Found need(Found found, StringRef key) {
    if (!found)
      refuse(fmt::format("`{}` is missing, or something else", key));
    return found;
  }
  static std::string string(const json::Object &from, StringRef key) {
    return need(from.getString(key), key)->str();
  }
  static int64_t integer(const json::Object &from, StringRef key) {
    return *need(from.getInteger(key), key);
  }
  static const json::Array &array(const json::Object &from, StringRef key) {
    return *need(from.getArray(key), key);
  }
  static const json::Object &object(const json::Object &from, StringRef key) {
    return *need(from.getObject(key), key);
  }
  static bool isNull(const json::Object &from, StringRef key) {
    return need(from.get(key), key)->kind() == json::Value::Null;
  }

  static Rational rational(const json::Object &from, StringRef key) {
    std::string text = string(from, key);
    auto [numerator, denominator] = StringRef(text).split('/');
    int64_t a = 0, b = 1;
    if (numerator.getAsInteger(10, a) ||
        (!denominator.empty() && denominator.getAsInteger(10, b)) || b <= 0)
      refuse(fmt::format("`{}` is no quotient", key));
    return Rational(a, b);
  }

  Claim claim(const json::Object &from) {
    Claim claim;
    claim.modulus = integer(from, "modulus");
    claim.residue = integer(from, "residue");
    claim.from = integer(from, "from");
    if (!isNull(from, "to"))
      claim.to = integer(from, "to");
    if (claim.modulus < 1 || claim.residue < 0 ||
        claim.residue >= claim.modulus || claim.from < 1 ||
        claim.from > INT32_MAX || claim.modulus > INT32_MAX ||
        (claim.to && (*claim.to < claim.from)))
      refuse("a range is none");
    claim.verdict = string(from, "verdict");
    claim.reason = string(from, "reason");
    if (!isNull(from, "makespan")) {
      const json::Object &span = object(from, "makespan");
      claim.makespan =
          Formula{rational(span, "slope"), rational(span, "intercept"),
                  *need(span.getBoolean("exact"), "exact")};
    }
    if (!isNull(from, "evidence"))
      claim.evidence = evidence(object(from, "evidence"), claim);
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
      std::string fault =
          readTemplate(object(from, key), result->head.head(), false, program);
      program.last = last;
      if (!fault.empty())
        refuse(fault);
    };
    readInto("data", result->byData);
    if (from.get("carried"))
      readInto("carried", result->carried);
    const Template &data = result->byData,
                   &whole =
                       result->carried.ranks.empty() ? data : result->carried;
    for (const json::Value &item : array(from, "orders")) {
      const json::Object &shown = *need(item.getAsObject(), "orders");
      std::string transport = string(shown, "transport");
      result->shown.push_back(
          {transport,
           {items<Times::OfRow>(shown, "order",
                                transport == "data" ? data : whole)}});
    }
    if (from.get("times")) {
      auto durations = readNumbers(from.get("durations"));
      // Those by data alone have the rows of that template.
      const Template &timed =
          durations &&
                  std::ranges::equal(*durations, data.ranks,
                                     [](const auto &list, const auto &rows) {
                                       return list.size() == rows.size();
                                     })
              ? data
              : whole;
      result->durations = items<Time>(from, "durations", timed);
      result->times = {items<Times::OfRow>(from, "times", timed)};
    }
    if (from.get("holdings")) {
      auto rooms = readNumbers(from.get("rooms"), 1);
      if (!rooms || rooms->size() != 1 ||
          rooms->front().size() != data.ranks.size())
        refuse("there is memory of other ranks");
      result->rooms = std::move(rooms->front());
      result->holdings = items<Holding>(from, "holdings", data);
    }
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

  /// By rank, what a list has of the rows of a template.
  template <class Item>
  static std::vector<std::vector<Item>>
  items(const json::Object &from, StringRef key, const Template &program) {
    constexpr size_t width = std::tuple_size_v<Numbers<Item>>;
    auto lists = readNumbers(from.get(key));
    if (!lists || lists->size() != program.ranks.size())
      refuse(fmt::format("`{}` is of other ranks", key));
    std::vector<std::vector<Item>> result;
    for (const auto &[list, rows] : llvm::zip(*lists, program.ranks)) {
      if (list.size() != width * rows.size())
        refuse(fmt::format("`{}` is of other rows", key));
      auto &ofRank = result.emplace_back();
      for (size_t i = 0; i != list.size(); i += width) {
        Numbers<Item> numbers;
        std::copy_n(&list[i], width, numbers.begin());
        ofRank.push_back(std::bit_cast<Item>(numbers));
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
