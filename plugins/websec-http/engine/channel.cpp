#include "plugins/websec-http/engine/channel.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace h5i::websec {
namespace {

constexpr size_t kPiece = 60 << 10;          // of a packet: what a socket's buffer holds for any user
constexpr size_t kMostMessage = 80u << 20;   // a payload of 64 MiB and what is said of it
constexpr size_t kMostDocument = 4u << 20;
constexpr size_t kMostParts = 4096;
constexpr char kLast = 0, kMore = 1;         // a packet's first byte

}  // namespace

bool Channel::send(const Message& message) {
  json::Value document = json::Object{{"say", message.say}};
  json::Value sizes = json::Array{};
  for (const std::string& b : message.bytes) sizes.push(b.size());
  document["sizes"] = std::move(sizes);
  std::string whole = json::canonical(document);
  const auto size = static_cast<uint32_t>(whole.size());
  if (whole.size() > kMostDocument || message.bytes.size() > kMostParts) return false;
  std::string head(sizeof size, '\0');
  memcpy(head.data(), &size, sizeof size);
  whole.insert(0, head);
  for (const std::string& b : message.bytes) whole += b;
  if (whole.size() > kMostMessage) return false;
  std::lock_guard lock(writing_);
  std::string packet;
  for (size_t at = 0; at < whole.size(); at += kPiece) {
    packet.assign(1, whole.size() - at > kPiece ? kMore : kLast);
    packet.append(whole, at, kPiece);
    ssize_t n;
    while ((n = ::send(fd_, packet.data(), packet.size(), MSG_NOSIGNAL)) < 0 && errno == EINTR) {
    }
    if (n != static_cast<ssize_t>(packet.size())) return false;
  }
  return true;
}

std::optional<Message> Channel::receive(std::string* broken) {
  std::string whole, packet(kPiece + 1, '\0');
  auto bad = [&](const char* why) {
    *broken = why;
    return std::nullopt;
  };
  for (;;) {
    ssize_t n;
    while ((n = recv(fd_, packet.data(), packet.size(), MSG_TRUNC)) < 0 && errno == EINTR) {
    }
    if (n <= 0) return whole.empty() ? std::nullopt : bad("a message that is cut");
    if (static_cast<size_t>(n) > packet.size() || (packet[0] != kLast && packet[0] != kMore)) return bad("a packet that is none of ours");
    whole.append(packet, 1, static_cast<size_t>(n) - 1);
    if (whole.size() > kMostMessage) return bad("a message beyond every limit");
    if (packet[0] == kLast) break;
  }
  uint32_t size = 0;
  if (whole.size() < sizeof size) return bad("a message without a document");
  memcpy(&size, whole.data(), sizeof size);
  if (size > kMostDocument || size > whole.size() - sizeof size) return bad("a document that is cut");
  auto document = json::parse(std::string_view(whole).substr(sizeof size, size));
  if (!document || !(*document)["say"].is_object()) return bad("a message whose document is none");
  Message out{(*document)["say"], {}};
  size_t at = sizeof size + size;
  for (const json::Value& part : (*document)["sizes"].array()) {
    const int64_t bytes = part.integer(-1);
    if (bytes < 0 || static_cast<uint64_t>(bytes) > whole.size() - at || out.bytes.size() == kMostParts) return bad("a message whose bytes are cut");
    out.bytes.push_back(whole.substr(at, static_cast<size_t>(bytes)));
    at += static_cast<size_t>(bytes);
  }
  return at == whole.size() ? std::optional<Message>(std::move(out)) : bad("a message with bytes that nobody counted");
}

void Channel::end() { (void)shutdown(fd_, SHUT_RDWR); }

}  // namespace h5i::websec
