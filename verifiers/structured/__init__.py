"""What the verifiers of structured answers share: strict JSON, one sandbox profile, many checks in one forked child."""
