// The process tier: a network of its own with nothing in it, or the host's. Plugin of h5i.tier/1.
#include "tier.hpp"

namespace h5i::confined {
namespace {

class ProcessTier final : public ConfinedTier {
 public:
  ProcessTier() : ConfinedTier(kProcess) {}
};

}  // namespace
}  // namespace h5i::confined

H5I_EXPORT_PLUGIN(h5i::confined::ProcessTier, H5I_PLUGIN_ID, H5I_PLUGIN_VERSION)
