// What the engine throws, and the words for actions and places in it.
#pragma once

#include "ppcc/Runtime/Program.h"

#include <chrono>
#include <concepts>
#include <stdexcept>
#include <string>

namespace ppcc::rt {

using std::chrono::milliseconds;

/// Texts, characters and numbers, one after another.
template <class... Parts> std::string concat(const Parts &...parts) {
  std::string all;
  auto add = [&](const auto &part) {
    using Part = std::decay_t<decltype(part)>;
    if constexpr (std::integral<Part> && !std::same_as<Part, char>)
      all += std::to_string(part);
    else
      all += part;
  };
  (add(parts), ...);
  return all;
}

/// Why a run ended early. what() is the whole message; the parts of it say
/// where the run stood.
class Error : public std::runtime_error {
public:
  static constexpr uint32_t noRank = ~uint32_t(0);

  /// An error of the program or the set-up, at no action.
  explicit Error(const std::string &text) : std::runtime_error(text) {}
  /// `location` is empty when the source is unknown.
  Error(uint32_t rank, std::string action, std::string location,
        const std::string &text)
      : std::runtime_error(
            concat("rank ", rank, action.empty() ? "" : ", ", action,
                   location.empty() ? "" : " (" + location + ")", ": ", text)),
        rankNumber(rank), actionText(std::move(action)),
        locationText(std::move(location)) {}

  /// The rank that stopped, or noRank.
  uint32_t rank() const { return rankNumber; }
  /// Where it stood, as in `0F3`.
  const std::string &action() const { return actionText; }
  /// The statement in the schedule: `file:line:column`.
  const std::string &location() const { return locationText; }

private:
  uint32_t rankNumber = noRank;
  std::string actionText, locationText;
};

/// Another rank failed, so this one stopped too.
class PeerError : public Error {
public:
  /// `cause` is the message of the rank that failed.
  PeerError(uint32_t rank, std::string action, std::string location,
            const std::string &cause)
      : Error(rank, std::move(action), std::move(location),
              "stopped, because " + cause),
        causeText(cause) {}

  const std::string &cause() const { return causeText; }

private:
  std::string causeText;
};

/// The ranks have different programs. Each of them knows it, and nothing is
/// under way: they can link another one.
class ProgramMismatch : public Error {
public:
  using Error::Error;
};

/// A transport's wait was longer than it may be; the engine adds where.
struct TimedOut {};

/// A transport has heard that another rank failed; the engine adds where this
/// one stood.
struct PeerFailed {
  std::string text;
};

/// The action as in `0F3`, or `0SEND_F3>7` along a skip edge.
inline std::string actionName(const Program &program, const Row &row) {
  const Kind &kind = program.kinds[row.kind];
  std::string text = concat(row.stage, kind.mnemonic);
  if (row.microbatch != Row::noMicrobatch)
    text += std::to_string(row.microbatch);
  bool sends = kind.kindClass == KindClass::Send;
  int next = sends == bool(kind.defines & slot::Output) ? 1 : -1;
  if (!row.hasPeer() || (!kind.runsOnStage() && row.peer == row.stage + next))
    return text;
  return concat(text, sends || kind.collective == Collective::To ? '>' : '<',
                row.peer);
}

/// The place of a site, `file:line:column`; empty when it is unknown.
inline std::string locationOf(const Program &program, uint32_t site) {
  const Site &location = program.sites[site];
  if (location.file < 0)
    return "";
  return concat(program.files[static_cast<uint64_t>(location.file)], ':',
                location.line, ':', location.column);
}

} // namespace ppcc::rt
