// The plugin's face: h5i.websec/1.
#include "h5i/plugin.hpp"
#include "plugins/websec-http/acts/acts.hpp"
#include "plugins/websec-http/engine/in_box.hpp"
#include "plugins/websec-http/engine/proof.hpp"

namespace {

using namespace h5i;

class HttpEngine : public sdk::Websec {
 public:
  sdk::Result<json::Value> probe() override {
    return json::Value(json::Object{{"schema", "h5i.probe/1"}, {"tier", H5I_PLUGIN_ID}, {"available", true}, {"components", json::Array{}}, {"claims", json::Array{}}, {"missing", json::Array{}}});
  }
  sdk::Result<json::Value> verify_exec(const json::Value&) override { return websec::prove(host()); }
  sdk::Status cleanup(std::string_view) override { return {}; }  // nothing of ours is outside the session's log

  sdk::Result<Answer> run(const json::Value& request) override {
    if (request["act"].string() == "in-box") return websec::serve_in_box(host(), static_cast<int>(request["channel"].integer(-1)));
    json::Value session = request["session"];
    if (request["channel"].is_int()) session["peer"] = request["channel"];
    websec::Act act = websec::act_named(request["act"].string());
    if (act == nullptr) return sdk::failure(H5I_E_INVALID, "this engine has no act " + request["act"].string());
    return act(host(), session, request["words"]);
  }
};

}  // namespace

H5I_EXPORT_PLUGIN(HttpEngine, H5I_PLUGIN_ID, H5I_PLUGIN_VERSION)
