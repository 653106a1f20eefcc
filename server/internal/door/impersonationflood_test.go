package door_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// stillStore is a store whose Revision can be blocked.
type stillStore struct {
	storage.Backend
	still sync.RWMutex // held for writing to block Revision
}

func (s *stillStore) Revision(ctx context.Context) (storage.Revision, error) {
	s.still.RLock()
	defer s.still.RUnlock()
	return s.Backend.Revision(ctx)
}

// TestImpersonatedRequestsUseTheImpersonatorsSeats checks that requests with impersonation count
// for the user who sends them.
func TestImpersonatedRequestsUseTheImpersonatorsSeats(t *testing.T) {
	t.Parallel()
	store := &stillStore{Backend: memstore.New(memstore.Options{})}
	a := apitest.InProcess(t, servertest.New(t, apitest.AuthenticateByHeader, apitest.WithStorage(store), func(b *server.Builder) { b.Limits.Requests = 40 }))
	store.still.Lock()
	var flood sync.WaitGroup
	codes := make(chan int, 100)
	for range 100 {
		flood.Go(func() {
			codes <- a.Do("GET", apitest.ConfigMapsPath, nil, "X-User", "alice", "Impersonate-User", "bob").Code
		})
	}
	refused := 0
	for range 60 { // requests without a slot are refused at once
		if <-codes == http.StatusTooManyRequests {
			refused++
		}
	}
	assert.Equal(t, 60, refused)
	store.still.Unlock()
	flood.Wait()
	a.Must(200, "GET", apitest.ConfigMapsPath, nil, "X-User", "alice")
}
