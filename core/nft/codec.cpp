#include "core/nft/codec.hpp"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>

extern "C" {
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/flowtable.h>
#include <libnftnl/object.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <libnftnl/udata.h>
}

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <set>

#include "core/base/text.hpp"

namespace h5i::nft {
namespace {

constexpr size_t kMaxMessage = 128 * 1024;
constexpr size_t kMaxBatch = 200'000;      // the ordinary send buffer of a socket is 212,992
constexpr size_t kElementsPerMessage = 256;
// As nft numbers the types of a key: 6 bits each.
constexpr uint32_t kIpv4Type = 7, kIpv6Type = 8, kPortType = 13;
constexpr uint32_t kBaseChain = 1;  // NFT_CHAIN_BASE, which the kernel sets on its own

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* p) const { Free(p); }
};
using TablePtr = std::unique_ptr<nftnl_table, Deleter<nftnl_table_free>>;
using ChainPtr = std::unique_ptr<nftnl_chain, Deleter<nftnl_chain_free>>;
using RulePtr = std::unique_ptr<nftnl_rule, Deleter<nftnl_rule_free>>;
using SetPtr = std::unique_ptr<nftnl_set, Deleter<nftnl_set_free>>;
using ObjectPtr = std::unique_ptr<nftnl_obj, Deleter<nftnl_obj_free>>;
using FlowtablePtr = std::unique_ptr<nftnl_flowtable, Deleter<nftnl_flowtable_free>>;

// ---- values to the library's objects

TablePtr table_of(const Ruleset& r) {
  TablePtr t(nftnl_table_alloc());
  nftnl_table_set_u32(t.get(), NFTNL_TABLE_FAMILY, NFPROTO_INET);
  nftnl_table_set_str(t.get(), NFTNL_TABLE_NAME, r.table.c_str());
  return t;
}

uint32_t hook_number(Hook h) { return h == Hook::INPUT ? NF_INET_LOCAL_IN : h == Hook::FORWARD ? NF_INET_FORWARD : NF_INET_LOCAL_OUT; }

ChainPtr chain_of(const Ruleset& r, const Chain& c) {
  ChainPtr out(nftnl_chain_alloc());
  nftnl_chain_set_u32(out.get(), NFTNL_CHAIN_FAMILY, NFPROTO_INET);
  nftnl_chain_set_str(out.get(), NFTNL_CHAIN_TABLE, r.table.c_str());
  nftnl_chain_set_str(out.get(), NFTNL_CHAIN_NAME, std::string(hook_name(c.hook)).c_str());
  nftnl_chain_set_u32(out.get(), NFTNL_CHAIN_HOOKNUM, hook_number(c.hook));
  nftnl_chain_set_s32(out.get(), NFTNL_CHAIN_PRIO, 0);
  nftnl_chain_set_str(out.get(), NFTNL_CHAIN_TYPE, "filter");
  nftnl_chain_set_u32(out.get(), NFTNL_CHAIN_POLICY, NF_DROP);
  return out;
}

SetPtr set_of(const Ruleset& r, const Set& s, uint32_t id) {
  const uint32_t address = s.v6 ? 16 : 4, port = 4;  // each part of a key is padded to four bytes
  SetPtr out(nftnl_set_alloc());
  nftnl_set_set_u32(out.get(), NFTNL_SET_FAMILY, NFPROTO_INET);
  nftnl_set_set_str(out.get(), NFTNL_SET_TABLE, r.table.c_str());
  nftnl_set_set_str(out.get(), NFTNL_SET_NAME, s.name.c_str());
  nftnl_set_set_u32(out.get(), NFTNL_SET_ID, id);
  nftnl_set_set_u32(out.get(), NFTNL_SET_FLAGS, NFT_SET_INTERVAL | NFT_SET_CONCAT);
  nftnl_set_set_u32(out.get(), NFTNL_SET_KEY_TYPE, ((s.v6 ? kIpv6Type : kIpv4Type) << 6) | kPortType);
  nftnl_set_set_u32(out.get(), NFTNL_SET_KEY_LEN, address + port);
  const uint8_t lengths[] = {static_cast<uint8_t>(address), sizeof(uint16_t)};
  nftnl_set_set_data(out.get(), NFTNL_SET_DESC_CONCAT, lengths, sizeof lengths);
  return out;
}

std::string key_of(const Address& a, uint16_t port) {
  std::string key(reinterpret_cast<const char*>(a.bytes.data()), a.v6 ? 16 : 4);
  key += {static_cast<char>(port >> 8), static_cast<char>(port & 0xff), 0, 0};
  return key;
}

void add_element(nftnl_set* set, const Element& e) {
  nftnl_set_elem* out = nftnl_set_elem_alloc();
  std::string from = key_of(e.address.from, e.ports.from), to = key_of(e.address.to, e.ports.to);
  nftnl_set_elem_set(out, NFTNL_SET_ELEM_KEY, from.data(), static_cast<uint32_t>(from.size()));
  nftnl_set_elem_set(out, NFTNL_SET_ELEM_KEY_END, to.data(), static_cast<uint32_t>(to.size()));
  nftnl_set_elem_add(set, out);
}

class RuleBuilder {
 public:
  RuleBuilder(const Ruleset& r, const Chain& c) : sets_(r.sets), rule_(nftnl_rule_alloc()) {
    nftnl_rule_set_u32(rule_.get(), NFTNL_RULE_FAMILY, NFPROTO_INET);
    nftnl_rule_set_str(rule_.get(), NFTNL_RULE_TABLE, r.table.c_str());
    nftnl_rule_set_str(rule_.get(), NFTNL_RULE_CHAIN, std::string(hook_name(c.hook)).c_str());
  }

  RulePtr build(const Rule& r) {
    for (const Match& m : r.matches) match(m);
    add("counter");
    if (r.log) {
      nftnl_expr* e = add("log");
      nftnl_expr_set_str(e, NFTNL_EXPR_LOG_PREFIX, r.log->prefix.c_str());
      nftnl_expr_set_u16(e, NFTNL_EXPR_LOG_GROUP, r.log->group);
      nftnl_expr_set_u32(e, NFTNL_EXPR_LOG_SNAPLEN, r.log->snap);
    }
    switch (r.verdict) {
      case Verdict::NONE: break;
      case Verdict::ACCEPT: {
        nftnl_expr* e = add("immediate");
        nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT);
        nftnl_expr_set_u32(e, NFTNL_EXPR_IMM_VERDICT, NF_ACCEPT);
        break;
      }
      case Verdict::RESET: reject(NFT_REJECT_TCP_RST, 0); break;
      case Verdict::PROHIBITED: reject(NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED); break;
    }
    std::unique_ptr<nftnl_udata_buf, Deleter<nftnl_udata_buf_free>> data(nftnl_udata_buf_alloc(NFT_USERDATA_MAXLEN));
    nftnl_udata_put_strz(data.get(), NFTNL_UDATA_RULE_COMMENT, r.name.c_str());
    nftnl_rule_set_data(rule_.get(), NFTNL_RULE_USERDATA, nftnl_udata_buf_data(data.get()), nftnl_udata_buf_len(data.get()));
    return std::move(rule_);
  }

 private:
  nftnl_expr* add(const char* name) {
    nftnl_expr* e = nftnl_expr_alloc(name);
    nftnl_rule_add_expr(rule_.get(), e);
    return e;
  }
  void meta(uint32_t key) {
    nftnl_expr* e = add("meta");
    nftnl_expr_set_u32(e, NFTNL_EXPR_META_KEY, key);
    nftnl_expr_set_u32(e, NFTNL_EXPR_META_DREG, NFT_REG_1);
  }
  void compare(uint32_t op, const void* data, uint32_t size) {
    nftnl_expr* e = add("cmp");
    nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_SREG, NFT_REG_1);
    nftnl_expr_set_u32(e, NFTNL_EXPR_CMP_OP, op);
    nftnl_expr_set(e, NFTNL_EXPR_CMP_DATA, data, size);
  }
  void meta_is(uint32_t key, uint8_t value) {
    meta(key);
    compare(NFT_CMP_EQ, &value, sizeof value);
  }
  void interface_is(uint32_t key, const std::string& name) {
    char padded[kNameSize] = {};
    memcpy(padded, name.data(), std::min(name.size(), sizeof padded - 1));
    meta(key);
    compare(NFT_CMP_EQ, padded, sizeof padded);
  }
  void payload(uint32_t base, uint32_t offset, uint32_t length, uint32_t reg) {
    nftnl_expr* e = add("payload");
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_BASE, base);
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_OFFSET, offset);
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_LEN, length);
    nftnl_expr_set_u32(e, NFTNL_EXPR_PAYLOAD_DREG, reg);
  }
  void reject(uint32_t type, uint8_t code) {
    nftnl_expr* e = add("reject");
    nftnl_expr_set_u32(e, NFTNL_EXPR_REJECT_TYPE, type);
    nftnl_expr_set_u8(e, NFTNL_EXPR_REJECT_CODE, code);
  }
  void reply() {
    const uint32_t states = NF_CT_STATE_BIT(IP_CT_ESTABLISHED) | NF_CT_STATE_BIT(IP_CT_RELATED), none = 0;
    nftnl_expr* ct = add("ct");
    nftnl_expr_set_u32(ct, NFTNL_EXPR_CT_KEY, NFT_CT_STATE);
    nftnl_expr_set_u32(ct, NFTNL_EXPR_CT_DREG, NFT_REG_1);
    nftnl_expr* mask = add("bitwise");
    nftnl_expr_set_u32(mask, NFTNL_EXPR_BITWISE_SREG, NFT_REG_1);
    nftnl_expr_set_u32(mask, NFTNL_EXPR_BITWISE_DREG, NFT_REG_1);
    nftnl_expr_set_u32(mask, NFTNL_EXPR_BITWISE_LEN, sizeof states);
    nftnl_expr_set(mask, NFTNL_EXPR_BITWISE_MASK, &states, sizeof states);
    nftnl_expr_set(mask, NFTNL_EXPR_BITWISE_XOR, &none, sizeof none);
    compare(NFT_CMP_NEQ, &none, sizeof none);
  }
  void destination(const Match& m) {
    auto set = std::find_if(sets_.begin(), sets_.end(), [&](const Set& s) { return s.name == m.name; });
    bool v6 = set != sets_.end() && set->v6;
    meta_is(NFT_META_NFPROTO, v6 ? NFPROTO_IPV6 : NFPROTO_IPV4);
    meta_is(NFT_META_L4PROTO, m.protocol == Protocol::TCP ? IPPROTO_TCP : IPPROTO_UDP);
    // The parts of a key lie one behind the other: a register of 16 bytes is one IPv6 address or four words.
    if (v6) {
      payload(NFT_PAYLOAD_NETWORK_HEADER, offsetof(ip6_hdr, ip6_dst), 16, NFT_REG_1);
      payload(NFT_PAYLOAD_TRANSPORT_HEADER, sizeof(uint16_t), sizeof(uint16_t), NFT_REG_2);
    } else {
      payload(NFT_PAYLOAD_NETWORK_HEADER, offsetof(iphdr, daddr), 4, NFT_REG_1);
      payload(NFT_PAYLOAD_TRANSPORT_HEADER, sizeof(uint16_t), sizeof(uint16_t), NFT_REG32_01);
    }
    nftnl_expr* e = add("lookup");
    nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SREG, NFT_REG_1);
    nftnl_expr_set_str(e, NFTNL_EXPR_LOOKUP_SET, m.name.c_str());
    nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_FLAGS, 0);  // the kernel says it, too
    nftnl_expr_set_u32(e, NFTNL_EXPR_LOOKUP_SET_ID, static_cast<uint32_t>(set - sets_.begin()) + 1);
  }
  void match(const Match& m) {
    switch (m.kind) {
      case Match::Kind::IN_INTERFACE: return interface_is(NFT_META_IIFNAME, m.name);
      case Match::Kind::OUT_INTERFACE: return interface_is(NFT_META_OIFNAME, m.name);
      case Match::Kind::REPLY: return reply();
      case Match::Kind::PROTOCOL: return meta_is(NFT_META_L4PROTO, m.number);
      case Match::Kind::NEIGHBOUR:
        meta_is(NFT_META_NFPROTO, NFPROTO_IPV6);  // the protocol's number can stand in an IPv4 packet as well
        meta_is(NFT_META_L4PROTO, IPPROTO_ICMPV6);
        payload(NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1, NFT_REG_1);
        return compare(NFT_CMP_EQ, &m.number, sizeof m.number);
      case Match::Kind::DESTINATION: return destination(m);
    }
  }

  static constexpr size_t kNameSize = 16;
  const std::vector<Set>& sets_;
  RulePtr rule_;
};

// ---- the library's objects to lines

std::string word(const char* s) { return s ? printable(s) : "-"; }

std::string family_name(uint32_t family) {
  switch (family) {
    case NFPROTO_INET: return "inet";
    case NFPROTO_IPV4: return "ip";
    case NFPROTO_IPV6: return "ip6";
    case NFPROTO_ARP: return "arp";
    case NFPROTO_BRIDGE: return "bridge";
    case NFPROTO_NETDEV: return "netdev";
    default: return "family " + std::to_string(family);
  }
}

std::string line_of(const nftnl_table* t) {
  return "table " + family_name(nftnl_table_get_u32(t, NFTNL_TABLE_FAMILY)) + " " + word(nftnl_table_get_str(t, NFTNL_TABLE_NAME)) + " flags " +
         std::to_string(nftnl_table_get_u32(t, NFTNL_TABLE_FLAGS));
}

std::string place(uint32_t family, const char* table, const char* name) { return family_name(family) + " " + word(table) + " " + word(name); }

std::string line_of(const nftnl_chain* c) {
  std::string out = "chain " + place(nftnl_chain_get_u32(c, NFTNL_CHAIN_FAMILY), nftnl_chain_get_str(c, NFTNL_CHAIN_TABLE), nftnl_chain_get_str(c, NFTNL_CHAIN_NAME));
  if (nftnl_chain_is_set(c, NFTNL_CHAIN_HOOKNUM))
    out += " type " + word(nftnl_chain_get_str(c, NFTNL_CHAIN_TYPE)) + " hook " + std::to_string(nftnl_chain_get_u32(c, NFTNL_CHAIN_HOOKNUM)) + " priority " +
           std::to_string(nftnl_chain_get_s32(c, NFTNL_CHAIN_PRIO)) + " policy " + std::to_string(nftnl_chain_get_u32(c, NFTNL_CHAIN_POLICY));
  if (nftnl_chain_is_set(c, NFTNL_CHAIN_DEV)) out += " device " + word(nftnl_chain_get_str(c, NFTNL_CHAIN_DEV));
  uint32_t flags = nftnl_chain_is_set(c, NFTNL_CHAIN_FLAGS) ? nftnl_chain_get_u32(c, NFTNL_CHAIN_FLAGS) & ~kBaseChain : 0;
  if (flags != 0) out += " flags " + std::to_string(flags);
  return out;
}

std::string line_of(const nftnl_set* s) {
  std::string out = "set " + place(nftnl_set_get_u32(s, NFTNL_SET_FAMILY), nftnl_set_get_str(s, NFTNL_SET_TABLE), nftnl_set_get_str(s, NFTNL_SET_NAME));
  out += " flags " + std::to_string(nftnl_set_get_u32(s, NFTNL_SET_FLAGS)) + " key " + std::to_string(nftnl_set_get_u32(s, NFTNL_SET_KEY_TYPE)) + " " +
         std::to_string(nftnl_set_get_u32(s, NFTNL_SET_KEY_LEN));
  uint32_t size = 0;
  if (nftnl_set_is_set(s, NFTNL_SET_DESC_CONCAT))
    if (const void* parts = nftnl_set_get_data(s, NFTNL_SET_DESC_CONCAT, &size)) out += " parts " + hex(parts, size);
  if (nftnl_set_is_set(s, NFTNL_SET_TIMEOUT)) out += " timeout " + std::to_string(nftnl_set_get_u64(s, NFTNL_SET_TIMEOUT));
  return out;
}

std::string line_of(const nftnl_set* s, const nftnl_set_elem* e) {
  std::string out = "element " + place(nftnl_set_get_u32(s, NFTNL_SET_FAMILY), nftnl_set_get_str(s, NFTNL_SET_TABLE), nftnl_set_get_str(s, NFTNL_SET_NAME));
  auto data = [&](uint16_t what) {
    uint32_t size = 0;
    const void* p = nftnl_set_elem_is_set(e, what) ? nftnl_set_elem_get(const_cast<nftnl_set_elem*>(e), what, &size) : nullptr;
    return p ? hex(p, size) : std::string();
  };
  std::string from = data(NFTNL_SET_ELEM_KEY), to = data(NFTNL_SET_ELEM_KEY_END);
  out += " " + from + "-" + (to.empty() ? from : to);
  uint32_t flags = nftnl_set_elem_is_set(e, NFTNL_SET_ELEM_FLAGS) ? nftnl_set_elem_get_u32(const_cast<nftnl_set_elem*>(e), NFTNL_SET_ELEM_FLAGS) : 0;
  if (flags != 0) out += " flags " + std::to_string(flags);
  for (uint16_t more : {NFTNL_SET_ELEM_VERDICT, NFTNL_SET_ELEM_CHAIN, NFTNL_SET_ELEM_DATA, NFTNL_SET_ELEM_TIMEOUT, NFTNL_SET_ELEM_EXPR, NFTNL_SET_ELEM_OBJREF})
    if (nftnl_set_elem_is_set(e, more)) out += " attribute " + std::to_string(more);
  return out;
}

struct Expressions {
  std::string text;
  bool counted = false;
  uint64_t packets = 0, bytes = 0;
};

int add_expression(nftnl_expr* e, void* into) {
  auto& out = *static_cast<Expressions*>(into);
  std::string name = word(nftnl_expr_get_str(e, NFTNL_EXPR_NAME));
  out.text += " [" + name;
  if (name == "counter") {
    if (!out.counted) out.packets = nftnl_expr_get_u64(e, NFTNL_EXPR_CTR_PACKETS), out.bytes = nftnl_expr_get_u64(e, NFTNL_EXPR_CTR_BYTES);
    out.counted = true;
  } else {
    std::string buffer(4096, '\0');
    int n = nftnl_expr_snprintf(buffer.data(), buffer.size(), e, NFTNL_OUTPUT_DEFAULT, 0);
    if (n < 0 || static_cast<size_t>(n) >= buffer.size()) buffer = "?";
    else buffer.resize(static_cast<size_t>(n));
    while (!buffer.empty() && buffer.back() == ' ') buffer.pop_back();
    out.text += " " + printable(buffer);
  }
  out.text += "]";
  return 0;
}

// The comment, when that is all that the rule carries.
std::string comment_of(const nftnl_rule* r, bool* plain) {
  *plain = true;
  uint32_t size = 0;
  const char* data = nftnl_rule_is_set(r, NFTNL_RULE_USERDATA) ? static_cast<const char*>(nftnl_rule_get_data(r, NFTNL_RULE_USERDATA, &size)) : nullptr;
  if (!data) return "";
  // type, length, text with its NUL
  bool whole = size >= 3 && data[0] == NFTNL_UDATA_RULE_COMMENT && static_cast<uint8_t>(data[1]) == size - 2 && data[size - 1] == '\0' && strlen(data + 2) == size - 3;
  if (whole) return data + 2;
  *plain = false;
  return hex(data, size);
}

struct RuleLine {
  std::string chain, text, name;
  Expressions e;
};
RuleLine line_of(nftnl_rule* r) {
  RuleLine out;
  out.chain = place(nftnl_rule_get_u32(r, NFTNL_RULE_FAMILY), nftnl_rule_get_str(r, NFTNL_RULE_TABLE), nftnl_rule_get_str(r, NFTNL_RULE_CHAIN));
  nftnl_expr_foreach(r, add_expression, &out.e);
  bool plain;
  std::string comment = comment_of(r, &plain);
  if (plain) out.name = comment;
  out.text = out.e.text + (plain ? " comment " + printable(comment) : " userdata " + comment);
  return out;
}

std::string numbered(size_t n) {
  std::string digits = std::to_string(n);
  return std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits;
}

std::string sorted_text(std::vector<std::string> lines) {
  std::sort(lines.begin(), lines.end());
  std::string out;
  for (const std::string& l : lines) out += l + "\n";
  return out;
}

std::vector<std::string> element_lines(nftnl_set* s) {
  std::vector<std::string> out;
  struct Context {
    nftnl_set* set;
    std::vector<std::string>* lines;
  } context{s, &out};
  nftnl_set_elem_foreach(
      s,
      [](nftnl_set_elem* e, void* data) {
        auto* c = static_cast<Context*>(data);
        c->lines->push_back(line_of(c->set, e));
        return 0;
      },
      &context);
  return out;
}

}  // namespace

Result<Batch> to_batch(const Ruleset& ruleset, Change change, uint32_t sequence) {
  Batch out;
  std::vector<char> buffer(kMaxMessage);
  // One message: its header, then what `fill` writes behind it.
  auto put = [&](uint16_t type, uint16_t flags, auto&& fill) {
    nlmsghdr* h = nftnl_nlmsg_build_hdr(buffer.data(), type, NFPROTO_INET, flags, sequence);
    fill(h);
    out.bytes.append(buffer.data(), MNL_ALIGN(h->nlmsg_len));
    out.last_sequence = sequence++;
  };
  auto edge = [&](nlmsghdr* (*build)(char*, uint32_t)) {
    nlmsghdr* h = build(buffer.data(), sequence++);
    out.bytes.append(buffer.data(), MNL_ALIGN(h->nlmsg_len));
  };

  edge(nftnl_batch_begin);
  TablePtr table = table_of(ruleset);
  if (change == Change::REPLACE) put(NFT_MSG_DELTABLE, 0, [&](nlmsghdr* h) { nftnl_table_nlmsg_build_payload(h, table.get()); });
  put(NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL, [&](nlmsghdr* h) { nftnl_table_nlmsg_build_payload(h, table.get()); });
  for (const Chain& c : ruleset.chains) {
    ChainPtr chain = chain_of(ruleset, c);
    put(NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL, [&](nlmsghdr* h) { nftnl_chain_nlmsg_build_payload(h, chain.get()); });
  }
  uint32_t id = 0;
  for (const Set& s : ruleset.sets) {
    SetPtr set = set_of(ruleset, s, ++id);
    put(NFT_MSG_NEWSET, NLM_F_CREATE | NLM_F_EXCL, [&](nlmsghdr* h) { nftnl_set_nlmsg_build_payload(h, set.get()); });
    for (size_t from = 0; from < s.elements.size(); from += kElementsPerMessage) {
      SetPtr some = set_of(ruleset, s, id);
      for (size_t i = from; i < std::min(from + kElementsPerMessage, s.elements.size()); i++) add_element(some.get(), s.elements[i]);
      put(NFT_MSG_NEWSETELEM, NLM_F_CREATE | NLM_F_EXCL, [&](nlmsghdr* h) { nftnl_set_elems_nlmsg_build_payload(h, some.get()); });
    }
  }
  size_t last = 0;
  for (const Chain& c : ruleset.chains)
    for (const Rule& r : c.rules) {
      RulePtr rule = RuleBuilder(ruleset, c).build(r);
      last = out.bytes.size();
      put(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, [&](nlmsghdr* h) { nftnl_rule_nlmsg_build_payload(h, rule.get()); });
    }
  if (last == 0) return make_error(Errc::INVALID, "a ruleset without a rule");
  // One acknowledgement is enough: a failed message is told of in any case.
  nlmsghdr h;
  memcpy(&h, out.bytes.data() + last, sizeof h);
  h.nlmsg_flags |= NLM_F_ACK;
  memcpy(out.bytes.data() + last, &h, sizeof h);
  edge(nftnl_batch_end);
  if (out.bytes.size() > kMaxBatch)
    return make_error(Errc::TOO_LARGE, "the packet rules do not fit into one transaction", std::to_string(out.bytes.size()) + " bytes, at most " + std::to_string(kMaxBatch), "fewer or wider egress rules");
  return out;
}

std::string inventory(const Ruleset& ruleset) {
  std::vector<std::string> lines{line_of(table_of(ruleset).get())};
  for (const Chain& c : ruleset.chains) {
    lines.push_back(line_of(chain_of(ruleset, c).get()));
    size_t n = 0;
    for (const Rule& r : c.rules) {
      RulePtr rule = RuleBuilder(ruleset, c).build(r);
      RuleLine line = line_of(rule.get());
      lines.push_back("rule " + line.chain + " " + numbered(n++) + line.text);
    }
  }
  for (const Set& s : ruleset.sets) {
    SetPtr set = set_of(ruleset, s, 0);
    lines.push_back(line_of(set.get()));
    for (const Element& e : s.elements) add_element(set.get(), e);
    for (std::string& l : element_lines(set.get())) lines.push_back(std::move(l));
  }
  return sorted_text(std::move(lines));
}

Result<void> Inventory::add(const void* message) {
  const auto* h = static_cast<const nlmsghdr*>(message);
  auto unreadable = [](const char* what) { return make_error(Errc::CORRUPT, std::string("the kernel's packet rules hold a ") + what + " that cannot be read"); };
  if (NFNL_SUBSYS_ID(h->nlmsg_type) != NFNL_SUBSYS_NFTABLES) return unreadable("message");
  switch (NFNL_MSG_TYPE(h->nlmsg_type)) {
    case NFT_MSG_NEWTABLE: {
      TablePtr t(nftnl_table_alloc());
      if (nftnl_table_nlmsg_parse(h, t.get()) < 0) return unreadable("table");
      lines_.push_back(line_of(t.get()));
      return {};
    }
    case NFT_MSG_NEWCHAIN: {
      ChainPtr c(nftnl_chain_alloc());
      if (nftnl_chain_nlmsg_parse(h, c.get()) < 0) return unreadable("chain");
      lines_.push_back(line_of(c.get()));
      return {};
    }
    case NFT_MSG_NEWSET: {
      SetPtr s(nftnl_set_alloc());
      if (nftnl_set_nlmsg_parse(h, s.get()) < 0) return unreadable("set");
      const char *table = nftnl_set_get_str(s.get(), NFTNL_SET_TABLE), *name = nftnl_set_get_str(s.get(), NFTNL_SET_NAME);
      if (!table || !name) return unreadable("set");
      lines_.push_back(line_of(s.get()));
      sets_.push_back({nftnl_set_get_u32(s.get(), NFTNL_SET_FAMILY), table, name});
      return {};
    }
    case NFT_MSG_NEWSETELEM: {
      SetPtr s(nftnl_set_alloc());
      if (nftnl_set_elems_nlmsg_parse(h, s.get()) < 0) return unreadable("set element");
      for (std::string& l : element_lines(s.get())) lines_.push_back(std::move(l));
      return {};
    }
    case NFT_MSG_NEWRULE: {
      RulePtr r(nftnl_rule_alloc());
      if (nftnl_rule_nlmsg_parse(h, r.get()) < 0) return unreadable("rule");
      RuleLine line = line_of(r.get());
      lines_.push_back("rule " + line.chain + " " + numbered(rules_in_[line.chain]++) + line.text);
      if (line.e.counted && !line.name.empty()) counts_.push_back({line.name, line.e.packets, line.e.bytes});
      return {};
    }
    case NFT_MSG_NEWOBJ: {
      ObjectPtr o(nftnl_obj_alloc());
      if (nftnl_obj_nlmsg_parse(h, o.get()) < 0) return unreadable("object");
      lines_.push_back("object " + place(nftnl_obj_get_u32(o.get(), NFTNL_OBJ_FAMILY), nftnl_obj_get_str(o.get(), NFTNL_OBJ_TABLE), nftnl_obj_get_str(o.get(), NFTNL_OBJ_NAME)));
      return {};
    }
    case NFT_MSG_NEWFLOWTABLE: {
      FlowtablePtr f(nftnl_flowtable_alloc());
      if (nftnl_flowtable_nlmsg_parse(h, f.get()) < 0) return unreadable("flow table");
      lines_.push_back("flowtable " + place(nftnl_flowtable_get_u32(f.get(), NFTNL_FLOWTABLE_FAMILY), nftnl_flowtable_get_str(f.get(), NFTNL_FLOWTABLE_TABLE), nftnl_flowtable_get_str(f.get(), NFTNL_FLOWTABLE_NAME)));
      return {};
    }
    default: return unreadable("message");
  }
}

std::string Inventory::text() const { return sorted_text(lines_); }

std::vector<std::string> difference(std::string_view meant, std::string_view found) {
  auto lines = [](std::string_view text) {
    std::multiset<std::string> out;
    while (!text.empty()) {
      size_t end = text.find('\n');
      out.emplace(text.substr(0, end));
      text = end == std::string_view::npos ? "" : text.substr(end + 1);
    }
    return out;
  };
  std::multiset<std::string> a = lines(meant), b = lines(found);
  std::vector<std::string> missing, unexpected, out;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(missing));
  std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(unexpected));
  // In turn, so that who shows the first few shows both: one rule more moves all that follow it.
  for (size_t i = 0; i < std::max(missing.size(), unexpected.size()); i++) {
    if (i < unexpected.size()) out.push_back("unexpected: " + unexpected[i]);
    if (i < missing.size()) out.push_back("missing: " + missing[i]);
  }
  return out;
}

}  // namespace h5i::nft
