// One act of sending, hop by hop: inner to this folder. send.cpp has the order, request_bytes.cpp the bytes, tunnel.cpp the way through a proxy, document.cpp
// what a document has to ask first.
#pragma once
#include <memory>

#include "plugins/websec-http/cors/cors.hpp"
#include "plugins/websec-http/engine/exchange.hpp"
#include "plugins/websec-http/engine/send.hpp"

namespace h5i::websec {

class Sender {
 public:
  Sender(const sdk::Host& host, Recorder& recorder, const Scope& scope, const SendOptions& options)
      : host_(host), recorder_(recorder), scope_(scope), options_(options), most_bytes_(options.most_bytes), most_decoded_(options.most_decoded), own_(host, {}), transport_(options.transport ? *options.transport : own_) {}
  sdk::Result<Sends> run(const std::string& url, Request request);

 private:
  // Where a URL leads, after the scope and the addresses were judged.
  struct Way {
    Decision decision;
    Address address;
    Peer peer;
  };
  // What became of one send.
  struct Made {
    std::unique_ptr<Exchange> exchange;
    json::Value facts;
  };

  sdk::Status refuse(const std::string& url, const char* why, const std::string& text, int code, const std::string& rule = {});
  sdk::Result<std::optional<Url>> one(const Url& url, const Request& request);
  // Nothing: it was refused, and the line says why.
  sdk::Result<std::optional<Way>> way_to(const Url& url, Decision decision);
  sdk::Result<std::optional<Decision>> in_scope(const Url& url);
  // Recorded, sent, answered, and its outcome recorded.
  sdk::Result<std::optional<Made>> make(const Url& url, Intent intent, const Peer& peer, Asked asked, std::unique_ptr<Wire> wire);
  sdk::Status told(const Recorded& sent, Made& made);
  bool has_paths(const Url& url) const;

  // A connection that leads to `way`: dialled before, or not yet, or a tunnel. Nothing: the proxy was refused, or refused.
  sdk::Result<std::unique_ptr<Wire>> wire_for(const Url& url, const Way& way, Intent& intent, bool h2);
  sdk::Result<std::unique_ptr<Wire>> open_tunnel(const Url& url, const Way& way);

  // May the document's script send this? Asks first where it must.
  sdk::Result<bool> document_may(const Url& url, const Request& request);
  DocumentRequest as_document(const Url& url, const Request& request) const;
  void judge_for_document(const Url& url, const Request& request, const ResponseHead& head, json::Value& facts) const;

  Refused write_bytes(const Url& url, const Request& request, Wire& wire, bool h2, Asked& how, Intent& intent);
  Refused write_h1(Request& request, bool socket, Asked& how, Intent& intent);
  Refused write_h2(const Request& request, Wire& wire, Asked& how, Intent& intent);
  std::string choose_cookies(const Url& url, Request& request, Intent& intent);
  Requester requester(const Url& url, const std::string& method) const;

  const sdk::Host& host_;
  Recorder& recorder_;
  const Scope& scope_;
  SendOptions options_;  // what an answer may have gets less from hop to hop
  const uint64_t most_bytes_, most_decoded_;
  Transport own_;
  Transport& transport_;
  Sends out_;
  uint64_t parent_ = 0;
  int hops_ = 0, status_ = 0;
  uint64_t used_wire_ = 0, used_decoded_ = 0;  // by this send and the hops before
  int64_t dns_us_ = 0;
  bool tainted_ = false;  // a redirect between two origins that are not the document's: it has no name any more
  std::vector<std::string> dropped_;
};

}  // namespace h5i::websec
