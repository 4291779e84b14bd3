#include "plugins/websec-http/engine/transport.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kMostIdle = 64;

std::string key(const Intent& to, bool h2) { return to.peer + " " + to.tls_name + " " + to.via + (h2 ? " h2" : ""); }

}  // namespace

std::unique_ptr<Wire> Transport::take(const Intent& to, bool h2) {
  std::lock_guard lock(one_);
  const std::string wanted = key(to, h2);
  for (auto it = idle_.find(wanted); it != idle_.end() && it->first == wanted; it = idle_.erase(it)) {
    if (!it->second->idle()) continue;
    auto out = std::move(it->second);
    idle_.erase(it);
    return out;
  }
  return std::make_unique<Wire>(host_);
}

void Transport::give(const Intent& to, bool h2, std::unique_ptr<Wire> wire) {
  std::lock_guard lock(one_);
  if (reuse_ && idle_.size() < kMostIdle && wire->idle()) idle_.emplace(key(to, h2), std::move(wire));
}

sdk::Result<const TlsContext*> Transport::trust() {
  std::lock_guard lock(one_);
  if (!context_) context_ = H5I_SDK_TRY(TlsContext::make(trust_));
  return &*context_;
}

}  // namespace h5i::websec
