package duration_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/internal/duration"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1h30m": 90 * time.Minute, "-5s": -5 * time.Second, "1d": 24 * time.Hour, "2 days": 48 * time.Hour, "1w 2 Hours": 170 * time.Hour,
		"3 weeks and 5 µs": 3*7*24*time.Hour + 5*time.Microsecond, "10 seconds, 1 moon": 10 * time.Second, "10000w 10000w": math.MaxInt64,
	} {
		got, err := duration.Parse(text)
		assert.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "5", "d", "1 moon", "99999999999999999999s"} {
		_, err := duration.Parse(text)
		assert.Error(t, err, text)
	}
}
