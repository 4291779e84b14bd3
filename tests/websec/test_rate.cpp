// The ceiling in any window, the mean of who always asks, and who waits.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "plugins/websec-http/rate/turns.hpp"
#include "tests/support/catch.hpp"

using namespace h5i;
using namespace h5i::websec;

namespace {

constexpr int64_t kS = 1'000'000'000, kMs = 1'000'000;

Rate rate(const char* text) {
  auto r = parse_rate(text);
  REQUIRE(r.ok());
  return *r;
}

// The most starts that a window of this length holds, both of its ends included.
int64_t most_in(const std::vector<int64_t>& starts, int64_t window) {
  int64_t most = 0;
  for (size_t from = 0, to = 0; to < starts.size(); to++) {
    while (starts[to] - starts[from] > window) from++;
    most = std::max(most, static_cast<int64_t>(to - from + 1));
  }
  return most;
}

int64_t real_now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * kS + t.tv_nsec;
}
void real_sleep(int64_t until) {
  timespec t{until / kS, until % kS};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
}

}  // namespace

TEST_CASE("a rate is a number in a window, and what is none is refused with the forms") {
  struct Row {
    const char* text;
    int64_t starts, window_s;
  };
  for (const Row& r : {Row{"20/s", 20, 1}, {"1000/s", 1000, 1}, {"100/min", 100, 60}, {"10/min", 10, 60}, {"6/h", 6, 3600}, {"0.5/s", 1, 2}, {"2.5/s", 5, 2}, {"0.25/s", 1, 4}, {"1.50/s", 3, 2}, {"100000/s", 100000, 1}}) {
    CAPTURE(r.text);
    Rate got = rate(r.text);
    CHECK(got.starts == r.starts);
    CHECK(got.window_ns == r.window_s * kS);
  }
  for (const char* text : {"", "20", "/s", "20/", "20/m", "20/sec", "-1/s", "+1/s", "0/s", "0.00/s", "1.234/s", ".5/s", "5./s", "1e3/s", " 1/s", "1/s ", "1 /s", "100001/s", "99999999999999999999/s", "1,5/s", "1/2/s", "1000.01/s"}) {
    CAPTURE(text);
    auto got = parse_rate(text);
    REQUIRE_FALSE(got.ok());
    CHECK(got.error().code == H5I_E_INVALID);
    CHECK(got.error().text.find("N/s, N/min or N/h") != std::string::npos);
  }
}

TEST_CASE("whoever asks whenever, no window is above the ceiling; whoever always asks gets 97 % of it") {
  std::mt19937_64 random(7);
  for (const char* text : {"1/s", "3/s", "20/s", "1000/s", "100/min", "10/min", "0.5/s", "2.5/s"}) {
    const Rate r = rate(text);
    for (int kind = 0; kind < 5; kind++) {
      CAPTURE(text, kind);
      Gate gate(r);
      std::vector<int64_t> starts;
      // Always asks: wakes late by up to 0.3 ms, and now and then by 5. Otherwise pauses of any
      // length lie between, or none for a while, or the machine stands still for long.
      for (int64_t now = static_cast<int64_t>(random() % 1000) * kMs; starts.size() < static_cast<size_t>(std::max<int64_t>(r.starts * 6, 200));) {
        const int64_t asked = now, at = gate.next(now);
        REQUIRE(at >= now);
        if (at > now) now = at + static_cast<int64_t>(random() % (kind == 0 ? 1 : 300'000));
        if (kind == 1 && random() % 200 == 0) now += static_cast<int64_t>(random() % (5 * kMs));
        if (kind == 4 && random() % 20 == 0) now += static_cast<int64_t>(random() % (80 * kMs));
        REQUIRE(gate.next(now) == now);
        gate.take(now, asked);
        starts.push_back(now);
        if (kind == 2) now += static_cast<int64_t>(random() % static_cast<uint64_t>(2 * r.window_ns / r.starts + 1));
        if (kind == 3 && random() % 20 == 0) now += static_cast<int64_t>(random() % static_cast<uint64_t>(3 * r.window_ns));
      }
      CHECK(most_in(starts, r.window_ns) <= r.starts);
      // 15 ms between this decision and a packet change nothing at the other end.
      std::vector<int64_t> arrivals = starts;
      for (int64_t& t : arrivals) t += static_cast<int64_t>(random() % (std::min<int64_t>(15 * kMs, r.window_ns / 60)));
      std::sort(arrivals.begin(), arrivals.end());
      CHECK(most_in(arrivals, r.window_ns) <= r.starts);
      if (kind > 1) continue;
      const double took = static_cast<double>(starts.back() - starts.front());
      const double mean = static_cast<double>(starts.size() - 1) / took, ceiling = static_cast<double>(r.starts) / static_cast<double>(r.window_ns);
      CHECK(mean >= 0.97 * ceiling);
      CHECK(mean <= ceiling);
    }
  }
}

TEST_CASE("starts are spaced evenly, and what nobody asked for is not saved up") {
  Gate gate(rate("10/min"));
  int64_t now = 0;
  std::vector<int64_t> starts;
  for (int i = 0; i < 5; i++) {
    const int64_t asked = now;
    now = gate.next(now);
    gate.take(now, asked);
    starts.push_back(now);
  }
  CHECK(starts[4] >= 24 * kS);
  CHECK(starts[4] <= 24 * kS + 20 * kMs);
  for (int i = 1; i < 5; i++) CHECK(starts[static_cast<size_t>(i)] - starts[static_cast<size_t>(i - 1)] >= 6 * kS);
  // An hour later one may start at once, and the next six seconds after it.
  now += 3600 * kS;
  CHECK(gate.next(now) == now);
  gate.take(now, now);
  CHECK(gate.next(now) >= now + 6 * kS);
  // One that was let go late by a second: no more than a few milliseconds are made up for.
  const int64_t due = gate.next(now);
  gate.take(due + kS, now);
  CHECK(gate.next(due + kS) >= due + kS + 6 * kS - 50 * kMs);
  CHECK(gate.next(due + kS) < due + kS + 6 * kS);
  // At a thousand a second, what comes after a pause is one by one as well.
  Gate fast(rate("1000/s"));
  for (int64_t t : {int64_t{0}, 10 * kS}) {
    fast.take(t, t);
    CHECK(fast.next(t) >= t + kMs);
  }
}

TEST_CASE("one gate for all threads: the clock is simulated, the threads are not") {
  for (const char* text : {"20/s", "100/min", "1000/s"}) {
    const Rate r = rate(text);
    std::atomic<int64_t> now{0};
    // Time passes only when somebody sleeps, and then a little too far.
    Turns turns(r, {[&] { return now.load(); }, [&](int64_t until) { now.store(std::max(now.load(), until + 40'000)); }}, [] { return false; });
    std::mutex one;
    std::vector<int64_t> starts;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; t++)
      threads.emplace_back([&] {
        for (int i = 0; i < 400; i++) {
          REQUIRE(turns.wait());
          std::lock_guard lock(one);
          starts.push_back(now.load());
        }
      });
    for (auto& t : threads) t.join();
    std::sort(starts.begin(), starts.end());
    CAPTURE(text);
    CHECK(starts.size() == 3200);
    const double mean = static_cast<double>(starts.size() - 1) / static_cast<double>(starts.back() - starts.front());
    CHECK(mean <= static_cast<double>(r.starts) / static_cast<double>(r.window_ns));
    CHECK(mean >= 0.97 * static_cast<double>(r.starts) / static_cast<double>(r.window_ns));
  }
}

TEST_CASE("on the machine's own clock with eight threads, a ceiling holds in every second") {
  const Rate r = rate("200/s");
  Turns turns(r, {real_now, real_sleep}, [] { return false; });
  std::mutex one;
  std::vector<int64_t> starts;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; t++)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; i++) {
        if (!turns.wait()) return;
        const int64_t now = real_now();
        std::lock_guard lock(one);
        starts.push_back(now);
      }
    });
  for (auto& t : threads) t.join();
  std::sort(starts.begin(), starts.end());
  REQUIRE(starts.size() == 400);
  CHECK(most_in(starts, kS) <= 200);
  CHECK(starts.back() - starts.front() >= 399 * (kS / 200) * 99 / 100);
}

TEST_CASE("whoever waits is let go when it is stopped, and has taken nothing") {
  std::atomic<bool> stop{false};
  Turns turns(rate("1/h"), {real_now, real_sleep}, [&] { return stop.load(); });
  REQUIRE(turns.wait());
  std::atomic<int> let_go{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) threads.emplace_back([&] { let_go += turns.wait() ? 100 : 1; });
  const int64_t begun = real_now();
  stop = true;
  for (auto& t : threads) t.join();
  CHECK(let_go == 4);
  CHECK(real_now() - begun < 2 * kS);
}
