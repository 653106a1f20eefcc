package server_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if store := os.Getenv(startVariable); store != "" {
		measureStarts(store)
		return
	}
	goleak.VerifyTestMain(m)
}
