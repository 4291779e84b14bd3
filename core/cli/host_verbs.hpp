// The verbs about this host, and what they share.
#pragma once
#include "core/cli/command.hpp"
#include "core/os/host_facts.hpp"
#include "core/plugin/registry.hpp"

namespace h5i::cli {

// One tier as this host sees it.
struct TierReport {
  std::string tier, state;  // "available", "impossible", "refused", "failed" (its plugin broke), "not-installed"
  std::string package;
  Json probe;  // h5i.probe/1 or null
  std::optional<Error> reason;
  Json to_json() const;
};

// Every installed tier asked, every refused one with its reason, then those of ours that are not installed. With
// `only`: that one, or why there is none.
Result<std::vector<TierReport>> report_tiers(const plugin::Registry& registry, const std::string& only);

// kernel, arch, security modules: as probe, doctor and capabilities begin.
Json host_json(const os::HostFacts& facts);

int box_probe(Context& ctx, const Parsed& words);
int box_doctor(Context& ctx, const Parsed& words);
int box_capabilities(Context& ctx, const Parsed& words);

void implement_host_verbs();

}  // namespace h5i::cli
