package builtin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/registry/internal/kindtest"
)

// TestLongLists: bodies as long as a server takes them are checked at once. To hold each
// item against all others, or the items of two lists against each other, takes minutes.
func TestLongLists(t *testing.T) {
	const most = 20_000 // entries of a list, by default
	many := func(item string) string {
		var b strings.Builder
		for i := range most {
			fmt.Fprintf(&b, ","+item, i)
		}
		return b.String()[1:]
	}
	for kind, body := range map[string]string{
		"ResourceQuota": `{"spec":{"hard":{` + many(`"secrets%d":"1"`) + `},"scopes":[` + many(`"s%d"`) + `],"scopeSelector":{"matchExpressions":[` + many(`{"scopeName":"s%d"}`) + `]}}}`,
		"RuntimeClass":  `{"handler":"a","scheduling":{"tolerations":[` + many(`{"key":"k%d"}`) + `]}}`,
		"Pod":           `{"spec":{"containers":[` + many(`{"name":"c%d"}`) + `],"resourceClaims":[` + many(`{"name":"r%d"}`) + `]}}`,
	} {
		k := kindtest.Of(t, names.Kubernetes, builtin.Kinds(), kind)
		done := make(chan struct{})
		go func() {
			defer close(done)
			k.Create(t, body)
		}()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Error("it takes too long", kind)
		}
	}
}
