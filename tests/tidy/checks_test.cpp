// SPDX-License-Identifier: Apache-2.0
// Every check finds what it is for (a check that cannot fail is worth nothing) and leaves good text
// alone.
#include "checks.hpp"

#include <gtest/gtest.h>

namespace servecast::tidy {
namespace {

const Layers kLayers = parse_layers("# comment\nbase:\nkernel: base\nworkload: base\n");
const std::vector<ThirdParty> kThirdParty = parse_third_party(
    "fmt/core.h: * ; headers\nfmt/: *\nzlib.h: workload\ngtest/: tests ; headers\n");

std::vector<std::string> rules(const Findings& findings) {
  std::vector<std::string> list;
  for (const Finding& f : findings) list.push_back(f.rule + ":" + std::to_string(f.line));
  return list;
}

using Rules = std::vector<std::string>;

Rules includes(const std::string& path, const std::string& text) {
  return rules(check_includes({path, text}, kLayers, kThirdParty));
}
Rules determinism(const std::string& path, const std::string& text) {
  return rules(check_determinism({path, text}, {"cli"}));
}
Rules statics(const std::string& text) {
  return rules(check_mutable_statics({"src/base/a.cpp", text}));
}
Rules text_of(const std::string& path, const std::string& text) {
  static const std::vector<Word> words = parse_words("\\b(todo|hack)\\b # finish it\n");
  return rules(check_text({path, "// SPDX-License-Identifier: Apache-2.0\n" + text}, words, 40));
}

TEST(Layers, ARoomMayIncludeItselfAndTheRoomsListedForIt) {
  EXPECT_EQ(includes("src/kernel/a.cpp", "#include \"kernel/b.hpp\"\n#include \"base/time.hpp\"\n"),
            Rules{});
}

TEST(Layers, AnIncludeAgainstTheLayersIsFoundWithItsLine) {
  EXPECT_EQ(includes("src/base/a.hpp", "#pragma once\n#include \"kernel/b.hpp\"\n"),
            Rules{"layers:2"});
  const Findings findings =
      check_includes({"src/base/a.hpp", "#include \"kernel/b.hpp\"\n"}, kLayers, {});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].what, "base may not include kernel (tools/layers.txt allows: none)");
}

TEST(Layers, ARoomBesideIsNotARoomBelow) {
  EXPECT_EQ(includes("src/kernel/a.cpp", "#include \"workload/spec.hpp\"\n"), Rules{"layers:1"});
}

TEST(Layers, AnIncludeWithoutARoomIsFound) {
  EXPECT_EQ(includes("src/kernel/a.cpp", "#include \"b.hpp\"\n#include \"kernel/../base/a.hpp\"\n"),
            (Rules{"layers:1", "layers:2"}));
}

TEST(Layers, AnUnlistedRoomIsFound) {
  EXPECT_EQ(includes("src/attic/a.cpp", ""), Rules{"layers:1"});
}

TEST(ThirdParty, AHeaderOfAnotherRoomIsFound) {
  EXPECT_EQ(includes("src/kernel/a.cpp", "#include <zlib.h>\n"), Rules{"third-party:1"});
  EXPECT_EQ(includes("src/workload/a.cpp", "#include <zlib.h>\n"), Rules{});
}

TEST(ThirdParty, AHeavyHeaderInAHeaderIsFound) {
  EXPECT_EQ(includes("src/workload/a.hpp", "#include <zlib.h>\n#include <fmt/format.h>\n"),
            (Rules{"third-party:1", "third-party:2"}));
  EXPECT_EQ(includes("src/workload/a.hpp", "#include <fmt/core.h>\n#include <vector>\n"), Rules{});
}

TEST(ThirdParty, AnUnknownHeaderIsFound) {
  EXPECT_EQ(includes("src/kernel/a.cpp", "#include <boost/any.hpp>\n"), Rules{"third-party:1"});
}

TEST(ThirdParty, TestHeadersAreForTests) {
  EXPECT_EQ(includes("src/kernel/a_test.cpp", "#include <gtest/gtest.h>\n"), Rules{});
  EXPECT_EQ(includes("src/kernel/test_run.hpp", "#include <gtest/gtest.h>\n"), Rules{});
  EXPECT_EQ(includes("src/kernel/a.cpp", "#include <gtest/gtest.h>\n"), Rules{"third-party:1"});
  EXPECT_EQ(includes("src/kernel/a.hpp", "#include <gtest/gtest.h>\n"), Rules{"third-party:1"});
}

TEST(Determinism, EveryDoorToChanceIsFound) {
  for (const char* line :
       {"int x = std::rand();", "srand(1);", "std::random_device seed;", "std::mt19937_64 engine;",
        "std::normal_distribution<double> d;", "#include <random>"})
    EXPECT_EQ(determinism("src/kernel/a.cpp", line), Rules{"determinism:1"}) << line;
}

TEST(Determinism, ClocksAreFoundOutsideOfTheCommandLine) {
  for (const char* line :
       {"auto t = std::chrono::steady_clock::now();", "std::chrono::system_clock::now();",
        "gettimeofday(&tv, nullptr);", "clock_gettime(CLOCK_MONOTONIC, &ts);", "time(nullptr);",
        "std::time( 0 );"}) {
    EXPECT_EQ(determinism("src/report/a.cpp", line), Rules{"determinism:1"}) << line;
    EXPECT_EQ(determinism("src/cli/a.cpp", line), Rules{}) << line;
  }
}

TEST(Determinism, WordsInCommentsAndStringsAreNotCode) {
  EXPECT_EQ(determinism("src/kernel/a.cpp",
                        "// not std::rand()\n/* time(nullptr)\n rand() */\nauto s = \"rand()\";\n"
                        "auto r = R\"x(rand() \" time(0))x\";\nauto n = next_time(0); Time time() "
                        "const; void add_distribution();\n"),
            Rules{});
}

TEST(MutableStatics, VariablesThatLastAndChangeAreFound) {
  for (const char* text : {
           "int counter = 0;",
           "namespace a {\nstd::vector<const int*> list;\n}",
           "namespace {\nconst char* name = nullptr;\n}",
           "std::array<int, 3> table{1, 2, 3};",
           "static double last;",
           "thread_local int depth = 0;",
           "extern int errors;",
           "int f() {\n  static int calls = 0;\n  return ++calls;\n}",
           "int f() {\n  static std::map<int, int> cache{};\n  return cache[0];\n}",
           "int f() {\n  static std::vector<int> v = [] { return g(); }();\n  return v[0];\n}",
           "class A {\n  static int count_;\n};",
           "A::A() : x_(1), y_{2} {\n  static int calls;\n}",
       })
    EXPECT_EQ(statics(text).size(), 1u) << text;
}

TEST(MutableStatics, TheLineOfTheVariableIsNamed) {
  EXPECT_EQ(statics("#pragma once\n\nnamespace a {\n\n// text\nint counter\n  = 0;\n}\n"),
            Rules{"mutable-static:6"});
}

TEST(MutableStatics, ConstantsFunctionsAndTypesAreLeftAlone) {
  for (const char* text : {
           "constexpr int kMax = 3;",
           "inline constexpr std::uint64_t kSeed = 1;",
           "const std::regex pattern(\"x\");",
           "const char* const kName = \"x\";",
           "constexpr const char* kLicence = \"x\";",
           "static const std::vector<int> list = [] { std::vector<int> v; return v; }();",
           "int f(int a = 3);\nstatic int g() { int x = 1; return x; }",
           "struct A {\n  int x = 0;\n  std::vector<int> y{1};\n  static A make();\n  int z() "
           "const { return x; }\n};",
           "class B : public A {\n public:\n  explicit B(int x) : x_(x) {}\n private:\n  int "
           "x_;\n};",
           "enum class Kind : std::uint8_t { A, B };",
           "template <class T>\nusing Result = std::vector<T>;",
           "template <class T> struct Id { std::uint32_t index = 0; friend auto operator<=>(Id, "
           "Id) = default; };",
           "using namespace std;\ntypedef int number;\nextern \"C\" {\nint f();\n}",
           "#define CHECK(x) \\\n  ((x) ? void() : die(#x))\nint f();",
           "void f() {\n  for (int i = 0; i < 3; ++i) g([&] { return i; });\n  int local = 0;\n}",
           "A::A(int x) : x_(x), y_{2} {\n  z_ = 3;\n}\nvoid g() {}\n",
       })
    EXPECT_EQ(statics(text), Rules{}) << text;
}

TEST(MutableStatics, AMarkerWithAReasonLetsOneThrough) {
  EXPECT_EQ(statics("int x = 0;  // tidy: mutable-static (why it must be)\n"), Rules{});
  EXPECT_EQ(statics("int x = 0;  // tidy: mutable-static\n"), Rules{"mutable-static:1"});
}

TEST(Text, AFileWithoutLicenceLineIsFound) {
  EXPECT_EQ(rules(check_text({"a.cpp", "int x;\n"}, {}, 100)), Rules{"licence:1"});
  EXPECT_EQ(
      rules(check_text({"a.sh", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"}, {}, 100)),
      Rules{});
  EXPECT_EQ(rules(check_text({"a.jsonl", "{}\n"}, {}, 100)), Rules{});
}

TEST(Text, PathsOfOneMachineAreFound) {
  for (const std::string folder : {"work", "home", "root", "tmp"})
    EXPECT_EQ(text_of("a.md", "see /" + folder + "/x\n"), Rules{"machine-path:2"}) << folder;
  EXPECT_EQ(text_of("a.md", "the /usr/bin folder, a/work/b, bytes/home, ./tmp/x\n"), Rules{});
}

TEST(Text, BannedWordsAreFoundWhateverTheirCase) {
  EXPECT_EQ(text_of("a.md", "good\nToDo later, hacks\n"), Rules{"word:3"});
}

TEST(Text, LongLinesTabsAndTrailingBlanksOfSourcesAreFound) {
  EXPECT_EQ(text_of("a.cpp", std::string(41, 'x') + "\n\tx\nx \n"),
            (Rules{"columns:2", "blanks:3", "blanks:4"}));
  EXPECT_EQ(text_of("a.md", std::string(41, 'x') + "\n"), Rules{});
  EXPECT_EQ(text_of("a.cpp", std::string(38, 'x') + "\xC3\xA4\xC3\xA4\n"),
            Rules{});  // 40 characters
}

TEST(Sizes, LongFilesAndFunctionsAreReportedAndNotFatal) {
  std::string function = "int f() {\n";
  for (int i = 0; i < 10; ++i) function += "  g();\n";
  function += "}\n";
  const Findings findings = report_sizes({"a.cpp", function}, 11, 11);
  EXPECT_EQ(rules(findings), (Rules{"size:12", "size:1"}));
  for (const Finding& f : findings) EXPECT_FALSE(f.fatal);
  EXPECT_EQ(rules(report_sizes({"a.cpp", function}, 12, 12)), Rules{});
}

TEST(Links, ARelativeLinkToNowhereIsFound) {
  const std::set<std::string> exists{".", "docs", "docs/a.md", "README.md", "docs/how-to"};
  const auto links = [&](const std::string& text) {
    return rules(check_links({"docs/a.md", text}, exists, {"spdx.org"}));
  };
  EXPECT_EQ(links("[x](b.md)\n[y](../README.md#top) [z](how-to/) [self](#part)\n"),
            Rules{"links:1"});
  EXPECT_EQ(links("`[x](b.md)`\n```\n[x](b.md)\n```\n[up](../../x.md)\n"), Rules{"links:5"});
}

TEST(Links, AHostThatIsNotAllowedIsFound) {
  const auto links = [](const std::string& text) {
    return rules(check_links({"a.cpp", text}, {}, {"spdx.org"}));
  };
  const std::string scheme = "https:";
  EXPECT_EQ(links("// " + scheme + "//spdx.org/licenses\n// " + scheme + "//mirror.example/x\n"),
            Rules{"links:2"});
}

}  // namespace
}  // namespace servecast::tidy
