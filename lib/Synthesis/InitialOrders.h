// Schedules that a search begins with.
#pragma once

#include "SynthesisContext.h"

namespace ppcc::synthesis {

/// The orders of schedules that have the placement of a task, and fit.
class InitialOrders {
public:
  InitialOrders(SynthesisContext &context, const Problem &problem)
      : context(context), problem(problem) {}

  /// Those that were asked for; false after a report.
  bool readFrom();
  /// All of the library, once.
  void readLibrary();
  void add(Order order, std::string origin = {}) {
    all.push_back(std::move(order));
    origins.push_back(std::move(origin));
  }

  ArrayRef<Order> orders() const { return all; }
  /// The schedule that an order is from; empty when it is from none.
  std::string originOf(const Order &order) const;

private:
  bool hasPlacement(const Head &other) const;
  std::optional<Order> orderOf(const Program &other) const;
  void readLibrary(StringRef name);

  SynthesisContext &context;
  const Problem &problem;
  std::vector<Order> all;
  std::vector<std::string> origins; ///< Of each; empty where it has none.
  bool hasLibrary = false;          ///< Whether that of the library is known.
};

} // namespace ppcc::synthesis
