// Writes the order of a program as statements.
#include "Formula.h"
#include "ppcc/Basic/Diagnostics.h" // Formats StringRef, in all files alike.
#include "ppcc/Decompile/ScheduleText.h"

using namespace ppcc;
using namespace ppcc::schedtext;

namespace {

/// What chunks are called.
enum class Naming {
  Fixed,    ///< By their pipes or numbers.
  Mirrored, ///< From both ends, `near` and `far` for the two pipes.
  Ordered,  ///< `c0`, `c1` and so on, as the rank comes to them.
};

/// How much of the language is used.
struct Style {
  bool defers; ///< `defer W lag n` in the place of each W.
  Naming naming;
  bool phased; ///< Phases where the program has none.

  bool mirrors() const { return naming == Naming::Mirrored; }
};

/// A statement; what names its microbatch stands apart.
struct Statement {
  std::string front, back;
  std::optional<uint32_t> microbatch;

  std::string text() const {
    return microbatch ? fmt::format("{}mb: {}{}", front, *microbatch, back)
                      : front + back;
  }
};

/// Writes the statements of a rank, each for one item; counts what was issued
/// as the compiler will.
class RankStatements {
public:
  /// `namesWeights`: each W says of which chunk it is, also the oldest.
  RankStatements(const Program &program, const ScheduleText &text, RankId rank,
                 Style style, bool namesWeights)
      : program(program), text(text), style(style), namesWeights(namesWeights),
        isInFirstHalf(rank.value < (program.numRanks() + 1) / 2) {
    for (PipeId pipe : program.pipeIds())
      for (StageId stage : program.pipe(pipe).stages())
        if (program.pipe(pipe).rankOfStage[stage.value] == rank)
          chunks.push_back({pipe, stage});
  }

  /// Whether each W so far was the oldest of the rank.
  bool takesOldest = true;
  /// The numbers of `c0`, `c1` and so on.
  std::vector<int64_t> order;

  Statement of(RowRange item) {
    if (item.size() == 1)
      return of(program[item.from]);
    std::string text = "overlap {";
    for (ActionId row : item)
      text += " " + of(program[row]).text();
    return {text + " }", "", {}};
  }

private:
  struct Chunk {
    PipeId pipe;
    StageId stage;
    uint32_t forwards = 0, backwards = 0; ///< Those issued.
    /// The numbers of its W's that wait, and by microbatch.
    std::set<size_t> waiting{};
    std::map<uint32_t, size_t> numberOf{};
    bool operator==(const Chunk &other) const {
      return pipe == other.pipe && stage == other.stage;
    }
  };

  Statement of(const Action &action) {
    const KindInfo &kind = program.kindOf(action);
    auto chunk = llvm::find(chunks, Chunk{action.pipe, action.stage});
    const Pipe &pipe = program.pipe(action.pipe);
    std::optional<uint32_t> next;
    std::string mnemonic = kind.mnemonic;
    if (kind.defines & slot::Output) {
      next = pipe.firstMicrobatch + chunk->forwards++;
    } else if (kind.defines & slot::InputGrad) {
      // The slices of a sequence come backwards.
      uint32_t n = chunk->backwards++, slice = n % pipe.slices;
      next = pipe.firstMicrobatch + n - slice + (pipe.slices - 1 - slice);
      if (!(kind.defines & slot::WeightGrad)) {
        size_t number = waiting.size() + numTaken;
        waiting.insert(number);
        chunk->waiting.insert(number);
        chunk->numberOf[action.microbatch] = number;
        if (style.defers)
          mnemonic = "B";
      }
    } else {
      return weights(mnemonic, *chunk, action.microbatch);
    }
    return statement(mnemonic, chunks.size() > 1 ? nameOf(*chunk) : "",
                     action.microbatch, action.microbatch != *next);
  }

  /// The oldest of the rank, else the oldest of the chunk, else that one.
  Statement weights(StringRef mnemonic, Chunk &chunk, uint32_t microbatch) {
    size_t number = chunk.numberOf.at(microbatch);
    bool isOldest = number == *chunk.waiting.begin();
    takesOldest &= number == *waiting.begin();
    waiting.erase(number);
    chunk.waiting.erase(number);
    ++numTaken;
    return statement(mnemonic,
                     namesWeights && chunks.size() > 1 ? nameOf(chunk) : "",
                     microbatch, !isOldest);
  }

  static Statement statement(StringRef mnemonic, const std::string &chunk,
                             uint32_t microbatch, bool isNamed) {
    if (isNamed)
      return {
          fmt::format("{}({}{}", mnemonic, chunk, chunk.empty() ? "" : ", "),
          ");", microbatch};
    return {mnemonic.str(), chunk.empty() ? ";" : "(" + chunk + ");", {}};
  }

  /// The pipe where the rank has one stage of it among several pipes, else the
  /// number of the chunk.
  std::string nameOf(const Chunk &chunk) {
    int64_t number = &chunk - chunks.data();
    if (style.naming == Naming::Ordered) {
      auto at = llvm::find(order, number);
      size_t place = at - order.begin();
      if (at == order.end())
        order.push_back(number);
      return fmt::format("c{}", place);
    }
    auto ofPipe = [&](const Chunk &other) { return other.pipe == chunk.pipe; };
    if (style.mirrors())
      return (chunk.pipe.value == 0) == isInFirstHalf ? "near" : "far";
    return program.pipes().size() > 1 && llvm::count_if(chunks, ofPipe) == 1
               ? text.nameOf(chunk.pipe)
               : fmt::to_string(number);
  }

  const Program &program;
  const ScheduleText &text;
  Style style;
  bool namesWeights, isInFirstHalf;
  std::vector<Chunk> chunks;
  std::set<size_t> waiting; ///< The numbers of the W's that wait.
  size_t numTaken = 0;
};

/// How many W's a rank lets wait, if it takes the oldest whenever there are
/// more, and all of them at its end.
struct Lag {
  int64_t min = 0, max = std::numeric_limits<int32_t>::max();
};

/// The text of a schedule in one manner, if the program can be said in it.
class StyledDecompiler {
public:
  StyledDecompiler(const Program &program, StringRef name, Style style)
      : program(program), style(style), text(program, head) {
    head.name = name;
  }

  std::optional<std::string> write() {
    uint32_t count = program.numRanks();
    if ((style.mirrors() && !isMirrored()) ||
        (style.naming == Naming::Ordered && program.pipes().size() == 1))
      return std::nullopt;
    findOldest();
    std::vector<Phases> words;
    std::vector<RankText> ranks;
    std::vector<Lag> lags;
    for (RankId rank : program.ranks()) {
      words.push_back(phasesOf(rank));
      if (!style.defers)
        continue;
      auto lag = lagOf(rank);
      if (!lag)
        return std::nullopt;
      lags.push_back(*lag);
    }
    auto hasOrder = [&](const std::vector<int64_t> &order) {
      return order.size() == orders.front().size() && !order.empty();
    };
    if (style.naming == Naming::Ordered && !llvm::all_of(orders, hasOrder))
      return std::nullopt;
    bool isFolded = style.naming != Naming::Fixed &&
                    std::equal(words.begin(), words.end(), words.rbegin());
    if (style.mirrors() && !isFolded)
      return std::nullopt;
    for (uint32_t rank = 0; rank != (isFolded ? (count + 1) / 2 : count);
         ++rank)
      ranks.push_back(text.textOf(words[rank], 0));
    text.writeHead("");
    text.blank();
    text.open("on rank r");
    if (isFolded)
      text.line(fmt::format("let h = min(r, {} - r);", count - 1));
    if (style.mirrors()) {
      auto let = [&](const char *name, uint32_t first, uint32_t other) {
        text.line(fmt::format("let {} = r < {} ? {} : {};", name,
                              (count + 1) / 2, text.nameOf(PipeId{first}),
                              text.nameOf(PipeId{other})));
      };
      let("near", 0, 1);
      let("far", 1, 0);
    }
    for (size_t place = 0; place != orders.front().size(); ++place) {
      std::vector<int64_t> numbers;
      for (const std::vector<int64_t> &order : orders)
        numbers.push_back(order[place]);
      text.line(fmt::format("let c{} = {};", place,
                            piecewiseExprOrList(numbers, "r")));
    }
    auto writeRanks = [&] {
      text.writeRanks(
          ranks, "",
          [&](uint32_t letter, uint32_t) { return symbolStatements[letter]; },
          isFolded ? "h" : "r");
    };
    if (style.defers) {
      text.block("defer W lag " + lagText(lags), writeRanks);
      text.line("drain W;");
    } else {
      writeRanks();
    }
    text.close();
    text.close();
    return text.take();
  }

private:
  /// Two pipes, a stage of each on every rank.
  bool isMirrored() const {
    return program.pipes().size() == 2 && program.numRanks() > 1 &&
           llvm::all_of(program.pipes(), [&](const Pipe &pipe) {
             std::set<RankId> hosts(pipe.rankOfStage.begin(),
                                    pipe.rankOfStage.end());
             return pipe.numStages() == program.numRanks() &&
                    hosts.size() == program.numRanks();
           });
  }

  bool isWeights(RowRange item) const {
    uint32_t defines = program.kindOf(item.from).defines;
    return item.size() == 1 && (defines & slot::WeightGrad) &&
           !(defines & slot::InputGrad);
  }

  void findOldest() {
    for (RankId rank : program.ranks()) {
      RankStatements trial(program, text, rank, style, false);
      for (RowRange item : program.items(rank))
        if (program.kindOf(item.from).isCompute())
          trial.of(item);
      takesOldest &= trial.takesOldest;
    }
  }

  uint32_t symbolOf(const std::string &statement) {
    auto [letter, isNew] =
        numbers.try_emplace(statement, symbolStatements.size());
    if (isNew)
      symbolStatements.push_back(statement);
    return letter->second;
  }

  /// Statements of one phase, forwards alone or none.
  struct Part {
    std::string phase;
    bool isForward, hasForward;
    std::vector<Statement> statements;
  };

  std::vector<Part> partsOf(RankId rank) {
    RankStatements statements(program, text, rank, style, !takesOldest);
    std::vector<Part> parts;
    for (RowRange item : program.items(rank)) {
      if (!program.kindOf(item.from).isCompute())
        continue;
      Statement statement = statements.of(item);
      if (style.defers && isWeights(item))
        continue;
      auto isForward = [&](ActionId row) {
        return (program.kindOf(row).defines & slot::Output) != 0;
      };
      Part part{program.phases()[program[item.from].phase.value],
                llvm::all_of(item, isForward),
                llvm::any_of(item, isForward),
                {}};
      if (parts.empty() || parts.back().phase != part.phase ||
          parts.back().isForward != part.isForward ||
          parts.back().hasForward != part.hasForward)
        parts.push_back(part);
      parts.back().statements.push_back(std::move(statement));
    }
    orders.push_back(std::move(statements.order));
    return parts;
  }

  Phases phasesOf(RankId rank) {
    constexpr size_t minLoopLength = 3;
    std::vector<uint32_t> word;
    Phases phases;
    size_t firstBack = SIZE_MAX, lastForward = 0;
    for (const Part &part : partsOf(rank)) {
      if (phases.empty() || phases.back().first != part.phase)
        phases.push_back({part.phase, {}});
      if (!part.isForward)
        firstBack = std::min(firstBack, word.size());
      for (size_t i = 0, end; i != part.statements.size(); i = end) {
        const Statement &first = part.statements[i];
        // The microbatches from one on downwards are a loop.
        for (end = i + 1; first.microbatch && end != part.statements.size();
             ++end) {
          const Statement &next = part.statements[end];
          if (next.front != first.front || next.back != first.back ||
              next.microbatch != *first.microbatch - (end - i))
            break;
        }
        std::string text = first.text();
        if (end - i >= minLoopLength)
          text = fmt::format("for i in 0 .. {} {{ {}mb: {} - i{} }}", end - i,
                             first.front, *first.microbatch, first.back);
        else
          end = i + 1;
        word.push_back(symbolOf(text));
        phases.back().second.push_back(word.back());
      }
      if (part.hasForward)
        lastForward = word.size();
    }
    firstBack = std::min(firstBack, word.size());
    return style.phased ? splitIntoPhases(word, firstBack,
                                          std::max(firstBack, lastForward))
                        : phases;
  }

  std::optional<Lag> lagOf(RankId rank) const {
    Lag lag;
    int64_t waiting = 0, taken = 0;
    if (!takesOldest)
      return std::nullopt;
    for (RowRange item : program.items(rank)) {
      const KindInfo &kind = program.kindOf(item.from);
      if (!kind.isCompute())
        continue;
      if (isWeights(item)) {
        ++taken;
        continue;
      }
      // Now it is known how many were taken after the item before this one.
      waiting -= taken;
      lag.min = std::max(lag.min, waiting);
      if (taken != 0)
        lag.max = std::min(lag.max, waiting);
      taken = 0;
      for (ActionId row : item) {
        uint32_t defines = program.kindOf(row).defines;
        if ((defines & slot::InputGrad) && (defines & slot::WeightGrad))
          return std::nullopt; // `B` says something else there.
        waiting += (defines & slot::InputGrad) != 0;
      }
    }
    if (lag.min > lag.max || waiting == 0)
      return std::nullopt;
    return lag;
  }

  /// A line that all ranks allow, else what each needs.
  static std::string lagText(ArrayRef<Lag> lags) {
    std::vector<int64_t> min;
    for (const Lag &lag : lags)
      min.push_back(lag.min);
    for (int64_t base = lags[0].min;
         base <= std::min(lags[0].max, lags[0].min + 8); ++base)
      for (int64_t slope : {0, 1, -1, 2, -2, 3, -3, 4, -4}) {
        std::vector<int64_t> values;
        for (const Lag &lag : lags) {
          int64_t value = base + slope * int64_t(values.size());
          if (value < lag.min || value > lag.max)
            break;
          values.push_back(value);
        }
        if (values.size() == lags.size())
          return *affineExpr(values, 0, "r");
      }
    return piecewiseExpr(min, "r");
  }

  const Program &program;
  Style style;
  ScheduleHeader head;
  ScheduleText text;
  bool takesOldest = true;
  std::vector<std::vector<int64_t>> orders;  ///< Of the chunks of each rank.
  std::vector<std::string> symbolStatements; ///< The statements.
  std::map<std::string, uint32_t> numbers;
};

} // namespace

std::string ppcc::decompile(const Program &program, StringRef name) {
  // Phases tell more than they cost.
  constexpr size_t phaseBonusLines = 2;
  std::pair<size_t, std::string> best{SIZE_MAX, ""};
  bool hasPhases = program.phases().size() > 1;
  for (bool phased : {true, false}) {
    if (phased && hasPhases)
      continue;
    for (bool defers : {false, true})
      for (Naming naming : {Naming::Fixed, Naming::Mirrored, Naming::Ordered})
        if (auto text =
                StyledDecompiler(program, name, {defers, naming, phased})
                    .write()) {
          size_t lines = StringRef(*text).count('\n') +
                         (phased || hasPhases ? 0 : phaseBonusLines);
          if (lines < best.first)
            best = {lines, std::move(*text)};
        }
  }
  return best.second;
}
