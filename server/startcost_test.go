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

// startCost is what a server with all built-in kinds costs, in a process of its own.
type startCost struct {
	First int // allocations from Build to the end of Shutdown, with one request between
	Later int // those of another server in the process, which finds the schemas made
	Live  int // bytes of the heap while the first one is there and has nothing to do
}

// TestStartCost bounds what a start costs, since many programs start servers by the
// hundred, and an idle one shall be small. The bounds are some 5 % above what was found when
// they were set, for Live 15 %; what is found varies by less than 1 %.
//
// Who sees it fail has added work to every start, or something that every server keeps. Find
// it with
//
//	go test ./server -run XXX -bench BenchmarkStart -benchtime 100x -memprofile mem -memprofilerate 1
//	go tool pprof -sample_index=alloc_objects -top -cum mem
//
// and, for what stays, -sample_index=inuse_space. Make it when it is first used, or once for
// all servers of a process; a bound is raised only for what every server needs from its first
// moment. Who makes a start cheaper lowers the bounds.
func TestStartCost(t *testing.T) {
	if raced() {
		t.Skip("the race detector allocates, too")
	}
	for store, most := range map[string]startCost{
		"memory": {First: 77_500, Later: 41_800, Live: 4_390_000},
		"badger": {First: 89_500, Later: 53_300, Live: 17_550_000}, // 11 MB are the store's own
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), startVariable+"="+store, "GOMAXPROCS=2") // some tables have a part for each
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

func raced() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// startVariable names the store, in the process that starts servers.
const startVariable = "TEST_START"

// startAsTold is that process. It collects no garbage of its own accord: what is decoded
// would be again, by chance.
func startAsTold(store string) {
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

// startOnce starts a server over a new store, asks it for something and ends it.
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
