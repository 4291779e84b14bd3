#include "plugins/websec-http/engine/resolve.hpp"

#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace h5i::websec {

namespace {

struct Question {
  std::string host, error;
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> answers{nullptr, &freeaddrinfo};
  bool done = false;
  std::mutex one;
  std::condition_variable answered;

  void ask() {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    const int err = getaddrinfo(host.c_str(), nullptr, &hints, &found);
    const int system = errno;
    std::lock_guard lock(one);
    if (err == 0) answers.reset(found);
    else error = err == EAI_SYSTEM ? strerror(system) : gai_strerror(err);
    done = true;
    answered.notify_all();
  }
};

}  // namespace

Found look_up(const Host& host, int64_t timeout_ns) {
  Found out;
  if (auto own = address_of(host)) {
    out.addresses.push_back(*own);
    return out;
  }
  // On a thread of its own, which is left behind when nobody answers: what it works on is its own too.
  auto question = std::make_shared<Question>();
  question->host = host.text;
  try {
    std::thread([question] { question->ask(); }).detach();
  } catch (const std::system_error& e) {
    out.error = e.what();
    return out;
  }
  std::unique_lock lock(question->one);
  if (!question->answered.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [&] { return question->done; })) {
    out.error = "no answer in " + std::to_string(timeout_ns / 1'000'000'000) + " s";
    return out;
  }
  if (!question->error.empty()) {
    out.error = question->error;
    return out;
  }
  for (const addrinfo* a = question->answers.get(); a; a = a->ai_next) {
    Address address;
    if (a->ai_family == AF_INET) {
      memcpy(address.bytes.data(), &reinterpret_cast<const sockaddr_in*>(a->ai_addr)->sin_addr, 4);
    } else if (a->ai_family == AF_INET6) {
      address.v6 = true;
      memcpy(address.bytes.data(), &reinterpret_cast<const sockaddr_in6*>(a->ai_addr)->sin6_addr, 16);
    } else {
      continue;
    }
    if (std::find(out.addresses.begin(), out.addresses.end(), address) == out.addresses.end()) out.addresses.push_back(address);
  }
  if (out.addresses.empty()) out.error = "no address";
  return out;
}

Endpoint endpoint(const Address& address, uint16_t port) {
  Endpoint out;
  if (address.v6) {
    auto* a = reinterpret_cast<sockaddr_in6*>(&out.address);
    a->sin6_family = AF_INET6;
    a->sin6_port = htons(port);
    memcpy(&a->sin6_addr, address.bytes.data(), 16);
    out.size = sizeof *a;
  } else {
    auto* a = reinterpret_cast<sockaddr_in*>(&out.address);
    a->sin_family = AF_INET;
    a->sin_port = htons(port);
    memcpy(&a->sin_addr, address.bytes.data(), 4);
    out.size = sizeof *a;
  }
  return out;
}

}  // namespace h5i::websec
