// A receipt for a person. Every word that came from outside passes the sanitizer (text) or is escaped (Markdown).
#pragma once
#include <string>

#include "core/base/json.hpp"

namespace h5i::evidence {

// `receipt`: a document of schema h5i.receipt/1, possibly of unknown origin; what is missing is said to be missing.
std::string receipt_text(const Json& receipt);

// A command as a shell would read it, for people to recognise; never to be run.
std::string command_words(const Json& argv);

}  // namespace h5i::evidence
