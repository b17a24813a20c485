// SPDX-License-Identifier: Apache-2.0
#include "config/schema.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "config/describe.hpp"

namespace servecast::config {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const ScalarValue& scalar) {
  return std::visit([](const auto& value) { return Json(value); }, scalar);
}

// The accepted value of a field that is refused otherwise.
Json neutral_of(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos)
    return std::stoull(text);
  return text;
}

Json limits_of(const Item& item) {
  Json type;
  switch (item.type) {
    case Item::Type::Whole:
      type["type"] = "integer";
      type["minimum"] = item.whole.min;
      if (item.whole.max != UINT64_MAX) type["maximum"] = item.whole.max;
      break;
    case Item::Type::Real:
      type["type"] = "number";
      type[item.real.above ? "exclusiveMinimum" : "minimum"] = item.real.min;
      if (std::isfinite(item.real.max)) type["maximum"] = item.real.max;
      break;
    case Item::Type::Boolean:
      type["type"] = "boolean";
      break;
    case Item::Type::Text:
      type["type"] = "string";
      type["minLength"] = 1;
      break;
    case Item::Type::Word:
      type["enum"] = item.words;
      break;
  }
  return type;
}

Json leaf_schema(const Outline& field) {
  const Item& item = *field.item;
  Json schema = limits_of(item);
  if (item.optional) {
    Json variants = Json::array({schema, {{"type", "null"}}});
    if (!item.absent.empty()) variants.push_back({{"const", item.absent}});
    schema = {{"anyOf", std::move(variants)}};
  }
  schema["description"] = field.help;
  if (field.by_default && !field.required)
    schema["default"] = json_of(*field.by_default);
  else if (!item.absent.empty())
    schema["default"] = item.absent;
  return schema;
}

Json mapping_schema(const Outline& mapping);

Json field_schema(const Outline& field) {
  switch (field.kind) {
    case Outline::Kind::Leaf:
      return leaf_schema(field);
    case Outline::Kind::Single:
      return {{"type", "array"},
              {"items", {{"type", "string"}, {"minLength", 1}}},
              {"minItems", 1},
              {"maxItems", 1},
              {"description", field.help}};
    case Outline::Kind::Numbers: {
      Json number = leaf_schema(field);
      number.erase("description");
      return {{"type", "array"}, {"items", std::move(number)}, {"description", field.help}};
    }
    case Outline::Kind::List: {
      Json items = {{"type", "array"}, {"items", mapping_schema(field)}};
      return {{"anyOf", Json::array({std::move(items), {{"type", "null"}}})},
              {"description", field.help}};
    }
    case Outline::Kind::Mapping: {
      Json schema = mapping_schema(field);
      schema["description"] = field.help;
      return schema;
    }
    case Outline::Kind::Later:
      break;
  }
  Json accepted = Json::array({nullptr});
  if (!field.neutral.empty()) accepted.push_back(neutral_of(field.neutral));
  return {{"enum", std::move(accepted)}, {"description", "Refused: " + field.reason}};
}

void add_fields(Json& object, const std::vector<Outline>& fields) {
  for (const Outline& field : fields) {
    object["properties"][field.name] = field_schema(field);
    if (field.required) object["required"].push_back(field.name);
  }
}

Json mapping_schema(const Outline& mapping) {
  const Json closed = {
      {"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
  if (mapping.tag.empty()) {
    Json object = closed;
    add_fields(object, mapping.fields);
    return object;
  }
  // additionalProperties does not see through a union, so every type is a whole object.
  Json types = Json::array();
  for (const Outline& branch : mapping.branches) {
    if (branch.kind == Outline::Kind::Later) continue;
    Json object = closed;
    object["properties"][mapping.tag] = {{"const", branch.name},
                                         {"description", mapping.tag_help + " " + branch.help}};
    if (branch.name != mapping.tag_default) object["required"].push_back(mapping.tag);
    add_fields(object, branch.fields);
    add_fields(object, mapping.fields);
    types.push_back(std::move(object));
  }
  return {{"oneOf", std::move(types)}};
}

}  // namespace

const Outline& outline() {
  static const Outline kOutline = [] {
    Form form;
    form.traffic.stop.requests.reset();
    return outline_of([&](Fields& f) { describe(f, form); });
  }();
  return kOutline;
}

std::string json_schema() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "servecast predict configuration"}};
  schema.update(mapping_schema(outline()));
  return schema.dump(2) + "\n";
}

}  // namespace servecast::config
