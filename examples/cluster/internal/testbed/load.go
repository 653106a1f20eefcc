package testbed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Parameters of the load. Objects belong to an epoch, which ends after a number of operations, so that
// the history of each object is short.
const (
	clients   = 32
	epochKeys = 12
	epochOps  = 600
)

// State is the state that a load leaves to the next load on the same store, which uses other epochs.
type State struct {
	Version uint64               // version at the end of the load
	Objects map[string]ConfigMap // existing objects
	epochs  int64                // number of epochs so far
}

// Load is 32 clients, which write and read ConfigMaps through several servers, and some watches.
type Load struct {
	t       testing.TB
	servers []*Client
	began   time.Time

	answered atomic.Int64 // answered requests
	failed   atomic.Int64 // failed requests
	news     chan struct{}

	ctx  context.Context // ends when the load ends
	stop context.CancelFunc
	all  sync.WaitGroup

	mu      sync.Mutex
	history // its operations and lists are guarded by mu until the load ends

	watching   context.Context // ends when the watches end, which must first see the fence
	endWatches context.CancelFunc
	running    sync.WaitGroup // the watchers
	watchers   []*watcher
}

// StartLoad starts a load on some servers, with a number of watches. It continues at the state that the
// previous load on the same store has left. The logged seed determines the operations of each client.
func StartLoad(t testing.TB, servers []*Client, watches int, before State) *Load {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	l := &Load{t: t, servers: servers, history: history{before: before}, began: time.Now(), news: make(chan struct{}, 1)}
	l.ctx, l.stop = context.WithCancel(t.Context())
	l.watching, l.endWatches = context.WithCancel(t.Context())
	code, list, err := servers[0].callWithin(l.ctx, "GET", ConfigMaps, "")
	require.NoError(t, err)
	require.Equal(t, 200, code)
	l.base = list.Version()
	require.GreaterOrEqual(t, l.base, before.Version, "the version decreased")
	there := list.ConfigMaps()
	require.True(t, maps.Equal(before.Objects, there), "the previous load left %v, the store has %v", before.Objects, there)
	for i := range watches {
		w := &watcher{Load: l, server: i, stream: l.stream()}
		l.watchers = append(l.watchers, w)
		l.running.Go(w.run)
	}
	for id := range clients {
		c := &loadClient{Load: l, id: id, server: id, r: rand.New(rand.NewPCG(seed, uint64(id))), known: map[string]ConfigMap{}}
		l.all.Go(c.run)
	}
	t.Cleanup(func() { l.stop(); l.endWatches(); l.all.Wait(); l.running.Wait() })
	return l
}

// Progress waits until n more requests are answered.
func (l *Load) Progress(n int64) {
	l.t.Helper()
	want, deadline := l.answered.Load()+n, time.NewTimer(2*time.Minute)
	defer deadline.Stop()
	for l.answered.Load() < want {
		select {
		case <-l.news:
		case <-deadline.C:
			require.FailNow(l.t, "no progress")
		}
	}
}

// Failed returns the number of failed requests.
func (l *Load) Failed() int64 { return l.failed.Load() }

// Check ends the load and checks that all answers and events, and those of some informers, are
// consistent. It returns the final state.
func (l *Load) Check(informers ...*Informer) State {
	l.t.Helper()
	fence := l.createFence()
	events := l.events()
	final := l.listAt(fence)
	l.lists = append(l.lists, final)
	resumed := 0
	for _, w := range l.watchers {
		l.watches = append(l.watches, w.seen)
		resumed += len(w.resumed) - 1
	}
	l.t.Logf("%d operations, %d lists, %d requests failed, %d events, watches resumed %d times, %v",
		len(l.operations), len(l.lists), l.Failed(), len(events), resumed, time.Since(l.began).Round(time.Second))
	if err := l.check(events); err != nil {
		for i, w := range l.watchers {
			l.t.Logf("watch %d resumed\n%s", i, strings.Join(w.resumed, "\n"))
		}
		require.NoError(l.t, err)
	}
	for _, i := range informers {
		i.check(events, fence)
	}
	return State{fence, final.items, l.epochs() + 1}
}

// createFence ends the load and then the watches by creating a last object, and returns its version.
func (l *Load) createFence() (version uint64) {
	l.t.Helper()
	l.stop()
	l.all.Wait()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	for i := 0; version == 0; i++ {
		require.NoError(l.t, ctx.Err())
		c := l.servers[i%len(l.servers)]
		code, answer, err := c.callWithin(ctx, "POST", ConfigMaps, ConfigMap{Name: l.fenceName(), Value: "the end"}.JSON())
		if err == nil && code == 409 {
			code, answer, err = c.callWithin(ctx, "GET", ConfigMaps+"/"+l.fenceName(), "")
		}
		if err == nil && code < 300 {
			version = answer.Version()
		}
	}
	return version
}

// events waits until all watches have ended at the fence, and returns the events of a watch that runs
// without faults.
func (l *Load) events() []Event {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	s := l.stream()
	require.NoError(l.t, l.servers[0].Watch(ctx, ConfigMaps, fmt.Sprint("resourceVersion=", l.base), s.take))
	require.NoError(l.t, s.err)
	ended := make(chan struct{})
	go func() { l.running.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		require.FailNow(l.t, "a watch does not reach the fence")
	}
	return s.seen
}

// listAt lists all objects of a version.
func (l *Load) listAt(version uint64) list {
	l.t.Helper()
	code, answer, err := l.servers[len(l.servers)-1].callWithin(l.t.Context(), "GET", fmt.Sprintf("%s?resourceVersionMatch=Exact&resourceVersion=%d", ConfigMaps, version), "")
	require.NoError(l.t, err)
	require.Equal(l.t, 200, code)
	return list{version: version, items: answer.ConfigMaps()}
}

// epochs returns the number of epochs in this load and the loads before it.
func (l *Load) epochs() int64 { return l.before.epochs + l.answered.Load()/epochOps }

// stream returns a stream of the events of the load.
func (l *Load) stream() stream { return stream{fence: l.fenceName(), last: l.base} }

// fenceName returns the name of the last object of the load.
func (l *Load) fenceName() string { return fmt.Sprint("fence-", l.before.epochs) }

func (l *Load) clock() int64 { return int64(time.Since(l.began)) }

func (l *Load) record(o ...operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.operations = append(l.operations, o...)
}

func (l *Load) recordList(x list) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lists = append(l.lists, x)
}

// listed is the version of a list, and the latest time at which it was the newest version.
type listed struct {
	version uint64
	at      time.Time
}

// readable is how long clients read a state after it was replaced; servers retain it longer.
const readable = 4 * time.Minute

// loadClient is a client of a load.
type loadClient struct {
	*Load
	id     int
	server int
	r      *rand.Rand
	writes int
	known  map[string]ConfigMap // objects of the epoch as last seen
	newest uint64               // the newest version in an answer
	read   []listed             // lists of the newest version
	epoch  string
}

func (c *loadClient) run() {
	for c.ctx.Err() == nil {
		if epoch := fmt.Sprint("e", c.epochs()); epoch != c.epoch {
			c.epoch = epoch
			clear(c.known)
		}
		if c.r.IntN(8) == 0 {
			c.server = c.r.IntN(len(c.servers))
		}
		var err error
		switch n := c.r.IntN(100); {
		case n < 25:
			err = c.write(create)
		case n < 55:
			err = c.write(update)
		case n < 65:
			err = c.write(remove)
		case n < 88:
			err = c.get()
		case n < 95:
			err = c.list("")
		default:
			err = c.listOld()
		}
		c.answer(err)
	}
}

// answer counts a request. After a failure the client continues with the next server.
func (c *loadClient) answer(err error) {
	if err == nil {
		c.answered.Add(1)
		select {
		case c.news <- struct{}{}:
		default:
		}
		return
	}
	if c.ctx.Err() != nil {
		return
	}
	if !errors.Is(err, errUnknown) && !errors.Is(err, errNotExecuted) {
		c.t.Errorf("client %d: %v", c.id, err)
	}
	c.failed.Add(1)
	c.server++
	select { // all servers may be down
	case <-time.After(20 * time.Millisecond):
	case <-c.ctx.Done():
	}
}

func (c *loadClient) at() *Client { return c.servers[c.server%len(c.servers)] }

func (c *loadClient) key() string { return fmt.Sprintf("%s-k%d", c.epoch, c.r.IntN(epochKeys)) }

// write makes one write. It uses a context that outlives the load, because a write without an outcome
// is useless for the verdict.
func (c *loadClient) write(a action) error {
	o := operation{client: c.id, action: a, key: c.key()}
	next := ConfigMap{Name: o.key, Epoch: c.epoch}
	method, path, body := "POST", ConfigMaps, ""
	if a != remove {
		c.writes++
		next.Value = fmt.Sprintf("c%d-%d", c.id, c.writes)
	}
	if known, ok := c.known[o.key]; ok && a != create && c.r.IntN(2) == 0 {
		o.expect, next.Version = known.Value, known.Version
	}
	o.value, body = next.Value, next.JSON()
	switch a {
	case update:
		method, path = "PUT", ConfigMaps+"/"+o.key
	case remove:
		method, path, body = "DELETE", ConfigMaps+"/"+o.key, ""
		if next.Version != 0 {
			body = fmt.Sprintf(`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"%d"}}`, next.Version)
		}
	}
	o.call = c.clock()
	code, answer, err := c.at().callWithin(context.WithoutCancel(c.ctx), method, path, body)
	o.ret = c.clock()
	if errors.Is(err, errNotExecuted) {
		return err
	}
	switch {
	case err != nil:
		o.outcome = unknown
	case code < 300:
		o.outcome = done
		delete(c.known, o.key)
		if a != remove {
			o.found = answer.ConfigMap()
			if o.found.Value != o.value {
				return fmt.Errorf("%s %s: %+v in place of %s", method, path, o.found, o.value)
			}
			c.see(o.found)
		}
	case code == 404:
		o.outcome = absent
	case code == 409 && a == create:
		o.outcome = exists
	case code == 409:
		o.outcome = conflict
	default:
		return fmt.Errorf("%s %s: %d %s", method, path, code, answer.Message)
	}
	c.record(o)
	return err
}

func (c *loadClient) see(o ConfigMap) {
	c.known[o.Name] = o
	c.newest = max(c.newest, o.Version)
}

func (c *loadClient) get() error {
	o := operation{client: c.id, action: get, key: c.key(), call: c.clock()}
	code, answer, err := c.at().callWithin(c.ctx, "GET", ConfigMaps+"/"+o.key, "")
	o.ret = c.clock()
	switch {
	case err != nil:
		return err
	case code == 200:
		o.outcome, o.found = done, answer.ConfigMap()
		c.see(o.found)
	case code == 404:
		o.outcome = absent
		delete(c.known, o.key)
	default:
		return fmt.Errorf("get %s: %d %s", o.key, code, answer.Message)
	}
	c.record(o)
	return nil
}

// list reads the objects of the epoch, in one request or in pages, each page from any server. query can
// select a version other than the newest.
func (c *loadClient) list(query string) error {
	x, call := list{epoch: c.epoch, items: map[string]ConfigMap{}}, c.clock()
	path := ConfigMaps + "?labelSelector=epoch%3D" + c.epoch + query
	if c.r.IntN(2) == 0 && query == "" {
		path += "&limit=5"
	}
	next := ""
	for {
		code, answer, err := c.at().callWithin(c.ctx, "GET", path+next, "")
		if err != nil {
			return err
		}
		if code != 200 {
			return fmt.Errorf("list: %d %s", code, answer.Message)
		}
		if x.version != 0 && x.version != answer.Version() {
			return fmt.Errorf("page has version %d, previous page %d", answer.Version(), x.version)
		}
		x.version = answer.Version()
		for i := range answer.Items {
			o := answer.Items[i].ConfigMap()
			if _, twice := x.items[o.Name]; twice || o.Version > x.version {
				return fmt.Errorf("list of version %d: %+v is a duplicate or newer", x.version, o)
			}
			x.items[o.Name] = o
		}
		if answer.Metadata.Continue == "" {
			break
		}
		next, c.server = "&continue="+answer.Metadata.Continue, c.r.IntN(len(c.servers))
	}
	c.recordList(x)
	if query == "" {
		return c.newestList(x, call)
	}
	return nil
}

// newestList records the objects of a list as reads of the newest state.
func (c *loadClient) newestList(x list, call int64) error {
	if x.version < c.newest {
		return fmt.Errorf("list of version %d after version %d was seen", x.version, c.newest)
	}
	c.newest = x.version
	c.read = append(c.read, listed{x.version, time.Now()})
	ret := c.clock()
	clear(c.known)
	for i := range epochKeys {
		o := operation{client: c.id, action: get, key: fmt.Sprintf("%s-k%d", c.epoch, i), outcome: absent, call: call, ret: ret}
		if found, ok := x.items[o.key]; ok {
			o.outcome, o.found = done, found
			c.known[o.key] = found
		}
		c.record(o)
	}
	return nil
}

// listOld reads any available state, or exactly a state that was seen before.
func (c *loadClient) listOld() error {
	c.read = slices.DeleteFunc(c.read, func(l listed) bool { return time.Since(l.at) > readable })
	if len(c.read) == 0 || c.r.IntN(3) == 0 {
		return c.list("&resourceVersion=0")
	}
	return c.list(fmt.Sprintf("&resourceVersionMatch=Exact&resourceVersion=%d", c.read[c.r.IntN(len(c.read))].version))
}
