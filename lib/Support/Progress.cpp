#include "ppcc/Support/Progress.h"
#include "ppcc/Support/Printable.h"

using namespace ppcc;

void Progress::next(StringRef what) {
  if (!isShown)
    return;
  clear();
  constexpr size_t width = 24, maxText = 40;
  size_t filled = width * std::min(done, total) / std::max<size_t>(total, 1);
  out << '[' << std::string(filled, '#') << std::string(width - filled, ' ')
      << "] " << done++ << '/' << total << ' '
      << printable(what.take_front(maxText));
  out.flush();
}

void Progress::clear() {
  if (isShown)
    out << "\r\x1b[K";
}
