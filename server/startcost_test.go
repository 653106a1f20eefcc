package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
)

// startCost is the cost of a server with all built-in kinds, measured in a separate process.
type startCost struct {
	First int // allocations from Build to the end of Shutdown, with one request in between
	Later int // allocations of a second server in the process, for which the schemas exist already
	Live  int // bytes of the live heap while the first server is idle
}

// TestStartCost bounds the cost of a start and the memory of an idle server, because many programs
// start servers by the hundred. When they were set, the bounds were about 5 % above the measured
// values, 15 % for Live; measurements vary by less than 1 %.
//
// If the test fails, a change has added work to every start, or memory that every server keeps.
// Find it with
//
//	go test ./server -run XXX -bench BenchmarkStart -benchtime 100x -memprofile mem -memprofilerate 1
//	go tool pprof -sample_index=alloc_objects -top -cum mem
//
// and, for memory that is kept, -sample_index=inuse_space. Do the work on first use, or once for
// all servers of a process. Raise a bound only for work that every server needs from its first
// moment, and lower the bounds when a start becomes cheaper.
func TestStartCost(t *testing.T) {
	if raced() {
		t.Skip("the race detector allocates, too")
	}
	for store, most := range map[string]startCost{
		"memory": {First: 77_500, Later: 41_800, Live: 4_390_000},
		"badger": {First: 89_500, Later: 53_300, Live: 17_550_000}, // the store itself takes 11 MB
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), startVariable+"="+store, "GOMAXPROCS=2") // some tables have a part for each processor
		cmd.Dir, cmd.Stderr = t.TempDir(), os.Stderr
		out, err := cmd.Output()
		require.NoError(t, err)
		var found startCost
		require.NoError(t, json.Unmarshal(out, &found), "%s", out)
		t.Logf("%s: %+v", store, found)
		assert.LessOrEqual(t, found.First, most.First, "%s: allocations of the first start", store)
		assert.LessOrEqual(t, found.Later, most.Later, "%s: allocations of a later start", store)
		assert.LessOrEqual(t, found.Live, most.Live, "%s: bytes of the live heap", store)
	}
}

// raced reports whether the tests run with the race detector.
func raced() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// startVariable is the environment variable that turns the test binary into the process that
// measures starts. Its value selects the store.
const startVariable = "TEST_START"

// measureStarts measures the starts of servers over the named store and writes a startCost to the
// standard output. It turns the garbage collector off: a collection could drop decoded data from
// sync.Pools, which would then be decoded again, at random.
func measureStarts(store string) {
	debug.SetGCPercent(-1)
	var found startCost
	allocations := func(dir string, then func()) int {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := startOnce(store, dir, then); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		runtime.ReadMemStats(&after)
		return int(after.Mallocs - before.Mallocs)
	}
	found.First = allocations("one", func() { found.Live = int(liveHeap()) })
	found.Later = allocations("two", func() {})
	_ = json.NewEncoder(os.Stdout).Encode(found)
}

// startOnce starts a server over a new store, makes one request, calls then, and shuts the server
// down.
func startOnce(kind, dir string, then func()) error {
	var store storage.Backend
	if kind == "badger" {
		var err error
		if store, err = badgerstore.Open(badgerstore.Options{Dir: dir}); err != nil {
			return err
		}
	}
	b := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll, Storage: store}
	b.Register(builtin.Kinds()...)
	s, err := b.Build(context.Background())
	if err != nil {
		return err
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/default", nil))
	if w.Code != http.StatusOK {
		return fmt.Errorf("%d: %s", w.Code, w.Body)
	}
	then()
	return s.Shutdown(context.Background())
}
