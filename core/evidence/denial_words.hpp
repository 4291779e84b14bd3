// What a refused system call means to the person whose program made it.
#pragma once
#include <string_view>

namespace h5i::evidence {

// One clause, with what to do instead. Empty for calls that programs do without by themselves, and for unknown names.
std::string_view denial_words(std::string_view syscall);

}  // namespace h5i::evidence
