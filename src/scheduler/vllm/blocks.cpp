// SPDX-License-Identifier: Apache-2.0
// The blocks of a request: growing, sealing, releasing (engine-vllm.md 6.3-6.6).
#include <algorithm>

#include "scheduler/vllm/scheduler.hpp"

namespace servecast::scheduler {

std::uint64_t VllmScheduler::name_of(const Request& request, std::uint32_t block,
                                     std::uint64_t parent) {
  if (!options_.stepping) {
    return provenance_name(request.content, block, config_.block_tokens, parent);
  }
  if (block < request.prompt_names.size()) return request.prompt_names[block];
  return spelling_.hash(request.content, request.prompt_tokens, block, parent).prefix;
}

bool VllmScheduler::grow(Request& request, std::uint32_t target) {
  if (target > request.quiet_until) {
    const std::uint32_t blocks = blocks_for(target);
    if (blocks > request.blocks) {
      if (blocks - request.blocks > pool_.room()) return false;
      take_promised(blocks - request.blocks);
      request.blocks = blocks;
      if (options_.events) publish_removed();
    }
  }
  request.computed = target;
  if (target > request.quiet_until) seal_computed(request);
  return true;
}

void VllmScheduler::note_quiet(Request& request) const {
  const std::uint64_t held = std::uint64_t{request.blocks} * config_.block_tokens;
  const std::uint64_t sealing = (request.sealed.size() + 1) * std::uint64_t{config_.block_tokens};
  const bool seals = sealing <= sealable_tokens(request);
  request.quiet_until = static_cast<std::uint32_t>(seals ? std::min(held, sealing - 1) : held);
}

void VllmScheduler::seal_computed(Request& request) {
  const std::uint32_t full = block_.quotient(std::min(request.computed, sealable_tokens(request)));
  bool continues = false;  // the last block sealed was visible, so the next one extends its event
  while (request.sealed.size() < full) {
    const auto block = static_cast<std::uint32_t>(request.sealed.size());
    const std::uint64_t parent = block == 0 ? 0 : pool_.name(request.sealed.back());
    const std::uint64_t name = name_of(request, block, parent);
    const cache::BlockPool::Sealed sealed = pool_.seal(name);
    request.sealed.push_back(sealed.block);
    if (options_.events && sealed.visible)
      publish_stored(request, {.block = block, .name = name, .parent = parent}, continues);
    continues = sealed.visible;
  }
  note_quiet(request);
}

void VllmScheduler::publish_removed() {
  std::vector<std::uint64_t>& names = pool_.evicted_names();
  if (names.empty()) return;
  KvEvent event;
  for (const std::uint64_t name : names) event.blocks.push_back({name, 0});
  events_.push_back(std::move(event));
  names.clear();
}

// Tail first, so that a request's leaf blocks are evicted before their parents. `asked_again` says
// that a request may look for the blocks that were never sealed.
// Apart, because hardly any run asks for events and sealing is hot.
[[gnu::noinline]] void VllmScheduler::publish_stored(const Request& request,
                                                     const NamedBlock& sealed, bool continues) {
  const std::uint64_t local =
      spelling_.hash(request.content, request.prompt_tokens, sealed.block, sealed.parent).local;
  if (!continues) {
    events_.push_back(
        {.stored = true, .has_parent = sealed.block > 0, .parent = sealed.parent, .blocks = {}});
  }
  events_.back().add({sealed.name, local}, spelling_.tokens());
}

void VllmScheduler::release_blocks(Request& request, bool asked_again) {
  const std::uint32_t full = config_.prefix_caching ? block_.quotient(request.computed) : 0;
  const auto sealed = static_cast<std::uint32_t>(request.sealed.size());
  SERVECAST_CHECK(sealed <= full && full <= request.blocks);
  pool_.give_back(request.blocks - full);
  if (full > sealed) {
    if (asked_again) {
      names_.clear();
      std::uint64_t parent = sealed == 0 ? 0 : pool_.name(request.sealed.back());
      for (std::uint32_t block = sealed; block < full; ++block) {
        parent = name_of(request, block, parent);
        names_.push_back(parent);
      }
      for (auto name = names_.rbegin(); name != names_.rend(); ++name) pool_.retire(*name);
    } else {
      pool_.retire_unnamed(full - sealed);
    }
  }
  promised_ -= blocks_for(request.final_tokens) - request.blocks;
  if (!request.sealed.empty()) pool_.release(request.sealed);
  request.sealed.clear();
  request.blocks = 0;
  blocked_ = Blocked::Untested;
}

}  // namespace servecast::scheduler
