#include "InitialOrders.h"
#include "ppcc/Basic/Diagnostics/Synthesis.h"

#include "ppcc/Compiler/ScheduleLibrary.h"

#include "llvm/Support/Path.h"

using namespace ppcc;
using namespace ppcc::synthesis;

using enum Workload::Part;

/// The order of a program with this placement, if it is one of this problem.
std::optional<Order> InitialOrders::orderOf(const Program &other) const {
  const Program &program = context.program;
  bool isFused = problem.load.backward == Workload::Backward::Fused;
  if (other.numRanks() != program.numRanks() ||
      other.pipes().size() != program.pipes().size())
    return std::nullopt;
  for (auto [mine, its] : llvm::zip(program.pipes(), other.pipes()))
    if (mine.rankOfStage != its.rankOfStage ||
        mine.firstMicrobatch != its.firstMicrobatch ||
        mine.numMicrobatches != its.numMicrobatches ||
        mine.skipEdges != its.skipEdges || mine.gaps != its.gaps ||
        its.slices != 1)
      return std::nullopt;
  StageNumbering numbering(other.pipes());
  std::vector<uint32_t> next(problem.numOps());
  Order order(other.numRanks());
  for (RankId rank : other.ranks()) {
    OpSequence &sequence = order[rank.value];
    for (ActionId row : other.rows(rank)) {
      Action action = other[row];
      const KindInfo &info = other.kindOf(action);
      if (!info.isCompute() || info.isDeclared())
        continue;
      uint32_t stage = static_cast<uint32_t>(numbering(action));
      for (auto [part, slotBit] :
           {std::pair(F, slot::Output), std::pair(I, slot::InputGrad),
            std::pair(W, slot::WeightGrad)}) {
        if (!(info.defines & slotBit) || (part == W && isFused))
          continue;
        Op op = opOf(stage, part);
        uint32_t first = other.pipe(action.pipe).firstMicrobatch;
        if (part != W && action.microbatch - first != next[op])
          return std::nullopt; // Not in ascending order.
        ++next[op];
        sequence.push_back(op);
      }
    }
    if (!isValid(problem, rank.value, sequence))
      return std::nullopt;
  }
  return order;
}

bool InitialOrders::readFrom() {
  const SynthesisRequest &userRequest = context.userRequest;
  for (const std::string &name : userRequest.from) {
    Request request = userRequest.request;
    request.input = name;
    request.ignoresUnknownParams = true;
    request.layout.clear(); // Its stages may be others.
    request.until = Request::StopAfter::Expanded;
    Compiled compiled = compile(request, context.session);
    if (!compiled)
      return false;
    auto order = orderOf(compiled.program);
    if (!order)
      return context.session.diags.report<diag::InvalidInitialOrder>({}, name);
    add(std::move(*order), name);
  }
  return true;
}

void InitialOrders::readLibrary() {
  if (std::exchange(hasLibrary, true))
    return;
  for (const LibraryFile &file : scheduleLibrary()) {
    if (!file.text.contains("\nschedule "))
      continue;
    StringRef name = llvm::sys::path::stem(file.name);
    if (!tryLibrary(name, {}) && problem.maxChunks > 1)
      // Perhaps a parameter is the number of chunks.
      tryLibrary(name, std::to_string(problem.maxChunks));
  }
}

bool InitialOrders::tryLibrary(StringRef name, const std::string &chunks) {
  const SynthesisRequest &userRequest = context.userRequest;
  Session quiet(context.session.sources);
  Request request;
  request.input = name.str();
  request.until = Request::StopAfter::Checked;
  Compiled checked = compile(request, quiet);
  request.until = Request::StopAfter::Expanded;
  request.limits = userRequest.request.limits;
  auto given = [&](StringRef param) {
    return findBy(userRequest.request.params, param, &sema::ParamValue::name);
  };
  for (const ParameterText &param : checked.params)
    if (auto *value = given(param.name))
      request.params.push_back(*value);
    else if (param.type == "int" && !chunks.empty() &&
             llvm::none_of(request.params, [&](const auto &other) {
               return other.value == chunks && !given(other.name);
             }))
      request.params.push_back({param.name, chunks});
  Compiled compiled = compile(request, quiet);
  if (!compiled)
    return false;
  auto order = orderOf(compiled.program);
  if (order)
    add(std::move(*order), name.str());
  return order.has_value();
}

std::string InitialOrders::originOf(const Order &order) const {
  auto known = llvm::find(all, order);
  return known == all.end() ? "" : origins[known - all.begin()];
}
