#include "core/host/session_service.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/json.hpp"
#include "core/host/session_store.hpp"

namespace h5i::host {
namespace {

h5i_status without_session(h5i_error* error) { return fail(error, make_error(Errc::INVALID, "no session is served here", "the core gave none")); }

h5i_status session_append(void* context, h5i_str kind, h5i_str body, uint64_t* seq, h5i_error* error) {
  return fenced([&]() -> h5i_status {
    SessionStore* s = services_of(context).session;
    if (!s) return without_session(error);
    auto refuse = [&](const char* why) { return fail(error, make_error(Errc::INVALID, "record refused", why)); };
    std::string_view k, d;
    if (!view(kind, 64, &k) || !kind_spelling(k)) return refuse("kind is not [a-z0-9-]{1,64}");
    if (!view(body, kMaxSessionBody, &d)) return refuse("body above 256 KiB");
    if (seq == nullptr) return refuse("no place for the number");
    auto v = parse_json(d, "record", kMaxSessionBody);
    if (!v) return fail(error, v.error());
    if (!v->is_object()) return refuse("body is no JSON object");
    auto written = s->append(std::string(k), std::move(*v));
    if (!written) return fail(error, written.error());
    *seq = *written;
    return H5I_OK;
  });
}

h5i_status session_flush(void* context, h5i_error* error) {
  return fenced([&]() -> h5i_status {
    SessionStore* s = services_of(context).session;
    if (!s) return without_session(error);
    auto flushed = s->flush();
    return flushed ? H5I_OK : fail(error, flushed.error());
  });
}

h5i_status session_read(void* context, uint64_t from, h5i_sink_fn sink, void* sink_context, h5i_error* error) {
  return fenced([&]() -> h5i_status {
    SessionStore* s = services_of(context).session;
    if (!s) return without_session(error);
    if (sink == nullptr) return fail(error, make_error(Errc::INVALID, "read refused", "no sink"));
    h5i_status said = H5I_OK;
    auto read = s->read(from, [&](const Json& record) {
      std::string text = json::canonical(record);
      said = sink(sink_context, {text.data(), text.size()});
      return said == H5I_OK;
    });
    if (!read) return fail(error, read.error());
    return said == H5I_OK ? H5I_OK : fail(error, make_error(errc_from_number(said), "the plugin's sink refused a record"));
  });
}

h5i_status session_put(void* context, h5i_bytes payload, char* sha256, h5i_error* error) {
  return fenced([&]() -> h5i_status {
    SessionStore* s = services_of(context).session;
    if (!s) return without_session(error);
    if (sha256 == nullptr || payload.len > kMaxPayload || (payload.ptr == nullptr && payload.len > 0))
      return fail(error, make_error(Errc::TOO_LARGE, "payload refused", "above 64 MiB, or no place for its digest"));
    auto put = s->put({reinterpret_cast<const char*>(payload.ptr), payload.len});
    if (!put) return fail(error, put.error());
    memcpy(sha256, put->data(), 64);
    return H5I_OK;
  });
}

h5i_status session_get(void* context, h5i_str sha256, uint64_t limit, h5i_sink_fn sink, void* sink_context, h5i_error* error) {
  return fenced([&]() -> h5i_status {
    SessionStore* s = services_of(context).session;
    if (!s) return without_session(error);
    std::string_view name;
    if (sink == nullptr || !view(sha256, 64, &name)) return fail(error, make_error(Errc::INVALID, "payload refused", "no sink, or no digest"));
    auto got = s->get(std::string(name), std::min<uint64_t>(limit, kMaxPayload));
    return got ? sink(sink_context, {got->data(), got->size()}) : fail(error, got.error());
  });
}

h5i_status session_lines(void* context, uint64_t offset, h5i_sink_fn sink, void* sink_context, h5i_error* error) {
  return fenced([&]() -> h5i_status {
    SessionStore* s = services_of(context).session;
    if (!s) return without_session(error);
    if (sink == nullptr) return fail(error, make_error(Errc::INVALID, "read refused", "no sink"));
    h5i_status said = H5I_OK;
    auto read = s->lines(offset, [&](std::string_view line) {
      said = sink(sink_context, {line.data(), line.size()});
      return said == H5I_OK;
    });
    if (!read) return fail(error, read.error());
    return said == H5I_OK ? H5I_OK : fail(error, make_error(errc_from_number(said), "the plugin's sink refused a line"));
  });
}

constexpr h5i_host_session kSession = {sizeof(h5i_host_session), 3, session_append, session_flush, session_read, session_put, session_get, session_lines};

}  // namespace

std::vector<Offer> engine_offers() {
  std::vector<Offer> out = common_offers();
  out.push_back({H5I_HOST_SESSION, &kSession});
  return out;
}

}  // namespace h5i::host
