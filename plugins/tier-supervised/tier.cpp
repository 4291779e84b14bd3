// The supervised tier: always a network of its own, behind packet rules that are held from outside. Plugin of h5i.tier/1.
#include "tier.hpp"

namespace h5i::confined {
namespace {

class SupervisedTier final : public ConfinedTier {
 public:
  SupervisedTier() : ConfinedTier(kSupervised) {}
};

}  // namespace
}  // namespace h5i::confined

H5I_EXPORT_PLUGIN(h5i::confined::SupervisedTier, H5I_PLUGIN_ID, H5I_PLUGIN_VERSION)
