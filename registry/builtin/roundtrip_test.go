package builtin_test

import (
	"testing"

	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/registry/registrytest"
)

func TestRoundTrip(t *testing.T) { registrytest.RoundTrip(t, builtin.Kinds()...) }
