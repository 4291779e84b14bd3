// Whether a verb's JSON fits its schema of docs/schema.
#pragma once
#include "tests/cli/program.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/schema.hpp"

namespace h5i::test {

inline void fits(const std::string& schema, const Ended& e) {
  CAPTURE(e.out, e.err);
  for (const std::string& error : schema_errors_of_text(schema, e.out)) FAIL_CHECK(schema << " " << error);
}

}  // namespace h5i::test
