// SPDX-License-Identifier: Apache-2.0
// From the names that files of measurements use to cards and number formats.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "catalog/kinds.hpp"
#include "catalog/model_card.hpp"
#include "catalog/system_card.hpp"
#include "fit/measured/measured.hpp"
#include "perf/placement.hpp"

namespace servecast::fit {

// Why a row has no answer, in a few words: "no card of model Qwen/Qwen3.5-397B-A17B".
template <class T>
using Answerable = tl::expected<T, std::string>;

// The card of a model whose name may carry a format or a release at its end
// ("nvidia/DeepSeek-R1-0528-FP4-V2" is DeepSeek-R1) and another publisher in front.
Answerable<catalog::ModelCard> model_of(std::string_view written);

// The card of a GPU: "h200", "H200-SXM-141GB", "h200_sxm".
Answerable<catalog::SystemCard> system_of(std::string_view written);

// Number formats of the row's weights and KV cache (accuracy-notes.md 1.6). A blank precision is
// the checkpoint's own; fp4 is mxfp4 for models published in it, else nvfp4, in the experts only
// where there are some.
Answerable<perf::Precisions> precisions_of(const MeasuredRow& row, const catalog::ModelCard& model,
                                           const catalog::SystemCard& system,
                                           catalog::EngineKind engine,
                                           const perf::Parallelism& widths);

}  // namespace servecast::fit
