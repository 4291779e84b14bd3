// The spawner's hold on h5i-net, which gives a box's network its rules from outside and says afterwards what went where.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "core/spawn/plan.hpp"

namespace h5i::spawn {

class BoxNetwork {
 public:
  // `program`: h5i-net as a sealed memfd. It is started before its box is: what it takes to load goes on beside the clone.
  static Result<BoxNetwork> start(int program);
  // Once. Returns when the rules were given, read back and found to be what was meant, and the way out (if any) carries packets.
  // The namespaces are the box's; both are borrowed for the call.
  Result<void> begin(int user_namespace, int net_namespace, const NetworkSpec& spec);
  BoxNetwork(BoxNetwork&& other) noexcept;
  BoxNetwork& operator=(BoxNetwork&&) = delete;
  ~BoxNetwork();  // ends h5i-net and, with it, the way out

  // Other rules for the box that runs; one change at a time. `fds`: a sealed memfd with {"egress": h5i.egress/1, "hosts": text}, the
  // second optional and with the user and mount namespaces whose /etc/hosts it becomes. Returns when it was asked.
  Result<void> ask_change(std::vector<UniqueFd> fds);
  // Readable when the answer is there; -1 when nothing was asked.
  int answer_fd() const { return change_until_ns_ ? socket_.get() : -1; }
  int64_t change_until_ns() const { return change_until_ns_; }  // monotonic; 0 when nothing was asked
  // Not `certain`: nobody knows what holds the box now.
  struct Changed {
    bool certain = true;
    std::string said;  // {"before","rules"}: digests; or {"error","what","evidence"}
  };
  // Of what was asked, waiting for it until its time is over.
  Changed changed();

  // The report (h5i.network/1), canonical; at most kMaxNetwork bytes.
  Result<std::string> end();

 private:
  BoxNetwork() = default;
  Result<Json> answered(int64_t timeout_ms);
  Result<std::string> ask(const Json& request, int64_t timeout_ms, const std::vector<int>& fds = {});
  UniqueFd socket_, pidfd_;
  pid_t pid_ = -1;
  int64_t change_until_ns_ = 0;
  bool silent_ = false;  // it did not answer in its time: what it says later is to an old question
};

}  // namespace h5i::spawn
