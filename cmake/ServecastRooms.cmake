# SPDX-License-Identifier: Apache-2.0
# One library per room and one test program per room. A room is a folder of src/; its sources and its
# tests (*_test.cpp) stand side by side. Which rooms a room may use is listed in its own CMakeLists.txt and
# checked against tools/layers.txt by the test tidy.layers.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(servecast_flags INTERFACE)
target_include_directories(servecast_flags INTERFACE "${PROJECT_SOURCE_DIR}/src")
# Results must be the same bytes on every machine: no contraction into FMA, no fast-math.
target_compile_options(servecast_flags INTERFACE
  -ffp-contract=off -fno-fast-math -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=
  -Wall -Wextra -Wconversion -Wshadow -Wswitch-enum $<$<BOOL:${SERVECAST_WERROR}>:-Werror>)

# HOT: the room's code runs once per token or pass of a simulation.
function(servecast_room name)
  cmake_parse_arguments(arg "HOT" "" "ROOMS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp" "${CMAKE_CURRENT_SOURCE_DIR}/*/*.cpp")
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cpp$")
  if(sources)
    add_library(servecast_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(servecast_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_link_libraries(servecast_${name} ${scope} servecast_flags)
  if(arg_HOT)
    # With -O3 g++ 12 warns falsely about strings that it inlines.
    target_compile_options(servecast_${name} PRIVATE $<$<CONFIG:Release>:-O3>
      $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-restrict>)
  endif()
  foreach(room IN LISTS arg_ROOMS)
    target_link_libraries(servecast_${name} ${scope} servecast_${room})
  endforeach()
  target_link_libraries(servecast_${name} ${scope} ${arg_LIBRARIES})
  if(SERVECAST_TESTS AND tests)
    add_executable(test_${name} ${tests})
    target_link_libraries(test_${name} PRIVATE servecast_${name} GTest::gtest GTest::gmock GTest::gtest_main)
    target_compile_definitions(test_${name} PRIVATE
      SERVECAST_SOURCE_DIR="${PROJECT_SOURCE_DIR}" SERVECAST_BINARY_DIR="${PROJECT_BINARY_DIR}")
    gtest_discover_tests(test_${name} TEST_PREFIX "${name}." PROPERTIES LABELS unit TIMEOUT 60 DISCOVERY_TIMEOUT 60)
  endif()
endfunction()
