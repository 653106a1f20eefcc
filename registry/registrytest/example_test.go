package registrytest_test

import (
	"errors"
	"fmt"
	"testing"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/registrytest"
)

// The test of a kind is one call. In this example, some lamps cannot be converted to v1.
func ExampleRoundTrip() {
	lamps := lamps(toHub, func(in *Lamp, out *LampV1) error {
		if in.Spec.Color != "" {
			return errors.New("spec.color: v1 has no colors")
		}
		return fromHub(in, out)
	})
	registrytest.RoundTrip(&printing{}, registry.Of(lamps))
	// Output: Lamp.example.com, version v2, seed 0: lamps.example.com "seed-0" of version example.com/v2 cannot be converted to example.com/v1: spec.color: v1 has no colors
}

// printing is a test that prints its failures.
type printing struct{ testing.B }

func (*printing) Helper() {}

func (*printing) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
