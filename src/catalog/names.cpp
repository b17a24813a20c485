// SPDX-License-Identifier: Apache-2.0
#include "catalog/names.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace servecast::catalog {
namespace {

struct Name {
  std::string organisation;  // empty when none is written
  std::string model;
  std::string plain;  // the model without decorations
};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string without_decorations(std::string_view model) {
  constexpr std::array<std::string_view, 5> kSuffixes{"-instruct", "-chat", "-base", "-it", "-hf"};
  if (model.starts_with("meta-")) model.remove_prefix(5);
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view suffix : kSuffixes) {
      if (!model.ends_with(suffix)) continue;
      model.remove_suffix(suffix.size());
      found = true;
    }
  }
  return std::string(model);
}

Name parse(std::string_view text) {
  const std::string all = lower(text);
  const std::size_t slash = all.rfind('/');
  Name name;
  if (slash != std::string::npos) name.organisation = all.substr(0, slash);
  name.model = slash == std::string::npos ? all : all.substr(slash + 1);
  name.plain = without_decorations(name.model);
  return name;
}

}  // namespace

std::vector<std::size_t> fitting_models(std::string_view written,
                                        std::span<const std::string> names) {
  const Name wanted = parse(written);
  std::vector<std::size_t> same, plain;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Name known = parse(names[i]);
    if (!wanted.organisation.empty() && wanted.organisation != known.organisation) continue;
    if (wanted.model == known.model) same.push_back(i);
    if (!wanted.plain.empty() && wanted.plain == known.plain) plain.push_back(i);
  }
  return same.empty() ? plain : same;
}

std::optional<std::string> nearest_model(std::string_view written,
                                         std::span<const std::string> names) {
  const std::string wanted = parse(written).plain;
  std::vector<std::string> plains;
  for (const std::string& name : names) plains.push_back(parse(name).plain);
  const auto near = nearest_name(wanted, plains, std::max<std::size_t>(2, wanted.size() / 4));
  if (!near) return std::nullopt;
  const auto at = std::find(plains.begin(), plains.end(), *near) - plains.begin();
  return names[static_cast<std::size_t>(at)];
}

}  // namespace servecast::catalog
