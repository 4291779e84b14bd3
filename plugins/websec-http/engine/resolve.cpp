#include "plugins/websec-http/engine/resolve.hpp"

#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace h5i::websec {

Found look_up(const Host& host, int64_t timeout_ns) {
  Found out;
  if (auto own = address_of(host)) {
    out.addresses.push_back(*own);
    return out;
  }
  // On a thread of the C library's, which alone can be left behind when nobody answers: what it reads then is never freed.
  struct Question {
    std::string host;
    addrinfo hints{};
    gaicb one{};
  };
  auto question = std::make_unique<Question>();
  question->host = host.text;
  question->hints.ai_socktype = SOCK_STREAM;
  question->one.ar_name = question->host.c_str();
  question->one.ar_request = &question->hints;
  gaicb* list[] = {&question->one};
  int err = getaddrinfo_a(GAI_NOWAIT, list, 1, nullptr);
  if (err == 0) {
    timespec patience{static_cast<time_t>(timeout_ns / 1'000'000'000), static_cast<long>(timeout_ns % 1'000'000'000)};
    (void)gai_suspend(list, 1, &patience);
    err = gai_error(&question->one);
    if (err == EAI_INPROGRESS) {
      if (gai_cancel(&question->one) == EAI_NOTCANCELED) (void)question.release();
      out.error = "no answer in " + std::to_string(timeout_ns / 1'000'000'000) + " s";
      return out;
    }
  }
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> answers(question->one.ar_result, [](addrinfo* a) {
    if (a) freeaddrinfo(a);
  });
  if (err != 0) {
    out.error = err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err);
    return out;
  }
  for (const addrinfo* a = answers.get(); a; a = a->ai_next) {
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
