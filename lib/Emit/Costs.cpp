// Writes the costs of a program as docs/costs.schema.json describes them.
#include "Emitters.h"

using namespace ppcc;

namespace {

/// Settings of one thing, of which what is said of all pipes stands first.
using Settings = ArrayRef<const CostSetting *>;

struct CostsWriter {
  Writer &writer;
  const Program &program;

  /// A member for each stretch of settings that have the same name.
  template <class NameOf, class Put>
  void putNamed(Settings settings, NameOf nameOf, Put put,
                JsonStyle style = {}) {
    writer.object(
        [&](JsonFields &fields) {
          while (!settings.empty()) {
            std::string name(nameOf(settings.front()));
            Settings same = settings.take_while([&](const CostSetting *other) {
              return nameOf(other) == name;
            });
            settings = settings.drop_front(same.size());
            fields.key(name);
            put(same);
          }
        },
        style);
  }

  void put(JsonStyle style) {
    auto item = [](const CostSetting *setting) {
      return rowOf(setting->what).item;
    };
    auto subject = [&](const CostSetting *setting) {
      return subjectOf(*setting, program.kinds());
    };
    auto putValues = [&](Settings settings) { this->putValues(settings); };
    putNamed(
        program.costs().inEffect(program.pipes().size()), item,
        [&](Settings settings) {
          if (rowOf(settings.front()->what).subject.empty())
            putValues(settings);
          else
            putNamed(settings, subject, putValues);
        },
        style);
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
    if (setting.values.size() == 1 &&
        row.granularity != CostGranularity::Microbatches)
      put(setting.values.front());
    else
      writer.list(setting.values, put);
  }
};

} // namespace

void ppcc::putCosts(Writer &writer, const Program &program, JsonStyle style) {
  CostsWriter{writer, program}.put(style);
}
