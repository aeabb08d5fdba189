// Divides all numbers of ranks and microbatches into regions of which one thing
// is shown.
#include "ppcc/EveryP/EveryP.h"
#include "ppcc/Basic/Diagnostics/Prove.h"

#include "Simplex.h"
#include "SymbolicExpand.h"
#include "ppcc/Analysis/Cost/Durations.h"
#include "ppcc/EveryP/Certificate.h"

using namespace ppcc;
using namespace ppcc::every;

bool PlaneProof::isValid() const {
  return llvm::all_of(ranges, [](const PlaneRange &range) {
    return range.verdict == Verdict::Valid ||
           range.verdict == Verdict::Excluded;
  });
}

std::string PlaneFormula::text(StringRef ranksName, StringRef name) const {
  return (isExact ? "" : "at most ") +
         sumText({{microbatches, name}, {ranks, ranksName}, {intercept, ""}});
}

namespace {

/// The most P that are looked at by themselves where what holds for more does
/// not hold for them.
constexpr int64_t maxSmallRanks = 4;
constexpr int maxSplits = 6;
constexpr int64_t maxFromRanks = 64;
/// Numbers that differ in what they leave.
constexpr int64_t maxModulus = 12;

/// What actions take, by the mnemonics of their units, in units of `one`.
struct Costs {
  std::map<std::string, Time> times;
  Time timeUnit = 1;
};

class EveryProver {
public:
  EveryProver(const ProveRequest &request, Session &session,
              const ParsedRequest &parsed)
      : request(request), session(session), checked(*parsed.compiled.checked),
        module(checked.module), schedule(*checked.selection.schedule),
        free{parsed.free[0], parsed.free[1], request.compile.params},
        ranksName(schedule.params[free.ranks].decl->name.text),
        name(schedule.params[free.microbatches].decl->name.text) {}

  bool run(PlaneProof &proof) {
    std::optional<Refusal> refused;
    for (int64_t minRanks = 1; minRanks <= maxSmallRanks && !failed;
         ++minRanks) {
      std::vector<PlaneRange> ranges;
      try {
        if (proveFrom(minRanks, {}, {}, ranges)) {
          proof.ranges.clear();
          for (int64_t p = 1; p != minRanks; ++p)
            if (!proveSingleP(p, proof.ranges))
              return false;
          proof.ranges.insert(proof.ranges.end(), ranges.begin(), ranges.end());
          return true;
        }
      } catch (const Refusal &refusal) {
        if (!refused)
          refused = refusal;
      } catch (const std::overflow_error &) {
        if (!refused)
          refused = Refusal{schedule.range, "numbers become too large"};
      } catch (const WorkLimitReached &) {
        refused = Refusal{schedule.range, "there are too many cases"};
      }
      if (minRanks == 1)
        proof.ranges = std::move(ranges);
    }
    if (refused)
      session.diags.report<diag::NotAffineInRanks>(
          refused->place, proof.schedule, refused->why);
    return !refused && !failed;
  }

private:
  static bool isNonEmpty(const Forms &facts) { return !implies(facts, -1); }

  PlaneRange &add(std::vector<PlaneRange> &ranges, Forms where,
                  Verdict verdict) {
    for (bool ofRanks : {false, true})
      for (size_t i = where.size(); i-- > 0;) {
        Forms others = where;
        others.erase(others.begin() + i);
        if ((where[i].at[M] == 0) == ofRanks && implies(others, where[i]))
          where = std::move(others);
      }
    PlaneRange &range = ranges.emplace_back();
    while (range.fromRanks < maxFromRanks &&
           implies(where, free.numRanks - range.fromRanks - 1))
      ++range.fromRanks;
    for (const Form &form : where)
      range.where.push_back(inParameters(form).tightened());
    range.ranks = ranks;
    range.microbatches = microbatches;
    range.verdict = verdict;
    return range;
  }

  /// A multiple of a form, of P and M themselves.
  Form inParameters(const Form &form) const {
    Form result = scale() * form;
    for (auto [dim, remainder] :
         {std::pair(P, ranks), std::pair(M, microbatches)}) {
      result.at[dim] /= remainder.modulus;
      result.at[One] -= result.at[dim] * remainder.residue;
    }
    return result;
  }
  int64_t scale() const { return ranks.modulus * microbatches.modulus; }

  static bool isSame(const PlaneRange &a, const PlaneRange &b) {
    return a.verdict == b.verdict && a.makespan == b.makespan &&
           a.reason == b.reason;
  }

  /// Makes one range of the last two.
  void join(std::vector<PlaneRange> &ranges, const Forms &facts) {
    PlaneRange last = std::move(ranges.back());
    ranges.resize(ranges.size() - 2);
    PlaneRange &both = add(ranges, facts, last.verdict);
    both.makespan = last.makespan;
    both.reason = last.reason;
  }

  /// Judges all P from one on, of these that leave remainders; whether they are
  /// right.
  bool proveFrom(int64_t minRanks, Remainder ofRanks, Remainder ofMicrobatches,
                 std::vector<PlaneRange> &ranges) {
    ranks = ofRanks;
    microbatches = ofMicrobatches;
    free.numRanks = Form::of(P, ranks.modulus) + ranks.residue;
    free.numMicrobatches =
        Form::of(M, microbatches.modulus) + microbatches.residue;
    size_t before = ranges.size();
    bool isValid = true;
    try {
      for (const Region &region : regionsOf(module, schedule, free, minRanks))
        if (region.isAdmitted) {
          isValid &= proveRegion(region.facts, 0, ranges);
        } else {
          PlaneRange &range =
              add(ranges, region.facts,
                  region.isInvalid ? Verdict::Invalid : Verdict::Excluded);
          range.reason = region.why;
          range.place = region.place;
          isValid &= !region.isInvalid;
        }
    } catch (const ResidueSplit &parts) {
      Remainder &divided = parts.dim == P ? ofRanks : ofMicrobatches;
      Remainder all = divided;
      if (parts.dim > M || all.modulus * parts.number > maxModulus)
        throw Refusal{schedule.range, "it depends on too many remainders"};
      ranges.resize(before);
      isValid = true;
      std::vector<std::vector<PlaneRange>> ofParts(parts.number);
      for (int64_t i = 0; i != parts.number; ++i) {
        divided = {all.modulus * parts.number, all.residue + i * all.modulus};
        isValid &= proveFrom(minRanks, ofRanks, ofMicrobatches, ofParts[i]);
      }
      mergeResidues(
          ofParts,
          parts.dim == P ? &PlaneRange::ranks : &PlaneRange::microbatches, all);
      for (const auto &part : ofParts)
        ranges.insert(ranges.end(), part.begin(), part.end());
    }
    return isValid && !failed;
  }

  /// Makes one range of those of all parts of which the same is said, if that
  /// is so of all.
  static void mergeResidues(std::vector<std::vector<PlaneRange>> &parts,
                            Remainder PlaneRange::*divided, Remainder all) {
    std::vector<PlaneRange> joined;
    int64_t modulus = all.modulus * int64_t(parts.size());
    auto undivided = [&](PlaneRange range) {
      bool isWhole = (range.*divided).modulus == modulus;
      range.*divided = all;
      return std::tuple(isWhole, range.ranks, range.microbatches);
    };
    for (size_t i = 0; i != parts[0].size(); ++i) {
      const PlaneRange *whole = nullptr;
      for (const auto &candidate : parts)
        if (llvm::all_of(parts, [&](const auto &part) {
              return part.size() == parts[0].size() &&
                     candidate.size() == part.size() &&
                     isSame(candidate[i], part[i]) &&
                     undivided(candidate[i]) == undivided(part[i]) &&
                     isSameWhere(candidate[i].where, part[i]);
            }))
          whole = &candidate[i];
      if (!whole)
        return;
      PlaneRange &one = joined.emplace_back(*whole);
      one.*divided = all;
      for (const auto &part : parts)
        one.fromRanks = std::min(one.fromRanks, part[i].fromRanks);
    }
    parts = {std::move(joined)};
  }

  /// Whether forms are non-negative for the same numbers of a range as its own.
  static bool isSameWhere(const Forms &where, const PlaneRange &range) {
    auto inRange = [&](const Forms &forms) {
      Forms result;
      for (const Form &form : forms)
        result.push_back(
            form.with(P, Form::of(P, range.ranks.modulus) + range.ranks.residue)
                .with(M, Form::of(M, range.microbatches.modulus) +
                             range.microbatches.residue)
                .tightened());
      return result;
    };
    Forms one = inRange(where), other = inRange(range.where);
    for (int64_t side = 0; side != 2; ++side, std::swap(one, other)) {
      one.push_back(Form::of(P));
      one.push_back(Form::of(M));
      for (const Form &form : other)
        if (!implies(one, form))
          return false;
    }
    return true;
  }

  /// Judges a region, or parts of it; whether all of it is right.
  bool proveRegion(const Forms &facts, int splits,
                   std::vector<PlaneRange> &ranges) {
    Statements statements = expandSymbolically(module, schedule, free, facts);
    auto costs = costsOf(facts, statements);
    if (failed)
      return false;
    SearchResult found =
        findCertificate(statements, costs.has_value(), splits < maxSplits);
    if (found.splitLine) {
      Forms above = facts, below = facts;
      above.push_back(*found.splitLine);
      below.push_back((Form(-1) - *found.splitLine).tightened());
      if (isNonEmpty(above) && isNonEmpty(below)) {
        size_t before = ranges.size();
        bool isValid = proveRegion(above, splits + 1, ranges) &
                       proveRegion(below, splits + 1, ranges);
        // A line that turns out to divide nothing.
        if (ranges.size() == before + 2 &&
            isSame(ranges[before], ranges.back()))
          join(ranges, facts);
        if (isValid || !found.certificate)
          return isValid;
        ranges.resize(before);
      } else if (!found.certificate) {
        found = findCertificate(statements, costs.has_value(), false);
      }
    }
    PlaneRange &range = add(
        ranges, facts, found.certificate ? Verdict::Valid : Verdict::Undecided);
    range.reason = found.why;
    if (found.certificate && found.certificate->claim.makespan &&
        request.dataOnly) {
      Form form = inParameters(*found.certificate->claim.makespan);
      auto inUnits = [&](int64_t value) {
        return Rational(__int128(value) * costs->timeUnit,
                        __int128(cost::unit) * scale());
      };
      // One number of ranks is no variable.
      if (implies(range.where, Form(range.fromRanks) - Form::of(P)))
        form = form.with(P, range.fromRanks);
      range.makespan = PlaneFormula{
          inUnits(form.at[P]), inUnits(form.at[M]), inUnits(form.at[One]),
          found.certificate->claim.witness || found.certificate->claim.last};
    }
    if (found.certificate && !request.dataOnly)
      range.reason = "by data dependences; valid with the chosen order of "
                     "messages";
    return found.certificate.has_value();
  }

  /// An instance, of few microbatches and ranks, that every kind of rank and
  /// iteration is in.
  std::optional<Program> sampleOf(const Forms &facts) {
    std::optional<std::pair<int64_t, int64_t>> chosen;
    for (int64_t sum = 48; sum >= 2 && !chosen; --sum)
      for (int64_t p = std::min<int64_t>(6, sum); p >= 0 && !chosen; --p)
        if (llvm::all_of(facts, [&](const Form &fact) {
              return fact.at[One] + fact.at[P] * p + fact.at[M] * (sum - p) >=
                     0;
            }))
          chosen = {p, sum - p};
    if (!chosen)
      return std::nullopt;
    Request sample = request.compile;
    sample.until = Request::StopAfter::Expanded;
    sample.params.push_back(
        {ranksName.str(),
         fmt::format("{}", chosen->first * ranks.modulus + ranks.residue)});
    sample.params.push_back(
        {name.str(), fmt::format("{}", chosen->second * microbatches.modulus +
                                           microbatches.residue)});
    Compiled compiled = compile(sample, session);
    if (!compiled ||
        !applyCosts(request.compile.costs, session, compiled.program))
      return failed = true, std::nullopt;
    if (!request.compile.comm.transports.empty()) {
      auto policy = decideComm(request.compile.comm, &checked.selection,
                               compiled.program, session.diags);
      if (!policy)
        return failed = true, std::nullopt;
      // Other orders are no projections of one order of all actions.
      if (policy->fusion->fusion != Fusion::None || policy->fusion->places ||
          policy->torch || policy->prefetch ||
          policy->order == CommOrder::Late || policy->order == CommOrder::None)
        throw Refusal{schedule.range,
                      "messages are placed otherwise than by an order of all "
                      "actions; `--transport=data` leaves them out"};
    }
    if (compiled.program.costs().has({Cost::MemoryLimit}))
      throw Refusal{schedule.range, "the memory of ranks is limited"};
    return std::move(compiled.program);
  }

  /// Puts the durations of a sample into the statements; nothing where these
  /// are not known, or some take no time.
  std::optional<Costs> costsOf(const Forms &facts, Statements &statements) {
    auto program = sampleOf(facts);
    if (!program || program->costs().hasMessageTimes())
      return std::nullopt;
    Costs costs;
    Durations durations(*program);
    if (durations.hasHookOffsets())
      return std::nullopt;
    for (RankId rank : program->ranks())
      for (ActionId at = program->begin(rank), end; at != program->end(rank);
           at = end) {
        end = program->groupEnd(at, rank);
        std::string mnemonic;
        for (ActionId i = at; i != end; ++i.value)
          mnemonic += program->kindOf(i).mnemonic + " ";
        Time time = durations.of(*program, at, end);
        if (costs.times.try_emplace(mnemonic, time).first->second != time)
          return std::nullopt;
      }
    costs.timeUnit = 0;
    for (const auto &[mnemonic, time] : costs.times)
      costs.timeUnit = std::gcd(costs.timeUnit, time);
    std::vector<Unit> units = statements.units;
    for (Unit &unit : units) {
      std::string mnemonic;
      for (const Row &row : unit.rows)
        mnemonic += module.kinds[row.kind].mnemonic + " ";
      auto time = costs.times.find(mnemonic);
      if (time == costs.times.end() || time->second <= 0)
        return std::nullopt;
      unit.duration = time->second / costs.timeUnit;
    }
    statements.units = std::move(units);
    return costs;
  }

  /// Judges one P for all M.
  bool proveSingleP(int64_t p, std::vector<PlaneRange> &ranges) {
    ProveRequest single = request;
    single.free = name.str();
    single.compile.params.push_back({ranksName.str(), fmt::format("{}", p)});
    std::string usageError;
    auto proof = prove(single, session, usageError);
    if (!proof)
      return false;
    for (const ProvenRange &range : proof->ranges) {
      PlaneRange &plane = ranges.emplace_back();
      plane.where = {Form::of(P) - p, Form(p) - Form::of(P),
                     Form::of(M) - range.from};
      if (range.to)
        plane.where.push_back(Form(*range.to) - Form::of(M));
      plane.fromRanks = p;
      plane.microbatches = {range.modulus, range.residue};
      plane.verdict = range.verdict;
      plane.reason = range.reason;
      plane.place = range.place;
      if (range.makespan)
        plane.makespan = PlaneFormula{{},
                                      range.makespan->slope,
                                      range.makespan->intercept,
                                      range.makespan->isExact};
    }
    return true;
  }

  const ProveRequest &request;
  Session &session;
  const Checked &checked;
  const sema::Module &module;
  const sema::Schedule &schedule;
  FreeParameters free;
  Remainder ranks, microbatches; ///< Of what is judged.
  StringRef ranksName, name;
  bool failed = false;
};

} // namespace

std::optional<PlaneProof> every::proveEvery(const ProveRequest &request,
                                            Session &session,
                                            std::string &usageError) {
  ProveRequest wanted = request;
  wanted.dataOnly |= request.compile.comm.transports.empty();
  auto parsed = readRequest(wanted, session, usageError);
  if (!parsed)
    return std::nullopt;
  const Request &given = request.compile;
  const sema::Selection &selected = parsed->compiled.checked->selection;
  PlaneProof proof;
  proof.schedule = std::move(parsed->proof.schedule);
  proof.params = std::move(parsed->proof.params);
  proof.transports = std::move(parsed->proof.transports);
  if (!given.rules.empty() || !given.model.empty() || !given.cluster.empty() ||
      !given.layout.empty() || selected.model || selected.cluster) {
    session.diags.report<diag::NotAffineInRanks>(
        selected.schedule->range, proof.schedule,
        "rules, models, clusters and layouts are not known for all ranks");
    return std::nullopt;
  }
  Simplex::work = 0;
  if (!EveryProver(wanted, session, *parsed).run(proof))
    return std::nullopt;
  return proof;
}
