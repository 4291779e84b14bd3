// The half in a box: it makes what the host asks for, and may write a byte only when the host has said in which line of the log it stands.
#pragma once
#include "h5i/plugin.hpp"

namespace h5i::websec {

// Until the channel ends, which is this descriptor.
sdk::Result<sdk::Websec::Answer> serve_in_box(const sdk::Host& host, int channel);

}  // namespace h5i::websec
