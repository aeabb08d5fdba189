// Checks models and clusters.
#include "Checks.h"
#include "ppcc/Basic/Diagnostics/Instance.h"
#include "ppcc/Basic/Diagnostics/Syntax.h"
#include "ppcc/IR/Tensors.h"

using namespace ppcc;
using namespace ppcc::sema;

namespace {

class SectionChecker {
public:
  SectionChecker(const ast::Stmt *item, const Schedule *within,
                 const CommWords &words, ExprChecker &exprs)
      : exprs(exprs), within(within), words(words),
        settings(item->kind == ast::StmtKind::Model ? "model" : "cluster",
                 diags) {
    section.item = item;
    section.range = item->range;
    for (const CostRow &row : costRows())
      if ((row.owner == CostOwner::Model) == section.isModel() &&
          (costs.empty() || costs.back() != row.item))
        costs.push_back(row.item);
  }

  template <class Item> Section check(const Item *item) {
    SymbolTable::FrameScope frame(names, {});
    uint32_t outer = names.numGlobals;
    if (!within) {
      names.numGlobals = 0;
      section.name = item->name.text;
      section.range = item->name.range;
    } else if (!item->name.text.empty()) {
      diags.report<diag::SectionWithName>(item->name.range, section.word());
    }
    names.declareForward(item->items);
    checkParameters(item->params, section, exprs);
    for (const ast::Stmt *inner : item->items)
      this->item(inner);
    finishModel();
    section.numLocals = names.frame.numLocals;
    section.numGlobals = names.numGlobals;
    if (!within)
      names.numGlobals = outer;
    return std::move(section);
  }

private:
  void item(const ast::Stmt *item) {
    BodyKind where = section.isModel() ? BodyKind::Model : BodyKind::Cluster;
    if (!holds(where, item->kind))
      return reportMisplaced(item, where, diags);
    if (!checkHeadItem(item, section, exprs))
      dispatch(item, [&](const auto &node) { of(&node); });
  }

  void of(const ast::Stmt *) { llvm_unreachable("it is in no section"); }
  void of(const ast::PatternItem *item) {
    section.patterns.push_back(item);
    checkBody(item->body, BodyKind::Pattern, exprs);
  }

  /// Whether it is one of the items that the section has; reports when it is
  /// not.
  bool isItem(const ast::Identifier &name, ArrayRef<StringRef> ofModel,
              ArrayRef<StringRef> ofCluster) {
    ArrayRef<StringRef> known = section.isModel() ? ofModel : ofCluster;
    if (!llvm::is_contained(known, name.text) && belongsToOther(name))
      return false;
    return settings.find(known, name).has_value();
  }

  /// Reports what the other kind of section says.
  bool belongsToOther(const ast::Identifier &name) {
    auto row = llvm::find_if(costRows(), [&](const CostRow &row) {
      return row.item == name.text && !llvm::is_contained(costs, row.item);
    });
    if (row == costRows().end())
      return false;
    StringRef other = section.isModel() ? "cluster" : "model";
    diags.report<diag::SettingInWrongSection>(name.range, name.text, other,
                                              section.word());
    return true;
  }

  // ---- Settings ----

  void of(const ast::SettingItem *item) {
    if (isItem(item->name, costs, costs)) {
      subject(*item);
      microbatch(*item);
    }
    std::string key = nameOf(*item);
    if (!item->pipe.text.empty())
      key += " " + item->pipe.text.str();
    if (item->over.text == "stage")
      key += " stage";
    settings.once(key, item->name.range);
    pipeName(item->pipe);
    SymbolTable::Scope scope(names);
    uint32_t slot = item->variable.text.empty()
                        ? 0
                        : names.defineLocal(item->variable, Type::Int,
                                            Symbol::Binder::Each);
    exprs.expect(item->value, Type::Float,
                 fmt::format("a setting of `{}`", section.word()));
    section.settings.push_back({item, slot});
  }

  void subject(const ast::SettingItem &item) {
    if (findSetting(item, module.kinds))
      return;
    StringRef text = item.subject.text;
    std::vector<StringRef> allowed = costSubjects(item.name.text, module.kinds);
    if (!item.node.text.empty() && module.kinds.find(text))
      diags.report<diag::BadSettingValue>(item.node.range, item.name.text,
                                          item.node.text,
                                          "; only `cost` takes nodes");
    else if (text.empty())
      diags.report<diag::WrongArgumentCount>(
          item.name.range, item.name.text,
          "one of " + llvm::join(allowed, ", "), "none is");
    else
      diags.report<diag::BadSettingValue>(item.subject.range, item.name.text,
                                          text, didYouMean(text, allowed));
  }

  /// `scale` differs between microbatches, and nothing else does.
  void microbatch(const ast::SettingItem &item) {
    bool isScale = llvm::any_of(costRows(), [&](const CostRow &row) {
      return row.item == item.name.text &&
             row.granularity == CostGranularity::Microbatches;
    });
    StringRef over = item.over.text;
    bool isGood = isScale ? over == "microbatch"
                          : over.empty() || over == "stage" || over == "rank";
    StringRef wanted = !isScale       ? "`=`, `pipe`, `stage` or `rank`"
                       : over.empty() ? "`microbatch m`"
                                      : "`microbatch`";
    if (!isGood)
      diags.report<diag::ScaleForm>(
          (over.empty() ? item.name : item.over).range, wanted, item.name.text);
  }

  /// Reports a name that is no pipe's.
  void pipeName(const ast::Identifier &name) {
    auto isIt = [&](const PipeDecl &pipe) {
      return pipe.name == name.text && !pipe.loop;
    };
    if (!name.text.empty() && (!within || within->pipeSlots.empty() ||
                               llvm::none_of(within->pipes, isIt)))
      diags.report<diag::UnknownName>(name.range, name.text, "");
  }

  // ---- Models ----

  void of(const ast::TensorsItem *clause) {
    if (section.isModel() && clause->stageVariable.text.empty())
      return diags.refuse<diag::TensorsWithoutStage>(clause->name.range,
                                                     clause->name.text);
    if (!isItem(clause->name, {"output", "input"}, {}))
      return;
    pipeName(clause->pipe);
    exprs.expectInts({clause->from, clause->to}, "a stage");
    SymbolTable::Scope scope(names);
    uint32_t slot = names.defineLocal(clause->stageVariable, Type::Int,
                                      Symbol::Binder::Each);
    checkTensors(*clause, exprs);
    section.tensors.push_back({clause, slot});
  }

  void of(const ast::TextItem *item) {
    if (isItem(item->name, {"layout"}, {}))
      once(section.layout, item, "`layout`", diags);
  }

  void of(const ast::WordsItem *item) {
    if (!isItem(item->name, {"layers", "units"}, {"transport", "units"}))
      return;
    if (item->name.text == "units")
      return units(item);
    if (!section.isModel())
      return transport(item);
    settings.once("layers", item->name.range);
    sequences.push_back({item, section.parts.size()});
    section.parts.push_back({.range = item->range});
  }

  /// `units ms, bytes;`
  void units(const ast::WordsItem *item) {
    if (!once(section.unitsItem, item, "`units`", diags))
      return;
    plainWords(*item);
    for (const ast::Entry &entry : item->entries) {
      const ast::Identifier &word = entry.text;
      if (!llvm::is_contained(Units::allWords(), word.text))
        diags.report<diag::BadSettingValue>(
            word.range, item->name.text, word.text,
            didYouMean(word.text, Units::allWords()));
      else if (!section.units.take(word.text))
        diags.report<diag::DuplicateItem>(word.range, word.text == "bytes"
                                                          ? "unit of memory"
                                                          : "unit of time");
    }
  }

  void of(const ast::NamedItem *item) {
    if (!isItem(item->what, {"layer", "part"}, {"link"}))
      return;
    if (item->what.text == "link")
      return link(item);
    if (item->names.size() != 1)
      exprs.wrongCount(item->what, "1 name", item->names.size());
    item->what.text == "layer" ? layer(item) : part(item);
  }

  void layer(const ast::NamedItem *item) {
    if (auto *other = findBy(section.layers, firstName(item), firstName))
      names.redefined(item->names.front(), (*other)->names.front().range);
    section.layers.push_back(item);
    checkBody(item->body, BodyKind::Layer, exprs);
  }

  void part(const ast::NamedItem *item) {
    if (auto *other = findBy(section.parts, firstName(item), nameOfPart);
        other && !within) // Else it is a name of the schedule.
      names.redefined(item->names.front(), other->name.range);
    PartDecl part{item->names.front(), item->range};
    static constexpr StringRef known[] = {"layers", "reads"};
    SettingNames inner("part", diags);
    for (const ast::Stmt *stmt : item->body) {
      if (auto *stages = dyn_cast<ast::StagesItem>(stmt)) {
        once(part.stages, stages, "`stages`", diags);
        exprs.expect(stages->count, Type::Int, "the number of stages");
      } else if (!holds(BodyKind::Part, stmt->kind)) {
        reportMisplaced(stmt, BodyKind::Part, diags);
      } else if (auto *words = cast<ast::WordsItem>(stmt);
                 inner.find(known, words->name)) {
        inner.once(words->name.text, words->name.range);
        if (words->name.text == "reads")
          reads(*words, part);
        else
          sequences.push_back({words, section.parts.size()});
      }
    }
    section.parts.push_back(std::move(part));
  }

  void reads(const ast::WordsItem &item, PartDecl &part) {
    plainWords(item);
    for (const ast::Entry &entry : item.entries)
      if (entry.group.empty())
        reads(entry.text, section.parts, part);
  }

  /// `above` are the parts that stand before `part`.
  void reads(const ast::Identifier &name, ArrayRef<PartDecl> above,
             PartDecl &part) {
    if (auto *found = findBy(above, name.text, nameOfPart))
      part.reads.push_back(found - above.begin());
    else
      diags.report<diag::UnknownPart>(name.range, name.text,
                                      didYouMean(name.text, above, nameOfPart));
  }

  /// Reports counts and tails where there are none.
  void plainWords(const ast::WordsItem &item) {
    for (const ast::Entry &entry : item.entries)
      if (!entry.group.empty())
        diags.report<diag::ExpectedToken>(entry.text.range, "a word");
      else if (entry.count)
        diags.report<diag::ExpectedToken>(entry.count->range, "`,` or `;`");
    for (const ast::Tail &tail : item.tails)
      diags.report<diag::ExpectedToken>(tail.word.range, "`,` or `;`");
  }

  std::optional<uint32_t> layerCalled(const ast::Identifier &name) {
    if (auto *found = findBy(section.layers, name.text, firstName))
      return found - section.layers.data();
    return diags.report<diag::UnknownLayer>(
        name.range, name.text,
        didYouMean(name.text, section.layers, firstName));
  }

  std::vector<LayerRun> runs(ArrayRef<ast::Entry> entries) {
    std::vector<LayerRun> result;
    for (const ast::Entry &entry : entries) {
      if (entry.count)
        exprs.expect(entry.count, Type::Int, "a number of layers");
      if (!entry.group.empty())
        result.push_back({0, runs(entry.group), entry.count});
      else if (auto layer = layerCalled(entry.text))
        result.push_back({*layer, {}, entry.count});
    }
    return result;
  }

  void sequence(const ast::WordsItem &item, PartDecl &part) {
    part.runs = runs(item.entries);
    for (const ast::Tail &tail : item.tails) {
      ArrayRef<ast::Identifier> names = tail.names;
      if (tail.word.text == "by" && names.front().text == "cost" &&
          names.size() == 1) {
        part.isByCost = true;
      } else if (tail.word.text == "by") {
        for (const ast::Identifier &name : names)
          if (auto layer = layerCalled(name))
            part.counted.push_back(*layer);
      } else if (tail.word.text == "reads") {
        for (const ast::Identifier &name : names)
          reads(name, ArrayRef(section.parts.data(), &part), part);
      } else if (tail.word.text == "between" && names.size() == 2) {
        part.leave = layerCalled(names[0]);
        part.enter = layerCalled(names[1]);
      } else {
        diags.report<diag::BadTail>(tail.word.range, tail.word.text);
      }
    }
  }

  /// What needs all layers.
  void finishModel() {
    for (auto [item, part] : sequences)
      sequence(*item, section.parts[part]);
    auto *whole = findBy(section.parts, StringRef(), nameOfPart);
    if (whole && section.parts.size() > 1)
      diags.report<diag::DuplicateItem>(whole->range,
                                        "`layers`, beside those of parts");
    checkGraphs(section, module.kinds, diags);
  }

  // ---- Clusters ----

  void transport(const ast::WordsItem *item) {
    once(section.transport, item, "`transport`", diags);
    plainWords(*item);
    for (const ast::Entry &entry : item->entries)
      if (entry.group.empty() &&
          (!words.isTransport || !words.isTransport(entry.text.text)))
        diags.report<diag::BadSettingValue>(
            entry.text.range, item->name.text, entry.text.text,
            didYouMean(entry.text.text, words.transports));
  }

  void link(const ast::NamedItem *item) {
    if (item->names.size() != 2)
      diags.report<diag::WrongArgumentCount>(
          item->what.range, "link", "two ranks, as in `link a, b { ... }`",
          fmt::format("{} are", item->names.size()));
    SymbolTable::Scope scope(names);
    LinkDecl link{item, 0, 0};
    for (auto [i, name] : llvm::enumerate(item->names)) {
      uint32_t slot = names.defineLocal(name, Type::Int, Symbol::Binder::Each);
      (i == 0 ? link.from : link.to) = slot;
    }
    const ast::NamedItem *first =
        section.links.empty() ? nullptr : section.links.front().item;
    once(first, item, "`link`", diags);
    for (const ast::Stmt *inner : item->body)
      inner->kind == ast::StmtKind::Let
          ? checkStatement(inner, BodyKind::Layer, exprs)
          : ofLink(inner);
    section.links.push_back(link);
  }

  void ofLink(const ast::Stmt *item) {
    auto *setting = dyn_cast<ast::SettingItem>(item);
    if (!setting)
      return diags.refuse<diag::NotInLink>(item->range);
    auto found = findSetting(*setting, module.kinds);
    if (!found || rowOf(found->what).granularity != CostGranularity::Links ||
        !setting->pipe.text.empty() || !setting->over.text.empty())
      return diags.refuse<diag::NotInLink>(setting->name.range);
    settings.once("link " + setting->name.text.str(), setting->name.range);
    exprs.expect(setting->value, Type::Float, "a setting of `link`");
  }

  ExprChecker &exprs;
  Module &module = exprs.module;
  DiagnosticEngine &diags = exprs.diags;
  SymbolTable &names = exprs.names;
  const Schedule *within;
  const CommWords &words;
  SettingNames settings;
  Section section;
  std::vector<StringRef> costs; ///< Items of costs that it says.
  /// `layers`, and the part that it belongs to.
  std::vector<std::pair<const ast::WordsItem *, size_t>> sequences;
};

} // namespace

void sema::checkTensors(const ast::TensorsItem &clause, ExprChecker &exprs) {
  DiagnosticEngine &diags = exprs.diags;
  StringMap<SourceRange> seen;
  for (const ast::TensorDecl &tensor : clause.tensors) {
    auto [first, isNew] = seen.try_emplace(tensor.name.text, tensor.name.range);
    if (!isNew)
      exprs.names.redefined(tensor.name, first->second);
    if (!findElementType(tensor.type.text))
      diags.report<diag::UnknownElementType>(
          tensor.type.range, tensor.type.text,
          didYouMean(tensor.type.text, elementTypeNames()));
    for (const ast::Expr *dim : tensor.dims)
      exprs.expectInts({dim}, "a size");
  }
}

static std::string subjectText(const ast::SettingItem &setting) {
  StringRef dot = setting.node.text.empty() ? "" : ".";
  return (setting.subject.text + dot + setting.node.text).str();
}

std::string sema::nameOf(const ast::SettingItem &setting) {
  std::string subject = subjectText(setting);
  return setting.name.text.str() + (subject.empty() ? "" : " ") + subject;
}

std::optional<CostSetting> sema::findSetting(const ast::SettingItem &setting,
                                             const KindTable &kinds) {
  std::string subject = subjectText(setting);
  auto found = findCost(setting.name.text, subject, kinds);
  if (!found && subject.empty())
    found = findCost(setting.name.text, "all", kinds);
  // Options still take `memory.limit`; here it is a setting of its own.
  if (found && rowOf(found->what).item != setting.name.text)
    return std::nullopt;
  return found;
}

Section sema::checkSection(const ast::Stmt *item, const Schedule *within,
                           const CommWords &words, ExprChecker &exprs) {
  SectionChecker checker(item, within, words, exprs);
  if (auto *model = dyn_cast<ast::ModelItem>(item))
    return checker.check(model);
  return checker.check(cast<ast::ClusterItem>(item));
}
