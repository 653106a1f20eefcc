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

// metric returns the value of a metric of a member, by its name or a pattern; 0 if the member does not
// have it.
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

// calls returns how many calls of a method the member has received, by its own metrics.
func calls(t testing.TB, m *etcdtest.Member, method string) int {
	t.Helper()
	return int(metric(t, m, `grpc_server_started_total\{.*grpc_method="`+method+`".*\}`))
}

// TestConcurrentRevisionReadsShareCalls: concurrent reads of the newest revision share calls, and no
// result is older than the state at the start of the read.
func TestConcurrentRevisionReadsShareCalls(t *testing.T) {
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
	// A reader waits for at most two calls, the running call and its own; if all readers were always
	// served together, they would take 2×each calls.
	assert.Positive(t, made)
	assert.Less(t, made, readers*each/8)
}
