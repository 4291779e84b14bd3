#include "plugins/websec-http/engine/recorder.hpp"

#include <algorithm>
#include <utility>

#include "plugins/websec-http/digest/sha256.hpp"

namespace h5i::websec {
namespace {

// What an origin can have a say in. Digests, addresses and sizes are ours, and stay what they are.
constexpr const char* kOfOthers[] = {"url", "text", "reason", "content_type", "location", "location_error", "headers", "set_cookie", "passive", "retry_after", "goaway", "jar", "cookies", "withheld", "type", "id"};

json::Value names(const std::vector<std::string>& list) {
  json::Value out = json::Array{};
  for (const std::string& s : list) out.push(s);
  return out;
}

}  // namespace

json::Value value_of(const Intent& i) {
  json::Value body = json::Object{{"method", i.method},
                                  {"url", i.url},
                                  {"peer", i.peer},
                                  {"cookies", names(i.cookies)},
                                  {"credentials", names(i.credentials)},
                                  {"computed", names(i.computed)}};
  if (!i.tls_name.empty()) body["tls_name"] = i.tls_name;
  if (i.parent != 0) body["parent"] = i.parent;
  if (!i.dropped.empty()) body["dropped"] = names(i.dropped);
  if (!i.withheld.empty()) body["withheld"] = names(i.withheld);
  if (!i.via.empty()) body["via"] = i.via;
  if (!i.tunnel_to.empty()) body["tunnel_to"] = i.tunnel_to;
  body["requester"] = i.document.empty() ? "tester" : "document " + i.document;
  if (i.preflight) body["preflight"] = true;
  if (!i.protocol.empty()) body["protocol"] = i.protocol;
  if (!i.left_out.empty()) body["left_out"] = names(i.left_out);
  if (i.raw) body["raw"] = true;
  return body;
}

Intent intent_of(const json::Value& facts) {
  Intent i;
  i.method = facts["method"].string();
  i.url = facts["url"].string();
  i.peer = facts["peer"].string();
  i.tls_name = facts["tls_name"].string();
  i.via = facts["via"].string();
  i.tunnel_to = facts["tunnel_to"].string();
  i.preflight = facts["preflight"].boolean();
  i.protocol = facts["protocol"].string();
  i.raw = facts["raw"].boolean();
  i.parent = static_cast<uint64_t>(facts["parent"].integer());
  constexpr std::string_view kDocument = "document ";
  if (const std::string& by = facts["requester"].string(); by.starts_with(kDocument)) i.document = by.substr(kDocument.size());
  const std::pair<const char*, std::vector<std::string>*> lists[] = {{"cookies", &i.cookies},   {"credentials", &i.credentials}, {"computed", &i.computed},
                                                                     {"dropped", &i.dropped},   {"withheld", &i.withheld},       {"left_out", &i.left_out}};
  for (const auto& [name, list] : lists)
    for (const json::Value& v : facts[name].array()) list->push_back(v.string());
  return i;
}

sdk::Result<uint64_t> Recorder::ask(json::Value question, std::vector<std::string> bytes) {
  Message answer = H5I_SDK_TRY(far_->ask({std::move(question), std::move(bytes)}));
  return static_cast<uint64_t>(answer.say["seq"].integer());
}

sdk::Result<Recorded> Recorder::intent(Intent i) {
  if (far_) {
    uint64_t seq = H5I_SDK_TRY(ask(json::Object{{"op", "intent"}, {"facts", value_of(i)}}, {i.head, i.body}));
    return Recorded(seq, std::move(i));
  }
  json::Value body = value_of(i);
  body["rule"] = i.rule;
  body["head_sha256"] = sha256_hex(i.head);
  body["head_bytes"] = i.head.size();
  body["body_sha256"] = sha256_hex(i.body);
  body["body_bytes"] = i.body.size();
  body["placement"] = placement_;
  if (i.replay_of != 0) body["replay_of"] = i.replay_of;
  if (!i.identity.empty()) body["identity"] = i.identity;
  if (!i.experiment.empty()) {
    body["experiment"] = i.experiment;
    body["input"] = i.input;
  }
  if (degraded_) return degraded();
  if (budget_) {
    std::lock_guard lock(one_);
    if (auto over = budget_->take()) return sdk::failure(H5I_E_WEB_BUDGET, *std::move(over));
  }
  uint64_t seq = H5I_SDK_TRY(host_.append("send", without_values(std::move(body))));
  H5I_SDK_TRY(on_disk(seq));
  return Recorded(seq, std::move(i));
}

json::Value Recorder::without_values(json::Value body) const {
  if (!names_) return body;
  bool changed = false;
  for (const char* field : kOfOthers) {
    const json::Value& now = std::as_const(body)[field];
    if (now.is_null()) continue;
    json::Value with_names = names_(now);
    if (with_names == now) continue;
    body[field] = std::move(with_names);
    changed = true;
  }
  if (changed) body["hidden"] = true;
  return body;
}

sdk::Failure Recorder::degraded() { return sdk::failure(H5I_E_LOG_WRITE, "an outcome could not be written to the session's log: nothing more is sent"); }

// Who comes while nobody flushes does it for all whose lines are in the log by then; the others wait for that, or for the one after it.
sdk::Status Recorder::on_disk(uint64_t seq) {
  if (!durable_) return {};
  std::unique_lock lock(disk_);
  written_ = std::max(written_, seq + 1);
  while (safe_ <= seq) {
    if (flushing_) {
      flushed_.wait(lock);
      continue;
    }
    flushing_ = true;
    const uint64_t until = written_;
    lock.unlock();
    sdk::Status done = host_.flush();
    lock.lock();
    flushing_ = false;
    if (done.ok()) safe_ = std::max(safe_, until);
    flushed_.notify_all();
    if (!done.ok()) return done;
  }
  return {};
}

Recorder::Left Recorder::left() const {
  std::lock_guard lock(one_);
  return budget_ ? Left{budget_->left_wire(), budget_->left_decoded()} : Left{};
}

std::optional<Budget> Recorder::budget() const {
  std::lock_guard lock(one_);
  return budget_;
}

sdk::Result<uint64_t> Recorder::line_of_frame(const Recorded& sent, const Frame& f) {
  if (far_) {
    return ask(json::Object{{"op", "frame"}, {"of", sent.seq()}, {"to_peer", f.to_peer}, {"opcode", static_cast<int64_t>(f.opcode)}, {"final", f.final}, {"kept", f.kept}}, {std::string(f.payload)});
  }
  if (degraded_) return degraded();
  json::Value body = json::Object{{"of", sent.seq()},
                                  {"direction", f.to_peer ? "send" : "receive"},
                                  {"opcode", static_cast<int64_t>(f.opcode)},
                                  {"final", f.final},
                                  {"bytes", f.payload.size()},
                                  {"sha256", sha256_hex(f.payload)}};
  if (!f.kept.empty()) body["payload"] = f.kept;
  auto written = host_.append("frame", body);
  if (!written.ok()) degraded_ = true;
  return written;
}

sdk::Result<RecordedFrame> Recorder::frame(const Recorded& sent, const Frame& f, std::string bytes) {
  const uint64_t seq = H5I_SDK_TRY(line_of_frame(sent, f));
  H5I_SDK_TRY(on_disk(seq));
  return RecordedFrame(std::move(bytes));
}

sdk::Status Recorder::received(const Recorded& sent, const Frame& f) {
  auto written = line_of_frame(sent, f);
  return written.ok() ? sdk::Status() : sdk::Status(written.error());
}

sdk::Status Recorder::outcome(const Recorded& sent, json::Value facts) {
  if (far_) {
    auto told = ask(json::Object{{"op", "outcome"}, {"of", sent.seq()}, {"facts", std::move(facts)}});
    return told.ok() ? sdk::Status() : sdk::Status(told.error());
  }
  facts["of"] = sent.seq();
  if (budget_) {
    std::lock_guard lock(one_);
    budget_->add(facts);
  }
  facts = without_values(std::move(facts));
  auto written = host_.append("outcome", facts);
  // What a peer said may be more than a line holds: how it ended is told all the same.
  if (!written.ok() && written.error().code != H5I_E_LOG_WRITE) {
    json::Value least = json::Object{{"of", sent.seq()}, {"ended", facts["ended"]}, {"text", "what else was seen is too much for a line"}};
    if (facts["status"].is_int()) least["status"] = facts["status"];
    written = host_.append("outcome", least);
  }
  if (written.ok()) return {};
  degraded_ = true;
  return written.error();
}

sdk::Result<uint64_t> Recorder::refusal(json::Value facts) {
  if (far_) return ask(json::Object{{"op", "refused"}, {"facts", std::move(facts)}});
  return host_.append("refused", without_values(std::move(facts)));
}

sdk::Result<uint64_t> Recorder::note(std::string_view kind, const json::Value& facts) {
  if (far_) return ask(json::Object{{"op", "note"}, {"kind", kind}, {"facts", facts}});
  return host_.append(kind, without_values(facts));
}

sdk::Result<std::string> Recorder::keep(std::string_view payload) {
  if (!far_) return host_.put(payload);
  Message answer = H5I_SDK_TRY(far_->ask({json::Object{{"op", "keep"}}, {std::string(payload)}}));
  return answer.say["sha256"].string();
}

}  // namespace h5i::websec
