package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/examples/cluster/internal/testbed"
	"orch.io/controlplane/examples/internal/apiserver"
	"orch.io/controlplane/storage/etcdstore"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

const (
	beatingLease = "controlplane-controller-beating"
	systemLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
)

// asBeating is an environment variable that makes the test binary act as the program with a controller
// of its own: "led" for a controller that runs in the leader, "every" for a controller that runs in
// every server.
const asBeating = "CLUSTER_TEST_BEATING"

// beating returns the program with a controller that continuously writes its process ID into the
// ConfigMap beat. The controller misbehaves on purpose: its writes have no precondition, continue after
// its context has ended, and occur once more after that.
func beating(every bool) apiserver.Command {
	maps, by, n := meta.GroupResource{Resource: "configmaps"}, fmt.Sprint(os.Getpid()), 0
	key := meta.Key{Namespace: "default", Name: "beat"}
	beat := client.Controller{
		Name: "beating", EveryServer: every, Types: []meta.GroupResource{maps},
		MapEvent: func(e client.Event) []string {
			if e.Key != key {
				return nil
			}
			return []string{"beat"}
		},
		Reconcile: func(ctx context.Context, client client.Client, _ string) (time.Duration, error) {
			for {
				ended := ctx.Err() != nil
				time.Sleep(20 * time.Millisecond)
				_, err := client.Update(context.WithoutCancel(ctx), maps, key, "", func(o *meta.Object) error {
					n++
					o.Set(map[string]any{"by": by, "n": fmt.Sprint(n)}, "data")
					return nil
				})
				if err != nil || ended {
					return 0, err
				}
			}
		},
	}
	return apiserver.Command{Name: "cluster", Engines: map[string]apiserver.Engine{"etcd": etcd}, Controllers: []client.Controller{beat}}
}

// pack is a group of servers on one etcd with the controller beating.
type pack struct {
	t       *testing.T
	etcd    *etcdtest.Member
	servers []*testbed.Server
}

func startPack(t *testing.T, n int, mode string) *pack {
	k, dir := &pack{t: t, etcd: etcdtest.Start(t)}, t.TempDir()
	for i := range n {
		p := testbed.NewServer(t, i, dir, "--storage", "etcd", "--etcd-servers", k.etcd.Endpoint, "--etcd-compaction-interval", "0", "--v", "1")
		p.Program, p.Env = os.Args[0], append(os.Environ(), asBeating+"="+mode)
		k.servers = append(k.servers, p)
		p.Start()
	}
	for _, p := range k.servers {
		p.Ready()
	}
	k.servers[0].Must(201, "POST", testbed.ConfigMaps, `{"metadata":{"name":"beat"}}`)
	return k
}

func (k *pack) get(p *testbed.Server, path string) []byte {
	k.t.Helper()
	res, err := p.HTTP.Get(p.URL + path)
	require.NoError(k.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(k.t, err)
	require.Equal(k.t, 200, res.StatusCode, "%s", text)
	return text
}

// leader waits until one of some servers leads, according to the Lease and to its own log, and returns
// its index.
func (k *pack) leader(name string, among ...*testbed.Server) (i int, held testbed.Spec) {
	k.t.Helper()
	require.Eventually(k.t, func() bool {
		code, answer, err := among[0].Call(k.t.Context(), "GET", systemLeases+"/"+name, "")
		if err != nil || code != 200 {
			return false // not created yet
		}
		held = *answer.Spec
		for i = range among {
			if held.HolderIdentity != "" && strings.Contains(among[i].Log(), "msg=leading lease=kube-system/"+name+" id="+held.HolderIdentity) {
				return true
			}
		}
		return false
	}, time.Minute, 10*time.Millisecond)
	return i, held
}

// metric returns a leader election metric of a server.
func (k *pack) metric(p *testbed.Server, name string) string {
	k.t.Helper()
	found := regexp.MustCompile(`leader_election_master_status\{name="` + name + `"\} (\d)`).FindSubmatch(k.get(p, "/metrics"))
	require.NotNil(k.t, found)
	return string(found[1])
}

// beats waits for the next write of the controller.
func (k *pack) beats(p *testbed.Server) {
	k.t.Helper()
	begun := k.version(p)
	require.Eventually(k.t, func() bool { return k.version(p) > begun }, time.Minute, 10*time.Millisecond)
}

func (k *pack) version(p *testbed.Server) uint64 {
	k.t.Helper()
	return p.Must(200, "GET", testbed.ConfigMaps+"/beat", "").Version()
}

// term is a time in which one server leads, as recorded in the store.
type term struct {
	holder  string
	writers []string // the process IDs of the writers, in order
}

// history returns the terms of the controller; the first one is the time before all terms.
func (k *pack) history() []term {
	store, err := etcdstore.Open(k.t.Context(), etcdstore.Options{Endpoints: []string{k.etcd.Endpoint}, Prefix: "/registry", Retain: -1})
	require.NoError(k.t, err)
	defer store.Close()
	last, err := store.Revision(k.t.Context())
	require.NoError(k.t, err)
	terms := []term{{}}
	for commit, err := range store.Watch(k.t.Context(), "", 0) {
		require.NoError(k.t, err)
		for _, e := range commit {
			now := &terms[len(terms)-1]
			switch e.Key {
			case "~term/" + beatingLease:
				terms = append(terms, term{holder: string(e.Value)})
			case "configmaps/default/beat":
				var beat testbed.Object
				require.NoError(k.t, json.NewDecoder(bytes.NewReader(e.Value)).Decode(&beat))
				if by := beat.Data["by"]; by != "" && (len(now.writers) == 0 || now.writers[len(now.writers)-1] != by) {
					now.writers = append(now.writers, by)
				}
			}
		}
		if commit[0].Revision >= last {
			break
		}
	}
	return terms
}

// TestOneLeaderAtATime: in each term, only the leader writes, whatever happens to the servers.
func TestOneLeaderAtATime(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until leases expire twice")
	}
	k := startPack(t, 3, "led")
	without := func(i int) []*testbed.Server {
		return append(append([]*testbed.Server(nil), k.servers[:i]...), k.servers[i+1:]...)
	}

	first, held := k.leader(beatingLease, k.servers...)
	k.beats(k.servers[first])
	k.servers[first].Kill()
	others := without(first)
	next, taken := k.leader(beatingLease, others...)
	assert.Equal(t, held.LeaseTransitions+1, taken.LeaseTransitions)
	k.beats(others[next])
	k.servers[first].Restart()

	paused, _ := k.leader(beatingLease, k.servers...)
	k.servers[paused].Pause()
	others = without(paused)
	next, _ = k.leader(beatingLease, others...)
	k.beats(others[next])
	k.servers[paused].Resume()
	require.Eventually(t, func() bool {
		return strings.Contains(k.servers[paused].Log(), `msg="write refused: another server leads" lease=kube-system/`+beatingLease)
	}, time.Minute, 10*time.Millisecond)
	k.beats(others[next])
	require.Eventually(t, func() bool { return k.metric(k.servers[paused], beatingLease) == "0" }, time.Minute, 10*time.Millisecond)
	assert.Equal(t, "1", k.metric(others[next], beatingLease))
	assert.Equal(t, "0", k.metric(others[1-next], beatingLease))

	last, _ := k.leader(beatingLease, k.servers...)
	k.servers[last].Terminate()
	others = without(last)
	next, _ = k.leader(beatingLease, others...)
	k.beats(others[next])

	terms := k.history()
	require.Len(t, terms, 5)
	assert.Empty(t, terms[0])
	holders := map[string]string{}
	for i, one := range terms[1:] {
		require.Len(t, one.writers, 1, "term %d: %v", i, terms)
		by := one.writers[0]
		assert.Contains(t, []string{"", by}, holders[one.holder])
		holders[one.holder] = by
	}
	for i := range terms[2:] {
		assert.NotEqual(t, terms[1+i].holder, terms[2+i].holder)
	}
}

// TestLeaderReleasesLeasesOnShutdown: after SIGTERM, the next leader does not wait until the leases
// expire.
func TestLeaderReleasesLeasesOnShutdown(t *testing.T) {
	k := startPack(t, 3, "led")
	k.beats(k.servers[0])
	names := []string{"controlplane-apis", "controlplane-cleanup", "controlplane-access", beatingLease}
	led := map[string]int{}
	for _, name := range names {
		leader, _ := k.leader(name, k.servers...)
		led[name] = leader
		for i, p := range k.servers {
			want := map[bool]string{true: "1", false: "0"}[i == leader]
			require.Eventually(t, func() bool { return k.metric(p, name) == want }, time.Minute, 10*time.Millisecond)
		}
	}
	ends := k.servers[led[beatingLease]]
	others := append(append([]*testbed.Server(nil), k.servers[:ends.Number]...), k.servers[ends.Number+1:]...)
	begun := time.Now()
	ends.Terminate()
	for _, name := range names {
		next, held := k.leader(name, others...)
		if led[name] != ends.Number {
			continue
		}
		took := held.AcquireTime.Sub(begun)
		t.Logf("%s is handed over %v after the signal", name, took)
		assert.Less(t, took, 10*time.Second, "an expiring lease would take longer")
		assert.Contains(t, ends.Log(), `msg="released the lease" lease=kube-system/`+name)
		assert.Equal(t, "1", k.metric(others[next], name))
	}
	k.beats(others[0])
}

// TestEveryServerRunsControllersAtOnce: a controller with EveryServer runs in all servers at the same time, and all of them
// write. So it is the Lease that prevents this in TestOneLeaderAtATime.
func TestEveryServerRunsControllersAtOnce(t *testing.T) {
	k := startPack(t, 2, "every")
	require.Eventually(t, func() bool { return len(k.history()[0].writers) > 5 }, time.Minute, 100*time.Millisecond)
	require.Len(t, k.history(), 1)
	k.servers[0].Must(404, "GET", systemLeases+"/"+beatingLease, "")
}
