// SPDX-License-Identifier: Apache-2.0
// The prefixes that an SGLang rank has cached, as a radix tree over whole pages (engine-sglang.md
// S4). An edge is a span of pages, so that an operation costs per edge it meets, never per page or
// token. Pages are counted: which physical page holds what is nobody's business, because nothing
// depends on it.
//
// Keys are either the prefix hashes of the pages (reference mode, and wherever events are wanted)
// or a description of the text (fast mode); a tree uses one kind for its whole life.
//
//   RadixTree::Match hit = tree.match(keys, RadixTree::Lock::Yes);
//   RadixTree::Inserted put = tree.insert(hit.node, hit.pages, longer);
//   tree.lock(put.node);  tree.unlock(hit.node);
//
// Invariants: (1) evictable_pages() + locked_pages() is the sum of all edges; a node's pages are
// locked iff somebody locked it or a node below it; (2) no two children of a node begin with the
// same page; (3) every unlocked leaf is in the leaf index once, with a stamp no newer than its own;
// (4) a stamp is not older than those of the nodes below.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/child_table.hpp"
#include "cache/page_text.hpp"

namespace servecast::cache {

// The pages of a sequence from its first one on. `hashes` (prefix hashes, one a page, at least
// `pages` of them) or `text` is used, as the tree was made.
struct PageKeys {
  std::uint32_t pages = 0;
  std::span<const std::uint64_t> hashes;
  const PageText* text = nullptr;
};

class RadixTree {
 public:
  using Node = std::uint32_t;
  static constexpr Node kRoot = 0;
  enum class Lock : bool { No, Yes };

  struct Options {
    std::uint32_t page_tokens = 1;
    bool hashed = false;  // keys are hashes, else texts
    // As SGLang itself does it: evicts whole leaves and always makes a child; else the newest pages
    // of a leaf go, only as many as needed, and a leaf grows in place (S1.4 F-evict, F-tail).
    bool exact = false;
  };
  explicit RadixTree(const Options& options);

  struct Match {
    std::uint32_t pages = 0;
    Node node = kRoot;
  };
  // The longest cached prefix. Counts as a use of all it meets; an edge that matches in part is
  // split (S4.2).
  Match match(const PageKeys& keys, Lock wanted);
  // The same without a trace. `node` is where the match ends, also inside its edge.
  Match find(const PageKeys& keys) const;

  struct Inserted {
    Node node = kRoot;            // where the sequence ends now
    std::uint32_t new_pages = 0;  // that came into the tree; the others were there already
    std::uint32_t first_new = 0;  // position of the first of them; they are the last of the keys
  };
  // Adds the pages behind the first `prefix_pages`, which `start` ends (S4.4). A use of all it
  // meets and of all above `start`, also when nothing is new. requires: prefix_pages <= keys.pages,
  // and the edge of `start` ends there.
  Inserted insert(Node start, std::uint32_t prefix_pages, const PageKeys& keys);

  // A node that somebody uses and those above it are not evicted. The root needs no lock.
  void lock(Node node);
  void unlock(Node node);

  // Evicts unlocked leaves, the longest unused first, until `pages` have gone or nothing can go;
  // returns how many went, with whole leaves perhaps more than asked. `removed`, if wanted of a
  // hashed tree, gets their hashes appended in that order; of one victim in the order of its pages
  // (S4.6).
  std::uint64_t evict(std::uint64_t pages, std::vector<std::uint64_t>* removed = nullptr);

  std::uint64_t evictable_pages() const { return evictable_; }
  std::uint64_t locked_pages() const { return locked_; }
  std::uint64_t evictions() const { return evicted_; }  // pages ever evicted
  // Changes with everything that can change what find() says.
  std::uint64_t version() const { return version_; }
  Node parent(Node node) const { return entries_[node].parent; }  // the root's is itself
  // Orders nodes by when they came to be (S4.3: the upper half of a split is the new one).
  std::uint64_t created(Node node) const { return entries_[node].created; }
  std::uint32_t node_count() const { return children_.size(); }  // without the root
  void verify() const;

 private:
  struct Entry {
    PageText text;           // says pages [0, to) at least; of texts
    std::uint64_t name = 0;  // of page `from`: its hash, or PageText::page_name
    std::uint64_t stamp = 0;
    std::uint64_t created = 0;
    Node parent = kRoot;
    std::uint32_t from = 0, to = 0;  // pages of the edge
    std::uint32_t locks = 0;
    std::uint32_t children = 0;
    bool listed = false;  // in leaves_
    std::uint32_t pages() const { return to - from; }
    bool is_evictable() const { return locks == 0 && children == 0; }
  };
  struct Leaf {
    std::uint64_t stamp, created;
    Node node;
  };
  struct Younger {  // a type, so that the heap's functions inline it
    bool operator()(const Leaf& a, const Leaf& b) const {
      return a.stamp != b.stamp ? a.stamp > b.stamp : a.created > b.created;
    }
  };

  std::uint64_t name_of(const PageKeys& keys, std::uint32_t page) const;
  Node child(Node parent, std::uint64_t name) const;
  std::uint32_t equal_pages(Node node, const PageKeys& keys) const;
  Match find_below(Match start, const PageKeys& keys) const;
  void touch(Match& hit);
  Node split(Node node, std::uint32_t pages);
  Node make_entry(const Entry& entry);
  void extend(Node node, const PageKeys& keys);
  Node add_child(const Match& hit, const PageKeys& keys);
  void list(Node node);
  Node oldest_leaf();
  void cut(Node leaf, std::uint32_t pages, std::vector<std::uint64_t>* removed);
  void verify_leaves() const;

  Options options_;
  std::vector<Entry> entries_ = std::vector<Entry>(1);
  std::vector<std::vector<std::uint64_t>> hashes_;  // of the pages of each edge, of hashes
  std::vector<Node> unused_;                        // entries of evicted nodes
  ChildTable children_;
  // A heap, oldest first. A leaf that was used, locked or given a child since it came in is put
  // right when it comes up, so that none of these costs anything here.
  std::vector<Leaf> leaves_;
  std::uint64_t clock_ = 0, created_ = 0, version_ = 0;
  std::uint64_t evictable_ = 0, locked_ = 0, evicted_ = 0;  // pages
};

}  // namespace servecast::cache
