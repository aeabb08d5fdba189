#include "InitialOrders.h"
#include "ppcc/Basic/Diagnostics/Synthesis.h"

#include "ppcc/Compiler/ScheduleLibrary.h"
#include "ppcc/Expand/Expand.h"

#include "llvm/Support/Path.h"

using namespace ppcc;
using namespace ppcc::synthesis;

using enum Workload::Part;

bool InitialOrders::hasPlacement(const Head &other) const {
  const Head &head = context.program.head();
  return other.numRanks == head.numRanks &&
         llvm::equal(other.pipes, head.pipes, [](auto &its, auto &mine) {
           return mine.rankOfStage == its.rankOfStage &&
                  mine.firstMicrobatch == its.firstMicrobatch &&
                  mine.numMicrobatches == its.numMicrobatches &&
                  mine.skipEdges == its.skipEdges && mine.gaps == its.gaps &&
                  its.slices == 1;
         });
}

/// The order of a program with this placement, if it is one of this problem.
std::optional<Order> InitialOrders::orderOf(const Program &other) const {
  bool isFused = problem.load.backward == Workload::Backward::Fused;
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
    auto order = hasPlacement(compiled.program.head())
                     ? orderOf(compiled.program)
                     : std::nullopt;
    if (!order)
      return context.session.diags.report<diag::InvalidInitialOrder>({}, name);
    add(std::move(*order), name);
  }
  return true;
}

void InitialOrders::readLibrary() {
  if (std::exchange(hasLibrary, true))
    return;
  for (const LibraryFile &file : scheduleLibrary())
    if (file.text.contains("\nschedule "))
      readLibrary(llvm::sys::path::stem(file.name));
}

void InitialOrders::readLibrary(StringRef name) {
  Session quiet(context.session.sources);
  Request request;
  request.input = name.str();
  request.until = Request::StopAfter::Checked;
  request.limits = context.userRequest.request.limits;
  Compiled compiled = compile(request, quiet);
  if (!compiled)
    return;
  const Checked &checked = *compiled.checked;
  auto add = [&](ArrayRef<sema::ParamValue> params) {
    sema::Evaluator evaluator(checked.module, quiet.diags,
                              request.limits.maxSteps());
    auto instance = sema::instantiate(checked.selection, params, checked.layout,
                                      request.limits, evaluator, quiet.diags);
    if (!instance || !hasPlacement(instance->program))
      return false;
    auto program = expand(
        checked.module, std::move(*instance), request.limits, evaluator,
        quiet.sources, [](Program &) { return true; }, quiet.diags);
    auto order = program ? orderOf(*program) : std::nullopt;
    if (order)
      this->add(std::move(*order), name.str());
    return order.has_value();
  };
  std::vector<sema::ParamValue> params;
  const ParameterText *chunks = nullptr;
  for (const ParameterText &param : compiled.params)
    if (auto *value = findBy(context.userRequest.request.params, param.name,
                             &sema::ParamValue::name))
      params.push_back(*value);
    else if (param.type == "int" && !chunks)
      chunks = &param; // Perhaps.
  if (add(params) || problem.maxChunks == 1 || !chunks)
    return;
  params.push_back({chunks->name, std::to_string(problem.maxChunks)});
  add(params);
}

std::string InitialOrders::originOf(const Order &order) const {
  auto known = llvm::find(all, order);
  return known == all.end() ? "" : origins[known - all.begin()];
}
