#include "ppcc/Torch/Checkpoint.h"

#include "StageState.h"

#include "ppcc/Runtime/Error.h"

#include <ATen/ops/scalar_tensor.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <filesystem>
#include <fstream>
#include <set>

using namespace ppcc::rt;
namespace fs = std::filesystem;

namespace {

// Beside weights by their names, and what is kept for them, `NAME/KEY`.
constexpr const char *batches = "/batches", *scaleValue = "/scale",
                     *scaleGood = "/good_steps";

using Dictionary = c10::Dict<std::string, at::Tensor>;

[[noreturn]] void fail(const std::string &folder, const std::string &what) {
  throw Error("the checkpoint `" + folder + "` " + what);
}

/// What the files of a folder say of the names that are asked for.
std::map<std::string, at::Tensor>
readAll(const std::string &folder,
        const std::function<bool(const std::string &)> &isAsked) {
  std::map<std::string, at::Tensor> found;
  std::error_code error;
  std::set<fs::path> files;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".pt")
      files.insert(entry.path());
  if (files.empty())
    fail(folder, "has no files");
  for (const fs::path &path : files) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
    c10::IValue value;
    try {
      value = torch::pickle_load(bytes);
    } catch (const std::exception &) {
    }
    if (!value.isGenericDict())
      fail(folder, "has a file `" + path.filename().string() +
                       "` that is not a dictionary of tensors");
    for (const auto &entry : value.toGenericDict()) {
      std::string name = entry.key().toStringRef();
      if (!isAsked(name.substr(0, name.find('/'))))
        continue;
      auto [other, isNew] = found.emplace(name, entry.value().toTensor());
      if (!isNew && !other->second.equal(entry.value().toTensor()))
        fail(folder, "has two values for `" + name +
                         "`: each checkpoint needs a folder of its own");
    }
  }
  return found;
}

} // namespace

void ppcc::rt::saveCheckpoint(const std::string &folder,
                              const TorchStage &stage) {
  Dictionary all;
  auto put = [&](const std::string &name, const at::Tensor &value) {
    all.insert(name, value.detach().cpu());
  };
  put(batches, at::scalar_tensor(int64_t(stage.numBatches()), at::kLong));
  if (const auto &scale = stage.update().scale) {
    put(scaleValue, at::scalar_tensor(scale->value, at::kDouble));
    put(scaleGood, at::scalar_tensor(int64_t(scale->numGood), at::kLong));
  }
  for (const Parameter &weight : stage.own().ownParameters()) {
    put(weight.name, weight.value);
    if (stage.update().state)
      for (const auto &[key, value] : stage.update().state(weight.value))
        put(weight.name + "/" + key, value);
  }
  uint32_t rank = stage.own().globalRank;
  if (rank < stage.program().numRanks) // Of one replica.
    for (const auto &[key, module] : stage.modules())
      for (const Parameter &buffer : module.buffers)
        put(buffer.name, buffer.value);
  std::error_code error;
  fs::create_directories(folder, error);
  fs::path path = fs::path(folder) / concat("rank-", rank, ".pt"),
           unfinished = path.string() + ".part";
  std::vector<char> bytes = torch::pickle_save(all);
  std::ofstream file(unfinished, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file)
    fs::rename(unfinished, path, error);
  if (!file || error)
    fail(folder, "cannot be written");
}

void ppcc::rt::loadCheckpoint(const std::string &folder, TorchStage &stage) {
  std::vector<Parameter> wanted = stage.parameters();
  for (const auto &[key, module] : stage.modules())
    wanted.insert(wanted.end(), module.buffers.begin(), module.buffers.end());
  std::set<std::string> names{""};
  for (const Parameter &one : wanted)
    names.insert(one.name);
  auto found = readAll(
      folder, [&](const std::string &name) { return names.contains(name); });
  auto need = [&](const std::string &name) -> const at::Tensor & {
    auto value = found.find(name);
    if (value == found.end())
      fail(folder, "has no `" + name + "`");
    return value->second;
  };
  auto number = [&](const std::string &name) {
    if (need(name).numel() != 1)
      fail(folder, "has `" + name + "` that is not a number");
    return need(name).item();
  };
  std::optional<LossScale> scale = stage.update().scale;
  if (scale && found.contains(scaleValue)) {
    scale->value = number(scaleValue).toDouble();
    scale->numGood = static_cast<uint32_t>(number(scaleGood).toLong());
  }
  auto numBatches = static_cast<uint64_t>(number(batches).toLong());
  at::NoGradGuard guard;
  if (stage.update().setState)
    for (const Parameter &weight : stage.parameters()) {
      WeightState state;
      std::string prefix = weight.name + "/";
      for (auto one = found.lower_bound(prefix);
           one != found.end() && one->first.starts_with(prefix); ++one)
        state[one->first.substr(prefix.size())] = one->second;
      stage.update().setState(weight.value, state);
    }
  for (const Parameter &one : wanted) {
    const at::Tensor &value = need(one.name);
    if (value.sizes() != one.value.sizes())
      fail(folder, "has `" + one.name + "` in another shape");
    at::Tensor(one.value).copy_(value);
  }
  // What the random numbers go on from.
  stage.own().batch = numBatches;
  stage.own().update.scale = scale;
}
