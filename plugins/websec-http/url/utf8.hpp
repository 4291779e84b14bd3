// Bytes as the Encoding Standard reads them: what is no UTF-8 becomes U+FFFD, one for each longest wrong start.
#pragma once
#include <string>
#include <string_view>

namespace h5i::websec {

bool is_ascii(std::string_view text);
std::string to_valid_utf8(std::string_view bytes);

}  // namespace h5i::websec
