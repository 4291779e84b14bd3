// Names looked up on threads of their own, each once: what the first answer was is what a name means until the run is over, so that
// nobody can move it after it was checked.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/address.hpp"
#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"

namespace h5i::broker {

constexpr size_t kMaxNames = 1024;      // pinned in one run; `*.suffix` admits any number
constexpr size_t kMaxWaiting = 64;      // looked up or waiting for it
constexpr size_t kMaxOfName = 32;
constexpr unsigned kLookUpThreads = 4;  // one that hangs holds up no more than itself

using Lookup = std::function<std::vector<Address>(const std::string& name)>;
// By the C library, as the host's other programs do it.
std::vector<Address> look_up(const std::string& name);

class Resolver {
 public:
  static Result<Resolver> make(Lookup lookup);
  Resolver(Resolver&&) = default;
  ~Resolver();  // does not wait for a look-up that hangs: its thread goes when that has ended, or with the process

  enum class Asked { KNOWN, WAIT, FULL };
  // KNOWN: pinned(name) says it. WAIT: ready_fd() becomes readable when answers are there.
  Asked ask(const std::string& name);
  const std::vector<Address>* pinned(const std::string& name) const;
  int ready_fd() const;
  // Pins what has come. Names that mean nothing are told too, and not kept.
  std::vector<std::string> take();

 private:
  struct Shared;
  struct Leave {
    void operator()(Shared* s) const;
  };
  using Held = std::unique_ptr<Shared, Leave>;  // by this and by each of its threads; the last to leave removes it
  explicit Resolver(Held s) : shared_(std::move(s)) {}
  Held shared_;
  std::map<std::string, std::vector<Address>> pins_;
};

}  // namespace h5i::broker
