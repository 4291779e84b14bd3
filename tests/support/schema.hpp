// A validator for the part of JSON Schema (draft-07) that docs/schema uses. A keyword that it does not know is an error,
// so that no schema can say something that nobody checks.
#pragma once
#include <string>
#include <vector>

#include "core/base/json.hpp"

namespace h5i::test {

// Empty when `value` is valid; else one line an error: "/boxes/0/state: not one of the enum".
// "$ref" may be "#...", or the name of a file beside the schema ("error.json", "error.json#/definitions/x").
std::vector<std::string> schema_errors(const std::string& folder, const Json& schema, const Json& value);

// Validates against docs/schema/<name>.json of the source tree (name without ".json": "box-ls").
std::vector<std::string> schema_errors(const std::string& name, const Json& value);
// For text as a verb printed it: also refuses what is not exactly one JSON document and a newline.
std::vector<std::string> schema_errors_of_text(const std::string& name, const std::string& text);

}  // namespace h5i::test
