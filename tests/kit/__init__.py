"""What the end-to-end tests are made of: servers, sidecars, a sampler, and a judge of histories."""
