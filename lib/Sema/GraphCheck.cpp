// Checks layers and patterns, their expressions apart.
#include "Checks.h"
#include "ppcc/Basic/Diagnostics/Instance.h"
#include "ppcc/IR/NodeGraphs.h"

using namespace ppcc;
using namespace ppcc::sema;

namespace {

struct GraphChecker {
  const Section &model;
  const KindTable &kinds;
  DiagnosticEngine &diags;

  void run() {
    for (const ast::NamedItem *layer : model.layers)
      body(layer->body, ofLayer[firstName(layer)]);
    for (const ast::NamedItem *layer : model.layers)
      layerCosts(layer->body, ofLayer[firstName(layer)]);
    for (const auto &[name, nodes] : ofLayer)
      add(nodes, ofAll);
    for (const ast::PatternItem *item : model.patterns)
      pattern(*item);
    for (const auto &[setting, slot] : model.settings)
      if (!setting->node.text.empty())
        cost(*setting, ofAll);
  }

  /// Of the nodes of an action: part and name.
  using NodeName = std::pair<StringRef, StringRef>;
  using NodeNames = std::map<StringRef, std::set<NodeName>>;

  static void add(const NodeNames &names, NodeNames &to) {
    for (const auto &[action, known] : names)
      to[action].insert(known.begin(), known.end());
  }

  void body(ast::Body statements, NodeNames &names) {
    for (const ast::Stmt *stmt : statements) {
      if (auto *chain = dyn_cast<ast::ChainStmt>(stmt))
        this->chain(*chain, names);
      else if (!isa<ast::NamedItem>(stmt))
        forEachBody(stmt, [&](ast::Body nested) { body(nested, names); });
    }
  }

  /// What a layer says of itself.
  void layerCosts(ast::Body statements, NodeNames &names) {
    for (const ast::Stmt *stmt : statements) {
      forEachBody(stmt, [&](ast::Body nested) { layerCosts(nested, names); });
      if (auto *tensors = dyn_cast<ast::TensorsItem>(stmt);
          tensors && (tensors->name.text != "gives" ||
                      !tensors->stageVariable.text.empty()))
        diags.report<diag::NotInLayer>(tensors->name.range);
      auto *setting = dyn_cast<ast::SettingItem>(stmt);
      if (!setting)
        continue;
      auto found = findSetting(*setting, kinds);
      if (!found ||
          !llvm::is_contained(
              {Cost::Action, Cost::Node, Cost::Memory, Cost::StaticMemory},
              found->what) ||
          !setting->pipe.text.empty() || !setting->over.text.empty())
        diags.report<diag::NotInLayer>(setting->name.range);
      else if (found->what == Cost::Node)
        cost(*setting, names);
    }
  }

  bool action(const ast::Identifier &name) {
    auto kind = kinds.find(name.text);
    if (kind && kinds[*kind].isCompute())
      return true;
    auto mnemonic = [&] { return kinds.computeMnemonics(); };
    return diags.report<diag::UnknownAction>(name.range, name.text,
                                             didYouMean(name.text, mnemonic));
  }

  void chain(const ast::ChainStmt &chain, NodeNames &names) {
    if (!action(chain.action))
      return;
    for (const ast::GraphLink &link : chain.links) {
      if (!link.part.text.empty() && !action(link.part))
        continue;
      StringRef part =
          link.part.text.empty() ? chain.action.text : link.part.text;
      if ((link.name.text == hook::recv || link.name.text == hook::send) &&
          part != chain.action.text)
        diags.report<diag::HookInLayer>(link.range, link.name.text);
      names[chain.action.text].insert({part, link.name.text});
    }
  }

  // ---- Patterns ----

  void pattern(const ast::PatternItem &item) {
    current = &item;
    each = nullptr;
    std::set<StringRef> seen;
    for (const ast::Identifier &name : item.actions)
      if (action(name) && !seen.insert(name.text).second)
        diags.report<diag::DuplicateItem>(name.range,
                                          fmt::format("`{}`", name.text));
    places(item.body, ofAll, false);
  }

  void places(ast::Body statements, const NodeNames &names, bool inEach) {
    for (const ast::Stmt *stmt : statements) {
      if (auto *place = dyn_cast<ast::PlaceStmt>(stmt))
        this->place(*place, names, inEach);
      else if (auto *named = dyn_cast<ast::NamedItem>(stmt))
        eachOf(*named);
      else
        forEachBody(stmt,
                    [&](ast::Body nested) { places(nested, names, inEach); });
    }
  }

  void eachOf(const ast::NamedItem &item) {
    once(each, &item, "`each`", diags);
    NodeNames names;
    for (const ast::Identifier &name : item.names)
      if (auto found = ofLayer.find(name.text); found == ofLayer.end())
        diags.report<diag::UnknownLayer>(
            name.range, name.text,
            didYouMean(name.text, model.layers, firstName));
      else
        add(found->second, names);
    places(item.body, names, true);
  }

  void place(const ast::PlaceStmt &stmt, const NodeNames &names, bool inEach) {
    bool isLast = !stmt.modifier.text.empty();
    if (isLast && (stmt.modifier.text != "last" || inEach || !each))
      return diags.refuse<diag::NotInBody>(stmt.modifier.range,
                                           stmt.modifier.text,
                                           inEach ? nameOf(BodyKind::Each)
                                           : each ? nameOf(BodyKind::Pattern)
                                                  : "front of `each`");
    if (!action(stmt.part))
      return;
    NodeName wanted{stmt.part.text, stmt.name.text};
    std::vector<StringRef> owners;
    for (const ast::Identifier &action : current->actions)
      if (auto known = names.find(action.text);
          known != names.end() && known->second.count(wanted) &&
          !llvm::is_contained(owners, action.text))
        owners.push_back(action.text);
    SourceRange range(stmt.part.range.begin, stmt.name.range.end);
    if (owners.empty())
      diags.report<diag::UnknownNode>(range, "layer", wanted.first,
                                      wanted.second, actionNames(),
                                      suggestion(wanted, names));
    else if (owners.size() > 1)
      diags.report<diag::AmbiguousNode>(range, owners[0], owners[1],
                                        wanted.first, wanted.second);
  }

  /// A cost is of the nodes of that name in all actions.
  void cost(const ast::SettingItem &setting, const NodeNames &names) {
    NodeName wanted{setting.subject.text, setting.node.text};
    for (const auto &[action, known] : names)
      if (known.count(wanted))
        return;
    diags.report<diag::UnknownNode>(
        SourceRange(setting.subject.range.begin, setting.node.range.end),
        "layer", wanted.first, wanted.second, "any action",
        suggestion(wanted, names));
  }

  /// `; did you mean ...`, of the nodes of the same part.
  static std::string suggestion(const NodeName &wanted,
                                const NodeNames &names) {
    std::vector<StringRef> others;
    for (const auto &[action, known] : names)
      for (const NodeName &node : known)
        if (node.first == wanted.first)
          others.push_back(node.second);
    return didYouMean(wanted.second, others);
  }

  /// `F or B`.
  std::string actionNames() const {
    return llvm::join(namesIn(current->actions, &ast::Identifier::text),
                      " or ");
  }

  std::map<StringRef, NodeNames> ofLayer{};
  NodeNames ofAll{};
  const ast::PatternItem *current = nullptr;
  const ast::NamedItem *each = nullptr; ///< Of the current pattern.
};

} // namespace

void sema::checkGraphs(const Section &model, const KindTable &kinds,
                       DiagnosticEngine &diags) {
  GraphChecker{model, kinds, diags}.run();
}
