// Work in processes of its own keeps to its limits.
#include "ppcc/Support/Subprocess.h"

#include <poll.h>
#include <unistd.h>

using namespace ppcc;
using testing::HasSubstr;

namespace {

std::string resultOf(Subprocess &job, function_ref<void(raw_ostream &)> work) {
  EXPECT_TRUE(job.start(1, work));
  while (job.isRunning()) {
    pollfd wait{job.descriptor(), POLLIN, 0};
    poll(&wait, 1, -1);
    job.read();
  }
  return job.errorText().empty() ? job.output : job.errorText();
}

TEST(Subprocess, GivesWhatItWrites) {
  Subprocess job;
  std::string large(1 << 20, 'x');
  EXPECT_EQ(resultOf(job, [&](raw_ostream &out) { out << large; }), large);
  EXPECT_EQ(job.outcome, Subprocess::Outcome::Succeeded);
}

TEST(Subprocess, EndsWhatTakesTooLong) {
  Subprocess job;
  EXPECT_THAT(resultOf(job,
                       [](raw_ostream &) {
                         for (volatile bool goesOn = true; goesOn;) {
                         }
                       }),
              HasSubstr("timed out after 1 s"));
  EXPECT_THAT(resultOf(job, [](raw_ostream &) { pause(); }),
              HasSubstr("timed out after 1 s"));
}

TEST(Subprocess, EndsWhatTakesTooMuchMemory) {
  auto take = [](raw_ostream &out) {
    std::vector<std::string> all;
    for (int i = 0; i != 64; ++i)
      all.emplace_back().reserve(64 << 20);
    out << all.size();
  };
  Subprocess job;
  EXPECT_THAT(resultOf(job, take), HasSubstr("more than 2 GiB of memory"));
}

TEST(Subprocess, TellsOfCrashes) {
  Subprocess job;
  EXPECT_THAT(resultOf(job, [](raw_ostream &) { _exit(3); }),
              HasSubstr("crashed"));
  EXPECT_THAT(resultOf(job, [](raw_ostream &) { raise(SIGSEGV); }),
              HasSubstr("crashed"));
}

} // namespace
