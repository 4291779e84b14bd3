// The verbs that h5i-evidence holds; evidence_main.cpp ties each to its row of the tables.
#pragma once
#include "core/cli/command.hpp"

namespace h5i::cli {

int log_verify(Context& ctx, const Parsed& words);
int log_seal(Context& ctx, const Parsed& words);
int key_show(Context& ctx, const Parsed& words);
int key_trust(Context& ctx, const Parsed& words);
int key_untrust(Context& ctx, const Parsed& words);
int key_rotate(Context& ctx, const Parsed& words);
// Started at the end of a run with the log's path and not waited for: no verb of a person's, in no help.
int seal_head(const std::string& log_path);

}  // namespace h5i::cli
