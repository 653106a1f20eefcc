package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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

// action is the kind of an operation.
type action string

const (
	create action = "create"
	update action = "update"
	remove action = "delete"
	get    action = "get"
)

// outcome is the result of an operation for the client.
type outcome string

const (
	done     outcome = "done"
	conflict outcome = "conflict"
	exists   outcome = "exists"
	absent   outcome = "absent"
	unknown  outcome = "unknown" // the operation takes effect at any time after the call, or never
)

// operation is one request for one object, and its answer.
type operation struct {
	client    int
	action    action
	key       string
	value     string // value to write
	expect    string // expected current value; empty for any
	outcome   outcome
	found     object // the object that was read, or the written version
	call, ret int64
}

// listing is a list that was read.
type listing struct {
	version uint64
	epoch   string
	items   map[string]object
}

// legacy is the state that a load leaves to the next load on the same store, which uses other epochs.
type legacy struct {
	version uint64            // version at the end of the load
	objects map[string]object // existing objects
	epochs  int64             // number of epochs so far
}

// load is 32 clients, which write and read through several servers, and some watches.
type load struct {
	t       testing.TB
	servers []*process
	before  legacy
	base    uint64 // the version before the load
	began   time.Time

	answered atomic.Int64 // answered requests
	failed   atomic.Int64 // failed requests
	news     chan struct{}

	ctx  context.Context // ends when the load ends
	stop context.CancelFunc
	all  sync.WaitGroup

	mu         sync.Mutex
	operations []operation
	listings   []listing

	watching   context.Context // ends when the watches end, which must first see the fence
	endWatches context.CancelFunc
	watches    sync.WaitGroup
	watchers   []*watcher
}

// startLoad starts a load that continues where the load before it ended. The seed determines the
// operations of each client.
func startLoad(t testing.TB, servers []*process, watchers int, before legacy) *load {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	l := &load{t: t, servers: servers, before: before, began: time.Now(), news: make(chan struct{}, 1)}
	l.ctx, l.stop = context.WithCancel(t.Context())
	l.watching, l.endWatches = context.WithCancel(t.Context())
	code, list, err := servers[0].call(l.ctx, "GET", mapsPath, "")
	require.NoError(t, err)
	require.Equal(t, 200, code)
	l.base = list.version()
	require.GreaterOrEqual(t, l.base, before.version, "the version decreased")
	there := list.objects()
	require.True(t, maps.Equal(before.objects, there), "%v was left, %v is there", before.objects, there)
	for i := range watchers {
		w := &watcher{load: l, server: i}
		l.watchers = append(l.watchers, w)
		l.watches.Go(w.run)
	}
	for id := range clients {
		c := &loadClient{load: l, id: id, server: id, r: rand.New(rand.NewPCG(seed, uint64(id))), known: map[string]object{}}
		l.all.Go(c.run)
	}
	t.Cleanup(func() { l.stop(); l.endWatches(); l.all.Wait(); l.watches.Wait() })
	return l
}

// progress waits until n more requests are answered.
func (l *load) progress(n int64) {
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

// epochs returns the number of epochs in this load and the loads before it.
func (l *load) epochs() int64 { return l.before.epochs + l.answered.Load()/epochOps }

// fenceName returns the name of the last object of the load.
func (l *load) fenceName() string { return fmt.Sprint("fence-", l.before.epochs) }

func (l *load) clock() int64 { return int64(time.Since(l.began)) }

func (l *load) record(o ...operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.operations = append(l.operations, o...)
}

func (l *load) recordList(x listing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listings = append(l.listings, x)
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
	*load
	id     int
	server int
	r      *rand.Rand
	writes int
	known  map[string]object // objects of the epoch as last seen
	newest uint64            // the newest version in an answer
	lists  []listed
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
	if !errors.Is(err, errUnknown) && !errors.Is(err, errNotTaken) {
		c.t.Errorf("client %d: %v", c.id, err)
	}
	c.failed.Add(1)
	c.server++
	select { // all servers may be down
	case <-time.After(20 * time.Millisecond):
	case <-c.ctx.Done():
	}
}

func (c *loadClient) at() *process { return c.servers[c.server%len(c.servers)] }

func (c *loadClient) key() string { return fmt.Sprintf("%s-k%d", c.epoch, c.r.IntN(epochKeys)) }

// write makes one write. It uses a context that outlives the load, because a write without an outcome
// is useless for the verdict.
func (c *loadClient) write(a action) error {
	o := operation{client: c.id, action: a, key: c.key()}
	next := object{Name: o.key, Epoch: c.epoch}
	method, path, body := "POST", mapsPath, ""
	if a != remove {
		c.writes++
		next.Value = fmt.Sprintf("c%d-%d", c.id, c.writes)
	}
	if known, ok := c.known[o.key]; ok && a != create && c.r.IntN(2) == 0 {
		o.expect, next.Version = known.Value, known.Version
	}
	o.value, body = next.Value, next.body()
	switch a {
	case update:
		method, path = "PUT", mapsPath+"/"+o.key
	case remove:
		method, path, body = "DELETE", mapsPath+"/"+o.key, ""
		if next.Version != 0 {
			body = fmt.Sprintf(`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"%d"}}`, next.Version)
		}
	}
	o.call = c.clock()
	code, answer, err := c.at().call(context.WithoutCancel(c.ctx), method, path, body)
	o.ret = c.clock()
	if errors.Is(err, errNotTaken) {
		return err
	}
	switch {
	case err != nil:
		o.outcome = unknown
	case code < 300:
		o.outcome = done
		delete(c.known, o.key)
		if a != remove {
			o.found = answer.object()
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
		return fmt.Errorf("%s %s: %d %s", method, path, code, answer.Text)
	}
	c.record(o)
	return err
}

func (c *loadClient) see(o object) {
	c.known[o.Name] = o
	c.newest = max(c.newest, o.Version)
}

func (c *loadClient) get() error {
	o := operation{client: c.id, action: get, key: c.key(), call: c.clock()}
	code, answer, err := c.at().call(c.ctx, "GET", mapsPath+"/"+o.key, "")
	o.ret = c.clock()
	switch {
	case err != nil:
		return err
	case code == 200:
		o.outcome, o.found = done, answer.object()
		c.see(o.found)
	case code == 404:
		o.outcome = absent
		delete(c.known, o.key)
	default:
		return fmt.Errorf("get %s: %d %s", o.key, code, answer.Text)
	}
	c.record(o)
	return nil
}

// list reads the objects of the epoch, in one request or in pages, each page from any server. query can
// select a version other than the newest.
func (c *loadClient) list(query string) error {
	x, call := listing{epoch: c.epoch, items: map[string]object{}}, c.clock()
	path := mapsPath + "?labelSelector=epoch%3D" + c.epoch + query
	if c.r.IntN(2) == 0 && query == "" {
		path += "&limit=5"
	}
	next := ""
	for {
		code, answer, err := c.at().call(c.ctx, "GET", path+next, "")
		if err != nil {
			return err
		}
		if code != 200 {
			return fmt.Errorf("list: %d %s", code, answer.Text)
		}
		if x.version != 0 && x.version != answer.version() {
			return fmt.Errorf("page has version %d, previous page %d", answer.version(), x.version)
		}
		x.version = answer.version()
		for i := range answer.Items {
			o := answer.Items[i].object()
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
func (c *loadClient) newestList(x listing, call int64) error {
	if x.version < c.newest {
		return fmt.Errorf("list of version %d after version %d was seen", x.version, c.newest)
	}
	c.newest = x.version
	c.lists = append(c.lists, listed{x.version, time.Now()})
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
	c.lists = slices.DeleteFunc(c.lists, func(l listed) bool { return time.Since(l.at) > readable })
	if len(c.lists) == 0 || c.r.IntN(3) == 0 {
		return c.list("&resourceVersion=0")
	}
	return c.list(fmt.Sprintf("&resourceVersionMatch=Exact&resourceVersion=%d", c.lists[c.r.IntN(len(c.lists))].version))
}
