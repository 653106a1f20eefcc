package server_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// configMapController adds a controller whose keys are the names of ConfigMaps.
func configMapController(reconcile func(name string) (time.Duration, error)) func(*server.Builder) {
	return func(b *server.Builder) {
		b.Controllers = []client.Controller{{
			Name: "test", Types: []meta.GroupResource{{Resource: "configmaps"}},
			MapEvent: func(c client.Event) []string { return []string{c.Key.Name} },
			Reconcile: func(_ context.Context, _ client.Client, name string) (time.Duration, error) {
				return reconcile(name)
			},
		}}
	}
}

// TestSlowKeyDoesNotBlockOtherKeys reconciles a key that waits until another key is reconciled.
func TestSlowKeyDoesNotBlockOtherKeys(t *testing.T) {
	begun, quick := make(chan struct{}), make(chan struct{})
	s := servertest.New(t, configMapController(func(name string) (time.Duration, error) {
		switch name {
		case "slow":
			close(begun)
			<-quick
		case "quick":
			close(quick)
		}
		return 0, nil
	}))
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("slow"))
	<-begun
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("quick"))
	s.Settle()
}

// TestFailingKeyIsRetriedWithBackoff retries a key that fails after growing pauses, up to half a
// minute. A change of the object resets the backoff.
func TestFailingKeyIsRetriedWithBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		s := servertest.New(t, configMapController(func(name string) (time.Duration, error) {
			if name == "bad" {
				calls.Add(1)
				return 0, errors.New("no")
			}
			return 0, nil
		}))
		a := apitest.InProcess(t, s)
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("bad"))
		time.Sleep(time.Minute)
		early := calls.Swap(0)
		assert.Greater(t, early, int32(10))
		time.Sleep(10 * time.Minute)
		assert.Equal(t, int32(20), calls.Swap(0))
		a.Must(200, "PATCH", apitest.ConfigMapsPath+"/bad", `{"data":{"changed":"yes"}}`)
		time.Sleep(time.Minute)
		assert.Greater(t, calls.Load(), int32(10))
	})
}
