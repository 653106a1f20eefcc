package discovery

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/internal/wellknown"
)

func FuzzAcceptDocument(f *testing.F) {
	for _, seed := range []string{"", "*/*", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf;q=0.1,application/json;q=NaN", "a;q=2,,;", "application/*;q=1e-9"} {
		f.Add(seed, "2")
		f.Add(seed, "")
	}
	f.Fuzz(func(t *testing.T, header, version string) {
		kind, ok := acceptDocument(header, version)
		now, _ := wellknown.OpenAPIProtobuf(version)
		switch {
		case !ok:
			assert.Empty(t, kind)
		case kind == now:
			assert.NotEmpty(t, version)
		default:
			assert.Equal(t, jsonType, kind)
		}
	})
}
