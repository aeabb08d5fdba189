#include "ppcc/Prove/Prove.h"

#include "ppcc/Basic/Diagnostics/Instance.h"
#include "ppcc/Basic/Diagnostics/Prove.h"
#include "ppcc/Compiler/CommPolicy.h"
#include "ppcc/Support/Suggest.h"

using namespace ppcc;

std::optional<ParsedRequest> ppcc::readRequest(const ProveRequest &request,
                                               Session &session,
                                               std::string &usageError) {
  Request parsed = request.compile;
  parsed.until = Request::StopAfter::Checked;
  SmallVector<StringRef, 2> names;
  StringRef(request.free).split(names, ',');
  for (StringRef &name : names) {
    name = name.trim();
    parsed.params.push_back({name.str(), "1"});
  }
  auto input = openInput(parsed, session);
  if (input && input->format)
    usageError =
        "a proof is of a schedule; the input is a program: `ppcc check` "
        "verifies it";
  if (!input || input->format)
    return std::nullopt;
  Compiled compiled = compile(parsed, session);
  usageError = compiled.usageError;
  if (usageError.empty())
    usageError = conflictIn(request.compile.comm);
  const CommRequest &comm = request.compile.comm;
  if (usageError.empty() && request.dataOnly && comm.transports.empty() &&
      (comm.order.value_or(CommOrder::None) != CommOrder::None ||
       (comm.fusion && comm.fusion->fusion != Fusion::None) || comm.prefetch))
    usageError =
        "proofs by data alone leave out the messages that --comm-order, "
        "--fuse and --prefetch are about; name a --transport";
  if (!compiled || !usageError.empty())
    return std::nullopt;
  const Checked &checked = *compiled.checked;
  const sema::Schedule *schedule = checked.selection.schedule;
  std::vector<StringRef> ints;
  for (const sema::ScheduleParam &one : schedule->params)
    if (one.type == sema::Type::Int)
      ints.push_back(one.decl->name.text);
  SmallVector<uint32_t, 2> free;
  for (StringRef name : names) {
    auto param = llvm::find_if(schedule->params, [&](const auto &one) {
      return one.type == sema::Type::Int && one.decl->name.text == name;
    });
    uint32_t position = param - schedule->params.begin();
    if (position == schedule->params.size() ||
        llvm::is_contained(free, position)) {
      session.diags.report<diag::NoFreeParameter>({}, schedule->decl->name.text,
                                                  name, didYouMean(name, ints));
      return std::nullopt;
    }
    free.push_back(position);
    if (findBy(request.compile.params, name, &sema::ParamValue::name)) {
      session.diags.report<diag::FreeParameterGiven>(
          Location("-D " + name.str()), name);
      return std::nullopt;
    }
  }
  Proof proof;
  proof.schedule = schedule->decl->name.text.str();
  proof.units = checked.selection.units();
  // The other parameters, and what is wrong with them.
  {
    size_t before = session.diags.errorCount();
    for (const sema::ScheduleParam &one : schedule->params) {
      StringRef name = one.decl->name.text;
      auto given =
          findBy(request.compile.params, name, &sema::ParamValue::name);
      if (given)
        proof.params.push_back(
            {name.str(), sema::typeName(one.type).str(), given->value});
      else if (!one.decl->defaultValue && !llvm::is_contained(names, name))
        session.diags.report<diag::MissingParameter>(one.decl->name.range,
                                                     name);
    }
    for (const sema::ParamValue &value : request.compile.params)
      if (!hasParameter(value.name, ownersOf(checked.selection)))
        session.diags.report<diag::UnknownParameter>(
            Location("-D " + value.name), proof.schedule, value.name, "");
    if (session.diags.errorCount() != before)
      return std::nullopt;
  }
  if (request.dataOnly)
    proof.transports.push_back("data");
  for (const Transport &transport : request.compile.comm.transports)
    proof.transports.push_back(transport.name);
  if (proof.transports.empty()) {
    const sema::Section *cluster = checked.selection.cluster;
    if (cluster && cluster->transport)
      for (const ast::Entry &entry : cluster->transport->entries)
        proof.transports.push_back(entry.text.text.str());
    if (proof.transports.empty())
      proof.transports.push_back("stream");
  }
  return ParsedRequest{std::move(compiled), std::move(free), std::move(proof)};
}
