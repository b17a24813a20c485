// SPDX-License-Identifier: Apache-2.0
#include "fit/measured/measured.hpp"

#include <array>
#include <utility>

namespace servecast::fit {
namespace {

constexpr std::array<std::pair<Protocol, std::string_view>, 5> kProtocols{
    {{Protocol::InferenceMax, "inferencemax"},
     {Protocol::Fixed, "fixed"},
     {Protocol::Static, "static"},
     {Protocol::Offline, "offline"},
     {Protocol::OpenLoop, "open_loop"}}};

}  // namespace

std::string_view to_string(Protocol protocol) {
  return kProtocols[static_cast<std::size_t>(protocol)].second;
}

std::optional<Protocol> protocol_from(std::string_view name) {
  for (const auto& [protocol, text] : kProtocols) {
    if (text == name) return protocol;
  }
  return std::nullopt;
}

bool MeasuredRow::is_disaggregated() const {
  return mode.starts_with("disagg");
}

}  // namespace servecast::fit
