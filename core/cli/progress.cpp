#include "core/cli/progress.hpp"

#include <unistd.h>

#include "core/base/ids.hpp"
#include "core/base/text.hpp"

namespace h5i::cli {
namespace {

constexpr long long kQuietNs = 500'000'000;   // shorter work needs no word
constexpr long long kRedrawNs = 100'000'000;  // as often as an eye follows
constexpr size_t kWidth = 78;

void put(const std::string& text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // a terminal that is gone needs no progress
}

}  // namespace

Progress::Progress(const Context& ctx) : wanted_(!ctx.quiet && ::isatty(STDERR_FILENO) == 1), began_ns_(monotonic_ns()) {}

Progress::~Progress() { done(); }

void Progress::done() {
  if (drawn_) put("\r" + std::string(kWidth, ' ') + "\r");
  drawn_ = false;
}

void Progress::say(const std::string& step) {
  if (!wanted_) return;
  long long now = monotonic_ns();
  if (now - began_ns_ < kQuietNs || (drawn_ && now - drawn_ns_ < kRedrawNs)) return;
  std::string text = printable(step, {.limit = kWidth - 4});
  text.resize(std::max(text.size(), kWidth), ' ');
  put("\r" + text);
  drawn_ = true;
  drawn_ns_ = now;
}

}  // namespace h5i::cli
