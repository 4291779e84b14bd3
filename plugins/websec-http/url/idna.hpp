// Domain to ASCII (URL Standard, section 3.3, not strict) by ICU.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace h5i::websec {

// `domain` is valid UTF-8. Lower case and A-labels; nothing when UTS 46 refuses it. What the URL Standard forbids in a
// domain besides is the caller's to check. Empty and overlong labels and hyphens anywhere pass, as the standard asks.
std::optional<std::string> domain_to_ascii(std::string_view domain);

}  // namespace h5i::websec
