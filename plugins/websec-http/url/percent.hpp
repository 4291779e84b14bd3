// Percent-encoding (URL Standard, section 1.3): which bytes of which part are written as %XX, and back.
#pragma once
#include <string>
#include <string_view>

namespace h5i::websec {

enum class EncodeSet { C0_CONTROL, FRAGMENT, QUERY, SPECIAL_QUERY, PATH, USERINFO, COMPONENT };

bool is_encoded_in(EncodeSet set, unsigned char byte);
// Appends `bytes` to `out`, each byte of the set as %XX (upper case). Of valid UTF-8 this is the standard's UTF-8 percent-encode.
void percent_encode(std::string_view bytes, EncodeSet set, std::string& out);
std::string percent_encode(std::string_view bytes, EncodeSet set);
// A % that two hexadecimal digits do not follow stays.
std::string percent_decode(std::string_view text);

bool is_hex(char c);
int hex_value(char c);  // of what is_hex holds for

}  // namespace h5i::websec
