// SPDX-License-Identifier: Apache-2.0
#include "config/outline.hpp"

namespace servecast::config {
namespace {

class Outliner final : public Fields {
 public:
  explicit Outliner(Outline& into) : into_(into) {}

  bool single(std::string_view name, std::string&, std::string_view help) override {
    add(name, help, Outline::Kind::Single).required = true;
    return false;
  }
  bool list(std::string_view name, std::string_view help, const Describe& fields) override {
    Outline& field = add(name, help, Outline::Kind::List);
    Outliner child(field);
    fields(child);
    return false;
  }
  bool numbers(std::string_view name, std::vector<double>&, const Real& limits,
               std::string_view help) override {
    Outline& field = add(name, help, Outline::Kind::Numbers);
    field.required = limits.required;
    field.item = Item{.name = name, .help = help, .type = Item::Type::Real, .real = limits};
    return false;
  }
  bool mapping(std::string_view name, Presence presence, std::string_view help,
               const Describe& fields) override {
    Outline& field = add(name, help, Outline::Kind::Mapping);
    field.required = presence == Presence::Required;
    Outliner child(field);
    fields(child);
    return false;
  }
  void tagged(std::string_view name, std::string_view by_default, std::string_view help,
              const std::vector<Branch>& branches) override {
    into_.tag = name;
    into_.tag_help = help;
    into_.tag_default = by_default;
    for (const Branch& branch : branches) {
      Outline& alternative = into_.branches.emplace_back();
      alternative.name = branch.name;
      alternative.help = branch.help;
      alternative.reason = branch.later;
      alternative.kind = Outline::Kind::Mapping;
      Outliner child(alternative);
      if (!branch.later.empty())
        alternative.kind = Outline::Kind::Later;
      else if (branch.fields)
        branch.fields(child);
    }
  }
  void later(std::string_view name, std::string_view neutral, std::string_view reason) override {
    Outline& field = add(name, "", Outline::Kind::Later);
    field.neutral = neutral;
    field.reason = reason;
  }
  bool is_clean() const override { return false; }
  void refuse(std::string_view, std::string, std::string) override {}

 protected:
  bool item(const Item& item, std::optional<ScalarValue>& value) override {
    Outline& field = add(item.name, item.help, Outline::Kind::Leaf);
    field.item = item;
    field.required = item.required;
    field.by_default = value;
    return false;
  }

 private:
  Outline& add(std::string_view name, std::string_view help, Outline::Kind kind) {
    Outline& field = into_.fields.emplace_back();
    field.name = name;
    field.help = help;
    field.kind = kind;
    return field;
  }

  Outline& into_;
};

}  // namespace

Outline outline_of(const Describe& fields) {
  Outline outline{.kind = Outline::Kind::Mapping};
  Outliner walker(outline);
  fields(walker);
  return outline;
}

std::vector<std::string> field_names(const Describe& fields) {
  std::vector<std::string> names;
  for (const Outline& field : outline_of(fields).fields) {
    if (field.kind != Outline::Kind::Later) names.push_back(field.name);
  }
  return names;
}

}  // namespace servecast::config
