// What a session is asked for: each act reads its words, does its work, and answers with a document whose "lines" are for people.
#pragma once
#include "h5i/plugin.hpp"

namespace h5i::websec {

using Act = sdk::Result<sdk::Websec::Answer> (*)(const sdk::Host& host, const json::Value& session, const json::Value& words);

// Nothing when there is no such act.
Act act_named(std::string_view name);

}  // namespace h5i::websec
