#include "h5i/plugin.hpp"
#include "tests/host/engine_fixture/acts.hpp"

namespace {

using namespace h5i;

class Engine : public sdk::Websec {
 public:
  sdk::Result<json::Value> probe() override {
    return json::Value(json::Object{{"schema", "h5i.probe/1"}, {"spawn", host().start(json::Object{}, 1).ok()}});
  }
  sdk::Result<json::Value> verify_exec(const json::Value&) override { return sdk::failure(H5I_E_UNSUPPORTED, "a fixture proves nothing"); }
  sdk::Status cleanup(std::string_view) override { return {}; }

  sdk::Result<Answer> run(const json::Value& request) override {
    json::Value out = json::Object{};
    const json::Value& words = request["words"];
    if (request["act"].string() == "try") {
      for (auto& [name, attempt] : fixture::acts(".", words["theirs"].string()))
        if (name != "user-namespace" && name != "traced") out[name] = attempt();
      return Answer{std::move(out), 0};
    }
    if (request["act"].string() == "append") {
      out["seq"] = H5I_SDK_TRY(host().append(words["kind"].string(), words["body"]));
      return Answer{std::move(out), 1};
    }
    if (request["act"].string() == "flood") {
      int64_t n = 0;
      sdk::Status failed;
      for (; n < words["most"].integer() && failed.ok(); n++) {
        auto seq = host().append("send", json::Object{{"n", n}, {"filler", std::string(1000, 'x')}});
        if (!seq.ok()) failed = seq.error();
      }
      if (failed.ok()) return Answer{json::Object{{"written", n}}, 0};
      return failed.error();
    }
    if (request["act"].string() == "read") {
      H5I_SDK_TRY(host().records(static_cast<uint64_t>(words["from"].integer()), [&](const json::Value& r) {
        out["records"].push(r["kind"]);
        return out["records"].array().size() < 3;
      }));
      std::string digest = H5I_SDK_TRY(host().put("payload"));
      out["digest"] = digest;
      out["payload"] = H5I_SDK_TRY(host().get(digest, 100));
      out["absent"] = host().get(std::string(64, '0'), 100).ok();
      out["too-long"] = host().get(digest, 3).ok();
      H5I_SDK_TRY(host().flush());
      return Answer{std::move(out), 0};
    }
    if (request["act"].string() == "lines") {
      H5I_SDK_TRY(host().lines(static_cast<uint64_t>(words["from"].integer()), [&](uint64_t at, std::string_view line) {
        out["lines"].push(json::Object{{"at", at}, {"text", line}});
        return out["lines"].array().size() < 3;
      }));
      return Answer{std::move(out), 0};
    }
    if (request["act"].string() == "keep") {
      for (const char* path : {"state/index/new", "state/new", "blobs/new", "new"}) out[path] = fixture::opened(::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
      out["remove"] = fixture::answer(::unlink("state/index/new"));
      out["link"] = fixture::answer(::symlink("/etc/passwd", "state/index/link"));
      out["folder"] = fixture::answer(::mkdir("state/index/folder", 0700));
      return Answer{std::move(out), 0};
    }
    return sdk::failure(H5I_E_INVALID, "no such act");
  }
};

}  // namespace

H5I_EXPORT_PLUGIN(Engine, "fixture.engine", "1.0.0")
