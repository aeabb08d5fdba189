#include "ppcc/Analysis/Run/EventGraph.h"

using namespace ppcc;

namespace {

class Search {
public:
  explicit Search(ArrayRef<Wait> waits) : waits(waits) {
    for (const Wait &wait : waits)
      if (nodes.empty() || nodes.back() != wait.from) {
        nodes.push_back(wait.from);
        starts.push_back(&wait - waits.begin());
      }
    starts.push_back(waits.size());
    targets.reserve(waits.size());
    for (const Wait &wait : waits)
      targets.push_back(std::lower_bound(nodes.begin(), nodes.end(), wait.to) -
                        nodes.begin());
  }

  std::vector<uint32_t> run() {
    best = anyCycle();
    reachedBy.assign(nodes.size(), none);
    for (uint32_t node = 0;
         node != nodes.size() && best.size() > 1 && budget > 0; ++node)
      improveFrom(node);
    // The waits are sorted by where they begin.
    std::rotate(best.begin(), std::min_element(best.begin(), best.end()),
                best.end());
    return best;
  }

private:
  static constexpr uint32_t none = 0xFFFFFFFF;

  /// Follows the first wait of each node until one comes again.
  std::vector<uint32_t> anyCycle() const {
    std::vector<uint32_t> stepOf(nodes.size(), none), path;
    uint32_t node = 0;
    while (stepOf[node] == none) {
      stepOf[node] = path.size();
      path.push_back(starts[node]);
      node = targets[starts[node]];
    }
    path.erase(path.begin(), path.begin() + stepOf[node]);
    return path;
  }

  /// Takes a cycle through `root` that is shorter than the best.
  void improveFrom(uint32_t root) {
    visited.assign(1, root);
    if (auto edge = closingWait(root))
      best = pathTo(root, *edge);
    for (uint32_t node : visited)
      reachedBy[node] = none;
  }

  /// The wait for `root` that ends the shortest cycle through it, if that is
  /// shorter than the best; breadth first.
  std::optional<uint32_t> closingWait(uint32_t root) {
    size_t depth = 0, levelEnd = 1;
    for (size_t i = 0; i != visited.size() && budget > 0; ++i) {
      if (i == levelEnd) {
        levelEnd = visited.size();
        ++depth;
      }
      if (depth + 1 >= best.size())
        return std::nullopt;
      uint32_t node = visited[i];
      for (uint32_t edge = starts[node]; edge != starts[node + 1]; ++edge) {
        --budget;
        uint32_t target = targets[edge];
        if (target == root)
          return edge;
        if (reachedBy[target] == none) {
          reachedBy[target] = edge;
          visited.push_back(target);
        }
      }
    }
    return std::nullopt;
  }

  std::vector<uint32_t> pathTo(uint32_t root, uint32_t lastEdge) const {
    std::vector<uint32_t> path{lastEdge};
    while (nodeOf(path.back()) != root)
      path.push_back(reachedBy[nodeOf(path.back())]);
    std::reverse(path.begin(), path.end());
    return path;
  }
  /// The position in `nodes` of the one that waits.
  uint32_t nodeOf(uint32_t edge) const {
    return std::upper_bound(starts.begin(), starts.end(), edge) -
           starts.begin() - 1;
  }

  ArrayRef<Wait> waits;
  std::vector<uint32_t> nodes;  ///< All that wait.
  std::vector<uint32_t> starts; ///< The first wait of each node.
  std::vector<uint32_t>
      targets; ///< By wait: the position in `nodes` of the one waited for.
  std::vector<uint32_t> best; ///< Waits.
  std::vector<uint32_t> reachedBy, visited;
  int64_t budget =
      20'000'000; ///< Waits to look at, so that it ends within a second.
};

} // namespace

std::vector<uint32_t> ppcc::shortestCycle(ArrayRef<Wait> waits) {
  if (waits.empty())
    return {};
  return Search(waits).run();
}

std::string ppcc::rankList(ArrayRef<RankId> ranks) {
  std::string list;
  for (size_t i = 0; i != ranks.size() && i != maxHops; ++i)
    list += fmt::format("{}{}",
                        i == 0                  ? ""
                        : i + 1 == ranks.size() ? " and "
                                                : ", ",
                        ranks[i].value);
  if (ranks.size() > maxHops)
    list += fmt::format(" and {} more", ranks.size() - maxHops);
  return list;
}
