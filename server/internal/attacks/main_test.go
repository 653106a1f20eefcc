package attacks_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if attack := os.Getenv(attackVariable); attack != "" {
		runAttack(attack)
		return
	}
	goleak.VerifyTestMain(m)
}
