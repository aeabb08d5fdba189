#include "Evidence.h"

#include "Fit.h"

#include "ppcc/Verify/Passes.h"

using namespace ppcc;

void CapturedDiagnostics::take(const Diagnostic &found) {
  if (found.info().severity != Severity::Error)
    return;
  isExcluded |=
      found.id == diag::RequireFailed || found.id == diag::ParameterRange;
  if (!first)
    first = found;
}

std::optional<Program> InstanceCompiler::compile(int64_t m, bool addsMessages,
                                                 CapturedDiagnostics &quiet) {
  sema::Evaluator evaluator(checked.module, quiet.diags,
                            request.compile.limits.maxSteps());
  auto instance = instantiate(m, evaluator, quiet);
  if (!instance)
    return std::nullopt;
  auto price = [&](Program &program) { return setCosts(program); };
  auto program =
      expand(checked.module, std::move(*instance), request.compile.limits,
             evaluator, session.sources, price, quiet.diags);
  if (!program || !setCosts(*program))
    return std::nullopt;
  PassContext context(session.sources, quiet.diags);
  checkRestored(*program, context);
  if (quiet.first)
    return std::nullopt;
  if (!addsMessages)
    return program;
  auto policy = policyFor(*program, quiet.diags);
  if (!policy)
    return std::nullopt;
  Pipeline pipeline = policy->pipeline();
  if (program->costs().has({Cost::MemoryLimit}))
    pipeline.push_back({"verify-memory", PassKind::Check,
                        verifyMemory(policy->transports.empty()
                                         ? *findTransport("stream")
                                         : policy->transports.front())});
  if (!runPipeline(pipeline, *program, context))
    return std::nullopt;
  return program;
}

std::optional<sema::Instance>
InstanceCompiler::instantiate(int64_t m, sema::Evaluator &evaluator,
                              CapturedDiagnostics &quiet) const {
  std::vector<sema::ParamValue> values = request.compile.params;
  values.push_back({request.free, fmt::format("{}", m)});
  return sema::instantiate(checked.selection, values, checked.layout,
                           request.compile.limits, evaluator, quiet.diags);
}

bool InstanceCompiler::setCosts(Program &program) {
  const CostRequest &costs = request.compile.costs;
  if (!costs.files.empty() || !costs.settings.empty())
    failed |= !applyCosts(costs, session, program);
  return !failed;
}

std::optional<CommPolicy>
InstanceCompiler::policyFor(const Program &program,
                            DiagnosticEngine &diags) const {
  CommRequest comm = request.compile.comm;
  bool onlyData = request.dataOnly && comm.transports.empty();
  if (!request.certifies)
    comm.preconnect = Preconnect::Off;
  if (onlyData)
    comm.order = CommOrder::None;
  auto policy = decideComm(comm, &checked.selection, program, diags);
  if (policy && onlyData)
    policy->transports.clear();
  if (policy && policy->transports.empty())
    policy->proves = false;
  return policy;
}

bool InstanceCompiler::addMessages(Program &program, const CommPolicy &policy,
                                   CapturedDiagnostics &quiet,
                                   PlanTimes *times) const {
  PassContext context(session.sources, quiet.diags);
  return runPipeline(policy.pipeline(times), program, context);
}

/// Whether no message waits for a declared action but by way of what computes,
/// nor the other way round.
static bool isApartFromMessages(const KindInfo &info, const CommPolicy &policy,
                                const KindTable &kinds) {
  return info.lane != lane::Comm && !isPlacedWithMessages(info, kinds) &&
         llvm::all_of(policy.transports, [](const Transport &transport) {
           return transport.hasStreams();
         });
}

std::pair<std::string, Location>
InstanceCompiler::unsupported(const Program &program,
                              bool &ordersGlobally) const {
  CapturedDiagnostics quiet;
  auto policy = policyFor(program, quiet.diags);
  if (!policy)
    return {quiet.message(), quiet.place()};
  ordersGlobally =
      policy->fusion->fusion == Fusion::None && !policy->fusion->places &&
      !policy->torch && policy->order != CommOrder::Late &&
      policy->order != CommOrder::None &&
      llvm::all_of(program.kinds().declaredRows(), [&](const KindInfo &info) {
        return isApartFromMessages(info, *policy, program.kinds());
      });
  if (!policy->prefetch)
    return {};
  Location place("--prefetch");
  if (!request.compile.comm.prefetch)
    place = sema::commSetting(*checked.selection.schedule, "prefetch")
                .front()
                .text.range;
  return {"prefetched receives are bounded", place};
}
