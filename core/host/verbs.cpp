#include "core/host/verbs.hpp"

#include <optional>
#include <string>

#include "core/base/json.hpp"
#include "core/base/text.hpp"

namespace h5i::host {
namespace {

using plugin::Frame;
using plugin::FrameType;

h5i_error fresh_error() {
  h5i_error e{};
  e.struct_size = sizeof e;
  return e;
}

// One document a call, of bounded size; a second one is refused to the plugin, and so is a null pointer with a length.
struct Sink {
  std::optional<std::string> document;
  static h5i_status take(void* self, h5i_str d) noexcept {
    try {
      auto& s = *static_cast<Sink*>(self);
      if (s.document) return H5I_E_EXISTS;
      if (d.len > plugin::kMaxDocument) return H5I_E_TOO_LARGE;
      if (d.ptr == nullptr && d.len > 0) return H5I_E_INVALID;
      s.document.emplace(d.ptr, d.len);
      return H5I_OK;
    } catch (...) {
      return H5I_E_INTERNAL;
    }
  }
};

Result<void> send_result(Services& s, h5i_status status, const h5i_error& error, const h5i_outcome* outcome) {
  Json body = json::Object{{"schema", "h5i.result/1"}, {"status", status}, {"errno", 0}, {"text", ""}};
  if (status != H5I_OK) {
    Error e = from_c(status, error);
    body["status"] = static_cast<int64_t>(e.code);
    body["errno"] = e.sys_errno;
    body["text"] = e.evidence;
  }
  if (outcome)
    body["outcome"] =
        json::Object{{"status", outcome->status}, {"code", outcome->code}, {"reason", outcome->reason}};
  return plugin::send_frame(*s.control, FrameType::RESULT, s.request, json::canonical(body));
}

h5i_str str(const std::string& s) { return {s.data(), s.size()}; }

}  // namespace

Result<void> answer_error(Services& services, const Error& e) {
  h5i_error c = fresh_error();
  h5i_status status = fail(&c, e);
  return send_result(services, status, c, nullptr);
}

// An exception that leaves the plugin, which the ABI forbids, ends this process: two C++ runtimes cannot unwind through each
// other. The core sees PLUGIN_CRASHED.
Result<void> serve(Services& services, const Verbs& verbs, void* instance, const Frame& call) {
  services.request = call.request;
  services.in_run = call.type == FrameType::CALL_RUN;
  services.workload_started = false;
  h5i_error error = fresh_error();
  Sink sink;
  h5i_status status = H5I_OK;
  h5i_outcome outcome{};
  outcome.struct_size = sizeof outcome;
  const h5i_tier* tier = verbs.tier;
  const h5i_websec* websec = verbs.websec;
  switch (call.type) {
    case FrameType::CALL_PROBE:
      status = (tier ? tier->probe : websec->probe)(instance, Sink::take, &sink, &error);
      break;
    case FrameType::CALL_VERIFY:
      status = (tier ? tier->verify_exec : websec->verify_exec)(instance, str(call.body), Sink::take, &sink, &error);
      break;
    case FrameType::CALL_PLAN:
      if (!tier) return make_error(Errc::PLUGIN_PROTOCOL, "an engine has no plan");
      status = tier->plan(instance, str(call.body), Sink::take, &sink, &error);
      break;
    case FrameType::CALL_RUN:
      status = tier ? tier->run(instance, str(call.body), &outcome, &error) : websec->run(instance, str(call.body), Sink::take, &sink, &outcome, &error);
      break;
    case FrameType::CALL_CLEANUP: {
      auto body = parse_json(call.body, "cleanup", 4096);
      if (!body || !(*body)["session"].is_string())
        return make_error(Errc::PLUGIN_PROTOCOL, "cleanup without a session");
      const std::string& session = (*body)["session"].string();
      status = (tier ? tier->cleanup : websec->cleanup)(instance, str(session), &error);
      break;
    }
    default: return make_error(Errc::PLUGIN_PROTOCOL, "a frame that no core sends here");
  }
  if (call.type == FrameType::CALL_RUN) {
    // "Fills *outcome in every case." One that did not is not believed to have succeeded.
    if (outcome.status < H5I_OUTCOME_EXITED || outcome.status > H5I_OUTCOME_HOST_LOST) {
      if (status == H5I_OK) status = fail(&error, make_error(Errc::PLUGIN_PROTOCOL, "run returned without an outcome"));
      outcome.status = H5I_OUTCOME_SETUP_FAILED;
      outcome.code = 0;
      outcome.reason = status;
    }
    if (status == H5I_OK && sink.document) H5I_TRY(plugin::send_frame(*services.control, FrameType::DOCUMENT, call.request, *sink.document));
    return send_result(services, status, error, &outcome);
  }
  if (status == H5I_OK && sink.document)
    H5I_TRY(plugin::send_frame(*services.control, FrameType::DOCUMENT, call.request, *sink.document));
  return send_result(services, status, error, nullptr);
}

}  // namespace h5i::host
