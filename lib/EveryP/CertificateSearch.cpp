// Searches for a certificate: affine start times of all actions, the makespan,
// and Farkas multipliers for all proof obligations.
//
// Algorithm: affine scheduling (Feautrier 1992) by cutting planes (Kelley
// 1960). TimeSearch minimizes each obligation over its premises; where it fails
// at a vertex or along a ray, that is a new constraint on the coefficients of
// the times; it repeats until none fails. For more than maxUnknowns units,
// SampleRuns interpolates times of small instances first. boundsOf, or
// CriticalPredecessorSearch by case splits, finds why a makespan is exact.
// Invariant: the search is not trusted; it returns only what faultOf accepts.
// Cost: a TimeSearch solves at most maxRounds linear programs for times, each
// with at most cutsPerRound constraints more; Simplex::maxWork bounds them all.
// Example: F of gpipe on rank r at a + b P + c M + d r + e j, at first all 0:
//   F j + 1 after F j on a rank fails: new constraint e >= 1;
//   F j on rank r after F j on rank r - 1 fails: new constraint d >= 1;
//   the solution r + j satisfies both.
#include "Simplex.h"
#include "ppcc/EveryP/Certificate.h"

using namespace ppcc;
using namespace ppcc::every;

namespace {

constexpr unsigned numCoefficients =
    5; ///< Numbers of a time: 1, P, M, Rank, Turn.
constexpr int64_t maxTraversals = 4;
constexpr unsigned maxRounds = 600, cutsPerRound = 24;
constexpr unsigned maxUnknowns = 60; ///< Units.
constexpr StringRef noTimes =
    "no times were found that grow along all that ranks wait for";

/// The value at a point of P.., or that of the linear part along a ray.
Rational valueOf(const Form &form, ArrayRef<Rational> at, bool isRay) {
  return std::inner_product(at.begin(), at.end(), form.at.begin() + P,
                            Rational(isRay ? 0 : form.at[One]));
}

/// What is to be shown, and where it may fail.
struct Goal {
  const Obligation *what;
  Simplex corners;
};

/// Of units the numCoefficients numbers of their times, where these are known.
using KnownTimes = std::vector<std::optional<Vector>>;

class TimeSearch {
public:
  TimeSearch(const std::vector<Obligation> &all, const KnownTimes &known)
      : known(known), times(known.size()) {
    for (const Obligation &one : all) {
      if (llvm::all_of(one.times, [&](const Obligation::Time &time) {
            return known[time.unit].has_value();
          }))
        continue;
      Goal goal{&one, Simplex(one.premises)};
      if (goal.corners.isFeasible())
        goals.push_back(std::move(goal));
    }
    for (const auto &unit : known)
      unknown.push_back(unit ? numUnknown : numUnknown++);
  }

  bool find() {
    Simplex unknowns(numUnknown * numCoefficients);
    solve(unknowns);
    std::set<std::vector<int64_t>> addedCuts;
    size_t next = 0;
    for (unsigned round = 0; round != maxRounds; ++round) {
      unsigned cuts = 0;
      for (size_t i = 0; i != goals.size() && cuts != cutsPerRound; ++i) {
        Goal &goal = goals[(next + i) % goals.size()];
        Form form = goalOf(*goal.what);
        bool isRay = !goal.corners.minimize(linear(form));
        if (!isRay && (goal.corners.minimum + form.at[One]).sign() >= 0)
          continue;
        ArrayRef<Rational> at =
            isRay ? ArrayRef(goal.corners.ray) : goal.corners.point();
        Vector row(numUnknown * numCoefficients);
        Rational lowerBound = -valueOf(goal.what->rest, at, isRay);
        for (const Obligation::Time &time : goal.what->times) {
          auto add = [&](unsigned which, Rational value) {
            value = Rational(time.factor) * value;
            if (const auto &numbers = known[time.unit])
              lowerBound = lowerBound - (*numbers)[which] * value;
            else
              row[unknown[time.unit] * numCoefficients + which] =
                  row[unknown[time.unit] * numCoefficients + which] + value;
          };
          add(0, isRay ? 0 : 1);
          add(P, at[P - 1]);
          add(M, at[M - 1]);
          add(Rank, valueOf(time.rank, at, isRay));
          add(Iteration, valueOf(time.iteration, at, isRay));
        }
        Vector whole = row;
        whole.push_back(lowerBound);
        std::vector<int64_t> key;
        toCommonDenominator(whole, key);
        if (!addedCuts.insert(key).second)
          continue;
        unknowns.require(row, whole.back());
        ++cuts;
        next = (next + i + 1) % goals.size();
        i = -1;
        if (cuts == cutsPerRound)
          break;
      }
      if (cuts == 0)
        return true;
      if (!unknowns.isFeasible())
        return false;
      solve(unknowns);
    }
    return false;
  }

  Form goalOf(const Obligation &what) const {
    Form goal = scale * what.rest;
    for (const Obligation::Time &time : what.times)
      goal.add(times[time.unit].on(time.rank, time.iteration), time.factor);
    return goal;
  }

private:
  void solve(const Simplex &unknowns) {
    Vector values;
    for (size_t unit = 0; unit != known.size(); ++unit)
      for (unsigned i = 0; i != numCoefficients; ++i)
        values.push_back(
            known[unit]
                ? (*known[unit])[i]
                : unknowns.point()[unknown[unit] * numCoefficients + i]);
    std::vector<int64_t> whole;
    scale = toCommonDenominator(values, whole);
    for (unsigned i = 0; i != whole.size(); ++i)
      times[i / numCoefficients].at[i % numCoefficients] = whole[i];
  }

  const KnownTimes &known;
  std::vector<unsigned> unknown; ///< By unit, its number among the unknown.
  unsigned numUnknown = 0;
  std::vector<Goal> goals;

public:
  int64_t scale = 1;
  std::vector<Form> times;
};

bool follows(const Forms &premises, const Form &goal) {
  return multipliersFor(premises, goal).has_value();
}

Forms premisesOf(const Statements &statements, const RankClass &ranks) {
  Forms premises = statements.region;
  llvm::append_range(premises, ranks.where);
  return premises;
}

/// The actions of a slot by their microbatches.
bool findProducers(const Statements &statements, uint32_t c, uint32_t chunk,
                   uint8_t slot, Claim &claim) {
  const RankClass &ranks = statements.classes[c];
  std::vector<RowRef> rest;
  for (auto [u, unit] : llvm::enumerate(statements.units))
    for (auto [r, row] : llvm::enumerate(unit.rows))
      if (unit.rankClass == c && row.chunk == chunk &&
          (statements.kinds[row.kind].defines & slot))
        rest.push_back({uint32_t(u), uint32_t(r)});
  auto segmentOf = [&](RowRef at) -> const Segment & {
    return statements.segmentOf(statements.units[at.unit]);
  };
  auto numberOf = [&](RowRef at) {
    return statements.units[at.unit].rows[at.row].microbatch;
  };
  Forms premises = premisesOf(statements, ranks);
  Form reached = statements.pipes[ranks.chunks[chunk].pipe].first;
  auto &order = claim.producers[{c, chunk, slot}];
  while (!rest.empty()) {
    auto next = llvm::find_if(rest, [&](RowRef at) {
      Form begin = numberOf(at).with(Iteration, 0);
      if (numberOf(at).at[Iteration] < 0)
        begin = begin - segmentOf(at).count + 1;
      return begin == reached || (follows(premises, begin - reached) &&
                                  follows(premises, reached - begin));
    });
    if (next == rest.end())
      return false;
    // Those after it in its iteration come with it.
    const Segment &segment = segmentOf(*next);
    int64_t step = std::max<int64_t>(numberOf(*next).at[Iteration], 1);
    reached = reached + step * segment.count;
    for (Form number = numberOf(*next); step-- != 0; number = number + 1) {
      auto same = llvm::find_if(rest, [&](RowRef at) {
        return &segmentOf(at) == &segment && numberOf(at) == number;
      });
      if (same == rest.end())
        return false;
      order.push_back(*same);
      if (step == 0)
        for (RowRef done : ArrayRef(order).take_back(
                 std::max<int64_t>(numberOf(*same).at[Iteration], 1)))
          rest.erase(llvm::find(rest, done));
    }
  }
  return true;
}

/// How long a run takes at least, for each way to say so.
struct Bound {
  Form length;
  Witness witness;
};

std::vector<Bound> boundsOf(const Statements &statements, Claim claim) {
  std::vector<Bound> bounds;
  auto add = [&](const Witness &witness) {
    claim.witness = witness;
    claim.makespan = Form();
    auto all = obligations(statements, claim);
    // Behind all else stands what is to be shown of the witness.
    size_t own = statements.classes[witness.rankClass].where.size() + 3;
    for (const Obligation &one : ArrayRef(all).take_back(own).drop_back())
      if (!follows(one.premises, one.rest))
        return;
    if (llvm::none_of(bounds, [&](const Bound &bound) {
          return bound.length == all.back().rest;
        }))
      bounds.push_back({all.back().rest, witness});
  };
  for (uint32_t c = 0; c != statements.classes.size(); ++c) {
    const RankClass &ranks = statements.classes[c];
    // Ranks at the ends of the class.
    for (const Form &where : ranks.where)
      for (int64_t factor : {1, -1})
        if (where.at[Rank] == factor) {
          Form rank =
              factor == 1 ? Form::of(Rank) - where : Form::of(Rank) + where;
          for (uint32_t from = 0; from != ranks.segments.size(); ++from)
            for (uint32_t to = from; to != ranks.segments.size(); ++to) {
              uint32_t first = ranks.segments[from].begin,
                       last = ranks.segments[to].end - 1;
              for (uint32_t a = 0; a != statements.units[first].rows.size();
                   ++a)
                for (uint32_t b = 0; b != statements.units[last].rows.size();
                     ++b)
                  add({c, rank, {first, a}, {last, b}});
            }
        }
  }
  return bounds;
}

/// The longest of bounds for many of one number, and then of the other.
Form longest(ArrayRef<Bound> bounds, Dim first, Dim second) {
  Form longestBound;
  for (const Bound &bound : bounds) {
    auto key = [=](const Form &form) {
      return std::tuple(form.at[first], form.at[second], form.at[One]);
    };
    if (key(longestBound) < key(bound.length))
      longestBound = bound.length;
  }
  return longestBound;
}

/// Where the longest for many microbatches is as long as that for many ranks.
std::optional<Form> crossover(ArrayRef<Bound> bounds) {
  Form line = longest(bounds, M, P) - longest(bounds, P, M);
  return line.isConstant() ? std::nullopt : std::optional(line);
}

/// Where the first rank, or the last, begins to do something else.
std::optional<Form> lineOf(const Statements &statements, bool ofRanks) {
  for (const RankClass &ranks : statements.classes)
    for (const Form &where : ranks.where)
      for (const Form &rank : {Form(), Form::of(P) - 1})
        if (Form line = where.with(Rank, rank);
            where.at[Rank] != 0 && (line.at[M] == 0) == ofRanks &&
            !follows(statements.region, line) &&
            !follows(statements.region, Form(-1) - line))
          return line;
  return std::nullopt;
}

/// Chunks whose stages are never so far from each other.
void findInfeasiblePairs(const Statements &statements, Claim &claim) {
  auto other = [](const Form &form) {
    return form.with(Rank, Form::of(OtherRank));
  };
  for (uint32_t a = 0; a != statements.classes.size(); ++a)
    for (uint32_t b = 0; b != statements.classes.size(); ++b) {
      const RankClass &one = statements.classes[a],
                      &two = statements.classes[b];
      Forms both = premisesOf(statements, one);
      for (const Form &form : two.where)
        both.push_back(other(form));
      for (uint32_t i = 0; i != one.chunks.size(); ++i)
        for (uint32_t k = 0; k != two.chunks.size(); ++k)
          for (int distance : {-1, 0, 1}) {
            Form stage =
                one.chunks[i].stage + distance - other(two.chunks[k].stage);
            Forms same = both;
            same.push_back(stage.tightened());
            same.push_back((-1 * stage).tightened());
            if (one.chunks[i].pipe == two.chunks[k].pipe && follows(same, -1))
              claim.infeasiblePairs.insert({a, i, b, k, distance});
          }
    }
}

/// When the actions of instances start, at the earliest.
class SampleRuns {
public:
  explicit SampleRuns(const Statements &statements)
      : statements(statements), points(statements.units.size()) {
    for (int64_t p = 0, tried = 0; p != maxSide && tried != maxTried; ++p) {
      unsigned found = 0;
      for (int64_t m = 0; m != maxSide && found != 3; ++m)
        if (isIn(statements.region, p, m, 0)) {
          if (!run(p, m))
            return;
          ++found;
        }
      tried += found != 0;
    }
    for (const Points &unit : points)
      times.push_back(interpolate(unit));
    makespan = interpolate(ends);
  }

  KnownTimes times;
  std::optional<Vector> makespan;

private:
  static constexpr int64_t maxSide = 64, maxTried = 8;
  using Points = std::vector<std::pair<Vector, int64_t>>;
  struct Event {
    uint32_t unit;
    int64_t iteration, rank;
  };

  static int64_t at(const Form &form, int64_t p, int64_t m, int64_t rank,
                    int64_t iteration = 0) {
    return form.at[One] + form.at[P] * p + form.at[M] * m +
           form.at[Rank] * rank + form.at[Iteration] * iteration;
  }
  static bool isIn(const Forms &forms, int64_t p, int64_t m, int64_t rank) {
    return llvm::all_of(
        forms, [&](const Form &form) { return at(form, p, m, rank) >= 0; });
  }

  /// Runs an instance; false where a rank waits for ever.
  bool run(int64_t p, int64_t m) {
    std::map<int64_t, std::vector<Event>> programs; // By the number of a rank.
    for (const RankClass &ranks : statements.classes)
      for (int64_t rank = 0; rank != maxSide; ++rank)
        if (isIn(ranks.where, p, m, rank))
          for (const Segment &segment : ranks.segments)
            for (int64_t iteration = 0;
                 iteration < at(segment.count, p, m, rank); ++iteration)
              for (uint32_t unit = segment.begin; unit != segment.end; ++unit)
                programs[at(ranks.rank, p, m, rank)].push_back(
                    {unit, iteration, rank});
    // Ends, by slot, pipe, stage and microbatch.
    std::map<std::tuple<uint8_t, uint32_t, int64_t, int64_t>, int64_t> ends;
    std::map<int64_t, std::pair<size_t, int64_t>> reached;
    int64_t last = 0;
    for (bool goesOn = true; std::exchange(goesOn, false);)
      for (auto &[number, program] : programs)
        for (auto &[done, now] = reached[number]; done != program.size();
             ++done) {
          const Event &event = program[done];
          const Unit &unit = statements.units[event.unit];
          std::optional<int64_t> start = now;
          auto forEachSlot = [&](auto visit) {
            for (const Row &row : unit.rows) {
              const Chunk &chunk = statements.classOf(unit).chunks[row.chunk];
              int64_t stage = at(chunk.stage, p, m, event.rank),
                      mb =
                          at(row.microbatch, p, m, event.rank, event.iteration),
                      above = at(statements.pipes[chunk.pipe].stages, p, m, 0);
              visit(statements.kinds[row.kind], chunk.pipe, stage, above, mb);
            }
          };
          auto wait = [&](uint8_t slot, uint32_t pipe, int64_t stage,
                          int64_t mb) {
            auto end = ends.find({slot, pipe, stage, mb});
            if (end == ends.end())
              start.reset();
            else if (start)
              start = std::max(*start, end->second);
          };
          forEachSlot([&](const KindInfo &info, uint32_t pipe, int64_t stage,
                          int64_t above, int64_t mb) {
            for (uint8_t slot : slotsIn(info.needs))
              wait(slot, pipe, stage, mb);
            if ((info.defines & slot::Output) && stage > 0)
              wait(slot::Output, pipe, stage - 1, mb);
            if ((info.defines & slot::InputGrad) && stage + 1 < above)
              wait(slot::InputGrad, pipe, stage + 1, mb);
          });
          if (!start)
            break;
          goesOn = true;
          points[event.unit].push_back(
              {{1, p, m, event.rank, event.iteration}, *start});
          now = *start + unit.duration;
          last = std::max(last, now);
          forEachSlot([&](const KindInfo &info, uint32_t pipe, int64_t stage,
                          int64_t, int64_t mb) {
            for (uint8_t slot : slotsIn(info.defines))
              ends[{slot, pipe, stage, mb}] = now;
          });
        }
    this->ends.push_back({{1, p, m, 0, 0}, last});
    return llvm::all_of(programs, [&](const auto &program) {
      return reached[program.first].first == program.second.size();
    });
  }

  /// The numbers of a form that has these values, if there is one.
  static std::optional<Vector> interpolate(const Points &points) {
    Simplex numbers(numCoefficients);
    for (const auto &[at, value] : points) {
      if (std::inner_product(at.begin(), at.end(), numbers.point().begin(),
                             Rational()) == value)
        continue;
      Vector negative;
      for (const Rational &one : at)
        negative.push_back(-one);
      numbers.require(at, value);
      numbers.require(negative, -value);
      if (!numbers.isFeasible())
        return std::nullopt;
    }
    return numbers.point().vec();
  }

  const Statements &statements;
  std::vector<Points> points; ///< By unit.
  Points ends;                ///< Of instances.
};

/// Finds what holds the actions that lead to the end of a run.
class CriticalPredecessorSearch {
public:
  CriticalPredecessorSearch(const Statements &statements,
                            const Certificate &certificate)
      : statements(statements), units(statements.units),
        times(certificate.times), scale(certificate.scale),
        claim(certificate.claim) {}

  /// The claim with reasons, if there are some.
  std::optional<Claim> run() {
    for (uint32_t unit = 0; unit != units.size(); ++unit) {
      Form iteration = statements.segmentOf(units[unit]).count - 1;
      for (const Form &where : statements.classOf(units[unit]).where) {
        int64_t factor = where.at[Rank];
        if (factor != 1 && factor != -1)
          continue;
        Form rank = Form::of(Rank) - factor * where;
        EventRef last{unit, rank, iteration.with(Rank, rank)};
        Forms needed = there(last);
        needed.push_back(scale * (units[unit].duration - *claim.makespan) +
                         times[unit].on(last.rank, last.iteration));
        if (llvm::all_of(needed, [&](const Form &form) {
              return follows(statements.region, form);
            })) {
          claim.last = last;
          if (findAll())
            return claim;
        }
      }
    }
    return std::nullopt;
  }

private:
  static constexpr unsigned maxDepth = 8;
  /// An action that may be a reason, and what is non-negative where it is one.
  struct Candidate {
    EventRef source;
    Forms where;
  };

  /// What is non-negative where there is an action.
  Forms there(const EventRef &event) const {
    const Unit &unit = units[event.unit];
    Forms forms;
    for (const Form &form : statements.classOf(unit).where)
      forms.push_back(form.on(event.rank, event.iteration));
    forms.push_back(event.iteration);
    forms.push_back(
        statements.segmentOf(unit).count.on(event.rank, event.iteration) - 1 -
        event.iteration);
    return forms;
  }

  /// Those that lead to the last, without units that nothing holds.
  bool findAll() {
    while (!withoutPredecessor.count(claim.last->unit)) {
      std::vector<uint32_t> left = {claim.last->unit};
      std::map<uint32_t, std::vector<CriticalPredecessor>> criticalPredecessors;
      bool isWhole = true;
      while (isWhole && !left.empty()) {
        uint32_t unit = left.back();
        left.pop_back();
        auto [at, isNew] = criticalPredecessors.try_emplace(unit);
        if (!isNew)
          continue;
        at->second = criticalPredecessorsOf(unit);
        isWhole = !at->second.empty();
        for (const CriticalPredecessor &reason : at->second)
          if (reason.kind == CriticalPredecessor::Kind::WaitsFor)
            left.push_back(reason.source.unit);
        if (!isWhole)
          withoutPredecessor.insert(unit);
      }
      if (isWhole) {
        claim.criticalPredecessors = std::move(criticalPredecessors);
        return true;
      }
    }
    return false;
  }

  /// Nothing where some action has no reason.
  std::vector<CriticalPredecessor> criticalPredecessorsOf(uint32_t unit) {
    std::vector<CriticalPredecessor> &known = cachedPredecessors[unit];
    bool isGood = !known.empty() &&
                  llvm::none_of(known, [&](const CriticalPredecessor &one) {
                    return one.kind == CriticalPredecessor::Kind::WaitsFor &&
                           withoutPredecessor.count(one.source.unit);
                  });
    if (isGood)
      return known;
    known.clear();
    Forms where = statements.region;
    llvm::append_range(where,
                       there({unit, Form::of(Rank), Form::of(Iteration)}));
    auto [found, isNew] = candidates.try_emplace(unit);
    if (isNew)
      found->second = candidatesOf(unit, where);
    if (!splitCases(unit, found->second, where, known, 0))
      known.clear();
    return known;
  }

  bool splitCases(uint32_t unit, ArrayRef<Candidate> all, const Forms &where,
                  std::vector<CriticalPredecessor> &known, unsigned depth) {
    size_t at = known.size();
    known.emplace_back();
    if (follows(where, -1))
      return true;
    if (follows(where, -1 * times[unit])) {
      known[at].kind = CriticalPredecessor::Kind::AtTimeZero;
      return true;
    }
    std::optional<Form> test;
    for (const Candidate &one : all) {
      if (withoutPredecessor.count(one.source.unit))
        continue;
      auto open = llvm::find_if(
          one.where, [&](const Form &form) { return !follows(where, form); });
      if (open == one.where.end()) {
        known[at].kind = CriticalPredecessor::Kind::WaitsFor;
        known[at].source = one.source;
        return true;
      }
      Forms both = where;
      both.insert(both.end(), one.where.begin(), one.where.end());
      if (!test && !follows(both, -1))
        test = open->tightened();
    }
    if (!test || depth == maxDepth)
      return false;
    known[at].kind = CriticalPredecessor::Kind::Split;
    known[at].test = *test;
    for (bool isNonNegative : {true, false}) {
      Forms part = where;
      part.push_back(isNonNegative ? *test : Form(-1) - *test);
      (isNonNegative ? known[at].yes : known[at].no) = known.size();
      if (!splitCases(unit, all, part, known, depth + 1))
        return false;
    }
    return true;
  }

  std::vector<Candidate> candidatesOf(uint32_t unit, const Forms &where) {
    std::vector<Candidate> found;
    const Unit &target = units[unit];
    auto add = [&](const EventRef &source, Forms more = {}) {
      Candidate one{source, there(source)};
      one.where.push_back(scale * units[source.unit].duration +
                          times[source.unit].on(source.rank, source.iteration) -
                          times[unit]);
      llvm::append_range(one.where, more);
      Forms both = where;
      llvm::append_range(both, one.where);
      if (!follows(both, -1))
        found.push_back(std::move(one));
    };
    for (uint32_t other = 0; other != units.size(); ++other) {
      const Unit &source = units[other];
      const Segment &segment = statements.segmentOf(source);
      if (&segment == &statements.segmentOf(target)) {
        int64_t isBehind = other >= unit;
        add({other, Form::of(Rank), Form::of(Iteration) - isBehind});
      } else if (source.rankClass == target.rankClass && other < unit &&
                 other + 1 == segment.end) {
        add({other, Form::of(Rank), segment.count - 1});
      }
      for (const Row &row : target.rows)
        for (const Row &written : source.rows)
          addRead(target, row, other, written, add);
    }
    return found;
  }

  template <class Add>
  void addRead(const Unit &target, const Row &row, uint32_t other,
               const Row &written, Add add) {
    const KindInfo &info = statements.kinds[row.kind],
                   &writes = statements.kinds[written.kind];
    const Chunk &own = statements.classOf(target).chunks[row.chunk],
                &chunk = statements.classOf(units[other]).chunks[written.chunk];
    for (int distance : {-1, 0, 1}) {
      uint8_t reads = distance == 0   ? info.needs
                      : distance == 1 ? info.defines & slot::InputGrad
                                      : info.defines & slot::Output;
      if (chunk.pipe != own.pipe || !(reads & writes.defines))
        continue;
      auto rank = quotient(own.stage + distance - chunk.stage.with(Rank, 0),
                           chunk.stage.at[Rank]);
      if (!rank)
        continue;
      auto iteration =
          quotient(row.microbatch - written.microbatch.on(*rank, 0),
                   written.microbatch.at[Iteration]);
      if (iteration)
        add(EventRef{other, *rank, *iteration});
    }
  }

  static std::optional<Form> quotient(Form form, int64_t divisor) {
    for (int64_t &part : form.at) {
      if (divisor == 0 ? part != 0 : part % divisor != 0)
        return std::nullopt;
      if (divisor != 0)
        part /= divisor;
    }
    return form;
  }

  const Statements &statements;
  const std::vector<Unit> &units;
  const std::vector<Form> &times;
  const int64_t scale;
  Claim claim;
  std::set<uint32_t>
      withoutPredecessor; ///< Units of actions that nothing holds.
  std::map<uint32_t, std::vector<CriticalPredecessor>> cachedPredecessors;
  std::map<uint32_t, std::vector<Candidate>> candidates;
};

} // namespace

SearchResult every::findCertificate(const Statements &statements, bool isTimed,
                                    bool maySplit) {
  SearchResult found;
  Claim claim;
  for (uint32_t c = 0; c != statements.classes.size(); ++c)
    for (uint32_t chunk = 0; chunk != statements.classes[c].chunks.size();
         ++chunk)
      for (uint8_t slot :
           slotsIn(slot::Output | slot::InputGrad | slot::WeightGrad))
        if ((statements.hasBackward || slot == slot::Output) &&
            !findProducers(statements, c, chunk, slot, claim)) {
          found.why = "the microbatches of a stage do not follow each other";
          return found;
        }
  auto attempt = [&](const Claim &one, const KnownTimes &known) {
    auto all = obligations(statements, one);
    TimeSearch times(all, known);
    for (const Obligation &what : all)
      if (what.times.empty() && !follows(what.premises, what.rest)) {
        found.why = "not all work is done once";
        return false;
      }
    if (!times.find())
      return false;
    Certificate certificate{one, times.scale, times.times, {}};
    for (const Obligation &what : all) {
      auto multipliers = multipliersFor(what.premises, times.goalOf(what));
      if (!multipliers)
        return false;
      certificate.multipliers.push_back(std::move(*multipliers));
    }
    if (!faultOf(statements, certificate).empty())
      return false;
    found.certificate = std::move(certificate);
    return true;
  };
  try {
    KnownTimes unknown(statements.units.size());
    if (unknown.size() > maxUnknowns) {
      findInfeasiblePairs(statements, claim);
      SampleRuns instances(statements);
      if (instances.times.empty() ||
          llvm::count(instances.times, std::nullopt) > maxUnknowns) {
        found.why = noTimes;
        return found;
      }
      if (isTimed && instances.makespan) {
        Claim above = claim;
        above.makespan = Form();
        std::vector<int64_t> numbers;
        if (toCommonDenominator(*instances.makespan, numbers) == 1) {
          std::copy(numbers.begin(), numbers.begin() + Rank,
                    above.makespan->at.begin());
          if (attempt(above, instances.times)) {
            if (auto exact =
                    CriticalPredecessorSearch(statements, *found.certificate)
                        .run())
              attempt(*exact, instances.times);
            else if (maySplit)
              found.splitLine = lineOf(statements, true);
            return found;
          }
        }
      }
      if (!attempt(claim, instances.times) && found.why.empty())
        found.why = noTimes;
      return found;
    }
    if (isTimed) {
      std::vector<Bound> bounds = boundsOf(statements, claim);
      // What a run takes is above all of them.
      auto longestBound = llvm::find_if(bounds, [&](const Bound &bound) {
        return llvm::all_of(bounds, [&](const Bound &other) {
          return follows(statements.region, bound.length - other.length);
        });
      });
      if (longestBound != bounds.end()) {
        Claim exact = claim;
        exact.makespan = longestBound->length;
        exact.witness = longestBound->witness;
        if (attempt(exact, unknown))
          return found;
      }
      auto line = lineOf(statements, true);
      if (!line && longestBound == bounds.end())
        line = crossover(bounds);
      if (maySplit && (line || (line = lineOf(statements, false)))) {
        found.splitLine = line->tightened();
        return found;
      }
      // Times that end some ways through all ranks later.
      for (int64_t ways = 1; ways <= maxTraversals && !bounds.empty(); ++ways) {
        Claim above = claim;
        above.makespan = longest(bounds, M, P) + ways * (Form::of(P) - 1);
        if (attempt(above, unknown))
          return found;
      }
    }
    if (!attempt(claim, unknown) && found.why.empty())
      found.why = noTimes;
  } catch (const WorkLimitReached &) {
    found.why = "the search takes too long";
  } catch (const std::exception &) {
    found.why = "numbers become too large";
  }
  return found;
}
