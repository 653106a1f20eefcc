package storage_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/storage"
	"orch.io/controlplane/registry/internal/kindtest"
)

func TestCSIDriver(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, storage.Kinds(), "CSIDriver")
	long := strings.Repeat("x", 63)
	k.Creates(t, map[string][]string{
		`{}`:                                    nil,
		`{"metadata":{"name":"` + long + `"}}`:  nil,
		`{"metadata":{"name":"` + long + `x"}}`: {"Invalid:metadata.name"},
		`{"metadata":{"name":"a_b"}}`:           {"Invalid:metadata.name"},
		`{"metadata":{"name":".a"}}`:            {"Invalid:metadata.name"},
		`{"spec":{"fsGroupPolicy":"Always"}}`:   {"NotSupported:spec.fsGroupPolicy"},
		`{"spec":{"volumeLifecycleModes":["Persistent","Ephemeral"]}}`:          nil,
		`{"spec":{"volumeLifecycleModes":["Forever"]}}`:                         {"NotSupported:spec.volumeLifecycleModes"},
		`{"spec":{"tokenRequests":[{"audience":""},{"audience":"a"}]}}`:         nil,
		`{"spec":{"tokenRequests":[{"audience":"a"},{"audience":"a"}]}}`:        {"Duplicate:spec.tokenRequests[1].audience"},
		`{"spec":{"tokenRequests":[{"audience":""},{"audience":""}]}}`:          {"Duplicate:spec.tokenRequests[1].audience"},
		`{"spec":{"tokenRequests":[{"audience":"a","expirationSeconds":599}]}}`: {"Invalid:spec.tokenRequests[0].expirationSeconds"},
		`{"spec":{"tokenRequests":[{"audience":"a","expirationSeconds":4294967297}]}}`: {
			"Invalid:spec.tokenRequests[0].expirationSeconds"},
		`{"spec":{"nodeAllocatableUpdatePeriodSeconds":9}}`: {"Invalid:spec.nodeAllocatableUpdatePeriodSeconds"},
		`{"spec":{"serviceAccountTokenInSecrets":true}}`:    {"Invalid:spec.serviceAccountTokenInSecrets"},
	})
	old, _ := k.Create(t, `{}`)
	assert.Equal(t, map[string]any{
		"attachRequired": true, "podInfoOnMount": false, "volumeLifecycleModes": []any{"Persistent"}, "storageCapacity": false,
		"fsGroupPolicy": "ReadWriteOnceWithFSType", "requiresRepublish": false, "seLinuxMount": false,
		"preventPodSchedulingIfMissing": false,
	}, old.Map("spec"))
	k.Updates(t, old, map[string][]string{
		`{"spec":{"attachRequired":false}}`:                                               {"Invalid:spec.attachedRequired"},
		`{"spec":{"podInfoOnMount":true}}`:                                                nil,
		`{"spec":{"fsGroupPolicy":"File"}}`:                                               nil,
		`{"spec":{"volumeLifecycleModes":["Persistent","Ephemeral"]}}`:                    {"Invalid:spec.volumeLifecycleModes"},
		`{"spec":{"attachRequired":null,"podInfoOnMount":null,"fsGroupPolicy":null}}`:     nil,
		`{"spec":{"volumeLifecycleModes":null}}`:                                          nil,
		`{"spec":{"storageCapacity":true,"requiresRepublish":true}}`:                      nil,
		`{"spec":{"seLinuxMount":true,"tokenRequests":[{"audience":"a"}]}}`:               nil,
		`{"spec":{"nodeAllocatableUpdatePeriodSeconds":10,"storageCapacity":true}}`:       nil,
		`{"spec":{"tokenRequests":[{"audience":"a"},{"audience":"b"},{"audience":"a"}]}}`: {"Duplicate:spec.tokenRequests[2].audience"},
	})
}

// TestCSIDriverIsFixedWithOrchNames checks that the fields are immutable, as in the specification.
func TestCSIDriverIsFixedWithOrchNames(t *testing.T) {
	k := kindtest.Of(t, names.Orch, storage.Kinds(), "CSIDriver")
	old, _ := k.Create(t, `{}`)
	k.Updates(t, old, map[string][]string{
		`{"spec":{"podInfoOnMount":true}}`:                                            {"Invalid:spec.podInfoOnMount"},
		`{"spec":{"fsGroupPolicy":"File"}}`:                                           {"Invalid:spec.fsGroupPolicy"},
		`{"spec":{"attachRequired":null,"podInfoOnMount":null,"fsGroupPolicy":null}}`: nil,
	})
}

// TestCSIDriverWarns checks the warning about tokens that a driver may log.
func TestCSIDriverWarns(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, storage.Kinds(), "CSIDriver")
	plain, _ := k.Create(t, `{}`)
	asks, _ := k.Create(t, `{"spec":{"tokenRequests":[{"audience":""},{"audience":"b"}],"volumeLifecycleModes":["Persistent","Ephemeral"]}}`)
	safe, _ := k.Create(t, `{"spec":{"tokenRequests":[{"audience":""}],"serviceAccountTokenInSecrets":true}}`)
	assert.Len(t, k.Warn(k.NewChange(t.Context(), asks, nil, "")), 1)
	assert.Len(t, k.Warn(k.NewChange(t.Context(), asks, plain, "")), 1)
	assert.Empty(t, k.Warn(k.NewChange(t.Context(), asks, asks, "")))
	assert.Empty(t, k.Warn(k.NewChange(t.Context(), safe, nil, "")))
	assert.Empty(t, k.Warn(k.NewChange(t.Context(), plain, nil, "")))

	require.Equal(t, "<unset>", k.Cell(t, plain, "TokenRequests"))
	require.Equal(t, ",b", k.Cell(t, asks, "TokenRequests"))
	require.Equal(t, "Persistent,Ephemeral", k.Cell(t, asks, "Modes"))
	require.Equal(t, true, k.Cell(t, asks, "AttachRequired"))
}
