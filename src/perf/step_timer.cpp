// SPDX-License-Identifier: Apache-2.0
#include "perf/step_timer.hpp"

#include "base/check.hpp"

namespace servecast::perf {

std::string_view to_string(Provenance provenance) {
  switch (provenance) {
    case Provenance::Fixed:
      return "fixed";
    case Provenance::Polynomial:
      return "polynomial";
    case Provenance::Analytic:
      return "analytic";
  }
  SERVECAST_CHECK(!"provenance is one of its enumerators");
  return {};
}

}  // namespace servecast::perf
