// The C++ face of the plugin ABI: derive from h5i::sdk::Tier, return Result, export with H5I_EXPORT_PLUGIN.
//
// Header-only, C++20, no dependency but json.hpp. It fills sizes, stops exceptions at the boundary (they become
// H5I_E_PLUGIN_EXCEPTION), refuses calls from a second thread or from inside another verb, and wraps the host's
// services. A plugin built by h5i_add_plugin() carries its own C++ runtime, so nothing of C++ crosses to the host.
#pragma once
#include <cerrno>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>

#include "h5i/abi.h"
#include "h5i/host.h"
#include "h5i/json.hpp"
#include "h5i/tier.h"
#include "h5i/websec.h"

namespace h5i::sdk {

// What went wrong: one of H5I_E_*, the evidence in words (at most 240 bytes reach the host), errno or 0.
struct Failure {
  int32_t code = H5I_E_INTERNAL;
  std::string text;
  int32_t sys_errno = 0;
};

inline Failure failure(int32_t code, std::string text, int32_t sys_errno = 0) {
  return {code, std::move(text), sys_errno};
}
// For a failed system call: names the call and errno.
inline Failure system_failure(std::string call, int32_t err = errno) {
  return {H5I_E_SYSTEM, std::move(call) + ": " + strerror(err), err};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}            // NOLINT: implicit on purpose
  Result(Failure failure) : v_(std::in_place_index<1>, std::move(failure)) {}  // NOLINT
  bool ok() const { return v_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& operator*() & { return std::get<0>(v_); }
  const T& operator*() const& { return std::get<0>(v_); }
  T&& operator*() && { return std::get<0>(std::move(v_)); }
  T* operator->() { return &std::get<0>(v_); }
  const T* operator->() const { return &std::get<0>(v_); }
  const Failure& error() const { return std::get<1>(v_); }

 private:
  std::variant<T, Failure> v_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Failure failure) : e_(std::move(failure)) {}  // NOLINT
  bool ok() const { return !e_; }
  explicit operator bool() const { return ok(); }
  void operator*() const {}
  const Failure& error() const { return *e_; }

 private:
  std::optional<Failure> e_;
};
using Status = Result<void>;

// H5I_SDK_TRY(expr): the value of a Result, or return its Failure from the enclosing function (gcc and clang).
#define H5I_SDK_TRY(...)                                 \
  ({                                                     \
    auto h5i_sdk_try_ = (__VA_ARGS__);                   \
    if (!h5i_sdk_try_.ok()) return h5i_sdk_try_.error(); \
    *std::move(h5i_sdk_try_);                            \
  })

inline h5i_str to_str(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view to_view(h5i_str s) { return s.len == 0 ? std::string_view() : std::string_view(s.ptr, s.len); }

namespace detail {

inline h5i_status fill(h5i_error* e, const Failure& f) {
  if (e != nullptr && e->struct_size >= sizeof(h5i_error)) {
    size_t n = std::min(f.text.size(), sizeof e->text);
    while (n < f.text.size() && n > 0 && (static_cast<unsigned char>(f.text[n]) & 0xC0) == 0x80)
      n--;  // whole characters
    e->code = f.code;
    e->sys_errno = f.sys_errno;
    e->text_len = static_cast<uint32_t>(n);
    memcpy(e->text, f.text.data(), n);
  }
  return f.code;
}

inline Failure taken(h5i_status status, const h5i_error& e) {
  size_t n = std::min<size_t>(e.text_len, sizeof e.text);
  return {status, n == 0 ? "the host gave no text" : std::string(e.text, n), e.sys_errno};
}

struct Collected {
  std::string text;
  size_t limit;
};
inline h5i_status collect(void* sink, h5i_str document) {
  auto* c = static_cast<Collected*>(sink);
  if (document.len > c->limit - c->text.size()) return H5I_E_TOO_LARGE;
  try {
    c->text.append(to_view(document));
  } catch (const std::bad_alloc&) {
    return H5I_E_TOO_LARGE;
  }
  return H5I_OK;
}

}  // namespace detail

// ---- host services -------------------------------------------------------------------------------------------------

// How a spawned child ended; `output` only for a canary.
struct SpawnResult {
  h5i_spawn_result raw{};
  std::string output;
};

class Host {
 public:
  Host() = default;
  explicit Host(const h5i_host* host) : host_(host) {}

  // Level 1 error, 2 warning, 3 note, 4 detail. Never evidence. Silently nothing when the service was not asked for.
  void log(uint32_t level, std::string_view text) const {
    if (auto* s = service<h5i_host_log>(H5I_HOST_LOG)) (void)s->write(host_->context, level, to_str(text));
  }

  // One fact that the plugin saw from outside the box. boundary: FS, NET, PROC, RESOURCE, PROVENANCE.
  Status record(std::string_view boundary, std::string_view kind, const json::Value& body) const {
    auto* s = service<h5i_host_evidence>(H5I_HOST_EVIDENCE);
    if (s == nullptr) return missing(H5I_HOST_EVIDENCE);
    std::string text = json::canonical(body);
    h5i_error e = fresh();
    h5i_status r = s->record(host_->context, to_str(boundary), to_str(kind), to_str(text), &e);
    return r == H5I_OK ? Status() : Status(detail::taken(r, e));
  }

  // One line in the log of the websec session that this process serves; its number. In the log when this returns.
  Result<uint64_t> append(std::string_view kind, const json::Value& body) const {
    auto* s = service<h5i_host_session>(H5I_HOST_SESSION);
    if (s == nullptr) return missing(H5I_HOST_SESSION);
    std::string text = json::canonical(body);
    uint64_t seq = 0;
    h5i_error e = fresh();
    h5i_status r = s->append(host_->context, to_str(kind), to_str(text), &seq, &e);
    if (r != H5I_OK) return detail::taken(r, e);
    return seq;
  }
  Status flush() const {
    auto* s = service<h5i_host_session>(H5I_HOST_SESSION);
    if (s == nullptr) return missing(H5I_HOST_SESSION);
    h5i_error e = fresh();
    h5i_status r = s->flush(host_->context, &e);
    return r == H5I_OK ? Status() : Status(detail::taken(r, e));
  }
  // `each` gets the records from number `from` on until it returns false.
  Status records(uint64_t from, const std::function<bool(const json::Value&)>& each) const {
    auto* s = service<h5i_host_session>(H5I_HOST_SESSION);
    if (s == nullptr) return missing(H5I_HOST_SESSION);
    struct Reader {
      const std::function<bool(const json::Value&)>& each;
      bool enough = false;
      static h5i_status take(void* self, h5i_str text) {
        auto& r = *static_cast<Reader*>(self);
        try {
          auto v = json::parse(to_view(text));
          if (!v) return H5I_E_CORRUPT;
          r.enough = !r.each(*v);
          return r.enough ? static_cast<h5i_status>(H5I_E_CANCELLED) : static_cast<h5i_status>(H5I_OK);
        } catch (...) {
          return H5I_E_INTERNAL;
        }
      }
    } reader{each};
    h5i_error e = fresh();
    h5i_status r = s->read(host_->context, from, Reader::take, &reader, &e);
    return r == H5I_OK || reader.enough ? Status() : Status(detail::taken(r, e));
  }
  // `each` gets the log's lines from byte `offset` on, which begins one, and where each begins, until it returns false.
  Status lines(uint64_t offset, const std::function<bool(uint64_t at, std::string_view line)>& each) const {
    auto* s = service<h5i_host_session>(H5I_HOST_SESSION);
    if (s == nullptr) return missing(H5I_HOST_SESSION);
    struct Reader {
      const std::function<bool(uint64_t, std::string_view)>& each;
      uint64_t at;
      bool enough = false;
      static h5i_status take(void* self, h5i_str line) {
        auto& r = *static_cast<Reader*>(self);
        try {
          r.enough = !r.each(r.at, to_view(line));
          r.at += line.len + 1;
          return r.enough ? static_cast<h5i_status>(H5I_E_CANCELLED) : static_cast<h5i_status>(H5I_OK);
        } catch (...) {
          return H5I_E_INTERNAL;
        }
      }
    } reader{each, offset};
    h5i_error e = fresh();
    h5i_status r = s->lines(host_->context, offset, Reader::take, &reader, &e);
    return r == H5I_OK || reader.enough ? Status() : Status(detail::taken(r, e));
  }
  // A payload under its SHA-256, 64 hexadecimal digits.
  Result<std::string> put(std::string_view payload) const {
    auto* s = service<h5i_host_session>(H5I_HOST_SESSION);
    if (s == nullptr) return missing(H5I_HOST_SESSION);
    std::string digest(64, '0');
    h5i_error e = fresh();
    h5i_status r = s->put(host_->context, {reinterpret_cast<const uint8_t*>(payload.data()), payload.size()}, digest.data(), &e);
    if (r != H5I_OK) return detail::taken(r, e);
    return digest;
  }
  Result<std::string> get(std::string_view sha256, size_t limit) const {
    auto* s = service<h5i_host_session>(H5I_HOST_SESSION);
    if (s == nullptr) return missing(H5I_HOST_SESSION);
    detail::Collected out{{}, limit};
    h5i_error e = fresh();
    h5i_status r = s->get(host_->context, to_str(sha256), limit, detail::collect, &out, &e);
    if (r != H5I_OK) return detail::taken(r, e);
    return std::move(out.text);
  }

  // kind: H5I_SPAWN_WORKLOAD (once in a run) or H5I_SPAWN_CANARY. Returns when the child was cloned.
  Result<uint64_t> start(const json::Value& plan, uint32_t kind) const {
    auto* s = service<h5i_host_spawn>(H5I_HOST_SPAWN);
    if (s == nullptr) return missing(H5I_HOST_SPAWN);
    std::string text = json::canonical(plan);
    uint64_t handle = 0;
    h5i_error e = fresh();
    h5i_status r = s->start(host_->context, to_str(text), kind, &handle, &e);
    if (r != H5I_OK) return detail::taken(r, e);
    if (handle == 0) return failure(H5I_E_INTERNAL, "the host returned handle 0");
    return handle;
  }

  // Until every process of the handle is gone; timeout_ms < 0 waits for ever. H5I_E_TIMEOUT when the time was over
  // first.
  Result<SpawnResult> wait(uint64_t handle, int64_t timeout_ms = -1) const {
    auto* s = service<h5i_host_spawn>(H5I_HOST_SPAWN);
    if (s == nullptr) return missing(H5I_HOST_SPAWN);
    SpawnResult out;
    out.raw.struct_size = sizeof out.raw;
    detail::Collected c{{}, 256u << 10};
    h5i_error e = fresh();
    h5i_status r = s->wait(host_->context, handle, timeout_ms, &out.raw, detail::collect, &c, &e);
    if (r != H5I_OK) return detail::taken(r, e);
    out.output = std::move(c.text);
    return out;
  }

  Status kill(uint64_t handle) const {
    auto* s = service<h5i_host_spawn>(H5I_HOST_SPAWN);
    if (s == nullptr) return missing(H5I_HOST_SPAWN);
    h5i_error e = fresh();
    h5i_status r = s->kill(host_->context, handle, &e);
    return r == H5I_OK ? Status() : Status(detail::taken(r, e));
  }

  // {"available":bool,"base":path,"via":..,"controllers":[..],"reason":text} after a real trial.
  Result<json::Value> cgroup() const {
    auto* s = service<h5i_host_cgroup>(H5I_HOST_CGROUP);
    if (s == nullptr) return missing(H5I_HOST_CGROUP);
    detail::Collected c{{}, 64u << 10};
    h5i_error e = fresh();
    h5i_status r = s->describe(host_->context, detail::collect, &c, &e);
    if (r != H5I_OK) return detail::taken(r, e);
    auto v = json::parse(c.text);
    if (!v) return failure(H5I_E_JSON, "the host's description of its cgroup is not JSON");
    return std::move(*v);
  }

  // Nanoseconds of the host's monotonic clock; 0 when the service was not asked for.
  uint64_t monotonic_ns() const {
    auto* s = service<h5i_host_clock>(H5I_HOST_CLOCK);
    return s == nullptr ? 0 : s->monotonic_ns(host_->context);
  }
  // True after the run was cancelled or its deadline passed.
  bool cancelled() const {
    auto* s = service<h5i_host_clock>(H5I_HOST_CLOCK);
    return s != nullptr && s->cancelled(host_->context) != 0;
  }

 private:
  // A service that is shorter than what this SDK knows belongs to an older host and counts as absent.
  template <class T>
  const T* service(std::string_view id) const {
    if (host_ == nullptr || host_->get_interface == nullptr) return nullptr;
    auto* s = static_cast<const T*>(host_->get_interface(host_->context, to_str(id)));
    return s != nullptr && s->struct_size >= sizeof(T) && s->revision >= 1 ? s : nullptr;
  }
  static Failure missing(const char* id) {
    return failure(H5I_E_PLUGIN_SERVICE,
                   std::string(id) + " was not granted: name it in HOST_SERVICES of h5i_add_plugin()");
  }
  static h5i_error fresh() {
    h5i_error e{};
    e.struct_size = sizeof e;
    return e;
  }

  const h5i_host* host_ = nullptr;
};

// ---- tiers ---------------------------------------------------------------------------------------------------------

struct Outcome {
  uint32_t status = H5I_OUTCOME_SETUP_FAILED;
  int32_t code = 0;
  int32_t reason = H5I_E_INTERNAL;

  static Outcome exited(int32_t code) { return {H5I_OUTCOME_EXITED, code, 0}; }
  static Outcome signaled(int32_t signal) { return {H5I_OUTCOME_SIGNALED, signal, 0}; }
  static Outcome failed(uint32_t status, int32_t reason, int32_t code = 0) { return {status, code, reason}; }
};

// What the end of a child is for the core: an exec or a set-up that failed is a failure with its errno, all else the child's own
// end. A tier whose `run` starts one child returns this.
inline Result<Outcome> outcome_of(const SpawnResult& result) {
  const h5i_spawn_result& raw = result.raw;
  if (raw.exec_errno != 0) {
    bool absent = raw.exec_errno == ENOENT || raw.exec_errno == ENOTDIR;
    return failure(absent ? H5I_E_EXEC_NOT_FOUND : H5I_E_EXEC_NOT_EXECUTABLE, std::string("exec: ") + strerror(raw.exec_errno), raw.exec_errno);
  }
  if (raw.setup_errno != 0 || raw.status == H5I_OUTCOME_SETUP_FAILED)
    return failure(H5I_E_TIER_SETUP, "set-up of the box failed at: " + std::string(raw.setup_text, strnlen(raw.setup_text, sizeof raw.setup_text)),
                   raw.setup_errno);
  int32_t reason = raw.status == H5I_OUTCOME_TIMEOUT     ? static_cast<int32_t>(H5I_E_RUN_DEADLINE)
                   : raw.status == H5I_OUTCOME_VIOLATION ? static_cast<int32_t>(H5I_E_RUN_VIOLATION)
                   : raw.status == H5I_OUTCOME_CANCELLED ? static_cast<int32_t>(H5I_E_CANCELLED)
                                                         : 0;
  return Outcome{raw.status, raw.code, reason};
}

// The five verbs; what each promises is in tier.h. Called on one thread, one at a time.
class Tier {
 public:
  Tier() = default;
  Tier(const Tier&) = delete;
  Tier& operator=(const Tier&) = delete;
  virtual ~Tier() = default;

  // Once, before any verb; host() works from here on.
  virtual Status open() { return {}; }
  virtual Result<json::Value> probe() = 0;                                  // h5i.probe/1
  virtual Result<json::Value> verify_exec(const json::Value& request) = 0;  // h5i.run/1 -> h5i.verify/1
  virtual Result<json::Value> plan(const json::Value& request) = 0;         // h5i.run/1 -> h5i.plan/1
  virtual Result<Outcome> run(const json::Value& request) = 0;              // h5i.run/1
  virtual Status cleanup(std::string_view session) = 0;

 protected:
  const Host& host() const { return host_; }

 private:
  template <class T, class Kind>
  friend struct Fence;
  Host host_;
};

// ---- websec --------------------------------------------------------------------------------------------------------

// The four verbs; what each promises is in websec.h. Called on one thread, one at a time.
class Websec {
 public:
  Websec() = default;
  Websec(const Websec&) = delete;
  Websec& operator=(const Websec&) = delete;
  virtual ~Websec() = default;

  struct Answer {
    json::Value document;
    int32_t code = 0;  // 0 held, 1 did not, 2 could not look
  };

  // Once, before any verb; host() works from here on.
  virtual Status open() { return {}; }
  virtual Result<json::Value> probe() = 0;                                  // h5i.probe/1
  virtual Result<json::Value> verify_exec(const json::Value& request) = 0;  // h5i.websec-run/1 -> h5i.verify/1
  virtual Result<Answer> run(const json::Value& request) = 0;               // h5i.websec-run/1
  virtual Status cleanup(std::string_view session) = 0;

 protected:
  const Host& host() const { return host_; }

 private:
  template <class T, class Kind>
  friend struct Fence;
  Host host_;
};

// What stands between the C functions and one class of plugin: `Kind` is Tier or Websec.
template <class T, class Kind>
struct Fence {
  struct Instance {
    T plugin;
    std::thread::id thread = std::this_thread::get_id();
    bool busy = false;
  };

  // Runs `body` behind the fence. With an instance: on its thread only, never inside another verb.
  template <class F>
  static h5i_status fenced(void* instance, h5i_error* error, F&& body) noexcept {
    auto* in = static_cast<Instance*>(instance);
    bool entered = false;
    h5i_status status;
    try {
      if (in == nullptr) {
        status = detail::fill(error, failure(H5I_E_INTERNAL, "the plugin's instance is null"));
      } else if (in->thread != std::this_thread::get_id()) {
        status = detail::fill(error, failure(H5I_E_INTERNAL, "called on another thread than open()"));
      } else if (in->busy) {
        status = detail::fill(error, failure(H5I_E_INTERNAL, "called from inside another verb"));
      } else {
        in->busy = entered = true;
        Status s = body(in->plugin);
        status = s.ok() ? H5I_OK : detail::fill(error, s.error());
      }
    } catch (const std::exception& x) {
      status = caught(error, x.what());
    } catch (...) {
      status = caught(error, "an exception that is not a std::exception");
    }
    if (entered) in->busy = false;
    return status;
  }

  static h5i_status caught(h5i_error* error, const char* what) noexcept {
    // No allocation here: it may be an allocation that failed.
    if (error != nullptr && error->struct_size >= sizeof(h5i_error)) {
      size_t n = std::min(strlen(what), sizeof error->text);
      error->code = H5I_E_PLUGIN_EXCEPTION;
      error->sys_errno = 0;
      error->text_len = static_cast<uint32_t>(n);
      memcpy(error->text, what, n);
    }
    return H5I_E_PLUGIN_EXCEPTION;
  }

  static Status emit(const Result<json::Value>& document, h5i_sink_fn sink, void* context) {
    if (!document.ok()) return document.error();
    std::string text = json::canonical(*document);
    h5i_status r = sink(context, to_str(text));
    return r == H5I_OK ? Status() : Status(failure(r, "the host did not take the document"));
  }
  static Result<json::Value> parsed(h5i_str request) {
    json::ParseError e;
    auto v = json::parse(to_view(request), &e);
    if (!v) return failure(H5I_E_JSON, "request: " + e.message + " at byte " + std::to_string(e.offset));
    return std::move(*v);
  }

  static h5i_status open(const h5i_host* host, void** instance, h5i_error* error) noexcept {
    if (instance == nullptr) return H5I_E_INTERNAL;
    *instance = nullptr;
    try {
      if (host == nullptr || host->struct_size < sizeof(h5i_host))
        return detail::fill(error,
                            failure(H5I_E_PLUGIN_ABI_SIZE, "the host's struct is smaller than this plugin needs"));
      auto in = std::make_unique<Instance>();
      static_cast<Kind&>(in->plugin).host_ = Host(host);
      if (Status s = in->plugin.open(); !s.ok()) return detail::fill(error, s.error());
      *instance = in.release();
      return H5I_OK;
    } catch (const std::exception& x) {
      return caught(error, x.what());
    } catch (...) {
      return caught(error, "an exception that is not a std::exception");
    }
  }
  static void close(void* instance) noexcept { delete static_cast<Instance*>(instance); }
};

// The functions behind the entry symbol for one class of tier.
template <class T>
struct TierGlue : Fence<T, Tier> {
  using Base = Fence<T, Tier>;

  static h5i_status probe(void* instance, h5i_sink_fn sink, void* context, h5i_error* error) noexcept {
    return Base::fenced(instance, error, [&](Tier& t) { return Base::emit(t.probe(), sink, context); });
  }
  static h5i_status verify_exec(void* instance, h5i_str request, h5i_sink_fn sink, void* context,
                                h5i_error* error) noexcept {
    return Base::fenced(instance, error,
                  [&](Tier& t) -> Status { return Base::emit(t.verify_exec(H5I_SDK_TRY(Base::parsed(request))), sink, context); });
  }
  static h5i_status plan(void* instance, h5i_str request, h5i_sink_fn sink, void* context, h5i_error* error) noexcept {
    return Base::fenced(instance, error,
                  [&](Tier& t) -> Status { return Base::emit(t.plan(H5I_SDK_TRY(Base::parsed(request))), sink, context); });
  }
  static h5i_status run(void* instance, h5i_str request, h5i_outcome* outcome, h5i_error* error) noexcept {
    if (outcome == nullptr || outcome->struct_size < sizeof(h5i_outcome)) return H5I_E_PLUGIN_ABI_SIZE;
    h5i_status status = Base::fenced(instance, error, [&](Tier& t) -> Status {
      json::Value document = H5I_SDK_TRY(Base::parsed(request));
      Outcome o = H5I_SDK_TRY(t.run(document));
      outcome->status = o.status;
      outcome->code = o.code;
      outcome->reason = o.reason;
      return {};
    });
    if (status != H5I_OK) {
      outcome->status = H5I_OUTCOME_SETUP_FAILED;
      outcome->code = 0;
      outcome->reason = status;
    }
    return status;
  }
  static h5i_status cleanup(void* instance, h5i_str session, h5i_error* error) noexcept {
    return Base::fenced(instance, error, [&](Tier& t) { return t.cleanup(to_view(session)); });
  }

  static constexpr h5i_tier kTier = {sizeof(h5i_tier), 1, probe, verify_exec, plan, run, cleanup};

  static const void* get_interface(void*, h5i_str id) noexcept {
    return to_view(id) == H5I_TIER_INTERFACE ? &kTier : nullptr;
  }
};


// The same for one class of websec plugin.
template <class T>
struct WebsecGlue : Fence<T, Websec> {
  using Base = Fence<T, Websec>;

  static h5i_status probe(void* instance, h5i_sink_fn sink, void* context, h5i_error* error) noexcept {
    return Base::fenced(instance, error, [&](Websec& w) { return Base::emit(w.probe(), sink, context); });
  }
  static h5i_status verify_exec(void* instance, h5i_str request, h5i_sink_fn sink, void* context, h5i_error* error) noexcept {
    return Base::fenced(instance, error, [&](Websec& w) -> Status { return Base::emit(w.verify_exec(H5I_SDK_TRY(Base::parsed(request))), sink, context); });
  }
  static h5i_status run(void* instance, h5i_str request, h5i_sink_fn sink, void* context, h5i_outcome* outcome, h5i_error* error) noexcept {
    if (outcome == nullptr || outcome->struct_size < sizeof(h5i_outcome)) return H5I_E_PLUGIN_ABI_SIZE;
    h5i_status status = Base::fenced(instance, error, [&](Websec& w) -> Status {
      json::Value document = H5I_SDK_TRY(Base::parsed(request));
      Websec::Answer answer = H5I_SDK_TRY(w.run(document));
      outcome->status = H5I_OUTCOME_EXITED;
      outcome->code = answer.code;
      outcome->reason = 0;
      return Base::emit(std::move(answer.document), sink, context);
    });
    if (status != H5I_OK) {
      outcome->status = H5I_OUTCOME_SETUP_FAILED;
      outcome->code = 0;
      outcome->reason = status;
    }
    return status;
  }
  static h5i_status cleanup(void* instance, h5i_str session, h5i_error* error) noexcept {
    return Base::fenced(instance, error, [&](Websec& w) { return w.cleanup(to_view(session)); });
  }

  static constexpr h5i_websec kWebsec = {sizeof(h5i_websec), 1, probe, verify_exec, run, cleanup};

  static const void* get_interface(void*, h5i_str id) noexcept { return to_view(id) == H5I_WEBSEC_INTERFACE ? &kWebsec : nullptr; }
};

template <class T>
using Glue = std::conditional_t<std::is_base_of_v<Websec, T>, WebsecGlue<T>, TierGlue<T>>;

}  // namespace h5i::sdk

// Once in a plugin, outside any namespace: H5I_EXPORT_PLUGIN(MyTier, "com.example.my", "1.0.0"). Id and version are
// those given to h5i_add_plugin(), which also defines them as H5I_PLUGIN_ID and H5I_PLUGIN_VERSION.
#define H5I_EXPORT_PLUGIN(Type, id_text, version_text)                                               \
  extern "C" __attribute__((visibility("default"))) const h5i_plugin_entry h5i_plugin_entry_v1;      \
  extern "C" const h5i_plugin_entry h5i_plugin_entry_v1 = {sizeof(h5i_plugin_entry),                 \
                                                           H5I_ABI_MAJOR,                            \
                                                           H5I_ABI_MINOR,                            \
                                                           0,                                        \
                                                           {id_text, sizeof(id_text) - 1},           \
                                                           {version_text, sizeof(version_text) - 1}, \
                                                           h5i::sdk::Glue<Type>::open,               \
                                                           h5i::sdk::Glue<Type>::close,              \
                                                           h5i::sdk::Glue<Type>::get_interface};
