package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"go.uber.org/goleak"

	"orch.io/controlplane/registry/registrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	fmt.Println(run(context.Background(), os.Stdout))
	// Output:
	// v1beta1 made db.example.com:5432
	// v1 sees {Host:db.example.com Port:5432 TimeoutSeconds:60}
	// v1 sees {Host:::1 Port:5433 TimeoutSeconds:60}
	// refused: Upstream.example.com "db" is invalid: address: Invalid value: "nowhere": must be HOST:PORT
	// <nil>
}

// TestConversionRoundTrip: objects of either version are unchanged after a conversion to the other and
// back.
func TestConversionRoundTrip(t *testing.T) {
	registrytest.Options{Generators: []registrytest.Generator{
		registrytest.ForField[UpstreamV1beta1]("address", func(r *rand.Rand) string {
			return fmt.Sprintf("host-%d.example.com:%d", r.IntN(100), 1+r.IntN(65535))
		}),
	}}.RoundTrip(t, kind())
}
