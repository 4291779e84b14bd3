# Install components: runtime, one for each tier, sdk.
