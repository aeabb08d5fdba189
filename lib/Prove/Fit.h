// Guesses what holds for all n from the programs of n = 1 and n = 2. Nothing
// of it is believed before it is checked.
#pragma once

#include "ppcc/Analysis/Run/Simulation.h"
#include "ppcc/Proof/Checker.h"

namespace ppcc {

/// The row of a template that a row of an instance is, and its iteration.
struct Origin {
  uint32_t rank, row;
  int64_t iteration;
};

/// By row of the instance, ranks one after another.
std::vector<Origin> originsOf(const proof::Template &program, int64_t n);

/// Whether the rows of `program` are those of the instance; without its
/// messages where the template has none.
bool isInstance(const proof::Template &family, int64_t n,
                const Program &program);

/// Whether messages decide where an action stands: it is one, or follows some.
bool isPlacedWithMessages(const KindInfo &info, const KindTable &kinds);

/// The template with the messages of its instances of n = 1 and 2 put in.
/// `isPlaced` says whether they come from the same place of the source in all
/// iterations, so that the template knows it.
std::optional<proof::Template> insertMessages(const proof::Template &family,
                                              const Program &first,
                                              const Program &second,
                                              bool &hasFixedSites);

/// The programs of n + 2, with the first and the last iteration of each window
/// by themselves, as a template of n.
proof::Template peeled(const proof::Template &family);

/// A program of a template, as runs see it: with its messages, or by its data
/// alone.
struct Sample {
  explicit Sample(const Program &program, bool hasMessages = false);

  /// Its times, on a transport where it has messages; nothing when it does not
  /// reach its end.
  std::optional<Simulation> run(const Transport *transport) const;
  /// Numbers for events in their place, each above those of all that it waits
  /// for.
  std::optional<Simulation> numberEvents(const Transport *transport,
                                         const Durations &durations) const;

  const Program &program;
  ProgramIndex index;
  std::optional<MessageIndex> messages;
};

/// Functions of n and iterations through the times of the instances of n = 1
/// and 2, or of the only one; nothing where one does not reach its end.
std::optional<proof::Times> fit(const proof::Template &family,
                                ArrayRef<std::optional<Simulation>> runs);

/// The same through numbers of the rows of n = 1 and 2, ranks one after
/// another: by rank and row.
std::optional<std::vector<std::vector<proof::Affine>>>
fitted(const proof::Template &family, ArrayRef<std::vector<int64_t>> numbers);

/// The program of one number as a template.
proof::Template templateOf(const Program &program, const Head &head);
/// Gives rows the phases and sites that they have in the instance of n = 1.
void setSites(proof::Template &family, const Program &first);

/// A cycle in which ranks wait on a transport, or by data alone, as events of
/// the template whose iterations count from the begin, or from the end, of
/// their loops.
std::vector<proof::Event> cycleOf(const proof::Template &family, int64_t n,
                                  const Sample &sample,
                                  const Transport *transport,
                                  bool countsFromEnd);

} // namespace ppcc
