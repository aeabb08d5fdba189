#include "ProofText.h"

#include "ppcc/Basic/Diagnostics/Prove.h"
#include "ppcc/Prove/Prove.h"

using namespace ppcc;

int ppcc::runProof(
    OptionParser &parser, std::vector<StringRef> formats, bool explains,
    const Invocation &call, StringRef format,
    function_ref<void(const ProvenRange &, JsonFields &)> putMembers,
    function_ref<void(const ProveOptions &, const Proof &,
                      const SourceManager &, raw_ostream &)>
        writeText) {
  ProveOptions options;
  addInput(parser, options, "The schedule: a file, or a name of the library");
  parser.value("--for", "NAME", options.free,
               explains ? "The free parameter; M by default"
                        : "The free parameter; M by default. Two, P,M with the "
                          "ranks first, are experimental");
  parser.choice("--format", "The format of the result", std::move(formats),
                options.format);
  addOutput(parser, options.output);
  parser.formatByExtension(options.output);
  if (!explains)
    parser.output("--certificate", options.certificate,
                  "Also write a certificate for ppcc-check-proof");
  addScheduleOptions(parser, options, &options.dataOnly);
  addErrorOptions(parser, options.console);
  if (std::optional<int> code = parser.parse())
    return *code;
  auto session = consoleSession(call, options.console);
  if (!prepareOutputs({options.output, options.certificate}, call.out,
                      *session))
    return Errors;
  const SourceManager &sources = session->sources;
  std::string usageError;
  ProveRequest request{options.request, options.free, explains,
                       options.dataOnly, !options.certificate.empty()};
  if (StringRef(options.free).contains(',')) {
    if (explains || request.certifies)
      return parser.usageError("`--for` takes two parameters in `ppcc prove`, "
                               "without `--certificate`");
    int code = writeEvery(options, request, *session, usageError, call.out);
    return usageError.empty() ? code : parser.usageError(usageError);
  }
  auto proof = prove(request, *session, usageError);
  if (!usageError.empty())
    return parser.usageError(usageError);
  if (!proof)
    return Errors;
  auto putRange = [&](JsonFields &fields, const ProvenRange &range) {
    fields("modulus", range.modulus);
    fields("residue", range.residue);
    fields("from", range.from);
    fields("to", range.to);
    fields("verdict", verdictName(range.verdict));
    putFormula(fields, "makespan", range.makespan);
    putMembers(range, fields);
    fields("reason", reasonText(range, sources));
  };
  auto write = [&](raw_ostream &s) {
    if (options.format != "json")
      return writeText(options, *proof, sources, s);
    putJson(s, [&](JsonFields &fields) {
      putProofHead(fields, format, proof->schedule, proof->params, options.free,
                   proof->transports);
      putUnits(fields, proof->units);
      fields.objects("ranges", proof->ranges, putRange);
    });
  };
  auto certify = [&](raw_ostream &s) {
    auto certificate = certificateOf(*proof, options.free, sources);
    for (auto [range, claim] : llvm::zip(proof->unmerged, certificate.claims))
      if (StringRef verdict = verdictName(range.verdict);
          verdict != claim.verdict)
        session->diags.report<diag::CertificateLeavesOut>(
            range.place, options.free,
            numbersText(range.from, range.modulus, range.to), verdict,
            claim.reason.empty() ? "the checker cannot follow its evidence"
                                 : claim.reason);
    writeCertificate(certificate, s);
  };
  OutputFile files[] = {{options.output, write},
                        {options.certificate, certify}};
  ExitCode code = writeOutputs(ArrayRef(files).drop_back(!request.certifies),
                               call.out, *session);
  return proof->isValid() ? code : Errors;
}

std::string ppcc::numbersText(int64_t from, int64_t modulus,
                              std::optional<int64_t> to) {
  std::string numbers = fmt::format("{}", from);
  if (to == from)
    return numbers;
  if (modulus != 1 && to == from + modulus)
    return fmt::format("{}, {}", from, *to);
  if (modulus != 1)
    numbers += fmt::format(", {},", from + modulus);
  return numbers + " .." + (to ? fmt::format(" {}", *to) : "");
}

namespace {

Rational valueAt(const Formula &formula, int64_t number) {
  return formula.slope * Rational(number) + formula.intercept;
}

/// The figures that are known of a range.
std::vector<Formula *> figuresOf(ProvenRange &range) {
  std::vector<Formula *> figures;
  auto add = [&](std::optional<Formula> &figure) {
    if (figure)
      figures.push_back(&*figure);
  };
  add(range.makespan);
  if (auto &metrics = range.metrics) {
    for (auto *figure :
         {&metrics->bubble, &metrics->work, &metrics->activations,
          &metrics->memory, &metrics->bytes})
      add(*figure);
    figures.push_back(&metrics->messages);
  }
  return figures;
}

std::vector<Rational> valuesAt(const ProvenRange &range, int64_t number) {
  ProvenRange copy = range;
  std::vector<Rational> values;
  for (Formula *figure : figuresOf(copy))
    values.push_back(valueAt(*figure, number));
  return values;
}

/// A text in which each `number` is another text.
std::string withNumber(StringRef text, int64_t number, StringRef instead) {
  std::string wanted = std::to_string(number), result;
  while (!text.empty()) {
    StringRef digits = text.take_while(llvm::isDigit);
    if (digits.empty())
      digits = text.take_until(llvm::isDigit);
    result += digits == wanted ? instead : digits;
    text = text.drop_front(digits.size());
  }
  return result;
}

/// What must agree, beside the figures, in what one line says.
auto kindOf(const ProvenRange &range, int64_t number) {
  ProvenRange copy = range;
  std::string exact;
  for (Formula *figure : figuresOf(copy))
    exact += figure->isExact ? 'e' : 'm';
  return std::tuple(range.verdict, range.place.range.begin.raw, exact,
                    range.makespan.has_value(), range.metrics.has_value(),
                    withNumber(range.reason, number, "M"));
}

/// Makes lines of ranges, which hold each number once.
struct LineMaker {
  ArrayRef<ProvenRange> ranges;
  StringRef free;
  int64_t period = 1, last = 0;               ///< After `last`, all repeats.
  std::vector<const ProvenRange *> rangeOf{}; ///< By number.
  std::vector<bool> isDone{};
  std::vector<std::pair<int64_t, RangeLine>> lines{}; ///< By the first number.

  bool isSmall() {
    constexpr int64_t maxNumbers = 10'000;
    for (const ProvenRange &range : ranges) {
      last = std::max(last, range.to.value_or(range.from));
      if (!range.to)
        period = std::lcm(period, range.modulus);
      if (last > maxNumbers || period > maxNumbers)
        return false;
    }
    return true;
  }

  void make() {
    rangeOf.resize(last + period + 1);
    for (const ProvenRange &range : ranges)
      for (int64_t m = range.from;
           m <= std::min(range.to.value_or(last + period), last + period);
           m += range.modulus)
        rangeOf[m] = &range;
    isDone.resize(last + 1);
    std::vector<bool> isSaid(period);
    for (int64_t m = last + 1; m <= last + period; ++m)
      if (!isSaid[m % period])
        addWithoutEnd(m, isSaid);
    for (int64_t m = 1; m <= last; ++m)
      if (!isDone[m])
        addRun(m);
    llvm::sort(lines,
               [](const auto &a, const auto &b) { return a.first < b.first; });
  }

  /// All remainders of which the same is said as of a number, and what stands
  /// before them and follows the same formulas.
  void addWithoutEnd(int64_t number, std::vector<bool> &isSaid) {
    ProvenRange said = *rangeOf[number];
    std::vector<bool> isHere(period);
    auto isSame = [&](int64_t m) {
      const ProvenRange &other = *rangeOf[m];
      return kindOf(other, m) == kindOf(said, m) &&
             valuesAt(other, m) == valuesAt(said, m);
    };
    auto isSameFormula = [&](int64_t m) {
      ProvenRange a = said, b = *rangeOf[m];
      return isSame(m) &&
             llvm::equal(figuresOf(a), figuresOf(b),
                         [](Formula *x, Formula *y) { return *x == *y; });
    };
    for (int64_t m = number; m <= last + period; ++m)
      if (!isSaid[m % period] && isSameFormula(m)) {
        isSaid[m % period] = isHere[m % period] = true;
        if (said.metrics &&
            rangeOf[m]->metrics->bottleneck != said.metrics->bottleneck)
          said.metrics->bottleneck.clear();
      }
    int64_t first = number;
    for (int64_t m = last; m >= 1; --m)
      if (isHere[m % period]) {
        if (isDone[m] || !isSame(m))
          break;
        isDone[m] = true;
        first = m;
      }
    lines.push_back({first, {nameOf(isHere, first), said}});
  }

  /// `13 ..`, `even M >= 16`, `M % 4 = 1, 2`.
  std::string nameOf(const std::vector<bool> &isHere, int64_t first) const {
    int64_t modulus = 1;
    auto repeats = [&] {
      for (int64_t r = 0; r != period; ++r)
        if (isHere[r] != isHere[r % modulus])
          return false;
      return true;
    };
    while (period % modulus != 0 || !repeats())
      ++modulus;
    if (modulus == 1)
      return fmt::format("{} ..", first);
    std::vector<std::string> residues;
    for (int64_t r = 0, end; r < modulus; r = end + 1) {
      for (end = r; end != modulus && isHere[end]; ++end)
        if (end < r + 2)
          residues.push_back(fmt::to_string(end));
      if (end > r + 2) {
        residues.pop_back();
        residues.back() += fmt::format(" .. {}", end - 1);
      }
    }
    std::string name =
        modulus == 2
            ? fmt::format("{} {}", residues[0] == "0" ? "even" : "odd", free)
            : fmt::format("{} % {} = {}", free, modulus,
                          fmt::join(residues, ", "));
    if (first <= modulus)
      return name;
    return modulus == 2 ? fmt::format("{} >= {}", name, first)
                        : fmt::format("{}, {} >= {}", name, free, first);
  }

  /// The longest run of numbers from this one on, at equal distances, that one
  /// line can speak of.
  void addRun(int64_t first) {
    int64_t step = 1, count = 1;
    for (int64_t distance = 1; distance <= period; ++distance)
      if (period % distance == 0)
        if (int64_t length = lengthOf(first, distance); length > count)
          std::tie(step, count) = std::pair(distance, length);
    int64_t end = first + (count - 1) * step;
    ProvenRange said = *rangeOf[first];
    std::vector<Rational> from = valuesAt(said, first),
                          to = valuesAt(*rangeOf[end], end);
    for (auto [i, figure] : llvm::enumerate(figuresOf(said))) {
      figure->slope =
          count == 1 ? Rational() : (to[i] - from[i]) / Rational(end - first);
      figure->intercept = from[i] - figure->slope * Rational(first);
    }
    if (count > 1)
      said.reason =
          withNumber(said.reason, first, fmt::format("{} to {}", first, end));
    for (int64_t m = first; m <= end; m += step)
      isDone[m] = true;
    lines.push_back({first, {numbersText(first, step, end), said}});
  }

  int64_t lengthOf(int64_t first, int64_t step) const {
    std::vector<Rational> start = valuesAt(*rangeOf[first], first), change;
    int64_t count = 1;
    for (int64_t m = first + step; m <= last && !isDone[m];
         m += step, ++count) {
      if (kindOf(*rangeOf[m], m) != kindOf(*rangeOf[first], first))
        break;
      std::vector<Rational> values = valuesAt(*rangeOf[m], m);
      if (count == 1)
        for (auto [a, b] : llvm::zip(start, values))
          change.push_back(b - a);
      bool fits = true;
      for (size_t i = 0; i != values.size(); ++i)
        fits &= values[i] == start[i] + change[i] * Rational(count);
      if (!fits)
        break;
    }
    // Any two numbers are on a line.
    bool isConstant = llvm::all_of(
        change, [](const Rational &one) { return one == Rational(); });
    return count == 2 && !isConstant ? 1 : count;
  }
};

/// A fraction of few digits, else a decimal.
std::string numberText(const Rational &number) {
  if (number.denominator < 1000)
    return number.text();
  return fmt::format("{:.6g}", static_cast<double>(number.numerator) /
                                   static_cast<double>(number.denominator));
}

} // namespace

std::vector<RangeLine> ppcc::linesOf(ArrayRef<ProvenRange> ranges,
                                     StringRef free) {
  std::vector<RangeLine> lines;
  try {
    LineMaker maker{ranges, free};
    if (maker.isSmall()) {
      maker.make();
      for (auto &[first, line] : maker.lines)
        lines.push_back(std::move(line));
      return lines;
    }
  } catch (const std::overflow_error &) {
    lines.clear();
  }
  for (const ProvenRange &range : ranges)
    lines.push_back({numbersText(range.from, range.modulus, range.to), range});
  return lines;
}

std::string ppcc::formulaText(const std::optional<Formula> &formula,
                              StringRef free, Quantity quantity,
                              const Units &units) {
  if (!formula)
    return "";
  auto toNumber = [](const Rational &number) {
    return static_cast<double>(number.numerator) /
           static_cast<double>(number.denominator);
  };
  std::string before = formula->isExact ? "" : "at most ";
  bool isTime = quantity == Quantity::Time && !units.ofTime.empty();
  bool isMemory = quantity == Quantity::Memory && units.inBytes;
  if (formula->slope == 0 && (isTime || isMemory)) {
    double value = toNumber(formula->intercept);
    return before + (isTime ? units.time(static_cast<decimal::Sum>(
                                  std::round(value * cost::unit)))
                            : units.memory(static_cast<decimal::Sum>(
                                  std::round(value * amount::unit))));
  }
  Formula shown = *formula;
  std::string unit = isTime ? units.ofTime.str() : "";
  if (isMemory) {
    constexpr int64_t mebibyte = 1 << 20;
    shown.slope = shown.slope / Rational(mebibyte);
    shown.intercept = shown.intercept / Rational(mebibyte);
    unit = "MiB";
  }
  std::string text;
  auto add = [&](Rational factor, StringRef name) {
    if (factor == 0)
      return;
    bool isNegative = factor.sign() < 0;
    if (isNegative)
      factor = -factor;
    text += text.empty() ? (isNegative ? "-" : "") : isNegative ? " - " : " + ";
    text += name.empty()  ? numberText(factor)
            : factor == 1 ? name.str()
                          : numberText(factor) + " " + name.str();
  };
  add(shown.slope, free);
  add(shown.intercept, "");
  if (text.empty())
    text = "0";
  return before + (unit.empty() ? text : "(" + text + ") " + unit);
}

void ppcc::putProofHead(JsonFields &fields, StringRef format,
                        StringRef schedule, ArrayRef<ProgramParam> params,
                        StringRef free, ArrayRef<std::string> transports) {
  fields("format", format);
  fields("version", 1);
  fields("schedule", schedule);
  fields.object("params", [&](JsonFields &of) { putParams(of, params); });
  fields("for", free);
  fields.values("transports", transports);
}

void ppcc::putFormula(JsonFields &fields, StringRef name,
                      const std::optional<Formula> &formula) {
  if (!formula)
    return fields.raw(name, "null");
  fields.object(name, [&](JsonFields &of) {
    of("slope", formula->slope.text());
    of("intercept", formula->intercept.text());
    of("exact", formula->isExact);
  });
}
