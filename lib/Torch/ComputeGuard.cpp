#include "ComputeGuard.h"

#include <cstring>
#include <dlfcn.h>

using namespace ppcc::rt;

namespace {

/// Whether the matrix products of LibTorch are wrong when threads compute at
/// the same time: so in OpenBLAS's build for one thread, which shares its
/// buffers without a lock.
bool blasIsSerial() {
  auto *parallel =
      reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_parallel"));
  auto *config = reinterpret_cast<const char *(*)()>(
      dlsym(RTLD_DEFAULT, "openblas_get_config"));
  return parallel && config && parallel() == 0 &&
         !std::strstr(config(), "USE_LOCKING");
}

} // namespace

ComputeGuard::ComputeGuard() {
  static const bool wantsOneThread = blasIsSerial();
  if (count.fetch_add(1) == 0 || !wantsOneThread)
    return;
  count.fetch_sub(1);
  throw std::runtime_error(
      "OpenBLAS is built for one thread here, and gives wrong results where "
      "several compute: install libopenblas0-pthread, or run a process a rank");
}
