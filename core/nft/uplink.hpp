// The program that carries a box's packets to the world, a TCP/IP stack in user space with the rights of whoever runs it:
// slirp4netns or pasta. It is started only after the rules were read back, and ends with this process.
#pragma once
#include <sys/types.h>

#include <string>
#include <string_view>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "core/nft/egress.hpp"
#include "core/nft/inside.hpp"

namespace h5i::nft {

// A program that is there and recent enough: every option that it is given here is one that it has.
struct UplinkProgram {
  bool pasta = false;
  std::string path;     // one that nobody but root could have put there
  std::string version;  // the first line of what it says
};

// Looks for one, in this order: slirp4netns, pasta. The program is asked for its version while the caller does something else.
class UplinkSearch {
 public:
  // `wanted`: "slirp4netns", "pasta", or "any" of them.
  explicit UplinkSearch(std::string_view wanted);
  UplinkSearch(UplinkSearch&&) = delete;
  ~UplinkSearch();
  // TIER_PROBE_MISSING with what is lacking of each that would do.
  Result<UplinkProgram> found();

 private:
  struct Question {  // a program that was asked something
    pid_t pid = -1;
    UniqueFd says;
  };
  void ask(size_t which);
  static Question put(const UniqueFd& program, const char* name, const char* option);
  static std::string answer(Question& question);
  std::string wanted_;
  std::string path_;
  size_t asked_ = 0;  // of the list in uplink.cpp; its end: none is there
  Question version_, help_;
  std::string lacking_;
};

// The uplink's own end of the link, of a network that is nobody's (TEST-NET-1).
constexpr const char* kGateway = "192.0.2.2";

struct UplinkOptions {
  bool ipv6 = false;
  bool host_loopback = false;  // the host's 127.0.0.1 answers at kGateway; the rules say at which ports
};

// The one destination that may name the gateway when the host's loopback answers there: else a rule for a wide network would
// reach the host's own services. INVALID with the destination that does.
constexpr const char* kHostLoopback = "host-loopback";
Result<void> check_gateway(const Egress& egress, bool host_loopback);

class Uplink {
 public:
  // Returns when packets are carried and the program's own system-call filter is on; TIER_SETUP with the program's own words when
  // it ended, TIMEOUT after 5 s.
  static Result<Uplink> start(const UplinkProgram& program, const Namespaces& namespaces, const UplinkOptions& options);
  Uplink(Uplink&& other) noexcept;
  ~Uplink();
  int pidfd() const { return pidfd_.get(); }  // readable when it has ended
  void left();                                // to be called then
  void end();                                 // at once: nothing is carried when it returns
  const UplinkProgram& program() const { return program_; }

 private:
  Uplink() = default;
  UplinkProgram program_;
  UniqueFd pidfd_;    // of the program, or of who holds it
  UniqueFd carrier_;  // of the program, where somebody holds it
  UniqueFd alive_;    // its end is the program's
  UniqueFd words_;  // what it prints: held, so that no print of it is its end
  pid_t pid_ = -1;
};

}  // namespace h5i::nft
