// What is shown of all ranks and microbatches, and what is not any more when a
// number of it is another.
#include "ppcc/EveryP/Certificate.h"

#include <gtest/gtest.h>

using namespace ppcc;
using namespace ppcc::every;

namespace {

Row row(uint32_t kind) { return {KindId(kind), 0, Form::of(Iteration)}; }

/// All forwards, then all backwards.
Statements gpipe() {
  Statements statements;
  statements.region = {Form::of(P) - 1, Form::of(M) - 1};
  statements.pipes = {{Form::of(P), 0, Form::of(M)}};
  RankClass ranks;
  ranks.where = {Form::of(Rank), Form::of(P) - 1 - Form::of(Rank)};
  ranks.rank = Form::of(Rank);
  ranks.chunks = {{0, Form::of(Rank)}};
  ranks.segments = {{Form::of(M), 0, 1}, {Form::of(M), 1, 2}};
  statements.classes = {ranks};
  statements.units = {{{row(kind::Forward)}, 1, 0, 0},
                      {{row(kind::Backward)}, 2, 0, 1}};
  return statements;
}

TEST(EveryP, CertificateIsChecked) {
  Statements statements = gpipe();
  SearchResult found = findCertificate(statements, true, true);
  ASSERT_TRUE(found.certificate) << found.why;
  const Certificate &good = *found.certificate;
  EXPECT_EQ(faultOf(statements, good), "");
  EXPECT_EQ(good.claim.makespan, 3 * Form::of(P) + 3 * Form::of(M) - 3);

  auto isRefused = [&](auto change) {
    Certificate other = good;
    change(other);
    return !faultOf(statements, other).empty();
  };
  for (size_t unit = 0; unit != good.times.size(); ++unit)
    for (Dim dim : {One, P, M, Rank, Iteration})
      for (int by : {1, -1})
        EXPECT_TRUE(
            isRefused([&](auto &other) { other.times[unit].at[dim] += by; }));
  for (size_t i = 0; i != good.multipliers.size(); ++i) {
    EXPECT_TRUE(isRefused([&](auto &other) { ++other.multipliers[i].rest; }));
    EXPECT_TRUE(isRefused([&](auto &other) { other.multipliers[i] = {}; }));
    for (size_t k = 0; k != good.multipliers[i].ofPremises.size(); ++k)
      EXPECT_TRUE(isRefused(
          [&](auto &other) { --other.multipliers[i].ofPremises[k]; }));
  }
  for (int by : {1, -1})
    EXPECT_TRUE(isRefused([&](auto &other) {
      other.claim.makespan = *other.claim.makespan + by;
    }));
  EXPECT_TRUE(isRefused([](auto &other) { other.scale = 0; }));
  EXPECT_TRUE(isRefused([](auto &other) { other.multipliers.pop_back(); }));
  EXPECT_TRUE(isRefused(
      [](auto &other) { other.claim.producers.begin()->second.clear(); }));
  EXPECT_TRUE(isRefused([](auto &other) { other.claim.witness->from = {9}; }));
}

TEST(EveryP, WrongStatementsHaveNone) {
  Statements first = gpipe();
  std::swap(first.units[0].rows, first.units[1].rows);
  EXPECT_FALSE(findCertificate(first, false, false).certificate);

  Statements fewer = gpipe();
  fewer.classes[0].segments[1].count = Form::of(M) - 1;
  EXPECT_FALSE(findCertificate(fewer, false, false).certificate);

  Statements twice = gpipe();
  twice.units[0].rows[0].microbatch = 0;
  EXPECT_FALSE(findCertificate(twice, false, false).certificate);

  Statements free = gpipe();
  free.units[0].duration = 0;
  EXPECT_FALSE(findCertificate(free, false, false).certificate);

  // Rank 6 does its backwards first.
  Statements late = gpipe();
  RankClass wrong = late.classes[0];
  for (auto &[ranks, form] :
       {std::pair(&late.classes[0], Form(5) - Form::of(Rank)),
        std::pair(&wrong, Form::of(Rank) - 6)})
    ranks->where.push_back(form);
  wrong.segments = {{Form::of(M), 2, 3}, {Form::of(M), 3, 4}};
  late.classes.push_back(wrong);
  late.units.push_back({{row(kind::Backward)}, 2, 1, 0});
  late.units.push_back({{row(kind::Forward)}, 1, 1, 1});
  EXPECT_FALSE(findCertificate(late, false, false).certificate);
}

} // namespace
