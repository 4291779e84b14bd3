// Compiles as it is; with one of the macros it must not.
#include "plugins/websec-http/engine/wire.hpp"

using namespace h5i::websec;

void use(Wire& wire, Recorder& recorder, const Endpoint& to) {
  auto token = recorder.intent({});
  if (!token.ok()) return;
#if defined(CONNECT_WITHOUT)
  (void)wire.connect(to);
#elif defined(WRITE_WITHOUT)
  (void)wire.connect(*token, to);
  (void)wire.write();
#elif defined(WRITE_OTHER_BYTES)
  (void)wire.connect(*token, to);
  (void)wire.write(*token, "other bytes");
#elif defined(MAKE_ONE)
  Recorded made(1, Intent{});
  (void)wire.write(made);
#elif defined(COPY_ONE)
  Recorded copy(*token);
  (void)wire.write(copy);
#elif defined(FRAME_WITHOUT)
  (void)wire.write(*token, std::string("a frame"));
#elif defined(MAKE_FRAME)
  RecordedFrame made("a frame");
  (void)wire.write(*token, made);
#elif defined(COPY_FRAME)
  auto frame = recorder.frame(*token, {}, "a frame");
  RecordedFrame copy(*frame);
  (void)wire.write(*token, copy);
#else
  auto frame = recorder.frame(*token, {}, "a frame");
  (void)wire.write(*token, *frame);
  (void)wire.connect(*token, to);
  (void)wire.write(*token);
#endif
}
