#include "plugins/websec-http/engine/resolve.hpp"

#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace h5i::websec {

Found look_up(const Host& host) {
  Found out;
  if (auto own = address_of(host)) {
    out.addresses.push_back(*own);
    return out;
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int err = getaddrinfo(host.text.c_str(), nullptr, &hints, &first);
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(first, [](addrinfo* a) {
    if (a) freeaddrinfo(a);
  });
  if (err != 0) {
    out.error = err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err);
    return out;
  }
  for (const addrinfo* a = list.get(); a; a = a->ai_next) {
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
