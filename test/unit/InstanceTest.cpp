// Programs with loops against the template that they are to be one of: what
// stands for the same actions is taken, and nothing else.
#include "ppcc/Proof/Instance.h"
#include "ppcc/Import/Importer.h"

#include "llvm/Support/VirtualFileSystem.h"

#include <gtest/gtest.h>

using namespace ppcc;
using proof::Template;

namespace {

Program parsed(const std::string &rows) {
  SourceManager sources(llvm::vfs::getRealFileSystem());
  DiagnosticEngine diags(
      [](const Diagnostic &found) { ADD_FAILURE() << found.message; });
  std::string text =
      R"(program {"ranks": 1, "pipes": [{"name": "main", "microbatches": [0, 22],
                  "rank_of_stage": [0], "skip_edges": []}]} rank 0 {)" +
      rows + "}\n";
  uint32_t file =
      sources.add("rows", llvm::MemoryBuffer::getMemBufferCopy(text));
  ImportContext context{file, sources, diags, {.keepsLoops = true}};
  return importProgram(*findImporter("ir"), context).value_or(Program());
}

/// Forwards, and loops of pairs: F0, then B j and F (j + 1), then B (n + 1).
Template pairs(const Head &head) {
  KindId forward = *head.kinds.find("F"), backward = *head.kinds.find("B");
  Template family;
  family.head = &head;
  family.pipes = {{{0, 0, 0}, {2, 1, 0}}};
  auto row = [](KindId kind, uint32_t loop, proof::Affine microbatch) {
    proof::Row row;
    row.kind = kind;
    row.loop = loop;
    row.microbatch = microbatch;
    return row;
  };
  family.ranks = {{row(forward, proof::noLoop, {0, 0, 0}),
                   row(backward, 0, {0, 0, 1}), row(forward, 0, {1, 0, 1}),
                   row(backward, proof::noLoop, {1, 1, 0})}};
  return family;
}

/// The same without places, which are no part of this.
Rows withoutSites(const Program &program) {
  Rows rows;
  for (RankId rank : program.ranks()) {
    rows.beginRank();
    for (ActionId id : program.rows(rank)) {
      Action action = program[id];
      action.site = {};
      rows.append(action);
    }
  }
  rows.loops = program.loops().vec();
  return rows;
}

/// What is wrong with the rows of a text as those of n = 20, of a pipe with so
/// many microbatches more.
std::string errorOf(const std::string &rows, int64_t more = 2) {
  Program given = parsed(rows), program = given.withRows(Rows());
  Template family = pairs(given.head());
  family.pipes[0].count.c = more;
  return proof::instantiate(family, 20, withoutSites(given), program);
}

} // namespace

TEST(Instance, TakesLoopsThatStandForTheSame) {
  EXPECT_EQ(errorOf("0F0 loop 21 advance 1 { 0B0 0F1 } 0B21"), "");
  // Cut elsewhere, with longer iterations, and with some iterations written
  // out.
  EXPECT_EQ(errorOf("loop 21 advance 1 { 0F0 0B0 } 0F21 0B21"), "");
  EXPECT_EQ(errorOf("loop 22 advance 1 { 0F0 0B0 }"), "");
  EXPECT_EQ(errorOf("0F0 loop 10 advance 2 { 0B0 0F1 0B1 0F2 } 0B20 0F21 0B21"),
            "");
  EXPECT_EQ(errorOf("0F0 0B0 loop 7 advance 3 { 0F1 0B1 0F2 0B2 0F3 0B3 }"),
            "");
}

TEST(Instance, RefusesLoopsThatStandForSomethingElse) {
  const std::string other = "the loops do something else";
  for (const char *rows :
       {"0F0 loop 20 advance 1 { 0B0 0F1 } 0B21",
        "0F0 loop 21 advance 1 { 0B0 0F1 }",
        "0F0 loop 21 advance 1 { 0B0 0F1 } 0B21 0B21",
        "0F0 loop 21 advance 0 { 0B0 0F1 } 0B21",
        "0F0 loop 21 advance 1 { 0F1 0B0 } 0B21",
        "0F0 loop 20 advance 1 { 0B0 0F1 } 0B19 0F21 0B21",
        "0F0 loop 10 advance 2 { 0B0 0F1 0B1 0F1 } 0B20 0F21 0B21",
        "loop 11 advance 2 { 0F0 0B0 0F1 0B0 }",
        "0F0 loop 21 advance 1 { (0B0; 0F1) } 0B21", ""})
    EXPECT_EQ(errorOf(rows), other) << rows;
}

TEST(Instance, RefusesMicrobatchesThatThePipeHasNot) {
  EXPECT_EQ(errorOf("loop 22 advance 1 { 0F0 0B0 }", 1),
            "an action is of a microbatch that its pipe has not");
}
