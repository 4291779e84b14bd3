// The attributes of one netfilter message. Only for this room's .cpp files.
#pragma once
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>

namespace h5i::nft {

// The library's own macro for this is C.
template <class Each>
void for_each_attribute(const nlmsghdr* h, Each&& each) {
  const auto* a = static_cast<const nlattr*>(mnl_nlmsg_get_payload_offset(h, sizeof(nfgenmsg)));
  const char* end = static_cast<const char*>(mnl_nlmsg_get_payload_tail(h));
  for (; mnl_attr_ok(a, static_cast<int>(end - reinterpret_cast<const char*>(a))); a = mnl_attr_next(a)) each(a);
}

}  // namespace h5i::nft
