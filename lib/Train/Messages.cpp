#include "Messages.h"

#include <cstring>
#include <unistd.h>

using namespace ppcc;

namespace {

// Numbers as they lie in memory: both ends are one program on one machine.

template <class T> void put(std::string &out, const T &value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char *>(&value), sizeof value);
}
void putAll(std::string &out, const auto &values) {
  put(out, uint64_t(values.size()));
  for (const auto &value : values)
    put(out, value);
}

void write(std::string &out, const StepLosses &losses) {
  put(out, losses.step);
  putAll(out, losses.microbatches);
  putAll(out, losses.values);
}
void write(std::string &out, const Gradient &gradient) {
  putAll(out, gradient.name);
  putAll(out, gradient.values);
}
void write(std::string &out, const Peak &peak) { put(out, peak); }
void write(std::string &out, const Events &events) {
  put(out, events.rank);
  put(out, events.together);
  putAll(out, events.events);
}
void write(std::string &out, const Failure &failure) {
  putAll(out, failure.text);
  put(out, failure.isOwn);
}
void write(std::string &, const Done &) {}

class Cursor {
public:
  explicit Cursor(const char *at) : at(at) {}

  template <class T> void take(T &value) {
    std::memcpy(&value, at, sizeof value);
    at += sizeof value;
  }
  void takeAll(auto &values) {
    uint64_t count;
    take(count);
    values.resize(count);
    for (auto &value : values)
      take(value);
  }

private:
  const char *at;
};

void read(Cursor &in, StepLosses &losses) {
  in.take(losses.step);
  in.takeAll(losses.microbatches);
  in.takeAll(losses.values);
}
void read(Cursor &in, Gradient &gradient) {
  in.takeAll(gradient.name);
  in.takeAll(gradient.values);
}
void read(Cursor &in, Peak &peak) { in.take(peak); }
void read(Cursor &in, Events &events) {
  in.take(events.rank);
  in.take(events.together);
  in.takeAll(events.events);
}
void read(Cursor &in, Failure &failure) {
  in.takeAll(failure.text);
  in.take(failure.isOwn);
}
void read(Cursor &, Done &) {}

/// The message of the kind with this number in the variant.
template <size_t I = 0>
void readKind(Cursor &in, size_t kind, WorkerMessage &into) {
  if constexpr (I != std::variant_size_v<WorkerMessage>) {
    if (kind == I)
      read(in, into.emplace<I>());
    else
      readKind<I + 1>(in, kind, into);
  }
}

/// Before each message: its kind and its length.
struct Head {
  uint64_t kind, length;
};

} // namespace

void Reporter::tell(const WorkerMessage &message) {
  std::string body, text;
  std::visit([&](const auto &one) { write(body, one); }, message);
  put(text, Head{message.index(), body.size()});
  text += body;
  for (size_t done = 0; done != text.size();) {
    ssize_t written = ::write(file, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      _exit(1);
    done += static_cast<size_t>(written);
  }
}

bool MessageReader::next(WorkerMessage &message) {
  Head head;
  if (text.size() < sizeof head)
    return false;
  std::memcpy(&head, text.data(), sizeof head);
  if (text.size() - sizeof head < head.length)
    return false;
  Cursor cursor(text.data() + sizeof head);
  readKind(cursor, head.kind, message);
  text.erase(0, sizeof head + head.length);
  return true;
}
