#include "Messages.h"

#include <cstring>
#include <unistd.h>

using namespace ppcc;

namespace {

// Numbers as they lie in memory: both ends are one program on one machine.

struct Writer {
  template <class T> void put(const T &value) {
    if constexpr (requires { value.begin(); }) {
      put(uint64_t(value.size()));
      for (const auto &one : value)
        put(one);
    } else {
      static_assert(std::is_trivially_copyable_v<T>);
      text.append(reinterpret_cast<const char *>(&value), sizeof value);
    }
  }

  std::string text;
};

struct Cursor {
  template <class T> void take(T &value) {
    if constexpr (requires { value.begin(); }) {
      uint64_t count;
      take(count);
      value.resize(count);
      for (auto &one : value)
        take(one);
    } else {
      std::memcpy(&value, at, sizeof value);
      at += sizeof value;
    }
  }

  const char *at;
};

/// The message of the kind with this number in the variant.
template <size_t... I>
void readKind(Cursor &in, size_t kind, WorkerMessage &into,
              std::index_sequence<I...>) {
  auto read = [&](auto &...values) { (in.take(values), ...); };
  ((kind == I ? std::apply(read, into.emplace<I>().all()) : void()), ...);
}

/// Before each message: its kind and its length.
struct Head {
  uint64_t kind, length;
};

} // namespace

void Reporter::send(const WorkerMessage &message) {
  Writer body, all;
  std::visit(
      [&](auto one) {
        std::apply([&](const auto &...values) { (body.put(values), ...); },
                   one.all());
      },
      message);
  all.put(Head{message.index(), body.text.size()});
  const std::string &text = all.text += body.text;
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
  Cursor cursor{text.data() + sizeof head};
  readKind(cursor, head.kind, message,
           std::make_index_sequence<std::variant_size_v<WorkerMessage>>());
  text.erase(0, sizeof head + head.length);
  return true;
}
