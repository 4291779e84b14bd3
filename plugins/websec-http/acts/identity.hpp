// Who asks: header lines whose values are names of secrets. The values come with an act and are in no line.
#pragma once
#include "h5i/plugin.hpp"
#include "plugins/websec-http/engine/recorder.hpp"
#include "plugins/websec-http/http/request.hpp"
#include "plugins/websec-http/replay/placeholder.hpp"

namespace h5i::websec {

inline constexpr const char* kNobody = "none";  // nobody's: what says who asks is taken out, and nothing comes for it

struct Identity {
  std::string name;
  std::vector<std::string> headers, secrets;  // names
  std::string lines;                          // the payload that holds the lines: its SHA-256
};

// Those that were added and not removed, in the order of the log.
sdk::Result<std::vector<Identity>> identities(const sdk::Host& host);

// Every value as its name again, in every string of a document.
json::Value hidden(json::Value document, const Secrets& secrets);

// One act's identities with the values that it was given.
class Identities {
 public:
  // `words` has "secrets", an object of names and values.
  static sdk::Result<Identities> of(const sdk::Host& host, const json::Value& words);
  // H5I_E_NOT_FOUND when there is none of that name, or a value is missing.
  sdk::Status check(const std::string& name) const;
  // `request` asked by that one: every header that says who asks goes, whose names are `dropped`, and the identity's come.
  sdk::Status become(Request& request, const std::string& name, std::vector<std::string>* dropped) const;
  json::Value hidden(json::Value document) const { return websec::hidden(std::move(document), secrets_); }
  // What an origin sends back of a value is its name in the log's lines too. For as long as this lives.
  void keep_out_of(Recorder& recorder) const;
  const Secrets& secrets() const { return secrets_; }

 private:
  sdk::Result<const Identity*> find(const std::string& name) const;
  Secrets secrets_;
  std::vector<Identity> all_;
  std::map<std::string, std::vector<std::string>> lines_;  // of each identity, without values
};

}  // namespace h5i::websec
