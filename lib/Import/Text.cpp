// Reads a program from text: its head, which is JSON, and the rows of its
// ranks.
#include "JsonHead.h"
#include "TextReader.h"
#include "ppcc/IR/Loops.h"

using namespace ppcc;

namespace {

class TextRows {
public:
  /// `reader` stands after the head of `program`.
  TextRows(ImportContext &context, TextReader reader, Program &program)
      : context(context), text(reader), program(program), diags(context.diags),
        cellSites(program, context.sources.name(context.file)) {
    kindOfMnemonic.fill(noKind);
    for (auto [i, info] : llvm::enumerate(program.kinds().rows()))
      if (info.mnemonic.size() == 1)
        kindOfMnemonic[static_cast<unsigned char>(info.mnemonic[0])] =
            uint16_t(i);
  }

  void read() {
    // A cell takes three bytes and a space at least; four is near enough to the
    // usual.
    program.editRows().reserve(
        std::min<size_t>(text.rest().size() / 4, UINT32_MAX));
    while (!diags.saturated() && !text.atEnd())
      rank();
    while (program.ranksBegun() < program.numRanks())
      program.editRows().beginRank();
  }

private:
  static constexpr uint16_t noKind = 0xFFFF;

  void rank() {
    SourceRange at = text.range(text.peekWord());
    if (!text.expectWord("rank"))
      return text.skipPastBrace();
    uint32_t number = text.number("a rank", Program::maxRanks - 1);
    // The actions of a rank that cannot be are read for their errors.
    appending = text.ok() && beginRank(number, at);
    text.recover();
    if (!text.expect("{"))
      return text.skipPastBrace();
    nowPhase = PhaseId();
    rowsOf("rank");
  }

  /// Reads up to the end of `what`, whose bracket has been taken.
  void rowsOf(StringRef what) {
    while (!diags.saturated() && !text.accept("}")) {
      if (text.atEnd() || text.peekWord() == "rank") {
        text.expected(fmt::format("`}}`, the end of `{}`", what));
        break;
      }
      row();
      text.recover();
    }
    text.recover();
  }

  /// Begins the list of the rank and of those that were left out before it;
  /// false, and a report, when it cannot be.
  bool beginRank(uint32_t rank, SourceRange at) {
    if (rank >= program.numRanks())
      return diags.report<diag::IrNoRank>(at, rank, program.numRanks());
    if (rank < program.ranksBegun())
      return diags.report<diag::IrOutOfOrder>(at, program.ranksBegun() - 1,
                                              rank);
    while (program.ranksBegun() <= rank)
      program.editRows().beginRank();
    return true;
  }

  // ---- Rows ----

  void row() {
    if (text.isDigitNext()) {
      cell(/*joined=*/false);
    } else if (text.acceptNext('(')) {
      group();
    } else if (text.acceptWord("phase")) {
      phase();
    } else if (text.acceptWord("loop")) {
      loop();
    } else if (beginsRankCell()) {
      cell(/*joined=*/false);
    } else {
      const char *from = text.place();
      skipCell();
      if (text.place() == from)
        text.takeOne();
      diags.report<diag::IrExpected>(text.rangeFrom(from),
                                     "an action, such as `0F3`, `phase` or "
                                     "`loop`");
    }
  }

  void phase() {
    text.skipSpace();
    JsonReader json(text.rest(), context.file, context.sources, diags);
    std::string name = json.string("the name of a phase");
    if (!json.isGood())
      return skipCell();
    text.take(json.last());
    if (!llvm::is_contained(program.phases(), name) &&
        program.phases().size() > Program::maxPhases)
      return diags.refuse<diag::IrTooMany>(text.here(), Program::maxPhases,
                                           "phases");
    nowPhase = program.editHead().phase(name);
  }

  /// Behind the bracket.
  void group() {
    bool joined = false;
    do {
      text.skipSpace();
      if (text.isDigitNext() || beginsRankCell()) {
        joined |= cell(joined);
      } else {
        text.expected("an action, such as `0F3`");
        skipCell();
      }
    } while (!diags.saturated() && text.accept(";"));
    text.expect(")");
  }

  // ---- Loops ----

  /// `4 advance 1 { ... }`
  void loop() {
    SourceRange at = text.here();
    int32_t advance = 0;
    uint32_t count = readTripCount(at, advance);
    if (!text.expect("{"))
      return text.skipPastBrace();
    if (inLoop)
      diags.report<diag::IrExpected>(at, "no loop inside of another");
    // One that cannot be is read for its errors.
    bool isGood = count != 0 && !inLoop;
    Loop loop{ActionId(program.size()), {}, count, advance};
    if (isGood)
      inLoop = loop;
    rowsOf("loop");
    if (isGood)
      endLoop(loop, at);
  }

  /// `4 advance -1`
  uint32_t readTripCount(SourceRange at, int32_t &advance) {
    uint32_t count = text.number("how often it runs");
    if (count == 0)
      text.report<diag::IrExpected>(at, "a number of iterations, at least 1");
    text.expectWord("advance");
    text.skipSpace();
    bool down = text.acceptNext('-');
    advance = int32_t(
        text.number("what an iteration adds to microbatches", INT32_MAX));
    advance = down ? -advance : advance;
    return count;
  }

  void endLoop(Loop loop, SourceRange at) {
    inLoop.reset();
    loop.end = ActionId(program.size());
    if (loop.begin == loop.end || !appending)
      return;
    uint64_t rows =
        uint64_t(loop.count - 1) * (loop.end.value - loop.begin.value);
    if (extraRows + rows + program.size() >= UINT32_MAX)
      return diags.refuse<diag::IrTooMany>(at, UINT32_MAX - 1, "actions");
    extraRows += rows;
    program.editRows().loops.push_back(loop);
  }

  // ---- Cells ----

  /// Whether an action of the rank stands here, which has no number in front.
  bool beginsRankCell() const {
    auto kind = program.kinds().find(text.nextWhile(TextReader::isKindChar));
    return kind && program.kinds()[*kind].scope == KindScope::Rank;
  }

  /// False, and a report, when it is wrong.
  bool cell(bool joined) {
    const char *from = text.place();
    Action action;
    action.joined = joined;
    action.phase = nowPhase;
    if (!cellParts(action))
      return false;
    if (action.site == SiteId() && appending)
      action.site = cellSites.add(text.lineNumber(), text.columnOf(from));
    if (program.size() == UINT32_MAX - 1) {
      diags.report<diag::IrTooMany>(text.rangeFrom(from), UINT32_MAX - 1,
                                    "actions");
      text.stop();
      return false;
    }
    if (appending)
      program.editRows().append(action);
    return true;
  }

  bool cellParts(Action &action) {
    const char *from = text.place();
    bool hasStage = text.isDigitNext();
    uint32_t stage = hasStage ? text.digits("a stage", UINT32_MAX - 1) : 0;
    StringRef mnemonic = text.takeWhile(TextReader::isKindChar);
    std::optional<KindId> kind = kindOf(mnemonic);
    if (!text.ok())
      return skippedCell();
    bool hasMicrobatch = text.isDigitNext();
    KindScope scope =
        kind ? program.kinds()[*kind].scope : KindScope::Microbatch;
    if (!kind || hasMicrobatch != (scope == KindScope::Microbatch) ||
        hasStage == (scope == KindScope::Rank))
      return noAction(from, kind ? StringRef() : mnemonic);
    uint32_t microbatch =
        hasMicrobatch ? text.digits("a microbatch", Program::maxMicrobatches)
                      : Action::noMicrobatch;
    std::optional<uint32_t> pipe, peer, site;
    if (text.ok() && scope == KindScope::Stage && text.acceptNext(':'))
      pipe = text.digits("a pipe", UINT32_MAX - 1);
    const KindInfo &info = program.kinds()[*kind];
    bool goesOut = info.isSend() || info.collective == Collective::To;
    if (text.ok() && info.hasPeer() && text.acceptNext(goesOut ? '>' : '<'))
      peer = text.digits("a stage", UINT32_MAX - 1);
    StringRef withoutSite = text.textFrom(from);
    if (text.ok() && text.acceptNext('@'))
      site = text.digits("a site", UINT32_MAX - 1);
    if (!text.ok())
      return skippedCell();
    if (!atCellEnd())
      return noAction(from);
    return place(action, *kind, stage, microbatch, pipe, peer, withoutSite) &&
           (!site || setSite(action, *site, from));
  }

  /// Moves to where the next cell may begin, and restarts.
  void skipCell() {
    text.recover();
    text.takeWhile([](char c) {
      return !TextReader::isSpace(c) && !StringRef("();{}").contains(c);
    });
  }

  /// Leaves a cell whose number was reported.
  bool skippedCell() {
    skipCell();
    return false;
  }

  bool atCellEnd() const {
    return !text.isNext([](char c) {
      return !TextReader::isSpace(c) && c != '/' &&
             !StringRef("();{}").contains(c);
    });
  }

  std::optional<KindId> kindOf(StringRef mnemonic) const {
    if (mnemonic.size() != 1)
      return program.kinds().find(mnemonic);
    uint16_t kind = kindOfMnemonic[static_cast<unsigned char>(mnemonic[0])];
    return kind == noKind ? std::nullopt : std::optional(KindId(kind));
  }

  /// Reports the cell at `from`.
  bool noAction(const char *from, StringRef unknownLetters = {}) {
    skipCell();
    return diags.report<diag::IrNotAnAction>(
        text.rangeFrom(from), text.textFrom(from).take_front(40),
        kindHint(program.kinds(), unknownLetters));
  }

  /// Fills in the action; reports a stage, microbatch or peer that does not
  /// exist.
  bool place(Action &action, KindId kind, uint32_t stage, uint32_t microbatch,
             std::optional<uint32_t> pipeNumber, std::optional<uint32_t> peer,
             StringRef cell) {
    action.kind = kind;
    action.microbatch = microbatch;
    if (microbatch == Action::noMicrobatch)
      return locateCell(action, stage, pipeNumber, text.range(cell)) &&
             placePeer(action, program.pipe(action.pipe), peer, cell);
    if (lastPipe >= program.pipes().size() ||
        !program.pipes()[lastPipe].hasMicrobatch(microbatch)) {
      auto pipe = program.pipeOfMicrobatch(microbatch);
      if (!pipe)
        return diags.report<diag::IrNoMicrobatch>(text.range(cell), microbatch);
      lastPipe = pipe->value;
    }
    const Pipe &pipe = program.pipes()[lastPipe];
    if (inLoop &&
        !checkLastIteration(*inLoop, microbatch, pipe, text.range(cell), diags))
      return false;
    uint32_t lastStage = std::max(stage, peer.value_or(0));
    if (lastStage >= pipe.numStages())
      return diags.report<diag::IrNoStage>(text.range(cell), lastStage,
                                           pipe.name, pipe.numStages());
    action.pipe = PipeId(lastPipe);
    action.stage = StageId(stage);
    return placePeer(action, pipe, peer, cell);
  }

  /// Without a peer the message goes to, or comes from, the stage beside it.
  bool placePeer(Action &action, const Pipe &pipe, std::optional<uint32_t> peer,
                 StringRef cell) {
    const KindInfo &info = program.kindOf(action);
    if (!info.hasPeer())
      return true;
    if (!peer && !info.isCompute())
      peer = action.stage.value + (info.goesToLaterStage() ? 1 : -1);
    if (!peer || *peer >= pipe.numStages())
      return diags.report<diag::IrNoPeer>(text.range(cell), cell);
    action.peer = StageId(*peer);
    return true;
  }

  /// The same for an action of a stage or a rank.
  bool locateCell(Action &action, uint32_t stage, std::optional<uint32_t> pipe,
                  SourceRange at) {
    RankId rank(std::max(program.ranksBegun(), 1u) - 1);
    if (program.kindOf(action).scope == KindScope::Rank)
      return assignFirstStage(action, program.head(), rank, at, diags);
    if (pipe && *pipe >= program.pipes().size())
      return diags.report<diag::IrUndefined>(at, "pipe", *pipe);
    std::optional<PipeId> other;
    SmallVector<PipeId> hosts;
    for (PipeId id : program.pipeIds()) {
      ArrayRef<RankId> ranks = program.pipe(id).rankOfStage;
      if (stage >= ranks.size() || id.value != pipe.value_or(id.value))
        continue;
      other = other.value_or(id);
      if (ranks[stage] == rank)
        hosts.push_back(id);
    }
    if (hosts.size() > 1)
      return diags.report<diag::IrExpected>(
          at, "`:` and the number of a pipe: this rank has the stage in "
              "several");
    if (!other) {
      Pipe first;
      if (!program.pipes().empty())
        first = program.pipes()[pipe.value_or(0)];
      return diags.report<diag::IrNoStage>(at, stage, first.name,
                                           first.numStages());
    }
    action.pipe = hosts.empty() ? *other : hosts.front();
    action.stage = StageId(stage);
    return true;
  }

  bool setSite(Action &action, uint32_t site, const char *from) {
    action.site = SiteId(site);
    if (site != 0 && site < program.sites().size() &&
        !cellSites.isFromThisFile(action.site))
      return true;
    return diags.report<diag::IrUndefined>(text.rangeFrom(from), "site", site);
  }

  ImportContext &context;
  TextReader text;
  Program &program;
  DiagnosticEngine &diags;
  CellSites cellSites;
  std::array<uint16_t, 256> kindOfMnemonic;
  PhaseId nowPhase;
  uint32_t lastPipe = 0;
  bool appending = false; ///< The rank exists, so that its actions count.
  std::optional<Loop> inLoop;
  uint64_t extraRows = 0; ///< That loops add when they are written out.
};

/// Its text may leave out more of a head than JSON.
class TextProgram : JsonHead {
public:
  /// `text` stands after the word `program`.
  TextProgram(ImportContext &context, TextReader text)
      : JsonHead(context, text.rest()), text(text) {
    head.phases.push_back("");
  }

  std::optional<Program> read() {
    enum { Always, Needed, Optional };
    json.object("the program", {
#define HEAD(Item, Json, Need, Of)                                             \
  {Json, [&] { read##Item(Json); }, Need != Always},
#include "ppcc/IR/Head.def"
                               });
    if (!json.isGood())
      return std::nullopt;
    if (head.sites.empty())
      head.sites.emplace_back();
    text.moveTo(json.lastOffset() + json.last().size());
    TextRows(context, text, program).read();
    if (!json.isGood())
      return std::nullopt;
    if (unrolledSize(program) > context.options.maxActions)
      return diags.report<diag::ImportTooMany>({}, context.options.maxActions,
                                               "actions");
    if (!program.loops().empty() && !context.options.keepsLoops)
      program = unrolled(program);
    program.setFacts({{}, std::move(preconnect)});
    return std::move(program);
  }

private:
  void readNodes(StringRef key) {
    if (kinds.numbers().empty())
      kinds.takeBuiltIn();
    JsonHead::readNodes(key);
  }

  TextReader text;
};

} // namespace

bool ppcc::beginsIr(StringRef text) {
  return text.consume_front("program") && text.ltrim().starts_with("{");
}

std::optional<Program> ppcc::importIr(ImportContext &context) {
  TextReader text(context.file, context.sources, context.diags);
  if (!text.expectWord("program"))
    return std::nullopt;
  return TextProgram(context, text).read();
}
