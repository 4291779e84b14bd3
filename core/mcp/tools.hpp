// The tools and the command lines behind them.
#pragma once
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/result.hpp"

namespace h5i::mcp {

// [{"name", "description", "inputSchema", "annotations"}], as tools/list answers.
Json tool_list();
// The words behind "h5i" for a call, with --json. NOT_FOUND when there is no such tool; INVALID names the argument that is not what the tool takes.
Result<std::vector<std::string>> command_line(const std::string& tool, const Json& arguments);
// The words of a call's own command line for the same answer as people read it; empty: the document says it all.
std::vector<std::string> reading_line(const std::string& tool, const std::vector<std::string>& words);
// What a model is shown of a verb's document and of what people read (`shown`): what a box wrote is marked line by line.
std::string text_of(const std::string& tool, const Json& document, const std::string& shown = {});

}  // namespace h5i::mcp
