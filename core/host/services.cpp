#include "core/host/services.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>

#include "core/base/ids.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/os/cgroup.hpp"
#include "core/plugin/client.hpp"
#include "core/plugin/frame.hpp"

namespace h5i::host {
namespace {

using plugin::FrameType;

constexpr size_t kMaxLogLine = 4096;

Services& of(void* context) { return services_of(context); }

h5i_status send(Services& s, FrameType type, const Json& body, h5i_error* error) {
  auto sent = plugin::send_frame(*s.control, type, s.request, json::canonical(body));
  return sent ? H5I_OK : fail(error, sent.error());
}

h5i_status log_write(void* context, uint32_t level, h5i_str text) {
  return fenced([&]() -> h5i_status {
    std::string_view t;
    if (level < 1 || level > 4 || !view(text, SIZE_MAX / 2, &t)) return H5I_E_INVALID;
    Json body = json::Object{{"level", level}, {"text", printable(t.substr(0, kMaxLogLine))}};
    return send(of(context), FrameType::LOG, body, nullptr);
  });
}

bool known_boundary(std::string_view b) {
  for (std::string_view k : {"FS", "NET", "PROC", "RESOURCE", "PROVENANCE"})
    if (b == k) return true;
  return false;
}

h5i_status evidence_record(void* context, h5i_str boundary, h5i_str kind, h5i_str body, h5i_error* error) {
  return fenced([&]() -> h5i_status {
    auto refuse = [&](const char* why) { return fail(error, make_error(Errc::INVALID, "evidence refused", why)); };
    std::string_view b, k, d;
    if (!view(boundary, 64, &b) || !known_boundary(b)) return refuse("boundary is none of FS NET PROC RESOURCE PROVENANCE");
    if (!view(kind, 64, &k) || !kind_spelling(k)) return refuse("kind is not [a-z0-9-]{1,64}");
    if (!view(body, plugin::kMaxEvidenceBody, &d)) return refuse("body above 64 KiB");
    auto v = parse_json(d, "evidence", plugin::kMaxEvidenceBody);
    if (!v) return fail(error, v.error());
    if (!v->is_object()) return refuse("body is no JSON object");
    Json frame = json::Object{{"boundary", b}, {"kind", k}, {"body", std::move(*v)}};
    return send(of(context), FrameType::EVIDENCE, frame, error);
  });
}

uint64_t clock_monotonic(void*) { return static_cast<uint64_t>(monotonic_ns()); }

uint32_t clock_cancelled(void* context) {
  pollfd p{of(context).cancel->get(), POLLIN, 0};
  return poll(&p, 1, 0) > 0 ? 1 : 0;
}

h5i_status spawn_start(void* context, h5i_str plan, uint32_t kind, uint64_t* handle, h5i_error* error) {
  return fenced([&]() -> h5i_status {
    Services& s = of(context);
    auto refuse = [&](const char* why) { return fail(error, make_error(Errc::INVALID, "spawn refused", why)); };
    std::string_view document;
    if (!view(plan, spawn::kMaxPlan, &document) || document.empty()) return refuse("no plan, or one above 4 MiB");
    if (handle == nullptr) return refuse("no place for the handle");
    if (kind != H5I_SPAWN_WORKLOAD && kind != H5I_SPAWN_CANARY) return refuse("unknown kind");
    if (kind == H5I_SPAWN_WORKLOAD && !s.in_run) return refuse("a workload outside the verb run");
    if (kind == H5I_SPAWN_WORKLOAD && s.workload_started) return refuse("a second workload in one run");
    if (kind == H5I_SPAWN_WORKLOAD) s.workload_started = true;
    auto started = s.spawner->start(document, kind);
    if (!started) return fail(error, started.error());
    *handle = *started;
    return H5I_OK;
  });
}

h5i_status spawn_wait(void* context, uint64_t handle, int64_t timeout_ms, h5i_spawn_result* result, h5i_sink_fn sink,
                      void* sink_context, h5i_error* error) {
  return fenced([&]() -> h5i_status {
    if (result == nullptr || result->struct_size < sizeof(h5i_spawn_result))
      return fail(error, make_error(Errc::PLUGIN_ABI_SIZE, "wait refused", "h5i_spawn_result is smaller than this ABI's"));
    auto done = of(context).spawner->wait(handle, timeout_ms);
    if (!done) return fail(error, done.error());
    const spawn::SpawnResult& r = done->result;
    h5i_spawn_result out{};
    out.struct_size = result->struct_size;
    out.status = r.status;
    out.code = r.code;
    out.exec_errno = r.exec_errno;
    out.setup_errno = r.setup_errno;
    out.setup_step = r.setup_step;
    out.wall_us = r.wall_us;
    out.user_us = r.user_us;
    out.system_us = r.system_us;
    out.max_rss_kib = r.max_rss_kib;
    r.setup_text.copy(out.setup_text, sizeof out.setup_text - 1);
    memcpy(result, &out, sizeof out);
    return sink != nullptr && !done->output.empty() ? sink(sink_context, {done->output.data(), done->output.size()})
                                                    : H5I_OK;
  });
}

h5i_status spawn_kill(void* context, uint64_t handle, h5i_error* error) {
  return fenced([&]() -> h5i_status {
    auto killed = of(context).spawner->kill(handle);
    return killed ? H5I_OK : fail(error, killed.error());
  });
}

h5i_status cgroup_describe(void* context, h5i_sink_fn sink, void* sink_context, h5i_error* error) {
  return fenced([&]() -> h5i_status {
    if (sink == nullptr) return fail(error, make_error(Errc::INVALID, "describe refused", "no sink"));
    os::CgroupBase base = os::find_cgroup_base({of(context).spawner_pid});
    Json controllers = json::Array{};
    for (const std::string& c : base.controllers) controllers.push(c);
    Json d = json::Object{{"available", base.available}, {"base", base.base},     {"via", base.via},
                          {"controllers", controllers},  {"reason", base.reason}};
    std::string text = json::canonical(d);
    return sink(sink_context, {text.data(), text.size()});
  });
}

constexpr h5i_host_log kLog = {sizeof(h5i_host_log), 1, log_write};
constexpr h5i_host_evidence kEvidence = {sizeof(h5i_host_evidence), 1, evidence_record};
constexpr h5i_host_clock kClock = {sizeof(h5i_host_clock), 1, clock_monotonic, clock_cancelled};

constexpr h5i_host_spawn kSpawn = {sizeof(h5i_host_spawn), 1, spawn_start, spawn_wait, spawn_kill};
constexpr h5i_host_cgroup kCgroup = {sizeof(h5i_host_cgroup), 1, cgroup_describe};

const void* get_interface(void* context, h5i_str id) {
  std::string_view wanted;
  if (!view(id, 128, &wanted)) return nullptr;
  const auto& granted = of(context).granted;
  if (std::find(granted.begin(), granted.end(), wanted) == granted.end()) return nullptr;
  for (const Offer& o : of(context).offers)
    if (o.id == wanted) return o.functions;
  return nullptr;
}

}  // namespace

Services& services_of(void* context) { return *static_cast<Services*>(context); }

bool view(h5i_str s, size_t limit, std::string_view* out) {
  if (s.len > limit || (s.ptr == nullptr && s.len > 0)) return false;
  *out = s.len == 0 ? std::string_view() : std::string_view(s.ptr, s.len);
  return true;
}

bool kind_spelling(std::string_view k) {
  if (k.empty() || k.size() > 64) return false;
  return std::all_of(k.begin(), k.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

std::vector<Offer> common_offers() { return {{H5I_HOST_LOG, &kLog}, {H5I_HOST_EVIDENCE, &kEvidence}, {H5I_HOST_CLOCK, &kClock}}; }

std::vector<Offer> tier_offers() {
  std::vector<Offer> out = common_offers();
  out.insert(out.end(), {{H5I_HOST_SPAWN, &kSpawn}, {H5I_HOST_CGROUP, &kCgroup}});
  return out;
}

const h5i_host* Services::host() {
  host_ = {sizeof(h5i_host), 0, this, get_interface};
  return &host_;
}

h5i_status fail(h5i_error* error, const Error& e) {
  auto status = static_cast<h5i_status>(e.code);
  if (error == nullptr || error->struct_size < sizeof(h5i_error)) return status;
  std::string text = e.what + (e.evidence.empty() ? "" : ": " + e.evidence);
  size_t n = std::min(text.size(), sizeof error->text);
  while (n > 0 && n < text.size() && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) n--;
  error->code = status;
  error->sys_errno = e.sys_errno;
  error->text_len = static_cast<uint32_t>(n);
  memcpy(error->text, text.data(), n);
  return status;
}

Error from_c(h5i_status status, const h5i_error& error) {
  if (error.text_len > sizeof error.text)
    return make_error(Errc::PLUGIN_ABI_SIZE, "the plugin refused",
                      "its error says " + std::to_string(error.text_len) + " bytes of text, has " + std::to_string(sizeof error.text));
  Errc code = errc_from_number(status);
  std::string text = printable(std::string_view(error.text, error.text_len));
  if (code == Errc::INTERNAL && status != static_cast<h5i_status>(code))
    text = "status " + std::to_string(status) + ", which this host does not know" + (text.empty() ? "" : ": " + text);
  Error e = make_error(code, "the plugin refused", text);
  e.sys_errno = error.sys_errno;
  return e;
}

}  // namespace h5i::host
