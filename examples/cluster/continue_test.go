package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mustCall makes a request and requires the status code.
func (p *process) mustCall(code int, method, path, body string) *wireObject {
	p.t.Helper()
	got, answer, err := p.patientCall(p.t.Context(), method, path, body)
	require.NoError(p.t, err)
	require.Equal(p.t, code, got, "%s %s: %s", method, path, answer.Text)
	return &answer
}

// TestRequestsContinueOnAnotherServer: paging and watches that begin on one server continue on another,
// and a read on one server sees the writes of another.
func TestRequestsContinueOnAnotherServer(t *testing.T) {
	_, servers := startThree(t)
	t.Run("pages", func(t *testing.T) { checkPages(t, servers) })
	t.Run("watches", func(t *testing.T) { checkWatches(t, servers) })
	t.Run("reads", func(t *testing.T) { checkReads(t, servers) })
}

// checkPages reads each page from the next server, and makes changes between the pages, which no page
// must show.
func checkPages(t *testing.T, servers []*process) {
	const n = 20
	at := func(i int) *process { return servers[i%len(servers)] }
	want := map[string]object{}
	for i := range n {
		made := at(i).mustCall(201, "POST", mapsPath, object{Name: fmt.Sprintf("page-%02d", i), Epoch: "pages", Value: "old"}.body())
		want[made.Metadata.Name] = made.object()
	}
	found, version, next := map[string]object{}, uint64(0), ""
	for i := 0; i == 0 || next != ""; i++ {
		page := at(i).mustCall(200, "GET", mapsPath+"?labelSelector=epoch%3Dpages&limit=3"+next, "")
		if i == 0 {
			version = page.version()
		}
		require.Equal(t, version, page.version())
		for name, o := range page.objects() {
			require.NotContains(t, found, name)
			found[name] = o
		}
		if next = page.Metadata.Continue; next != "" {
			next = "&continue=" + next
		}
		name := fmt.Sprintf("%s/page-%02d", mapsPath, n-1-i)
		at(i+1).mustCall(200, "PUT", name, object{Name: fmt.Sprintf("page-%02d", n-1-i), Epoch: "pages", Value: "new"}.body())
		at(i+2).mustCall(200, "DELETE", name, "")
		at(i+2).mustCall(201, "POST", mapsPath, object{Name: fmt.Sprintf("page-%02d-more", i), Epoch: "pages", Value: "new"}.body())
	}
	require.Equal(t, want, found)
}

// checkWatches reads one event from each server, starting each watch after the event of the server
// before.
func checkWatches(t *testing.T, servers []*process) {
	const n = 30
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	last := servers[0].mustCall(200, "GET", mapsPath, "").version()
	var written []uint64
	body := object{Name: "watched", Value: "x"}
	written = append(written, servers[0].mustCall(201, "POST", mapsPath, body.body()).version())
	for i := 1; i < n; i++ {
		body.Value = fmt.Sprint(i)
		written = append(written, servers[i%3].mustCall(200, "PUT", mapsPath+"/watched", body.body()).version())
	}
	for i, version := range written {
		require.NoError(t, servers[(i+1)%3].watch(ctx, last, func(e event) bool {
			if e.Type == "BOOKMARK" {
				return true
			}
			require.Equal(t, "watched", e.Object.Metadata.Name, "%+v", e)
			require.Equal(t, version, e.Object.version())
			last = version
			return false
		}))
	}
}

// checkReads reads an object in all ways from one server, immediately after it was written through
// another.
func checkReads(t *testing.T, servers []*process) {
	const n = 30
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	written := servers[0].mustCall(201, "POST", mapsPath, object{Name: "read", Value: "first", Epoch: "reads"}.body()).object()
	for i := range n {
		here, there := servers[i%3], servers[(i+1+i/3%2)%3]
		before := written
		written = here.mustCall(200, "PUT", mapsPath+"/read", object{Name: "read", Value: fmt.Sprint(i), Epoch: "reads"}.body()).object()
		initial := map[string]object{}
		require.NoError(t, there.follow(ctx, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&labelSelector=epoch%3Dreads", func(e event) bool {
			if e.Type == "BOOKMARK" {
				require.GreaterOrEqual(t, e.Object.version(), written.Version)
				require.Equal(t, "true", e.Object.Metadata.Annotations["k8s.io/initial-events-end"])
				return false
			}
			require.Equal(t, "ADDED", e.Type)
			initial[e.Object.Metadata.Name] = e.Object.object()
			return true
		}))
		require.Equal(t, map[string]object{"read": written}, initial, "round %d", i)
		for _, o := range []object{written, before} {
			list := there.mustCall(200, "GET", fmt.Sprintf("%s?labelSelector=epoch%%3Dreads&resourceVersionMatch=Exact&resourceVersion=%d", mapsPath, o.Version), "")
			require.Equal(t, o.Version, list.version())
			require.Equal(t, map[string]object{"read": o}, list.objects(), "round %d", i)
		}
		list := there.mustCall(200, "GET", fmt.Sprintf("%s?labelSelector=epoch%%3Dreads&resourceVersionMatch=NotOlderThan&resourceVersion=%d", mapsPath, written.Version), "")
		require.Equal(t, map[string]object{"read": written}, list.objects(), "round %d", i)
		got := there.mustCall(200, "GET", mapsPath+"/read", "")
		require.Equal(t, written, got.object(), "round %d", i)
	}
}
