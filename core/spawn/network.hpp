// The spawner's hold on h5i-net, which gives a box's network its rules from outside and says afterwards what went where.
#pragma once
#include <sys/types.h>

#include <string>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "core/spawn/plan.hpp"

namespace h5i::spawn {

class BoxNetwork {
 public:
  // Returns when the rules were given, read back and found to be what was meant, and the way out (if any) carries packets.
  // `program`: h5i-net as a sealed memfd. The namespaces are the box's; both are borrowed for the call.
  static Result<BoxNetwork> begin(int program, int user_namespace, int net_namespace, const NetworkSpec& spec);
  BoxNetwork(BoxNetwork&& other) noexcept;
  BoxNetwork& operator=(BoxNetwork&&) = delete;
  ~BoxNetwork();  // ends h5i-net and, with it, the way out

  // The report (h5i.network/1), canonical; at most kMaxNetwork bytes.
  Result<std::string> end();

 private:
  BoxNetwork() = default;
  Result<std::string> ask(const Json& request, int64_t timeout_ms);
  UniqueFd socket_, pidfd_;
  pid_t pid_ = -1;
};

}  // namespace h5i::spawn
