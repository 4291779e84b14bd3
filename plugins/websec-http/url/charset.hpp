// The query of a URL in a document that is not UTF-8 (URL Standard, section 1.3, percent-encode after encoding), by ICU.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "plugins/websec-http/url/percent.hpp"

namespace h5i::websec {

// `text` is valid UTF-8, `charset` the name of an encoding of the Encoding Standard in lower case; nothing when it is none.
// What the encoding cannot say is written as a character reference, "&#8224;" percent-encoded.
std::optional<std::string> percent_encode_in(std::string_view charset, std::string_view text, EncodeSet set);

}  // namespace h5i::websec
