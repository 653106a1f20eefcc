package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// object holds the tested fields of a ConfigMap.
type object struct {
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Data map[string]string `json:"data"`
}

func (o object) n() int          { return int(number(o.Data["n"])) }
func (o object) version() uint64 { return number(o.Metadata.ResourceVersion) }

func number(s string) uint64 {
	v, _ := strconv.ParseUint(s, 10, 64)
	return v
}

// event is an event of a watch.
type event struct {
	Type   string `json:"type"`
	Object object `json:"object"`
}

// follow watches from a resourceVersion until the watch breaks or an object with the given name
// arrives, and returns the events before that.
func (p *process) follow(after uint64, until string) []event {
	res, err := p.client.Get(fmt.Sprintf("%s%s?watch=true&resourceVersion=%d", p.url, mapsPath, after))
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	var seen []event
	for events := json.NewDecoder(res.Body); ; {
		var e event
		if events.Decode(&e) != nil || e.Object.Metadata.Name == until {
			return seen
		}
		seen = append(seen, e)
	}
}

// count is a writer: it increments the number in its object until a request fails. last is the newest
// answer that it got.
func (p *process) count(name string, last *object, acked *atomic.Int64) {
	for {
		method, path, n := "POST", mapsPath, 0
		if last.Metadata.Name != "" {
			method, path, n = "PUT", mapsPath+"/"+name, last.n()+1
		}
		body := fmt.Sprintf(`{"metadata":{"name":%q},"data":{"n":"%d"}}`, name, n)
		r, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
		if err != nil {
			p.Error(err)
			return
		}
		r.Header.Set("Content-Type", "application/json")
		res, err := p.client.Do(r)
		if err != nil {
			return
		}
		var answer object
		err = json.NewDecoder(res.Body).Decode(&answer)
		res.Body.Close()
		if err != nil {
			return
		}
		if res.StatusCode > 201 || answer.n() != n {
			p.Errorf("%s %s: %d %+v", method, path, res.StatusCode, answer)
			return
		}
		*last = answer
		acked.Add(1)
	}
}

const killWriters, kills, ackedBeforeKill = 16, 3, 400

// countUntilKilled runs the writers and kills the program while they write.
func (p *process) countUntilKilled(last *[killWriters]object) {
	var all sync.WaitGroup
	var acked atomic.Int64
	for w := range last {
		all.Go(func() { p.count(fmt.Sprintf("w%d", w), &last[w], &acked) })
	}
	require.Eventually(p, func() bool { return acked.Load() > ackedBeforeKill }, time.Minute, time.Millisecond)
	require.Error(p, p.end(syscall.SIGKILL))
	all.Wait()
}

// TestKilledServerLosesNoWrite: the program is killed at random moments while sixteen writers increment
// counters, and started again. All acknowledged writes are there, resourceVersions increase, and
// watches resumed at the newest and the oldest version have no gap.
func TestKilledServerLosesNoWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startProcess(t, dir, noOwnConfigMaps) // only the writers create ConfigMaps
	_, body := p.call("GET", mapsPath, "")
	var list object
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	first := list.version()
	var last [killWriters]object
	var resumed []event // the events of a watch that is resumed after each kill
	newest, fence := first, ""
	for round := range kills {
		before := make(chan []event, 1)
		go func() { before <- p.follow(newest, "") }()
		p.countUntilKilled(&last)
		resumed = append(resumed, <-before...)
		for _, e := range resumed {
			newest = max(newest, e.Object.version())
		}
		p = startProcess(t, dir, noOwnConfigMaps)
		high := p.checkAcknowledged(&last, newest)
		fence = fmt.Sprintf("fence-%d", round)
		code, body := p.call("POST", mapsPath, fmt.Sprintf(`{"metadata":{"name":%q}}`, fence))
		require.Equal(t, 201, code, body)
		var f object
		require.NoError(t, json.Unmarshal([]byte(body), &f))
		assert.Greater(t, f.version(), high, "versions increase")
		resumed = append(resumed, p.follow(newest, fence)...)
		newest = f.version()
	}
	checkGapless(t, resumed)
	whole := slices.DeleteFunc(p.follow(first, fence), func(e event) bool { return strings.HasPrefix(e.Object.Metadata.Name, "fence") })
	checkGapless(t, whole)
	assert.Equal(t, whole, resumed)
}

// checkAcknowledged checks that each object is as its writer last had it acknowledged, or one step
// further, and returns the newest version.
func (p *process) checkAcknowledged(last *[killWriters]object, newest uint64) uint64 {
	p.Helper()
	for w := range last {
		code, body := p.call("GET", fmt.Sprintf("%s/w%d", mapsPath, w), "")
		if code == 404 && last[w].Metadata.Name == "" {
			continue
		}
		require.Equal(p, 200, code, body)
		var found object
		require.NoError(p, json.Unmarshal([]byte(body), &found))
		if found.n() == last[w].n() {
			assert.Equal(p, last[w], found)
		} else {
			assert.Equal(p, last[w].n()+1, found.n())
			assert.Greater(p, found.version(), last[w].version())
		}
		last[w] = found
		newest = max(newest, found.version())
	}
	return newest
}

// checkGapless checks that the events contain each step of each writer once, in the order of versions.
func checkGapless(t *testing.T, events []event) {
	t.Helper()
	next := map[string]int{}
	version := uint64(0)
	for _, e := range events {
		name := e.Object.Metadata.Name
		require.Greater(t, e.Object.version(), version, name)
		require.Equal(t, next[name], e.Object.n(), name)
		require.Equal(t, map[bool]string{true: "ADDED", false: "MODIFIED"}[next[name] == 0], e.Type, name)
		version = e.Object.version()
		next[name]++
	}
	assert.Len(t, next, killWriters)
}
