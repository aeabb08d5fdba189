// `ppcc prove --for P,M`: whether a schedule is right for every number of ranks
// and of microbatches.
#include "ProofText.h"
#include "ppcc/EveryP/EveryP.h"
#include "ppcc/Support/TextTable.h"

using namespace ppcc;
using namespace ppcc::every;

namespace {

/// slope P + intercept: a bound of M.
struct Line {
  Rational slope, intercept;
};

/// What a range says of P alone, and of M.
struct Bounds {
  int64_t from = 1;
  std::optional<int64_t> to;
  std::vector<Line> lower, upper; ///< M is above all of one, below the other's.

  explicit Bounds(const PlaneRange &range) : from(range.fromRanks) {
    for (const Form &fact : range.where) {
      auto [one, p, m] = std::tuple(fact.at[One], fact.at[P], fact.at[M]);
      if (m != 0)
        (m > 0 ? lower : upper)
            .push_back(
                {Rational(-__int128(p), m), Rational(-__int128(one), m)});
      else if (p > 0)
        from = std::max<int64_t>(from, (-one + p - 1) / p);
      else if (p < 0)
        to = std::min(to.value_or(INT64_MAX), one / -p);
    }
    if (lower.empty())
      lower.push_back({{}, {1, 1}});
  }
};

std::string linesText(ArrayRef<Line> lines, StringRef word, StringRef ranks) {
  std::vector<std::string> texts;
  for (const Line &line : lines)
    texts.push_back(
        PlaneFormula{line.slope, {}, line.intercept, true}.text(ranks, ""));
  return lines.size() == 1
             ? texts[0]
             : fmt::format("{}({})", word, llvm::join(texts, ", "));
}

std::string microbatchesText(const PlaneRange &range, const Bounds &bounds,
                             StringRef ranks) {
  std::string text = linesText(bounds.lower, "max", ranks);
  if (!bounds.upper.empty() && linesText(bounds.upper, "min", ranks) == text)
    return text;
  if (int64_t modulus = range.microbatches.modulus;
      modulus != 1 && bounds.lower.size() == 1) {
    Line next = bounds.lower[0];
    next.intercept.numerator += modulus * next.intercept.denominator;
    text += ", " + linesText(next, "", ranks) + ",";
  }
  text += " ..";
  return bounds.upper.empty()
             ? text
             : text + " " + linesText(bounds.upper, "min", ranks);
}

void writePlaneText(const PlaneProof &proof, StringRef ranks, StringRef name,
                    const SourceManager &sources, raw_ostream &out) {
  TextTable table({ranks.str(), name.str(), "verdict", "makespan", "reason"});
  for (const PlaneRange &range : proof.ranges) {
    Bounds bounds(range);
    table.add({numbersText(bounds.from, range.ranks.modulus, bounds.to),
               microbatchesText(range, bounds, ranks),
               verdictName(range.verdict).str(),
               range.makespan ? range.makespan->text(ranks, name) : "",
               reasonText(range, sources)});
  }
  table.print(out);
  out << verdictText(proof, (ranks + " and " + name).str())
      << " (experimental)\n";
}

void putRange(const PlaneRange &range, StringRef ranks, StringRef name,
              const SourceManager &sources, JsonFields &fields) {
  Bounds bounds(range);
  auto putLines = [&](JsonFields &of, StringRef key, ArrayRef<Line> lines) {
    of.objects(key, lines, [](JsonFields &ofLine, const Line &line) {
      ofLine("slope", line.slope.text());
      ofLine("intercept", line.intercept.text());
    });
  };
  fields.object(ranks, [&](JsonFields &of) {
    of("modulus", range.ranks.modulus);
    of("residue", range.ranks.residue);
    of("from", bounds.from);
    of("to", bounds.to);
  });
  fields.object(name, [&](JsonFields &of) {
    of("modulus", range.microbatches.modulus);
    of("residue", range.microbatches.residue);
    putLines(of, "from", bounds.lower);
    putLines(of, "to", bounds.upper);
  });
  fields("verdict", verdictName(range.verdict));
  if (!range.makespan)
    fields.raw("makespan", "null");
  else
    fields.object("makespan", [&](JsonFields &of) {
      of.object("slopes", [&](JsonFields &slopes) {
        slopes(ranks, range.makespan->ranks.text());
        slopes(name, range.makespan->microbatches.text());
      });
      of("intercept", range.makespan->intercept.text());
      of("exact", range.makespan->isExact);
    });
  fields("reason", reasonText(range, sources));
}

void writePlaneJson(const PlaneProof &proof, StringRef ranks, StringRef name,
                    const SourceManager &sources, raw_ostream &out) {
  putJson(out, [&](JsonFields &fields) {
    putProofHead(fields, "ppcc.proof", proof.schedule, proof.params,
                 (ranks + "," + name).str(), proof.transports);
    fields.objects("ranges", proof.ranges,
                   [&](JsonFields &of, const PlaneRange &range) {
                     putRange(range, ranks, name, sources, of);
                   });
  });
}

} // namespace

int ppcc::writeEvery(const ProveOptions &options, const ProveRequest &request,
                     Session &session, std::string &usageError,
                     raw_ostream &out) {
  auto proof = proveEvery(request, session, usageError);
  if (!proof)
    return Errors;
  auto [ranks, name] = StringRef(options.free).split(',');
  ExitCode code = writeOutput(
      options.output, out, session,
      [&, ranks = ranks.trim(), name = name.trim()](raw_ostream &s) {
        (options.format == "json" ? writePlaneJson : writePlaneText)(
            *proof, ranks, name, session.sources, s);
      });
  return proof->isValid() ? code : Errors;
}
