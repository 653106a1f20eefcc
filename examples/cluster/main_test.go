package main

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"orch.io/controlplane/examples/cluster/internal/testbed"
)

// Long tests are requested with flags:
//
//	go test -run TestHistories -hold 1m -timeout 1h
//	go test -run TestRounds -rounds 1000 -timeout 1h
var (
	hold   = flag.Duration("hold", 0, "minimal duration of each fault of TestHistories")
	rounds = flag.Int("rounds", 5, "how often the server of TestRounds is stopped")
)

// TestMain runs the tests, or acts as a process that a test has started: a server with the controller
// beating, or a candidate of an election.
func TestMain(m *testing.M) {
	if mode := os.Getenv(asBeating); mode != "" {
		beating(mode == "every").Main()
		return
	}
	flag.Parse()
	if *candidacy != "" {
		if err := beCandidate(*candidacy, flag.Arg(0)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testbed.Main(m)
}
