package storage_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/storage"
	"orch.io/controlplane/registry/internal/kindtest"
)

func TestCSINode(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, storage.Kinds(), "CSINode")
	drivers := func(list string) string { return `{"spec":{"drivers":[` + list + `]}}` }
	const first = `{"name":"d.example.com","nodeID":"i","topologyKeys":["zone"]}`
	const second = `{"name":"e","nodeID":"j","allocatable":{"count":3}}`
	k.Creates(t, map[string][]string{
		`{}`: nil,
		drivers(first + `,{"name":"E.example.com","nodeID":"` + strings.Repeat("i", 256) + `","topologyKeys":[]}`): nil,
		drivers(`{"name":"","nodeID":""}`):                                                                  {"Required:spec.drivers[0].name", "Required:spec.drivers[0].nodeID"},
		drivers(`{"name":"d_e","nodeID":"i"}`):                                                              {"Invalid:spec.drivers[0].name"},
		drivers(`{"name":"` + strings.Repeat("x", 64) + `","nodeID":"i"}`):                                  {"TooLong:spec.drivers[0].name"},
		drivers(`{"name":"d","nodeID":"` + strings.Repeat("i", 257) + `"}`):                                 {"Invalid:spec.drivers[0].nodeID"},
		drivers(first + `,` + first):                                                                        {"Duplicate:spec.drivers[1].name"},
		drivers(`{"name":"d","nodeID":"i","topologyKeys":["a","b","a"]}`):                                   {"Duplicate:spec.drivers[0]"},
		drivers(`{"name":"d","nodeID":"i","topologyKeys":["a b"]}`):                                         {"Invalid:spec.drivers[0]"},
		drivers(`{"name":"d","nodeID":"i","topologyKeys":[""]}`):                                            {"Required:spec.drivers[0]", "Invalid:spec.drivers[0]", "Invalid:spec.drivers[0]"},
		drivers(`{"name":"d","nodeID":"i","allocatable":{"count":-1}}`):                                     {"Invalid:spec.drivers[0].allocatable.count"},
		drivers(`{"name":"d","nodeID":"i","allocatable":{}}`):                                               nil,
		`{"status":{"storageHealth":[{"name":"d","healthConditions":[{"status":"Bad","reason":"Slow"}]}]}}`: nil,
	})
	old, _ := k.Create(t, drivers(first+`,`+second))
	require.EqualValues(t, 2, k.Cell(t, old, "Drivers"))
	k.Updates(t, old, map[string][]string{
		drivers(first): nil,
		drivers(``):    nil,
		drivers(first + `,{"name":"e","nodeID":"j"}`):                           nil,
		drivers(first + `,{"name":"e","nodeID":"j","allocatable":{"count":4}}`): nil,
		drivers(second + `,{"name":"f","nodeID":"x"}`):                          nil,
		drivers(`{"name":"e","nodeID":"k"}`):                                    {"Invalid:spec.drivers"},
		drivers(`{"name":"e","nodeID":"j","topologyKeys":["zone"]}`):            {"Invalid:spec.drivers"},
	})
	none, _ := k.Update(t, old, drivers(``), "")
	list, there := none.Get("spec", "drivers")
	require.True(t, there)
	require.Nil(t, list)
	require.EqualValues(t, 0, k.Cell(t, none, "Drivers"))
}
