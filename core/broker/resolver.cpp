#include "core/broker/resolver.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

namespace h5i::broker {

std::vector<Address> look_up(const std::string& name) {
  std::vector<Address> out;
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &list) != 0) return out;
  for (addrinfo* i = list; i; i = i->ai_next) {
    if (i->ai_family != AF_INET && i->ai_family != AF_INET6) continue;
    Address a;
    a.v6 = i->ai_family == AF_INET6;
    if (a.v6) memcpy(a.bytes.data(), &reinterpret_cast<const sockaddr_in6*>(i->ai_addr)->sin6_addr, 16);
    else memcpy(a.bytes.data(), &reinterpret_cast<const sockaddr_in*>(i->ai_addr)->sin_addr, 4);
    out.push_back(a);
  }
  freeaddrinfo(list);
  return out;
}

struct Resolver::Shared {
  Lookup lookup;
  UniqueFd ready;
  std::mutex mutex;
  std::condition_variable work;
  std::deque<std::string> questions;
  std::set<std::string> waiting;  // asked and not yet taken
  std::vector<std::pair<std::string, std::vector<Address>>> answers;
  bool over = false;
  unsigned held = 1;

  void serve() {
    for (;;) {
      std::string name;
      {
        std::unique_lock lock(mutex);
        work.wait(lock, [&] { return over || !questions.empty(); });
        if (over) return;
        name = std::move(questions.front());
        questions.pop_front();
      }
      std::vector<Address> found = lookup(name);
      if (found.size() > kMaxOfName) found.resize(kMaxOfName);
      std::lock_guard lock(mutex);
      if (over) return;
      answers.emplace_back(std::move(name), std::move(found));
      uint64_t one = 1;
      (void)!write(ready.get(), &one, sizeof one);
    }
  }
};

void Resolver::Leave::operator()(Shared* s) const {
  bool last;
  {
    std::lock_guard lock(s->mutex);
    last = --s->held == 0;
  }
  if (last) delete s;
}

Result<Resolver> Resolver::make(Lookup lookup) {
  Held s(new Shared);
  s->lookup = std::move(lookup);
  s->ready.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!s->ready) return sys_error("eventfd");
  Resolver out(std::move(s));
  Shared* shared = out.shared_.get();
  for (unsigned i = 0; i < kLookUpThreads; i++) {
    {
      std::lock_guard lock(shared->mutex);
      shared->held++;
    }
    try {
      std::thread([shared] { Held(shared)->serve(); }).detach();
    } catch (const std::system_error& e) {
      Leave()(shared);
      return sys_error("start a thread", e.code().value());
    }
  }
  return out;
}

Resolver::~Resolver() {
  if (!shared_) return;
  std::lock_guard lock(shared_->mutex);
  shared_->over = true;
  shared_->work.notify_all();
}

int Resolver::ready_fd() const { return shared_->ready.get(); }

const std::vector<Address>* Resolver::pinned(const std::string& name) const {
  auto it = pins_.find(name);
  return it == pins_.end() ? nullptr : &it->second;
}

Resolver::Asked Resolver::ask(const std::string& name) {
  if (pinned(name)) return Asked::KNOWN;
  std::lock_guard lock(shared_->mutex);
  if (shared_->waiting.count(name)) return Asked::WAIT;
  if (shared_->waiting.size() >= kMaxWaiting || pins_.size() + shared_->waiting.size() >= kMaxNames) return Asked::FULL;
  shared_->waiting.insert(name);
  shared_->questions.push_back(name);
  shared_->work.notify_one();
  return Asked::WAIT;
}

std::vector<std::string> Resolver::take() {
  uint64_t n;
  (void)!read(shared_->ready.get(), &n, sizeof n);
  std::vector<std::string> out;
  std::lock_guard lock(shared_->mutex);
  for (auto& [name, found] : shared_->answers) {
    shared_->waiting.erase(name);
    if (!found.empty()) pins_[name] = std::move(found);
    out.push_back(name);
  }
  shared_->answers.clear();
  return out;
}

}  // namespace h5i::broker
