// SPDX-License-Identifier: Apache-2.0
#include "config/fields.hpp"

#include <algorithm>
#include <utility>

namespace servecast::config {
namespace {

Item scalar_item(std::string_view name, Item::Type type, std::string_view help) {
  Item item;
  item.name = name;
  item.type = type;
  item.help = help;
  return item;
}

}  // namespace

template <class T>
bool Fields::optional_item(Item field, std::optional<T>& value) {
  field.optional = true;
  std::optional<ScalarValue> scalar;
  if (value) scalar = *value;
  const bool given = item(field, scalar);
  value.reset();
  if (scalar) value = std::get<T>(*scalar);
  return given;
}

bool Fields::whole(std::string_view name, std::uint32_t& value, Whole limits,
                   std::string_view help) {
  limits.max = std::min<std::uint64_t>(limits.max, std::numeric_limits<std::uint32_t>::max());
  std::uint64_t wide = value;
  const bool given = whole(name, wide, limits, help);
  value = static_cast<std::uint32_t>(wide);
  return given;
}

bool Fields::whole(std::string_view name, std::uint64_t& value, Whole limits,
                   std::string_view help) {
  Item field = scalar_item(name, Item::Type::Whole, help);
  field.whole = limits;
  field.required = limits.required;
  std::optional<ScalarValue> scalar = value;
  const bool given = item(field, scalar);
  value = std::get<std::uint64_t>(*scalar);
  return given;
}

bool Fields::real(std::string_view name, double& value, Real limits, std::string_view help) {
  Item field = scalar_item(name, Item::Type::Real, help);
  field.real = limits;
  field.required = limits.required;
  std::optional<ScalarValue> scalar = value;
  const bool given = item(field, scalar);
  value = std::get<double>(*scalar);
  return given;
}

bool Fields::real(std::string_view name, std::optional<double>& value, Real limits,
                  std::string_view help) {
  Item field = scalar_item(name, Item::Type::Real, help);
  field.real = limits;
  field.required = limits.required;
  return optional_item(std::move(field), value);
}

bool Fields::boolean(std::string_view name, bool& value, std::string_view help) {
  std::optional<ScalarValue> scalar = value;
  const bool given = item(scalar_item(name, Item::Type::Boolean, help), scalar);
  value = std::get<bool>(*scalar);
  return given;
}

bool Fields::boolean(std::string_view name, std::optional<bool>& value, std::string_view help) {
  Item field = scalar_item(name, Item::Type::Boolean, help);
  return optional_item(std::move(field), value);
}

bool Fields::text(std::string_view name, std::optional<std::string>& value, std::string_view help) {
  Item field = scalar_item(name, Item::Type::Text, help);
  return optional_item(std::move(field), value);
}

bool Fields::text(std::string_view name, std::string& value, std::string_view help) {
  Item field = scalar_item(name, Item::Type::Text, help);
  field.required = true;
  std::optional<ScalarValue> scalar = value;
  const bool given = item(field, scalar);
  value = std::get<std::string>(*scalar);
  return given;
}

bool Fields::seed(std::string_view name, std::uint64_t& value, std::string_view help) {
  Item field = scalar_item(name, Item::Type::Whole, help);
  field.is_seed = true;
  std::optional<ScalarValue> scalar = value;
  const bool given = item(field, scalar);
  value = std::get<std::uint64_t>(*scalar);
  return given;
}

}  // namespace servecast::config
