// docs/operators.md says what the engine does.
#include "engine/training/coverage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "engine/training/gradient_rules.h"

namespace monet {
namespace {

TEST(Coverage, TheCommittedTableIsTheEngines) {
  std::ifstream file(MONET_SOURCE_DIR "/docs/operators.md");
  if (!file) GTEST_SKIP() << "sources cannot be read at " << MONET_SOURCE_DIR;
  std::ostringstream committed;
  committed << file.rdbuf();
  EXPECT_EQ(committed.str(), operators_markdown()) << "run: build/native/bin/monet operators > docs/operators.md";
}

TEST(Coverage, EveryOperatorWithoutGradientHasAReason) {
  std::vector<OperatorCoverage> rows = operator_coverage();
  EXPECT_GT(rows.size(), 180u);
  for (const OperatorCoverage& row : rows) {
    bool no_gradient = row.coverage == Coverage::stops || row.coverage == Coverage::unsupported;
    EXPECT_EQ(no_gradient && row.note.empty(), false) << row.op;
  }
}

TEST(Coverage, NoRuleStopsTheGradient) {
  for (const OperatorCoverage& row : operator_coverage())
    EXPECT_FALSE(find_gradient_rule("", row.op) && gradient_stops("", row.op)) << row.op;
}

TEST(Coverage, KnownRows) {
  std::vector<OperatorCoverage> rows = operator_coverage();
  auto coverage = [&](const std::string& op) {
    auto row = std::find_if(rows.begin(), rows.end(), [&](const OperatorCoverage& r) { return r.op == op; });
    return row == rows.end() ? "absent" : name(row->coverage);
  };
  EXPECT_STREQ(coverage("Conv"), "rule");
  EXPECT_STREQ(coverage("Shape"), "stops the gradient");
  EXPECT_STREQ(coverage("SequenceAt"), "not supported");
  EXPECT_STREQ(coverage("Upsample"), "absent");  // deprecated: import turns it into Resize
}

}  // namespace
}  // namespace monet
