// Pipelines as text: `verify,inject-comm{order=sweep},verify`.
#include "ppcc/Basic/Diagnostics/Pass.h"
#include "ppcc/Pass/PassRegistry.h"
#include "ppcc/Support/Suggest.h"

using namespace ppcc;

namespace {

struct Parser {
  uint32_t file;
  const PassRegistry &registry;
  const SourceManager &sources;
  DiagnosticEngine &diags;

  std::optional<Pipeline> parse() {
    size_t errorsBefore = diags.errorCount();
    skipSpace();
    if (!rest.empty()) {
      do
        parsePass();
      while (accept(','));
      if (!rest.empty())
        diags.report<diag::PipelineExpected>(rangeOf(rest.take_front()),
                                             "`,` or the end of the pipeline");
    }
    if (diags.errorCount() != errorsBefore)
      return std::nullopt;
    return std::move(pipeline);
  }

  using Entry = PassRegistry::Entry;

  void parsePass() {
    StringRef name = word();
    if (name.empty()) {
      diags.report<diag::PipelineExpected>(rangeOf(rest.take_front()),
                                           "the name of a pass");
      rest = rest.drop_until([](char c) { return c == ','; });
      return;
    }
    const Entry *entry = registry.find(name);
    if (!entry)
      diags.report<diag::UnknownPass>(rangeOf(name), name,
                                      didYouMean(name, registry.names()));
    PassBuilder draft;
    if (entry && !entry->isAlias())
      draft = entry->factory.draft();
    if (accept('{'))
      parseOptions(entry, draft);
    if (draft.finish)
      pipeline.push_back({name.str(), entry->kind, draft.finish()});
    else if (entry)
      append(name, registry, pipeline);
  }

  /// Reads options up to the closing brace; without a draft only for their
  /// form.
  void parseOptions(const Entry *entry, const PassBuilder &draft) {
    BitVector given(entry ? entry->factory.options.size() : 0);
    if (accept('}'))
      return;
    do {
      StringRef key = word();
      if (key.empty() || !accept('=')) {
        diags.report<diag::PipelineExpected>(rangeOf(rest.take_front()),
                                             "`option=value`");
        rest = rest.drop_until([](char c) { return c == ',' || c == '}'; });
        continue;
      }
      StringRef value = take(rest.take_until(
          [](char c) { return c == ',' || c == '}' || llvm::isSpace(c); }));
      if (entry)
        setOption(*entry, draft, key, value, given);
    } while (accept(','));
    if (!accept('}'))
      diags.report<diag::PipelineExpected>(rangeOf(rest.take_front()),
                                           "`,` or `}`");
  }

  void setOption(const Entry &entry, const PassBuilder &draft, StringRef key,
                 StringRef value, BitVector &given) {
    const auto &options = entry.factory.options;
    auto *option = findBy(options, key, &PassOptionInfo::name);
    if (!option)
      return diags.refuse<diag::UnknownPassOption>(
          rangeOf(key), entry.name, key,
          didYouMean(key, options, &PassOptionInfo::name));
    size_t index = option - options.data();
    if (given.test(index))
      diags.report<diag::PassOptionTwice>(rangeOf(key), key);
    given.set(index);
    if (!draft.set(index, value))
      diags.report<diag::BadPassOption>(rangeOf(value), value, key,
                                        option->values);
  }

  SourceRange rangeOf(StringRef part) const {
    size_t offset = part.begin() - sources.text(file).begin();
    return {sources.loc(file, offset), sources.loc(file, offset + part.size())};
  }
  void skipSpace() { rest = rest.ltrim(); }
  StringRef take(StringRef front) {
    rest = rest.drop_front(front.size());
    skipSpace();
    return front;
  }
  StringRef word() {
    return take(rest.take_while(
        [](char c) { return llvm::isAlnum(c) || c == '-' || c == '_'; }));
  }
  bool accept(char c) {
    if (!rest.starts_with(StringRef(&c, 1)))
      return false;
    take(rest.take_front());
    return true;
  }

  StringRef rest{sources.text(file)};
  Pipeline pipeline{};
};

} // namespace

std::optional<Pipeline> ppcc::parsePipeline(StringRef text,
                                            const PassRegistry &registry,
                                            SourceManager &sources,
                                            DiagnosticEngine &diags) {
  uint32_t file = sources.add(
      "<passes>", llvm::MemoryBuffer::getMemBufferCopy(text, "<passes>"));
  return Parser{file, registry, sources, diags}.parse();
}

void ppcc::append(StringRef name, const PassRegistry &registry,
                  Pipeline &pipeline) {
  const PassRegistry::Entry *found = registry.find(name);
  auto one = [&](const PassRegistry::Entry *entry) {
    pipeline.push_back(
        {entry->name.str(), entry->kind, entry->factory.draft().finish()});
  };
  if (found->isAlias())
    llvm::for_each(found->sequence, one);
  else
    one(found);
}
