// Writes the costs of a program as docs/costs.schema.json describes them.
#include "JsonParts.h"

using namespace ppcc;

namespace {

/// Settings of one thing, of which what is said of all pipes stands first.
using Settings = ArrayRef<const CostSetting *>;

class CostsWriter {
public:
  CostsWriter(Writer &writer, const Program &program)
      : writer(writer), program(program) {}

  void put() {
    std::vector<const CostSetting *> all = program.costs().inEffect();
    Settings rest = all;
    writer.object([&](JsonFields &fields) {
      while (!rest.empty()) {
        StringRef item = rowOf(rest.front()->what).item;
        Settings ofItem = rest.take_while([&](const CostSetting *setting) {
          return rowOf(setting->what).item == item;
        });
        rest = rest.drop_front(ofItem.size());
        fields.key(item);
        putItem(ofItem);
      }
    });
  }

private:
  void putItem(Settings settings) {
    if (rowOf(settings.front()->what).subject.empty())
      return putValues(settings);
    writer.object([&](JsonFields &fields) {
      while (!settings.empty()) {
        std::string subject = subjectOf(*settings.front(), program.kinds());
        Settings ofSubject = settings.take_while([&](const CostSetting *other) {
          return subjectOf(*other, program.kinds()) == subject;
        });
        settings = settings.drop_front(ofSubject.size());
        fields.key(subject);
        putValues(ofSubject);
      }
    });
  }

  /// One value for all pipes, or those of each, or of each link.
  void putValues(Settings settings) {
    const CostSetting &first = *settings.front();
    const CostSetting *all = first.pipe || first.link ? nullptr : &first;
    if (all && settings.size() == 1)
      return putValues(*all);
    writer.object([&](JsonFields &fields) {
      for (auto [i, pipe] : llvm::enumerate(program.pipes())) {
        auto *own = findBy(settings, PipeId(i), &CostSetting::pipe);
        const CostSetting *shown = own ? *own : all;
        if (!shown)
          continue;
        fields.key(pipe.name);
        putValues(*shown);
      }
      for (const CostSetting *setting : settings)
        if (setting->link) {
          auto [from, to] = *setting->link;
          fields.key(fmt::format("{}-{}", from.value, to.value));
          putValues(*setting);
        }
    });
  }

  void putValues(const CostSetting &setting) {
    const CostRow &row = rowOf(setting.what);
    auto put = [&](int64_t value) { writer.put(row.number.format(value)); };
    if (setting.values.size() == 1 && row.spread != CostSpread::Microbatches)
      put(setting.values.front());
    else
      writer.list(setting.values, put);
  }

  Writer &writer;
  const Program &program;
};

} // namespace

void ppcc::putCosts(Writer &writer, const Program &program) {
  CostsWriter(writer, program).put();
}
