// Lines as a policy: r, w, d, l, h before a path that is read, written, denied, locked, hidden, p before anything that asks for the proxy. What is
// made reads back by the language's grammar, has no path in its text, lets nobody at what is denied and nothing out but to the proxy's port.
#include <map>

#include "core/policy/seatbelt.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/policy/sbpl.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace h5i;
  using namespace h5i::test;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  Json fs = json::Object{{"read", json::Array()}, {"write", json::Array()}, {"deny", json::Array()}};
  Json net = json::Object{{"mode", "deny"}};
  policy::SeatbeltRun run;
  run.work = "/w";
  while (!text.empty()) {
    std::string l(line(text));
    if (l.empty()) continue;
    std::string path = l.substr(1);
    switch (l[0]) {
      case 'r': fs["read"].push(path); break;
      case 'w': fs["write"].push(path); break;
      case 'd': fs["deny"].push(path); break;
      case 'l': run.locked.push_back(path); break;
      case 'h': run.hidden.push_back(path); break;
      case 'p': run.proxy = 3128, net["egress"].push("host.example:443"); break;
      default: run.work = l; break;
    }
  }
  Json profile = json::Object{{"fs", fs}, {"net", net}};
  auto made = policy::seatbelt_profile(json::Object{{"schema", "h5i.policy/1"}, {"profile", profile}}, run);
  if (!made) return 0;

  for (char c : made->text) want(c == '\n' || (c >= 0x20 && c < 0x7f && c != '/' && c != '\\'));
  std::map<std::string, std::string> parameters;
  for (const auto& p : made->parameters) parameters[p.name] = p.value;
  auto rules = sbpl::read(made->text, parameters);
  want(rules && parameters.size() == made->parameters.size() && rules->used.size() == parameters.size());
  std::vector<std::string> denied = run.hidden;
  for (const Json& d : fs["deny"].array()) denied.push_back(d.string().substr(0, 5) == "$WORK" ? run.work + d.string().substr(5) : d.string());
  for (const std::string& d : denied)
    for (const std::string& path : {d, d == "/" ? "/x" : d + "/x"})
      for (const char* operation : {"file-read-data", "file-read-metadata", "file-write-data", "file-write-unlink", "process-exec", "file-map-executable"})
        want(!rules->may(operation, path));
  for (const std::string& l : run.locked) want(!rules->may("file-write-data", l) && !rules->may("file-write-unlink", l));
  want(!rules->may("file-write-create", "/nobody's/name") || !fs["write"].array().empty());
  want(rules->may("network-outbound", "localhost:3128") == run.proxy.has_value());
  for (const char* where : {"*:3128", "localhost:22", "192.0.2.1:443"}) want(!rules->may("network-outbound", where) && !rules->may("network-bind", where));
  return 0;
}
