// What came back, as facts for the log: digests and sizes of what was on the wire and of what it decodes to, names and never values.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "h5i/plugin.hpp"
#include "plugins/websec-http/decode/decode.hpp"
#include "plugins/websec-http/digest/sha256.hpp"
#include "plugins/websec-http/http/response.hpp"
#include "plugins/websec-http/url/url.hpp"

namespace h5i::websec {

// The body of an answer: hashed as it came, decoded in a stream; kept when messages are, and its first bytes for who looks at them.
class AnswerBody : public BodySink {
 public:
  // `head`: of the answer, known when the first byte comes. `events`: gets what is decoded when it is a stream of events.
  AnswerBody(bool keep, uint64_t most_decoded, std::function<const ResponseHead&()> head, BodySink* events = nullptr)
      : keep_(keep), most_decoded_(most_decoded), head_(std::move(head)), events_(events) {}
  bool take(std::string_view bytes) override;
  void finish();
  // After finish(): "body_sha256", "decoded_bytes", ... and what is odd about the coding.
  void describe(json::Value& facts, json::Value& odd);
  const std::string& kept() const { return kept_; }
  const std::string& decoded_start() const { return decoded_.start; }

 private:
  struct Decoded : BodySink {
    bool take(std::string_view bytes) override;
    std::string start;
    Sha256 hash;
    BodySink* events = nullptr;
  };
  bool keep_;
  uint64_t most_decoded_;
  std::function<const ResponseHead&()> head_;
  BodySink* events_;
  std::string kept_;
  Sha256 hash_;
  Decoded decoded_;
  std::unique_ptr<BodyDecoder> decoder_;
  bool begun_ = false;
};

// What an origin wrote, for a line of the log: valid UTF-8 and short.
std::string log_text(std::string_view bytes);
// A URL that is none may hold a password as well as one that is.
std::string log_url(std::string_view text);
// The name of a cookie; what has no name may be all value.
std::string cookie_name(std::string_view pair);

// Status, names of headers and cookies, type, where it leads.
void describe_head(const ResponseHead& head, json::Value& facts);
// What the exchange shows of itself about safety: cookie flags, policies, leaks.
json::Value passive_lines(const Url& url, std::string_view request_head, const ResponseHead& head, std::string_view body_start);
// The next hop, when the answer names one; otherwise says in the facts why it is none.
std::optional<Url> next_hop(const Url& from, const ResponseHead& head, json::Value& facts);

}  // namespace h5i::websec
