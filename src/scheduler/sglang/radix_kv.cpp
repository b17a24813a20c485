// SPDX-License-Identifier: Apache-2.0
#include "scheduler/sglang/radix_kv.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace servecast::scheduler {

using cache::PageKeys;
using cache::RadixTree;

namespace {

std::optional<std::uint64_t> session_of(const Request& request) {
  return request.in_session ? std::optional<std::uint64_t>(request.session) : std::nullopt;
}

// The hash of what stands before a page.
std::optional<std::uint64_t> parent_of(const std::vector<std::uint64_t>& names,
                                       std::uint32_t page) {
  return page == 0 ? std::nullopt : std::optional(names[page - 1]);
}

void hold_nothing(Request& request) {
  request.blocks = request.prefix_blocks = 0;
  request.prefix_node = RadixTree::kRoot;
}

}  // namespace

RadixKv::RadixKv(const RankConfig& config, const KvNaming& naming, RequestSlab& requests)
    : capacity_(config.blocks),
      page_(config.block_tokens),
      caching_(config.prefix_caching),
      hashed_(naming.real_hashes),
      events_(naming.events),
      exact_(config.sglang->fidelity == Fidelity::Exact),
      requests_(requests),
      tree_({.page_tokens = config.block_tokens, .hashed = hashed_, .exact = exact_}),
      names_(config.block_tokens, true),
      spelling_(config.block_tokens) {}

KvCounts RadixKv::counts() const {
  return {.capacity = static_cast<std::uint32_t>(capacity_),
          .active = static_cast<std::uint32_t>(private_ + tree_.locked_pages()),
          .inactive = static_cast<std::uint32_t>(evictable()),
          .free = static_cast<std::uint32_t>(free()),
          .evictions = tree_.evictions()};
}

PageKeys RadixKv::keys_of(Request& request, std::uint32_t pages) const {
  if (hashed_) {
    names_.extend(request.prompt_names, request);
    SERVECAST_DCHECK(pages <= request.prompt_names.size());
    return {.pages = pages, .hashes = request.prompt_names, .text = nullptr};
  }
  return {.pages = pages, .hashes = {}, .text = &request.content};
}

RadixTree::Match RadixKv::find(Slot slot, std::uint32_t tokens) const {
  if (!caching_) return {};
  return tree_.find(keys_of(requests_[slot], page_.quotient(tokens)));
}

RadixTree::Match RadixKv::match(Slot slot, std::uint32_t tokens) {
  if (!caching_) return {};
  return tree_.match(keys_of(requests_[slot], page_.quotient(tokens)), RadixTree::Lock::No);
}

std::uint64_t RadixKv::beginning(Slot slot, std::uint32_t tokens) {
  const Request& request = requests_[slot];
  if (!hashed_) return request.content.page_name(0, tokens);
  if (!beginnings_) beginnings_.emplace(tokens);
  return beginnings_->hash(request.content, request.prompt_tokens, 0, 0).prefix;
}

std::uint64_t RadixKv::would_lock(Slot slot, std::uint32_t tokens) {
  if (!caching_) return 0;
  const std::uint64_t before = evictable();
  const RadixTree::Match hit =
      tree_.match(keys_of(requests_[slot], page_.quotient(tokens)), RadixTree::Lock::Yes);
  const std::uint64_t locked = before - evictable();
  tree_.unlock(hit.node);
  return locked;
}

void RadixKv::evict(std::uint64_t pages) {
  if (pages == 0) return;
  removed_.clear();
  tree_.evict(pages, events_ ? &removed_ : nullptr);
  if (events_ && !removed_.empty()) recorder_.removed(removed_);
}

bool RadixKv::take(std::uint64_t pages) {
  if (pages > room()) return false;
  reserve(pages);
  return true;
}

void RadixKv::reserve(std::uint64_t pages) {
  if (pages == 0) return;
  SERVECAST_DCHECK(pages <= room());
  if (pages > free()) evict(exact_ ? pages : pages - free());
  private_ += pages;
}

void RadixKv::evict_towards(std::uint64_t pages, bool all) {
  if (free() < pages) evict(all ? pages : pages - free());
}

bool RadixKv::admit(Slot slot, std::uint32_t prefix, std::uint32_t length) {
  Request& request = requests_[slot];
  SERVECAST_DCHECK(request.blocks == 0);
  RadixTree::Match hit;
  if (caching_) {
    hit = tree_.match(keys_of(request, page_.quotient(prefix)), RadixTree::Lock::Yes);
    SERVECAST_CHECK(hit.pages == page_.quotient(prefix));
  }
  const std::uint32_t pages = page_.ceiling(length);
  if (!take(pages - hit.pages)) {
    if (caching_) tree_.unlock(hit.node);
    return false;
  }
  request.blocks = pages;
  request.prefix_blocks = hit.pages;
  request.prefix_node = hit.node;
  request.computed = length;
  return true;
}

bool RadixKv::extend(Slot slot, std::uint32_t length) {
  Request& request = requests_[slot];
  const std::uint32_t pages = page_.ceiling(length);
  if (!take(pages - request.blocks)) return false;
  request.blocks = pages;
  request.computed = length;
  return true;
}

void RadixKv::commit(Slot slot, std::uint32_t through) {
  Request& request = requests_[slot];
  const std::uint32_t pages = page_.quotient(std::min(through, request.computed));
  if (!caching_ || pages <= request.prefix_blocks) return;
  const RadixTree::Inserted put =
      tree_.insert(request.prefix_node, request.prefix_blocks, keys_of(request, pages));
  tree_.lock(put.node);
  tree_.unlock(request.prefix_node);
  private_ -= pages - request.prefix_blocks;  // in the tree now, or there twice
  request.prefix_blocks = pages;
  request.prefix_node = put.node;
  if (events_) publish(request, put.first_new, pages);
}

// Pages in the tree once a request has ended with `tokens` tokens.
std::uint32_t RadixKv::pages_left_behind(const Request& request, std::uint32_t tokens) const {
  return std::max(page_.quotient(std::min(tokens, request.computed)), request.prefix_blocks);
}

void RadixKv::finish(Slot slot, std::uint32_t tokens) {
  Request& request = requests_[slot];
  if (caching_ && request.blocks > 0) {
    const std::uint32_t pages = pages_left_behind(request, tokens);
    const RadixTree::Inserted put =
        tree_.insert(request.prefix_node, request.prefix_blocks, keys_of(request, pages));
    tree_.unlock(request.prefix_node);
    if (events_) publish(request, put.first_new, pages);
  }
  private_ -= request.blocks - request.prefix_blocks;
  hold_nothing(request);
}

void RadixKv::release(Slot slot) {
  Request& request = requests_[slot];
  if (caching_) tree_.unlock(request.prefix_node);
  private_ -= request.blocks - request.prefix_blocks;
  hold_nothing(request);
}

RadixKv::Leaving RadixKv::leave(Slot slot, std::uint32_t tokens) {
  Request& request = requests_[slot];
  Leaving leaving;
  leaving.prefix_blocks = request.prefix_blocks;
  leaving.prefix_node = request.prefix_node;
  leaving.held = request.blocks;
  leaving.pages = request.prefix_blocks;
  leaving.session = session_of(request);
  if (caching_) {
    leaving.pages = pages_left_behind(request, tokens);
    leaving.text = request.content;
    if (hashed_) {
      names_.extend(request.prompt_names, request);
      leaving.names.assign(request.prompt_names.begin(),
                           request.prompt_names.begin() + leaving.pages);
    }
    for (std::uint32_t page = leaving.prefix_blocks; events_ && page < leaving.pages; ++page) {
      leaving.blocks.push_back(spell(request, page));
      const auto tokens_of = spelling_.tokens();
      leaving.tokens.insert(leaving.tokens.end(), tokens_of.begin(), tokens_of.end());
    }
  }
  hold_nothing(request);
  return leaving;
}

void RadixKv::finish(const Leaving& leaving) {
  if (caching_) {
    const PageKeys keys{
        .pages = leaving.pages, .hashes = leaving.names, .text = hashed_ ? nullptr : &leaving.text};
    const RadixTree::Inserted put = tree_.insert(leaving.prefix_node, leaving.prefix_blocks, keys);
    tree_.unlock(leaving.prefix_node);
    for (std::uint32_t page = put.first_new; events_ && page < leaving.pages; ++page) {
      const std::size_t at = page - leaving.prefix_blocks;
      const std::size_t size = page_.divisor();
      recorder_.stored(parent_of(leaving.names, page), leaving.blocks[at],
                       std::span(leaving.tokens).subspan(at * size, size), leaving.session);
    }
  }
  private_ -= leaving.held - leaving.prefix_blocks;
}

// A page as events tell it; spelling_ holds its tokens then.
KvEvent::Block RadixKv::spell(const Request& request, std::uint32_t page) {
  const std::uint64_t parent = parent_of(request.prompt_names, page).value_or(0);
  const Spelling::Hashes hashes =
      spelling_.hash(request.content, request.prompt_tokens, page, parent);
  return {hashes.prefix, hashes.local};
}

// Apart, because hardly any run asks for events.
[[gnu::noinline]] void RadixKv::publish(const Request& request, std::uint32_t first,
                                        std::uint32_t pages) {
  for (std::uint32_t page = first; page < pages; ++page) {
    const KvEvent::Block block = spell(request, page);
    recorder_.stored(parent_of(request.prompt_names, page), block, spelling_.tokens(),
                     session_of(request));
  }
}

void RadixKv::flush(std::vector<KvEvent>& out) {
  if (events_) recorder_.flush(out);
}

void RadixKv::verify(std::uint64_t private_pages, bool nobody_holds) const {
  tree_.verify();
  SERVECAST_CHECK(private_pages == private_);
  SERVECAST_CHECK(private_ + tree_.locked_pages() + tree_.evictable_pages() <= capacity_);
  if (nobody_holds) SERVECAST_CHECK(tree_.locked_pages() == 0);
}

}  // namespace servecast::scheduler
