// Checks the settings of `model { }` and `comm { }` against their tables.
#include "Settings.h"

#include "ppcc/IR/Tensors.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace ppcc;
using namespace ppcc::sema;
using llvm::ArrayRef;
using llvm::StringRef;

namespace {

enum class CommValue : uint8_t {
  Transport,
  Order,
  Fusion,
  Calls,
  Count,
  Switch
};

constexpr StringRef switchWords[] = {"auto", "on", "off"};

constexpr StringRef modelTensors[] = {
#define MODEL_TENSORS(Name) Name,
#include "Settings.def"
};

constexpr StringRef modelTexts[] = {
#define MODEL_TEXT(Name) Name,
#include "Settings.def"
};

constexpr StringRef commNames[] = {
#define COMM(Name, Takes) Name,
#include "Settings.def"
};
constexpr CommValue commValues[] = {
#define COMM(Name, Takes) CommValue::Takes,
#include "Settings.def"
};

/// Goes through the settings of one section.
class SectionCheck {
public:
  SectionCheck(StringRef section, DiagnosticEngine &diags)
      : section(section), diags(diags) {}

  /// The number of a setting; nothing, and a report, when there is none.
  std::optional<size_t> find(ArrayRef<StringRef> names,
                             const ast::Identifier &name) {
    auto *found = llvm::find(names, name.text);
    if (found != names.end())
      return found - names.begin();
    diags.report<diag::UnknownSetting>(name.range, section, name.text,
                                       didYouMean(name.text, names));
    return std::nullopt;
  }

  /// Reports `key` when it has come before.
  void once(StringRef key, SourceRange range) {
    auto [first, isNew] = seen.try_emplace(key, range);
    if (!isNew)
      diags.report<diag::DuplicateItem>(range, fmt::format("`{}`", key))
          .note(first->second, "the first is here");
  }

private:
  StringRef section;
  DiagnosticEngine &diags;
  llvm::StringMap<SourceRange> seen;
};

void checkSubject(const ast::ModelSetting &setting, const KindTable &kinds,
                  DiagnosticEngine &diags) {
  if (findSetting(setting, kinds))
    return;
  StringRef text = setting.subject.text;
  std::vector<StringRef> allowed = costSubjects(setting.name.text, kinds);
  if (!setting.node.text.empty() && kinds.find(text))
    diags.report<diag::BadSettingValue>(setting.node.range, setting.name.text,
                                        setting.node.text,
                                        "; only `cost` takes nodes");
  else if (text.empty())
    diags.report<diag::WrongArgumentCount>(
        setting.name.range, setting.name.text,
        "one of " + llvm::join(allowed, ", "), "none is");
  else
    diags.report<diag::BadSettingValue>(setting.subject.range,
                                        setting.name.text, text,
                                        didYouMean(text, allowed));
}

/// `scale` differs between microbatches, and nothing else does; limits may
/// differ between ranks.
void checkWord(const ast::ModelSetting &setting, const KindTable &kinds,
               DiagnosticEngine &diags) {
  if (auto found = findSetting(setting, kinds);
      found && rowOf(found->what).spread == CostSpread::Ranks &&
      setting.word.text == "rank")
    return;
  bool isScale = llvm::any_of(costRows(), [&](const CostRow &row) {
    return row.item == setting.name.text &&
           row.spread == CostSpread::Microbatches;
  });
  bool isGiven = !setting.word.text.empty();
  if (isScale && !isGiven)
    diags.report<diag::ScaleForm>(setting.name.range, "`microbatch m`",
                                  setting.name.text);
  else if (isGiven && !isScale)
    diags.report<diag::ScaleForm>(setting.word.range, "`=`, `pipe` or `stage`",
                                  setting.name.text);
  else if (isGiven && setting.word.text != "microbatch")
    diags.report<diag::ScaleForm>(setting.word.range, "`microbatch`",
                                  setting.name.text);
}

void checkValue(const ast::CommSetting &setting, const ast::Identifier &value,
                CommValue takes, const CommWords &words,
                DiagnosticEngine &diags) {
  ArrayRef<StringRef> allowed =
      takes == CommValue::Transport ? ArrayRef(words.transports)
      : takes == CommValue::Order   ? ArrayRef(words.orders)
      : takes == CommValue::Switch  ? ArrayRef(switchWords)
      : takes == CommValue::Calls   ? ArrayRef(words.calls)
                                    : ArrayRef(words.fusions);
  bool isCount = takes == CommValue::Count;
  uint32_t number;
  bool ok = isCount ? !value.text.getAsInteger(10, number) && number != 0
            : takes == CommValue::Transport
                ? words.isTransport && words.isTransport(value.text)
                : llvm::is_contained(allowed, value.text);
  if (!ok)
    diags.report<diag::BadSettingValue>(
        value.range, setting.name.text, value.text,
        isCount ? "; it takes a number of at least 1"
                : didYouMean(value.text, allowed));
}

/// Reports a name that is no pipe's.
void checkPipeName(const ast::Identifier &name, const Schedule &schedule,
                   DiagnosticEngine &diags) {
  auto isIt = [&](const PipeDecl &pipe) { return pipe.name == name.text; };
  if (!name.text.empty() &&
      (schedule.pipeSlots.empty() || llvm::none_of(schedule.pipes, isIt)))
    diags.report<diag::UnknownName>(name.range, name.text, "");
}

/// Gives the slot of the variable, 0 without one.
uint32_t checkSettingValue(const ast::ModelSetting &setting,
                           ExprChecker &exprs) {
  Names::Scope scope(exprs.names);
  const ast::Identifier &variable = setting.microbatchVariable.text.empty()
                                        ? setting.stageVariable
                                        : setting.microbatchVariable;
  uint32_t slot = variable.text.empty()
                      ? 0
                      : exprs.names.defineLocal(variable, Type::Int);
  exprs.expect(setting.value, Type::Float, "a setting of `model`");
  return slot;
}

/// Gives the slot of the variable.
uint32_t checkTensors(const ast::ModelTensors &clause, ExprChecker &exprs) {
  for (const ast::Expr *end : {clause.from, clause.to})
    if (end)
      exprs.expect(end, Type::Int, "a stage");
  Names::Scope scope(exprs.names);
  uint32_t slot = exprs.names.defineLocal(clause.stageVariable, Type::Int);
  llvm::StringMap<SourceRange> names;
  for (const ast::TensorDecl &tensor : clause.tensors) {
    auto [first, isNew] =
        names.try_emplace(tensor.name.text, tensor.name.range);
    if (!isNew)
      exprs.names.redefined(tensor.name, first->second);
    if (!findElementType(tensor.type.text))
      exprs.diags.report<diag::UnknownElementType>(
          tensor.type.range, tensor.type.text,
          didYouMean(tensor.type.text, elementTypeNames()));
    for (const ast::Expr *dim : tensor.dims)
      if (dim)
        exprs.expect(dim, Type::Int, "a size");
  }
  return slot;
}

} // namespace

std::optional<CostSetting> sema::findSetting(const ast::ModelSetting &setting,
                                             const KindTable &kinds) {
  std::string subject = setting.subject.text.str();
  if (!setting.node.text.empty())
    subject += "." + setting.node.text.str();
  auto found = findCost(setting.name.text, subject, kinds);
  return found || !subject.empty()
             ? std::move(found)
             : findCost(setting.name.text, "all", kinds);
}

void sema::checkModel(Schedule &schedule, ExprChecker &exprs) {
  DiagnosticEngine &diags = exprs.diags;
  SectionCheck section("model", diags);
  for (const ast::ModelSetting &setting : schedule.model->settings) {
    if (section.find(costItems(), setting.name)) {
      checkSubject(setting, exprs.module.kinds, diags);
      checkWord(setting, exprs.module.kinds, diags);
    }
    bool byStage = !setting.stageVariable.text.empty();
    std::string key =
        fmt::format("{} {}{}{} {}{}", setting.name.text, setting.subject.text,
                    setting.node.text.empty() ? "" : ".", setting.node.text,
                    setting.pipe.text, byStage ? " stage" : "");
    section.once(StringRef(key).rtrim(), setting.name.range);
    checkPipeName(setting.pipe, schedule, diags);
    schedule.modelSlots.push_back(checkSettingValue(setting, exprs));
  }
  for (const ast::ModelTensors &clause : schedule.model->tensors) {
    section.find(modelTensors, clause.name);
    checkPipeName(clause.pipe, schedule, diags);
    schedule.tensorSlots.push_back(checkTensors(clause, exprs));
  }
  for (const ast::ModelText &text : schedule.model->texts)
    if (section.find(modelTexts, text.name))
      section.once(text.name.text, text.name.range);
}

void sema::checkComm(const ast::CommItem &item, const CommWords &words,
                     DiagnosticEngine &diags) {
  SectionCheck section("comm", diags);
  for (const ast::CommSetting &setting : item.settings) {
    auto row = section.find(commNames, setting.name);
    if (!row)
      continue;
    CommValue takes = commValues[*row];
    section.once(setting.name.text, setting.name.range);
    if (setting.values.size() > 1 && takes != CommValue::Transport)
      diags.report<diag::WrongArgumentCount>(
          setting.name.range, setting.name.text, "1 value",
          fmt::format("{} are", setting.values.size()));
    for (const ast::Identifier &value : setting.values)
      checkValue(setting, value, takes, words, diags);
  }
}
