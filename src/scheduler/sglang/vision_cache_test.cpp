// SPDX-License-Identifier: Apache-2.0
#include "scheduler/sglang/vision_cache.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace servecast::scheduler {
namespace {

using workload::Image;

// Of as many bytes as it has tokens.
Image an_image(std::uint64_t identity, std::uint32_t size = 4) {
  return {.identity = identity, .start = 0, .end = size, .bytes = size};
}

std::uint32_t encode(VisionCache& cache, const std::vector<Image>& images) {
  const std::uint32_t misses = cache.encode(images);
  cache.verify();
  return misses;
}

TEST(VisionCache, EncodesAnImageOfAPassOnce) {  // engine-sglang.md S23 C42
  VisionCache cache(8);
  EXPECT_EQ(encode(cache, {an_image(1), an_image(2), an_image(1)}), 2U);
  EXPECT_EQ(encode(cache, {an_image(1), an_image(2)}), 0U);
  VisionCache none(0);
  EXPECT_EQ(encode(none, {an_image(1), an_image(2), an_image(1)}), 2U) << "also without a cache";
}

TEST(VisionCache, DropsTheLeastRecentlyUsed) {
  VisionCache cache(8);
  encode(cache, {an_image(1), an_image(2)});
  EXPECT_EQ(encode(cache, {an_image(1)}), 0U);
  EXPECT_EQ(encode(cache, {an_image(3)}), 1U) << "drops 2";
  EXPECT_EQ(encode(cache, {an_image(1)}), 0U);
  EXPECT_EQ(encode(cache, {an_image(2)}), 1U);
}

TEST(VisionCache, LooksAllUpBeforeItKeepsAny) {
  VisionCache cache(8);
  encode(cache, {an_image(1), an_image(2)});
  EXPECT_EQ(encode(cache, {an_image(3), an_image(1), an_image(2)}), 1U)
      << "3 would drop 1 if it were kept first";
}

TEST(VisionCache, IsEmptiedByAnEmbeddingThatIsTooLarge) {  // C42
  VisionCache cache(8);
  encode(cache, {an_image(1), an_image(2)});
  EXPECT_EQ(encode(cache, {an_image(3, 9)}), 1U);
  EXPECT_EQ(cache.used_bytes(), 0U);
  EXPECT_EQ(encode(cache, {an_image(1)}), 1U);
}

TEST(VisionCache, TakesAnotherLengthForAnotherImage) {
  VisionCache cache(100);
  encode(cache, {an_image(1, 4), an_image(2, 4)});
  EXPECT_EQ(encode(cache, {an_image(1, 6)}), 1U);
  EXPECT_EQ(cache.used_bytes(), 10U) << "the one of 4 is gone";
  EXPECT_EQ(encode(cache, {an_image(1, 6)}), 0U);
  EXPECT_EQ(encode(cache, {an_image(3, 4), an_image(3, 6)}), 2U) << "in one pass";
  EXPECT_EQ(encode(cache, {an_image(3, 4)}), 0U) << "the first of two stays";
}

TEST(VisionCache, RefreshesWhatAPassKeepsTwice) {
  VisionCache cache(8);
  EXPECT_EQ(encode(cache, {an_image(1, 4), an_image(2, 4), an_image(1, 5)}), 3U);
  EXPECT_EQ(encode(cache, {an_image(3, 4)}), 1U) << "drops 2";
  EXPECT_EQ(encode(cache, {an_image(1, 4)}), 0U);
}

TEST(VisionCache, KeepsNothingWithoutCapacity) {
  VisionCache cache(0);
  EXPECT_EQ(encode(cache, {an_image(1)}), 1U);
  EXPECT_EQ(encode(cache, {an_image(1)}), 1U);
}

}  // namespace
}  // namespace servecast::scheduler
