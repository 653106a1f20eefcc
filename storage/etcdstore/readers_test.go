package etcdstore_test

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// metric is a number that a member tells of itself, by its name or a pattern; 0 if it does not.
func metric(t testing.TB, m *etcdtest.Member, name string) float64 {
	t.Helper()
	res, err := http.Get("http://" + m.Endpoint + "/metrics")
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(text)
	if found == nil {
		return 0
	}
	n, err := strconv.ParseFloat(string(found[1]), 64)
	require.NoError(t, err)
	return n
}

// calls is how many calls of a kind etcd was asked for so far, as it counts itself.
func calls(t testing.TB, m *etcdtest.Member, method string) int {
	t.Helper()
	return int(metric(t, m, `grpc_server_started_total\{.*grpc_method="`+method+`".*\}`))
}

// TestReadersShareCalls: those who ask for the newest revision at the same time are served by
// one call, and nobody is told of an older state than there was when it asked.
func TestReadersShareCalls(t *testing.T) {
	m := etcdtest.Start(t)
	s := open(t, m, "/shared")
	defer func() { require.NoError(t, s.Close()) }()
	const readers, each = 256, 40
	var acked atomic.Int64
	acked.Store(int64(put(t, s, "k", "0")))
	before := calls(t, m, "Range")
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			for range each {
				least := storage.Revision(acked.Load())
				at, err := s.Revision(t.Context())
				assert.NoError(t, err)
				assert.GreaterOrEqual(t, at, least)
			}
		})
	}
	done := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				acked.Store(int64(put(t, s, "k", "1")))
			}
		}
	})
	all.Wait()
	close(done)
	writer.Wait()
	made := calls(t, m, "Range") - before
	t.Logf("%d reads of the revision took %d calls", readers*each, made)
	// A reader waits for two calls at most, the one under way and its own; if all readers were
	// always served together, they would take 2×each.
	assert.Positive(t, made)
	assert.Less(t, made, readers*each/8)
}
