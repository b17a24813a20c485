// SPDX-License-Identifier: Apache-2.0
#include "cache/kv_wire_structure.hpp"

#include <fmt/core.h>

#include <utility>

#include "base/text.hpp"
#include "cache/kv_wire.hpp"

#define MSGPACK_NO_BOOST
#include <msgpack.hpp>

namespace servecast::cache::wire {
namespace {

class Visitor : public msgpack::null_visitor {
 public:
  bool visit_str(const char* text, std::uint32_t size) {
    for (std::string_view rest(text, size); !rest.empty();) {
      const std::size_t step = utf8_size(rest);
      if (step == 0) return refuse("a string that is not UTF-8", rest.data());
      rest.remove_prefix(step);
    }
    return true;
  }
  bool start_array(std::uint32_t) { return enter(); }
  bool start_map(std::uint32_t) { return enter(); }
  bool end_array() { return leave(); }
  bool end_map() { return leave(); }
  void insufficient_bytes(std::size_t, std::size_t) { incomplete_ = true; }
  void parse_error(std::size_t, std::size_t) { fault_ = "a byte that msgpack has no meaning for"; }

  bool incomplete() const { return incomplete_; }
  const std::string& fault() const { return fault_; }
  const char* fault_at() const { return fault_at_; }  // null: where the parser stopped

 private:
  bool enter() {
    if (++depth_ <= kKvNestingMax) return true;
    return refuse(fmt::format("more than {} arrays and maps within each other", kKvNestingMax),
                  nullptr);
  }
  bool leave() {
    --depth_;
    return true;
  }
  bool refuse(std::string fault, const char* at) {
    fault_ = std::move(fault);
    fault_at_ = at;
    return false;
  }

  std::size_t depth_ = 0;
  bool incomplete_ = false;
  std::string fault_;
  const char* fault_at_ = nullptr;
};

}  // namespace

Structure structure_of(std::string_view bytes) {
  Visitor visitor;
  std::size_t size = 0;
  if (msgpack::parse(bytes.data(), bytes.size(), size, visitor))
    return {Structure::End::Whole, size};
  if (visitor.incomplete()) return {Structure::End::Incomplete};
  if (visitor.fault_at() != nullptr)
    size = static_cast<std::size_t>(visitor.fault_at() - bytes.data());
  return {Structure::End::Fault, size, visitor.fault()};
}

}  // namespace servecast::cache::wire
