// SPDX-License-Identifier: Apache-2.0
// Model cards from and to their JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "catalog/json_fields.hpp"
#include "catalog/layer_fields.hpp"
#include "catalog/model_card.hpp"

namespace servecast::catalog {
namespace {

using Json = nlohmann::ordered_json;

class CardReader {
 public:
  explicit CardReader(Fields& at) : at_(at) {}
  void size(const char* key, std::uint32_t& value) { value = at_.count(key); }
  void size_or(const char* key, std::uint32_t& value, std::uint32_t otherwise) {
    value = at_.has(key) ? at_.count(key) : otherwise;
  }
  void flag(const char* key, bool& value) { value = at_.has(key) && at_.flag(key); }
  template <class Part>
  void part(const char* key, std::optional<Part>& value) {
    if (!at_.has(key)) return;
    Fields inner = at_.object(key);
    CardReader reader(inner);
    fields_of(reader, value.emplace());
    inner.finish();
  }

 private:
  Fields& at_;
};

class CardWriter {
 public:
  explicit CardWriter(Json& out) : out_(out) {}
  void size(const char* key, std::uint32_t value) { out_[key] = value; }
  void size_or(const char* key, std::uint32_t value, std::uint32_t otherwise) {
    if (value != otherwise) out_[key] = value;
  }
  void flag(const char* key, bool value) {
    if (value) out_[key] = true;
  }
  template <class Part>
  void part(const char* key, const std::optional<Part>& value) {
    if (!value) return;
    Json inner = Json::object();
    CardWriter writer(inner);
    Part copy = *value;
    fields_of(writer, copy);
    out_[key] = std::move(inner);
  }

 private:
  Json& out_;
};

template <class Variant, std::size_t... Is>
bool emplace_kind(Variant& value, std::string_view kind, const char* const* names,
                  std::index_sequence<Is...>) {
  return ((kind == names[Is] ? (value.template emplace<Is>(), true) : false) || ...);
}

// Reads the object under `key`, whose `kind` chooses the alternative.
template <class Variant, std::size_t N>
void read_kind(Fields& at, const char* key, const char* const (&names)[N], Variant& value) {
  static_assert(N == std::variant_size_v<Variant>);
  if (!at.has(key)) return;  // the first alternative: no such part
  Fields inner = at.object(key);
  const std::string kind = inner.text("kind");
  if (!emplace_kind(value, kind, names, std::make_index_sequence<N>{})) {
    if (!kind.empty())
      inner.problem("card.wrong_value", "kind",
                    fmt::format("is {}; it must be one of {}", kind, fmt::join(names, ", ")));
    return;
  }
  CardReader reader(inner);
  std::visit([&](auto& part) { fields_of(reader, part); }, value);
  inner.finish();
}

template <class Variant, std::size_t N>
void write_kind(Json& out, const char* key, const char* const (&names)[N], const Variant& value) {
  if (value.index() == 0) return;
  Json inner{{"kind", names[value.index()]}};
  CardWriter writer(inner);
  std::visit(
      [&](auto part) {  // a copy: the fields are told for reading too
        fields_of(writer, part);
      },
      value);
  out[key] = std::move(inner);
}

void read_precision(Fields& at, const char* key, Precision& value) {
  if (!at.has(key)) return;
  const std::string name = at.text(key);
  if (const auto known = precision_from(name))
    value = *known;
  else if (!name.empty())
    at.problem(
        "card.wrong_value", key,
        fmt::format("is {}; it must be one of {}", name, fmt::join(precision_names(), ", ")));
}

// Each category with its key.
template <class P, class F>
void each_category(P& p, F&& f) {
  f("attention", p.attention);
  f("dense", p.dense);
  f("shared_experts", p.shared_experts);
  f("experts", p.experts);
  f("head", p.head);
  f("kv_cache", p.kv_cache);
}

WeightPrecision read_precisions(Fields& at) {
  WeightPrecision p;
  each_category(p, [&](const char* key, Precision& value) { read_precision(at, key, value); });
  if (at.has("attention_math_fp8")) p.attention_math_fp8 = at.flag("attention_math_fp8");
  if (at.has("block")) p.block = at.count("block");
  at.finish();
  if (p.kv_cache != Precision::Bfloat16 && p.kv_cache != Precision::Fp8)
    at.problem("card.wrong_value", "kv_cache", "must be bfloat16 or fp8");
  return p;
}

Json write_precisions(const WeightPrecision& p) {
  Json out = Json::object();
  each_category(p, [&](const char* key, const Precision& value) {
    if (value != Precision::Bfloat16) out[key] = to_string(value);
  });
  if (p.attention_math_fp8) out["attention_math_fp8"] = true;
  if (p.block > 0) out["block"] = p.block;
  return out;
}

std::vector<LayerGroup> read_groups(Fields& at) {
  std::vector<LayerGroup> groups;
  for (Fields& inner : at.objects("layers")) {
    LayerGroup& group = groups.emplace_back();
    group.count = inner.count("count");
    read_kind(inner, "mixer", kMixerKinds, group.mixer);
    read_kind(inner, "feed_forward", kFeedForwardKinds, group.feed_forward);
    if (const auto* a = std::get_if<GroupedAttention>(&group.mixer); a && a->kv_heads > a->heads)
      inner.problem("card.wrong_value", "mixer.kv_heads", "is more than mixer.heads");
    if (const auto* e = std::get_if<Experts>(&group.feed_forward); e && e->per_token > e->count)
      inner.problem("card.wrong_value", "feed_forward.per_token", "is more than the count");
    inner.finish();
  }
  return groups;
}

// The letter of each group must stand as often as it has layers.
void check_order(const ModelCard& card, Fields& at) {
  if (card.order.empty() && card.groups.size() <= 1) return;
  std::size_t known = 0;
  for (std::size_t g = 0; g < card.groups.size(); ++g) {
    const char letter = static_cast<char>('a' + g);
    const auto found =
        static_cast<std::uint32_t>(std::count(card.order.begin(), card.order.end(), letter));
    known += found;
    if (found != card.groups[g].count)
      at.problem("card.wrong_value", "order",
                 fmt::format("has {} times '{}'; layers[{}].count is {}", found, letter, g,
                             card.groups[g].count));
  }
  if (known != card.order.size())
    at.problem("card.wrong_value", "order", "has letters that stand for no group of layers");
}

void read_optional(Fields& at, const char* key, std::uint32_t& value) {
  if (at.has(key)) value = at.count(key);
}

// "key": value, for each value of an object, on one line.
std::string line_of(const Json& value) {
  std::string text = value.dump();
  std::string out;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    out += c;
    if (!quoted && (c == ',' || c == ':')) out += ' ';
  }
  return out;
}

}  // namespace

Result<ModelCard> parse_model_card(std::string_view json, std::string_view file) {
  Problems problems;
  std::optional<Fields> root = Fields::parse(json, file, problems);
  if (!root) return tl::unexpected(std::move(problems));
  Fields& at = *root;
  ModelCard card;
  card.name = at.text("name");
  if (at.has("aliases")) card.aliases = at.texts("aliases");
  card.architecture = at.text("architecture");
  if (const auto family = family_of(card.architecture))
    card.family = *family;
  else if (!card.architecture.empty())
    at.problem("card.wrong_value", "architecture",
               fmt::format("is {}, which has no family; known are {}", card.architecture,
                           fmt::join(known_architectures(), ", ")));
  card.hidden = at.count("hidden");
  card.vocab = at.count("vocab");
  card.context_max = at.count("context_max");
  card.embeddings_tied = at.flag("embeddings_tied");
  read_optional(at, "draft_layers", card.draft_layers);
  read_optional(at, "residual_streams", card.residual_streams);
  read_optional(at, "residual_block", card.residual_block);
  card.groups = read_groups(at);
  if (at.has("order")) card.order = at.text("order");
  check_order(card, at);
  if (at.has("precision")) {
    Fields precision = at.object("precision");
    card.precision = read_precisions(precision);
  }
  CardReader(at).part("vision", card.vision);
  card.source = at.text("source");
  card.licence = at.text("licence");
  at.finish();
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return card;
}

std::string to_json(const ModelCard& card) {
  std::string out = "{\n";
  const auto add = [&](const char* key, const std::string& value) {
    out += fmt::format("{}  \"{}\": {}", out.size() > 2 ? ",\n" : "", key, value);
  };
  const auto add_json = [&](const char* key, const Json& value) { add(key, line_of(value)); };
  add_json("name", card.name);
  if (!card.aliases.empty()) add_json("aliases", card.aliases);
  add_json("architecture", card.architecture);
  add_json("hidden", card.hidden);
  add_json("vocab", card.vocab);
  add_json("context_max", card.context_max);
  add_json("embeddings_tied", card.embeddings_tied);
  if (card.draft_layers > 0) add_json("draft_layers", card.draft_layers);
  if (card.residual_streams > 1) add_json("residual_streams", card.residual_streams);
  if (card.residual_block > 0) add_json("residual_block", card.residual_block);
  std::string groups;
  for (const LayerGroup& group : card.groups) {
    Json one{{"count", group.count}};
    write_kind(one, "mixer", kMixerKinds, group.mixer);
    write_kind(one, "feed_forward", kFeedForwardKinds, group.feed_forward);
    groups += fmt::format("{}    {}", groups.empty() ? "" : ",\n", line_of(one));
  }
  add("layers", "[\n" + groups + "\n  ]");
  if (!card.order.empty()) add_json("order", card.order);
  if (card.precision != WeightPrecision{}) add_json("precision", write_precisions(card.precision));
  Json vision = Json::object();
  CardWriter(vision).part("vision", card.vision);
  if (card.vision) add_json("vision", vision["vision"]);
  // Texts may hold commas, which line_of leaves alone inside quotes.
  add_json("source", card.source);
  add_json("licence", card.licence);
  return out + "\n}\n";
}

}  // namespace servecast::catalog
