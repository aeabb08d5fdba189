// Checks layers, stage graphs and patterns, their expressions apart.
#include "GraphCheck.h"

#include "Bodies.h"
#include "ppcc/Basic/Diagnostics/Instance.h"
#include "ppcc/Basic/Diagnostics/Sema.h"
#include "ppcc/IR/NodeGraphs.h"
#include "ppcc/Support/Suggest.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <map>
#include <set>

using namespace ppcc;
using namespace ppcc::sema;
using llvm::ArrayRef;
using llvm::cast;
using llvm::dyn_cast;
using llvm::StringRef;

namespace {

class GraphChecker {
public:
  GraphChecker(const Schedule &schedule, const KindTable &kinds,
               DiagnosticEngine &diags)
      : schedule(schedule), kinds(kinds), diags(diags) {}

  void run() {
    for (const ast::LayerItem *layer : schedule.layers) {
      auto [first, isNew] =
          layerNames.try_emplace(layer->name.text, layer->name.range);
      if (!isNew)
        diags.report<diag::Redefined>(layer->name.range, layer->name.text)
            .note(first->second, "first defined here");
      body(layer->body, BodyOf::Layer);
    }
    if (!schedule.graph) {
      if (const ast::Stmt *needs = firstInNeed())
        diags.report<diag::MissingItem>(
            needs->range,
            fmt::format("schedule `{}`", schedule.decl->name.text),
            "`stage graph`, which says what the layers of each stage are");
      return;
    }
    body(schedule.graph->body, BodyOf::StageGraph);
    for (const ast::PatternItem *item : schedule.patterns)
      pattern(*item);
  }

  /// The costs of nodes, when all names are known.
  void costs() {
    if (!schedule.model)
      return;
    for (const auto &[setting, slot] : schedule.model->settings)
      if (!setting->node.text.empty())
        cost(*setting);
  }

private:
  /// Of the nodes of an action: part and name.
  using NodeName = std::pair<StringRef, StringRef>;
  using NodeNames = std::map<StringRef, std::set<NodeName>>;

  const ast::Stmt *firstInNeed() const {
    if (!schedule.layers.empty())
      return schedule.layers.front();
    return schedule.patterns.empty() ? nullptr : schedule.patterns.front();
  }

  void body(ast::Body statements, BodyOf of) {
    for (const ast::Stmt *stmt : statements) {
      if (!holds(of, stmt->kind)) {
        reportMisplaced(stmt, of, diags);
        continue;
      }
      BodyOf inner = of;
      if (auto *chain = dyn_cast<ast::ChainStmt>(stmt))
        this->chain(*chain, of);
      else if (auto *use = dyn_cast<ast::UseLayerStmt>(stmt))
        useLayer(use->name);
      else if (auto *place = dyn_cast<ast::PlaceStmt>(stmt))
        this->place(*place, of);
      else if (llvm::isa<ast::PerLayerStmt>(stmt)) {
        perLayer(stmt);
        inner = BodyOf::LayersOfPattern;
      }
      forEachBody(stmt, [&](ast::Body nested) { body(nested, inner); });
    }
  }

  bool action(const ast::Identifier &name) {
    auto kind = kinds.find(name.text);
    if (kind && kinds[*kind].isCompute())
      return true;
    auto letters = [&] {
      std::vector<StringRef> letters;
      for (const KindInfo &info : kinds.rows())
        if (info.isCompute())
          letters.push_back(info.letters);
      return letters;
    };
    diags.report<diag::UnknownAction>(name.range, name.text,
                                      didYouMean(name.text, letters));
    return false;
  }

  void chain(const ast::ChainStmt &chain, BodyOf of) {
    if (!action(chain.action))
      return;
    NodeNames &names = of == BodyOf::Layer ? ofLayers : ofStage;
    for (const ast::GraphLink &link : chain.links) {
      if (link.isLayers) {
        if (of == BodyOf::Layer)
          diags.report<diag::NotInBody>(link.range, "per layer", nameOf(of));
        StringRef direction = link.direction.text;
        if (!direction.empty() && direction != "up" && direction != "down")
          diags.report<diag::UnknownDirection>(link.direction.range, direction);
        continue;
      }
      if (!link.part.text.empty() && !action(link.part))
        continue;
      StringRef part =
          link.part.text.empty() ? chain.action.text : link.part.text;
      if ((link.name.text == hook::recv || link.name.text == hook::send) &&
          (of == BodyOf::Layer || part != chain.action.text))
        diags.report<diag::HookInLayer>(link.range, link.name.text);
      names[chain.action.text].insert({part, link.name.text});
    }
  }

  void useLayer(const ast::Identifier &name) {
    if (layerNames.count(name.text))
      return;
    auto names = [&] {
      std::vector<StringRef> names;
      for (const ast::LayerItem *layer : schedule.layers)
        names.push_back(layer->name.text);
      return names;
    };
    diags.report<diag::UnknownLayer>(name.range, name.text,
                                     didYouMean(name.text, names));
  }

  // ---- Patterns ----

  void pattern(const ast::PatternItem &item) {
    current = &item;
    layerBlock = nullptr;
    std::set<StringRef> seen;
    for (const ast::Identifier &name : item.actions)
      if (action(name) && !seen.insert(name.text).second)
        diags.report<diag::DuplicateItem>(name.range,
                                          fmt::format("`{}`", name.text));
    body(item.body, BodyOf::Pattern);
  }

  void perLayer(const ast::Stmt *stmt) {
    if (layerBlock)
      diags.report<diag::DuplicateItem>(stmt->range, "`per layer`")
          .note(layerBlock->range, "the first is here");
    layerBlock = stmt;
  }

  void place(const ast::PlaceStmt &stmt, BodyOf of) {
    bool isLast = !stmt.modifier.text.empty();
    if (isLast && (stmt.modifier.text != "last" ||
                   of == BodyOf::LayersOfPattern || !layerBlock)) {
      diags.report<diag::NotInBody>(stmt.modifier.range, stmt.modifier.text,
                                    of == BodyOf::LayersOfPattern || layerBlock
                                        ? nameOf(of)
                                        : "front of `per layer`");
      return;
    }
    if (!action(stmt.part))
      return;
    bool inLayer = isLast || of == BodyOf::LayersOfPattern;
    NodeNames &names = inLayer ? ofLayers : ofStage;
    NodeName wanted{stmt.part.text, stmt.name.text};
    std::vector<StringRef> owners;
    for (const ast::Identifier &action : current->actions)
      if (names[action.text].count(wanted) &&
          !llvm::is_contained(owners, action.text))
        owners.push_back(action.text);
    SourceRange range(stmt.part.range.begin, stmt.name.range.end);
    if (owners.empty())
      diags.report<diag::UnknownNode>(
          range, inLayer ? "layer" : "stage graph", wanted.first, wanted.second,
          actionNames(), suggestion(wanted, {&names}));
    else if (owners.size() > 1)
      diags.report<diag::AmbiguousNode>(range, owners[0], owners[1],
                                        wanted.first, wanted.second);
  }

  /// A cost is of the nodes of that name in all actions.
  void cost(const ast::SettingItem &setting) {
    NodeName wanted{setting.subject.text, setting.node.text};
    for (const NodeNames *names : {&ofLayers, &ofStage})
      for (const auto &[action, known] : *names)
        if (known.count(wanted))
          return;
    diags.report<diag::UnknownNode>(
        SourceRange(setting.subject.range.begin, setting.node.range.end),
        "layer or stage graph", wanted.first, wanted.second, "any action",
        suggestion(wanted, {&ofLayers, &ofStage}));
  }

  /// `; did you mean ...`, of the nodes of the same part.
  static std::string suggestion(const NodeName &wanted,
                                ArrayRef<const NodeNames *> tables) {
    std::vector<StringRef> others;
    for (const NodeNames *names : tables)
      for (const auto &[action, known] : *names)
        for (const NodeName &node : known)
          if (node.first == wanted.first)
            others.push_back(node.second);
    return didYouMean(wanted.second, others);
  }

  /// `F or B`.
  std::string actionNames() const {
    std::string text;
    for (const ast::Identifier &action : current->actions)
      text += (text.empty() ? "" : " or ") + action.text.str();
    return text;
  }

  const Schedule &schedule;
  const KindTable &kinds;
  DiagnosticEngine &diags;
  llvm::DenseMap<StringRef, SourceRange> layerNames;
  NodeNames ofLayers, ofStage; ///< By action.
  const ast::PatternItem *current = nullptr;
  const ast::Stmt *layerBlock = nullptr; ///< Of the current pattern.
};

} // namespace

void sema::checkGraphs(const Schedule &schedule, const KindTable &kinds,
                       DiagnosticEngine &diags) {
  GraphChecker checker(schedule, kinds, diags);
  checker.run();
  checker.costs();
}
