#include "plugins/websec-http/engine/dialogue.hpp"

#include <sys/random.h>
#include <time.h>

#include "plugins/websec-http/http/websocket.hpp"

namespace h5i::websec {
namespace {

constexpr size_t kPiece = 64 << 10;
constexpr uint64_t kMostFrames = 100'000;
constexpr int64_t kGoodbyeNs = 1'000'000'000;  // how long a peer has to answer our close

int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

class Speaker : public WsSink {
 public:
  Speaker(Recorder& recorder, const Recorded& sent, Wire& wire, const Dialogue& dialogue)
      : recorder_(recorder), sent_(sent), wire_(wire), dialogue_(dialogue), reader_(false, !dialogue.lenient, {}) {}

  sdk::Result<DialogueEnd> run(std::string_view rest) {
    for (const std::string& m : dialogue_.messages) {
      H5I_SDK_TRY(say(kWsText, m));
      if (!end_.ended.empty()) return std::move(end_);
    }
    int64_t until = now_ns() + dialogue_.listen_ns;
    H5I_SDK_TRY(hear(rest));
    bool closing = false;
    std::string piece(kPiece, '\0');
    while (end_.ended.empty()) {
      if (reader_.oddities().refused()) {
        end_.why = oddity_meaning(*reader_.oddities().refusal());
        H5I_SDK_TRY(say(kWsClose, websocket_close(reader_.failure_code().value_or(1002), "")));
        end_.ended = "refused";
        break;
      }
      if (reader_.closed()) {
        if (!closing) H5I_SDK_TRY(say(kWsClose, websocket_close(reader_.close_code().value_or(1000), "")));
        end_.ended = closing ? "listened" : "closed";
        break;
      }
      wire_.begin(until);
      size_t got = 0;
      if (auto e = wire_.read(sent_, piece.data(), piece.size(), &got)) {
        if (e->id == "timeout" && !closing) {
          closing = true;
          until = now_ns() + kGoodbyeNs;
          H5I_SDK_TRY(say(kWsClose, websocket_close(1000, "")));
          continue;
        }
        end_.ended = closing ? "listened" : std::string(e->id);
        if (!closing) end_.why = e->text;
        break;
      }
      if (got == 0) {
        reader_.end();
        end_.ended = closing ? "listened" : "connection-lost";
        break;
      }
      H5I_SDK_TRY(hear({piece.data(), got}));
    }
    end_.close_code = reader_.close_code().value_or(0);
    for (const Oddity& o : reader_.oddities().list()) end_.facts.push(json::Object{{"id", oddity_id(o.id)}, {"offset", o.offset}, {"count", o.count}});
    return std::move(end_);
  }

 private:
  sdk::Result<std::string> keep(std::string_view payload) {
    if (!dialogue_.capture) return std::string();
    return recorder_.keep(payload);
  }

  sdk::Status say(uint8_t opcode, std::string_view payload) {
    std::array<uint8_t, 4> mask{};
    if (getrandom(mask.data(), mask.size(), 0) != static_cast<ssize_t>(mask.size())) return sdk::failure(H5I_E_SYSTEM, "no random bytes for a frame's mask");
    WsFrame frame;
    frame.opcode = opcode;
    frame.masked = true;
    Frame line{.to_peer = true, .opcode = opcode, .final = true, .payload = payload, .kept = H5I_SDK_TRY(keep(payload))};
    RecordedFrame token = H5I_SDK_TRY(recorder_.frame(sent_, line, websocket_frame(frame, payload, mask)));
    if (auto e = wire_.write(sent_, token)) {
      if (end_.ended.empty()) end_.ended = e->id, end_.why = e->text;
    } else {
      end_.frames_sent++;
      end_.bytes_sent += token.bytes().size();
    }
    return {};
  }

  sdk::Status hear(std::string_view bytes) {
    end_.bytes_received += bytes.size();
    reader_.feed(bytes, *this);
    if (failed_) return std::move(*failed_);
    if (end_.bytes_received > dialogue_.most_bytes || end_.frames_received > kMostFrames) {
      end_.ended = "refused";
      end_.why = "more than the limit of what is listened to";
    }
    std::vector<std::string> pings;
    pings.swap(pings_);
    for (const std::string& p : pings)
      if (end_.ended.empty()) H5I_SDK_TRY(say(kWsPong, p));
    return {};
  }

  bool frame(const WsFrame& f, std::string_view payload) override {
    auto kept = keep(payload);
    auto written = kept.ok() ? recorder_.received(sent_, Frame{.to_peer = false, .opcode = f.opcode, .final = f.final, .payload = payload, .kept = *kept}) : sdk::Status(kept.error());
    if (!written.ok()) {
      failed_ = std::move(written);
      return false;
    }
    return ++end_.frames_received <= kMostFrames;
  }
  bool message(uint8_t opcode, std::string_view payload) override {
    if (opcode == kWsPing) pings_.emplace_back(payload);
    return true;
  }

  Recorder& recorder_;
  const Recorded& sent_;
  Wire& wire_;
  const Dialogue& dialogue_;
  WebsocketReader reader_;
  DialogueEnd end_;
  std::vector<std::string> pings_;
  std::optional<sdk::Status> failed_;
};

}  // namespace

sdk::Result<DialogueEnd> converse(Recorder& recorder, const Recorded& sent, Wire& wire, std::string_view rest, const Dialogue& dialogue) {
  return Speaker(recorder, sent, wire, dialogue).run(rest);
}

}  // namespace h5i::websec
