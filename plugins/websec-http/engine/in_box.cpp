#include "plugins/websec-http/engine/in_box.hpp"

#include <condition_variable>
#include <map>
#include <memory>
#include <thread>

#include "plugins/websec-http/engine/channel.hpp"
#include "plugins/websec-http/engine/send.hpp"

namespace h5i::websec {
namespace {

// Shared with the threads of sends that are still at it when the channel has ended: the process ends over them.
struct Half {
  Half(const sdk::Host& h, int fd, Scope s, TlsContext::Options trust, bool reuse) : host(h), channel(fd), scope(std::move(s)), transport(h, std::move(trust), reuse) {}
  const sdk::Host& host;
  Channel channel;
  const Scope scope;
  Transport transport;
  std::mutex one;
  std::condition_variable came;
  std::map<int64_t, std::optional<Message>> answers;
  bool over = false;
};

class Line : public Far {
 public:
  Line(Half& half, int64_t id) : half_(half), id_(id) {}
  sdk::Result<Message> ask(Message question) override {
    question.say["id"] = id_;
    if (!half_.channel.send(question)) return sdk::failure(H5I_E_CANCELLED, "the half on the host is gone");
    std::unique_lock lock(half_.one);
    half_.came.wait(lock, [&] { return half_.over || half_.answers[id_]; });
    if (!half_.answers[id_]) return sdk::failure(H5I_E_CANCELLED, "the half on the host is gone");
    Message out = std::move(*half_.answers[id_]);
    half_.answers[id_].reset();
    if (out.say["error"].is_string()) return sdk::failure(static_cast<h5i_status>(out.say["code"].integer(H5I_E_INTERNAL)), out.say["error"].string());
    return out;
  }

 private:
  Half& half_;
  const int64_t id_;
};

sdk::Result<Sends> make(Half& half, Line& line, Message& m) {
  const json::Value& asked = m.say;
  Request request;
  request.method = asked["method"].string();
  request.form = static_cast<TargetForm>(asked["form"].integer());
  request.minor = static_cast<int>(asked["minor"].integer());
  if (asked["body"].boolean()) request.body = std::move(m.bytes.at(1));
  for (size_t i = 2; i < m.bytes.size(); i++)
    if (auto refused = request.headers.add_line(m.bytes[i])) return sdk::failure(H5I_E_INVALID, std::string(refused->id) + ": " + refused->what);
  SendOptions o;
  if (asked["raw"].boolean()) o.raw = std::move(m.bytes.at(0));
  o.follow = static_cast<int>(asked["follow"].integer());
  o.timeout_ns = asked["timeout_ns"].integer();
  o.lenient = asked["lenient"].boolean();
  o.most_bytes = static_cast<uint64_t>(asked["most_bytes"].integer());
  o.most_decoded = static_cast<uint64_t>(asked["most_decoded"].integer());
  o.expires_ns = asked["expires_ns"].integer();
  o.capture = asked["capture"].boolean();
  o.http2 = asked["http2"].boolean();
  o.credentials = asked["credentials"].boolean();
  o.listen_ns = asked["listen_ns"].integer();
  if (asked["document"].is_string()) o.document = H5I_SDK_TRY(Url::parse(asked["document"].string()));
  for (const json::Value& text : asked["messages"].array()) o.messages.push_back(text.string());
  o.transport = &half.transport;
  std::unique_ptr<CookieStore> jar;
  if (asked["cookies"].boolean()) jar = H5I_SDK_TRY(CookieStore::far(line));
  o.cookies = jar.get();
  if (asked["asks_before"].boolean())
    o.admit = [&] {
      auto go = line.ask({json::Object{{"op", "admit"}}, {}});
      return go.ok() && go->say["go"].boolean();
    };
  if (asked["holds"].boolean()) o.before_last_byte = [&] { (void)line.ask({json::Object{{"op", "hold"}}, {}}); };
  Recorder recorder(half.host, line);
  return send(half.host, recorder, half.scope, asked["url"].string(), std::move(request), o);
}

void one_send(Half& half, Message m) {
  const int64_t id = m.say["id"].integer();
  Line line(half, id);
  json::Value end = json::Object{{"op", "done"}, {"id", id}};
  auto failed = [&](h5i_status code, const std::string& text) {
    end["code"] = static_cast<int64_t>(code);
    end["error"] = text;
  };
  try {
    auto sends = make(half, line, m);
    if (sends.ok()) end["code"] = sends->code;
    else failed(sends.error().code, sends.error().text);
  } catch (const std::exception& e) {
    failed(H5I_E_INTERNAL, e.what());
  }
  (void)half.channel.send({std::move(end), {}});
  std::lock_guard lock(half.one);
  half.answers.erase(id);
}

}  // namespace

sdk::Result<sdk::Websec::Answer> serve_in_box(const sdk::Host& host, int channel) {
  std::string broken;
  auto begin = Channel(channel).receive(&broken);
  if (!begin) return sdk::Websec::Answer{json::Object{{"ended", true}}, 0};
  TlsContext::Options trust;
  trust.verify = begin->say["verify"].boolean(true);
  trust.ca_pem = begin->say["ca_pem"].string();
  auto half = std::make_shared<Half>(host, channel, H5I_SDK_TRY(Scope::parse(begin->say["scope"].string())), std::move(trust), begin->say["reuse"].boolean());
  while (auto m = half->channel.receive(&broken)) {
    if (m->say["op"].string() == "send") {
      std::thread([half, m = std::move(*m)]() mutable { one_send(*half, std::move(m)); }).detach();
      continue;
    }
    const int64_t id = m->say["id"].integer();
    std::lock_guard lock(half->one);
    half->answers[id] = std::move(*m);
    half->came.notify_all();
  }
  {
    std::lock_guard lock(half->one);
    half->over = true;
    half->came.notify_all();
  }
  return sdk::Websec::Answer{json::Object{{"ended", true}}, 0};
}

}  // namespace h5i::websec
