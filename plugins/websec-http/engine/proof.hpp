// What verify_exec shows: on this process's own loopback, that a target outside the scope sees nothing and that one inside sees nothing before
// the session's log names it.
#pragma once
#include "h5i/plugin.hpp"

namespace h5i::websec {

// h5i.verify/1. The session that is served is a scratch one: its log gets the lines of the trial.
sdk::Result<json::Value> prove(const sdk::Host& host);

}  // namespace h5i::websec
