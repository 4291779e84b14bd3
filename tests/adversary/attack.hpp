// What the files of h5i-attack share: a try, its words, and its answer.
#pragma once
#include <cerrno>
#include <span>

namespace attack {

constexpr int kMaxArgs = 12;
constexpr int kUnknown = 250;  // exit status of a try's child, above every errno

struct Words {
  int count;
  char* at[kMaxArgs];
  const char* operator[](int i) const { return i < count ? at[i] : ""; }
};

// Negative with errno set, or something else when it succeeded.
using Act = long (*)(const Words&);
struct Try {
  const char* name;
  Act act;
};
std::span<const Try> call_tries();
std::span<const Try> socket_tries();
std::span<const Try> process_tries();
std::span<const Try> limit_tries();
std::span<const Try> file_tries();
std::span<const Try> view_tries();

long number(const char* s);
long signed_number(const char* s);
bool is(const char* a, const char* b);

// A detail for people. The answer is what the exit status says.
__attribute__((format(printf, 1, 2))) void say(const char* format, ...);
void nap(int ms);

inline long refused(int err) {
  errno = err;
  return -1;
}

}  // namespace attack
