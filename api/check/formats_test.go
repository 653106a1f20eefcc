package check_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/check"
)

func TestFormats(t *testing.T) {
	long := strings.Repeat("k", 254)
	for _, c := range []struct {
		check func(string) []string
		good  []string
		bad   []string
	}{
		{check.ConfigKey, []string{"a", "A-_.9", "...x"[3:], strings.Repeat("k", 253)}, []string{"", ".", "..", "..a", "a/b", "é", long}},
		{check.PortName, []string{"http", "a1", "8a"}, []string{"", "80", "Http", "a--b", "-a", "a-", "abcdefghijklmnop", "a_b"}},
		{check.EnvName, []string{"A", "a.b", "with space"}, []string{"", "a=b", "é", "a\n"}},
	} {
		for _, s := range c.good {
			require.Empty(t, c.check(s), s)
		}
		for _, s := range c.bad {
			require.NotEmpty(t, c.check(s), s)
		}
	}
}
