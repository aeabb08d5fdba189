// What is decided about the messages of a program, and the passes that do it.
#include "ppcc/Compiler/CommPolicy.h"
#include "ppcc/Basic/Diagnostics/Transforms.h"

using namespace ppcc;

sema::CommWords ppcc::commWords() {
  return {
      namesIn(transportNames()),
      [](StringRef name) { return findTransport(name).has_value(); },
      namesIn(commOrders(), &CommOrderInfo::name),
      namesIn(fusions(), &FusionInfo::name),
      namesIn(llvm::drop_begin(callStyleNames())),
  };
}

std::string ppcc::conflictIn(const CommRequest &request) {
  if (!request.order || !request.fusion || !request.fusion->places)
    return "";
  return fmt::format("--comm-order and --fuse={} exclude each other: that "
                     "fusion places the messages itself",
                     request.fusion->name);
}

std::optional<CommPolicy> ppcc::decideComm(const CommRequest &request,
                                           const sema::Selection *selection,
                                           const Program &program,
                                           DiagnosticEngine &diags) {
  auto setting = [&](StringRef name) -> const ast::Identifier * {
    ArrayRef<ast::Entry> entries;
    if (selection)
      entries = sema::commSetting(*selection->schedule, name);
    return entries.empty() ? nullptr : &entries.front().text;
  };
  const ast::Identifier *order = setting("order"), *fuse = setting("fuse");
  const FusionInfo *fusion = fuse ? findFusion(fuse->text) : nullptr;
  if (fusion && fusion->places && order)
    return diags.report<diag::FusionWithOrder>(fuse->range, fuse->text)
        .note(order->range, "the order is here");

  CommPolicy policy;
  if (request.fusion)
    fusion = request.fusion;
  else if (!fusion || (fusion->places && request.order))
    fusion = findFusion("none");
  policy.fusion = fusion;
  if (const ast::Identifier *calls = setting("calls"))
    policy.calls = *findCallStyle(calls->text);
  else if (program.calls() != CallStyle::None)
    policy.calls = program.calls();

  bool hasMessages = program.firstMessage().has_value();
  if (request.order)
    policy.order = *request.order;
  else if (order)
    policy.order = *findCommOrder(order->text);
  else if (hasMessages)
    policy.order = CommOrder::None;
  policy.proves = fusion->places || policy.order != CommOrder::None ||
                  !request.transports.empty() || hasMessages;

  policy.prefetch = request.prefetch;
  uint32_t bound;
  if (const ast::Identifier *prefetch = setting("prefetch");
      prefetch && !policy.prefetch && !prefetch->text.getAsInteger(10, bound))
    policy.prefetch = bound;

  std::vector<Transport> transports = request.transports;
  const sema::Section *cluster = selection ? selection->cluster : nullptr;
  if (transports.empty() && cluster && cluster->transport)
    for (const ast::Entry &entry : cluster->transport->entries)
      transports.push_back(*findTransport(entry.text.text));
  if (!transports.empty())
    policy.transports = std::move(transports);
  // Where ranks wait for their messages in a program's order, that by time is
  // often not the best; but to try all takes long.
  if (!request.order && !order && !hasMessages &&
      program.size() <= maxActionsForBest &&
      !policy.transports.front().hasStreams())
    policy.order = CommOrder::Best;

  using Named = std::pair<StringRef, Preconnect>;
  Preconnect when = Preconnect::Auto;
  if (request.preconnect)
    when = *request.preconnect;
  else if (const ast::Identifier *said = setting("preconnect"))
    when = findBy(preconnects, said->text, &Named::first)->second;
  policy.preconnects = when == Preconnect::On;
  if (when == Preconnect::Auto)
    policy.preconnects =
        program.preconnect().empty() &&
        findBy(policy.transports, true, &Transport::hasRendezvous);
  return policy;
}

Pipeline CommPolicy::pipeline(PlanTimes *times) const {
  Pipeline pipeline;
  PassRegistry registry = makePassRegistry(*this, {}, times);
  auto add = [&](StringRef name) {
    if (!times || registry.find(name)->kind != PassKind::Check)
      append(name, registry, pipeline);
  };
  add("verify");
  if (!proves)
    return pipeline;
  if (!fusion->places && order != CommOrder::None) {
    add("inject-comm");
    add("verify");
  }
  if (fusion->fusion != Fusion::None) {
    add("fuse-comm");
    add("verify");
  }
  add("verify-matching");
  add("verify-transport");
  if (prefetch)
    add("verify-buffers");
  if (preconnects)
    add("preconnect");
  return pipeline;
}

PassRegistry ppcc::makePassRegistry(const CommPolicy &comm, DynamicRule dynamic,
                                    PlanTimes *times) {
  PassRegistry registry;
#define PASS(Name, Kind, Summary, ...)                                         \
  registry.add(Name, PassKind::Kind, Summary, __VA_ARGS__);
#define ALIAS(Name, Sequence, Summary)                                         \
  registry.addAlias(Name, Summary, Sequence);
#include "ppcc/Compiler/Passes.def"
  return registry;
}
