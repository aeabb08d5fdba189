// Times of all actions by linear programs: those that fail at a corner or along
// a ray of what is to be shown are asked to hold there, until none is left.
#include "ppcc/EveryP/Guess.h"
#include "Simplex.h"

using namespace ppcc;
using namespace ppcc::every;

namespace {

constexpr unsigned ofUnit = 5; ///< Unknowns: 1, P, M, Rank, Turn.
constexpr int64_t mostWays = 4;
constexpr unsigned mostRounds = 600, cutsOfRound = 24;

/// The value at a point of P.., or that of the linear part along a ray.
Fraction valueOf(const Form &form, const Vector &at, bool isRay) {
  Fraction value = isRay ? 0 : form.at[One];
  for (unsigned dim = P; dim != numDims; ++dim)
    if (form.at[dim] != 0)
      value = value + Fraction(form.at[dim]) * at[dim - 1];
  return value;
}

/// What is to be shown, and where it may fail.
struct Goal {
  const Obligation *what = nullptr;
  Simplex corners{numDims - 1};
};

class Times {
public:
  explicit Times(const std::vector<Obligation> &all) {
    unsigned units = 0;
    for (const Obligation &one : all) {
      if (one.times.empty())
        continue;
      for (const Obligation::Time &time : one.times)
        units = std::max(units, time.unit + 1);
      Goal goal{&one};
      for (const Form &premise : one.premises)
        goal.corners.require(linear(premise), -premise.at[One]);
      if (goal.corners.isFeasible())
        goals.push_back(std::move(goal));
    }
    times.resize(units);
  }

  bool find() {
    Simplex unknowns(times.size() * ofUnit);
    std::set<std::vector<int64_t>> known;
    size_t next = 0;
    for (unsigned round = 0; round != mostRounds; ++round) {
      unsigned cuts = 0;
      for (size_t i = 0; i != goals.size() && cuts != cutsOfRound; ++i) {
        Goal &goal = goals[(next + i) % goals.size()];
        Form form = goalOf(*goal.what);
        bool isRay = !goal.corners.minimize(linear(form));
        if (!isRay && (goal.corners.least + form.at[One]).sign() >= 0)
          continue;
        Vector at = goal.corners.ray;
        if (!isRay) {
          at.clear();
          for (unsigned dim = P; dim != numDims; ++dim)
            at.push_back(goal.corners[dim - 1]);
        }
        Vector row(times.size() * ofUnit);
        for (const Obligation::Time &time : goal.what->times) {
          auto add = [&](unsigned which, Fraction value) {
            Fraction &entry = row[time.unit * ofUnit + which];
            entry = entry + Fraction(time.factor) * value;
          };
          add(0, isRay ? 0 : 1);
          add(P, at[P - 1]);
          add(M, at[M - 1]);
          add(Rank, valueOf(time.rank, at, isRay));
          add(Turn, valueOf(time.turn, at, isRay));
        }
        Vector whole = row;
        whole.push_back(-valueOf(goal.what->rest, at, isRay));
        std::vector<int64_t> key;
        wholeNumbers(whole, key);
        if (!known.insert(key).second)
          continue;
        unknowns.require(row, whole.back());
        ++cuts;
        next = (next + i + 1) % goals.size();
        i = -1;
        if (cuts == cutsOfRound)
          break;
      }
      if (cuts == 0)
        return true;
      if (!unknowns.isFeasible())
        return false;
      Vector values;
      for (unsigned i = 0; i != times.size() * ofUnit; ++i)
        values.push_back(unknowns[i]);
      std::vector<int64_t> whole;
      scale = wholeNumbers(values, whole);
      for (unsigned i = 0; i != whole.size(); ++i)
        times[i / ofUnit].at[i % ofUnit] = whole[i];
    }
    return false;
  }

  Form goalOf(const Obligation &what) const {
    Form goal = scale * what.rest;
    for (const Obligation::Time &time : what.times)
      goal.add(times[time.unit].with(Turn, time.turn).with(Rank, time.rank),
               time.factor);
    return goal;
  }

  int64_t scale = 1;
  std::vector<Form> times;

private:
  static Vector linear(const Form &form) {
    return {form.at.begin() + P, form.at.end()};
  }

  std::vector<Goal> goals;
};

bool follows(const Forms &premises, const Form &goal) {
  return multipliersFor(premises, goal).has_value();
}

Forms premisesOf(const Statements &statements, const RankClass &ranks) {
  Forms premises = statements.region;
  premises.insert(premises.end(), ranks.where.begin(), ranks.where.end());
  return premises;
}

/// The actions of a slot by their microbatches.
bool fill(const Statements &statements, uint32_t c, uint32_t chunk,
          uint8_t slot, Claim &claim) {
  const RankClass &ranks = statements.classes[c];
  std::vector<RowRef> rest;
  for (uint32_t s = 0; s != ranks.segments.size(); ++s)
    for (uint32_t u = 0; u != ranks.segments[s].units.size(); ++u)
      for (uint32_t r = 0; r != ranks.segments[s].units[u].rows.size(); ++r) {
        const Row &row = ranks.segments[s].units[u].rows[r];
        if (row.chunk == chunk && (statements.kinds[row.kind].defines & slot))
          rest.push_back({s, u, r});
      }
  Forms premises = premisesOf(statements, ranks);
  Form reached = statements.pipes[ranks.chunks[chunk].pipe].first;
  auto &order = claim.fillers[{c, chunk, slot}];
  while (!rest.empty()) {
    auto next = llvm::find_if(rest, [&](RowRef at) {
      const Segment &segment = ranks.segments[at.segment];
      const Form &number = segment.units[at.unit].rows[at.row].microbatch;
      Form begin = number.with(Turn, 0);
      if (number.at[Turn] < 0)
        begin = begin - segment.count + 1;
      return begin == reached || (follows(premises, begin - reached) &&
                                  follows(premises, reached - begin));
    });
    if (next == rest.end())
      return false;
    reached = reached + ranks.segments[next->segment].count;
    order.push_back(*next);
    rest.erase(next);
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
    size_t own = statements.classes[witness.ofClass].where.size() + 3;
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
              const auto &first = ranks.segments[from].units[0].rows;
              const auto &last = ranks.segments[to].units.back().rows;
              for (uint32_t a = 0; a != first.size(); ++a)
                for (uint32_t b = 0; b != last.size(); ++b)
                  add({c,
                       rank,
                       {from, 0, a},
                       {to, uint32_t(ranks.segments[to].units.size() - 1), b}});
            }
        }
  }
  return bounds;
}

/// The longest of bounds for many of one number, and then of the other.
Form longest(ArrayRef<Bound> bounds, Dim first, Dim second) {
  Form most;
  for (const Bound &bound : bounds) {
    auto key = [=](const Form &form) {
      return std::tuple(form.at[first], form.at[second], form.at[One]);
    };
    if (key(most) < key(bound.length))
      most = bound.length;
  }
  return most;
}

/// Where the longest for many microbatches is as long as that for many ranks.
std::optional<Form> crossing(ArrayRef<Bound> bounds) {
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

} // namespace

Found every::search(const Statements &statements, bool isTimed,
                    bool mayDivide) {
  Found found;
  Claim claim;
  for (uint32_t c = 0; c != statements.classes.size(); ++c)
    for (uint32_t chunk = 0; chunk != statements.classes[c].chunks.size();
         ++chunk)
      for (uint8_t slot :
           slotsIn(slot::Output | slot::InputGrad | slot::WeightGrad))
        if ((statements.hasBackward || slot == slot::Output) &&
            !fill(statements, c, chunk, slot, claim)) {
          found.why = "the microbatches of a stage do not follow each other";
          return found;
        }
  auto attempt = [&](const Claim &one) {
    auto all = obligations(statements, one);
    Times times(all);
    for (const Obligation &what : all)
      if (what.times.empty() && !follows(what.premises, what.rest)) {
        found.why = "not all work is done once";
        return false;
      }
    if (!times.find())
      return false;
    Certificate certificate{one, times.scale, times.times, {}};
    uint32_t units = 0;
    statements.forEachUnit([&](auto &, auto &, auto &) { ++units; });
    certificate.times.resize(units);
    for (const Obligation &what : all) {
      auto shown = multipliersFor(what.premises, times.goalOf(what));
      if (!shown)
        return false;
      certificate.shown.push_back(std::move(*shown));
    }
    if (!faultOf(statements, certificate).empty())
      return false;
    found.certificate = std::move(certificate);
    return true;
  };
  try {
    if (isTimed) {
      std::vector<Bound> bounds = boundsOf(statements, claim);
      // What a run takes is above all of them.
      auto most = llvm::find_if(bounds, [&](const Bound &bound) {
        return llvm::all_of(bounds, [&](const Bound &other) {
          return follows(statements.region, bound.length - other.length);
        });
      });
      if (most != bounds.end()) {
        Claim exact = claim;
        exact.makespan = most->length;
        exact.witness = most->witness;
        if (attempt(exact))
          return found;
      }
      auto line = lineOf(statements, true);
      if (!line && most == bounds.end())
        line = crossing(bounds);
      if (mayDivide && (line || (line = lineOf(statements, false)))) {
        found.divides = line->tightened();
        return found;
      }
      // Times that end some ways through all ranks later.
      for (int64_t ways = 1; ways <= mostWays && !bounds.empty(); ++ways) {
        Claim above = claim;
        above.makespan = longest(bounds, M, P) + ways * (Form::of(P) - 1);
        if (attempt(above))
          return found;
      }
    }
    if (!attempt(claim) && found.why.empty())
      found.why = "no times were found that grow along all that ranks wait for";
  } catch (const TooLong &) {
    found.why = "the search takes too long";
  } catch (const std::exception &) {
    found.why = "numbers become too large";
  }
  return found;
}
