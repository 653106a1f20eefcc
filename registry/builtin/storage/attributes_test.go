package storage_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/storage"
	"orch.io/controlplane/registry/internal/kindtest"
)

func TestVolumeAttributesClass(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, storage.Kinds(), "VolumeAttributesClass")
	k.Creates(t, map[string][]string{
		`{"driverName":"D_x","parameters":{"a":""}}`: nil,
		`{}`: {"Required:driverName", "Required:parameters"},
		`{"driverName":"a b","parameters":{"a":"b"}}`:                                  {"Invalid:driverName"},
		`{"driverName":"d","parameters":{"":"b"}}`:                                     {"Invalid:parameters"},
		`{"driverName":"d","parameters":{"a":"` + strings.Repeat("x", 256<<10) + `"}}`: {"TooLong:parameters"},
	})
	old, _ := k.Create(t, `{"driverName":"d","parameters":{"a":"b"}}`)
	require.Equal(t, "d", k.Cell(t, old, "DriverName"))
	k.Updates(t, old, map[string][]string{
		`{"metadata":{"labels":{"a":"b"}}}`: nil,
		`{"driverName":"e"}`:                {"Forbidden:driverName"},
		`{"parameters":{"a":"c"}}`:          {"Forbidden:parameters"},
		`{"parameters":{"c":"d"}}`:          {"Forbidden:parameters"},
	})
}
