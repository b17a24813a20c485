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
    case Provenance::Table:
      return "table";
    case Provenance::Hybrid:
      return "hybrid";
    case Provenance::Empirical:
      return "empirical";
    case Provenance::Sol:
      return "sol";
  }
  check_failed("provenance is one of its enumerators", __FILE__, __LINE__);
}

}  // namespace servecast::perf
