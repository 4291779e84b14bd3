// The jar of one identity in a session, on disk between two acts. May be used by several threads.
#pragma once
#include <memory>
#include <mutex>
#include <string>

#include "h5i/plugin.hpp"
#include "plugins/websec-http/cookie/jar.hpp"
#include "plugins/websec-http/engine/channel.hpp"

namespace h5i::websec {

// The list that the system has, or else the one that libpsl was built with.
sdk::Result<SuffixList> system_suffix_list();

class CookieStore {
 public:
  // Reads state/jar-IDENTITY.json in the session's folder; none is an empty jar. "" is nobody's: the session's own.
  static sdk::Result<std::unique_ptr<CookieStore>> open(const std::string& identity);
  // In a box: the jar stays on the host, which is asked what of it goes with one request.
  static sdk::Result<std::unique_ptr<CookieStore>> far(Far& far);

  Selection select(const Url& url, const Requester& requester = {});
  bool same_site(const Url& a, const Url& b) const { return websec::same_site(a, b, list_); }
  // Each Set-Cookie line of an answer, and what became of it: [{"cookie":..,"kept":bool,"why":..}].
  json::Value store(const Url& url, const std::vector<std::string_view>& lines);
  // On disk, when something changed: readable by this user alone.
  sdk::Status save();
  // Names, domains and lifetimes; never a value.
  json::Value list();
  void clear();

 private:
  explicit CookieStore(std::string file, SuffixList list) : file_(std::move(file)), list_(std::move(list)) {}
  sdk::Status load();
  std::mutex one_;
  Far* far_ = nullptr;
  const std::string file_;
  const SuffixList list_;
  Jar jar_;
  bool changed_ = false;
};

}  // namespace h5i::websec
