package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/examples/cluster/internal/testbed"
)

// TestRequestsContinueOnAnotherServer: paging and watches that begin on one server continue on another,
// and a read on one server sees the writes of another.
func TestRequestsContinueOnAnotherServer(t *testing.T) {
	_, servers := testbed.StartCluster(t)
	t.Run("pages", func(t *testing.T) { checkPages(t, servers) })
	t.Run("watches", func(t *testing.T) { checkWatches(t, servers) })
	t.Run("reads", func(t *testing.T) { checkReads(t, servers) })
}

// checkPages reads each page from the next server, and makes changes between the pages, which no page
// must show.
func checkPages(t *testing.T, servers []*testbed.Server) {
	const n = 20
	at := func(i int) *testbed.Server { return servers[i%len(servers)] }
	want := map[string]testbed.ConfigMap{}
	for i := range n {
		made := at(i).Must(201, "POST", testbed.ConfigMaps, testbed.ConfigMap{Name: fmt.Sprintf("page-%02d", i), Epoch: "pages", Value: "old"}.JSON())
		want[made.Metadata.Name] = made.ConfigMap()
	}
	found, version, next := map[string]testbed.ConfigMap{}, uint64(0), ""
	for i := 0; i == 0 || next != ""; i++ {
		page := at(i).Must(200, "GET", testbed.ConfigMaps+"?labelSelector=epoch%3Dpages&limit=3"+next, "")
		if i == 0 {
			version = page.Version()
		}
		require.Equal(t, version, page.Version())
		for name, o := range page.ConfigMaps() {
			require.NotContains(t, found, name)
			found[name] = o
		}
		if next = page.Metadata.Continue; next != "" {
			next = "&continue=" + next
		}
		name := fmt.Sprintf("%s/page-%02d", testbed.ConfigMaps, n-1-i)
		at(i+1).Must(200, "PUT", name, testbed.ConfigMap{Name: fmt.Sprintf("page-%02d", n-1-i), Epoch: "pages", Value: "new"}.JSON())
		at(i+2).Must(200, "DELETE", name, "")
		at(i+2).Must(201, "POST", testbed.ConfigMaps, testbed.ConfigMap{Name: fmt.Sprintf("page-%02d-more", i), Epoch: "pages", Value: "new"}.JSON())
	}
	require.Equal(t, want, found)
}

// checkWatches reads one event from each server, starting each watch after the event of the server
// before.
func checkWatches(t *testing.T, servers []*testbed.Server) {
	const n = 30
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	last := servers[0].Must(200, "GET", testbed.ConfigMaps, "").Version()
	var written []uint64
	body := testbed.ConfigMap{Name: "watched", Value: "x"}
	written = append(written, servers[0].Must(201, "POST", testbed.ConfigMaps, body.JSON()).Version())
	for i := 1; i < n; i++ {
		body.Value = fmt.Sprint(i)
		written = append(written, servers[i%3].Must(200, "PUT", testbed.ConfigMaps+"/watched", body.JSON()).Version())
	}
	for i, version := range written {
		require.NoError(t, servers[(i+1)%3].Watch(ctx, testbed.ConfigMaps, fmt.Sprint("resourceVersion=", last), func(e testbed.Event) bool {
			if e.Type == "BOOKMARK" {
				return true
			}
			require.Equal(t, "watched", e.Object.Metadata.Name, "%+v", e)
			require.Equal(t, version, e.Object.Version())
			last = version
			return false
		}))
	}
}

// checkReads reads an object in all ways from one server, immediately after it was written through
// another.
func checkReads(t *testing.T, servers []*testbed.Server) {
	const n = 30
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	written := servers[0].Must(201, "POST", testbed.ConfigMaps, testbed.ConfigMap{Name: "read", Value: "first", Epoch: "reads"}.JSON()).ConfigMap()
	for i := range n {
		here, there := servers[i%3], servers[(i+1+i/3%2)%3]
		before := written
		written = here.Must(200, "PUT", testbed.ConfigMaps+"/read", testbed.ConfigMap{Name: "read", Value: fmt.Sprint(i), Epoch: "reads"}.JSON()).ConfigMap()
		initial := map[string]testbed.ConfigMap{}
		require.NoError(t, there.Watch(ctx, testbed.ConfigMaps, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&labelSelector=epoch%3Dreads", func(e testbed.Event) bool {
			if e.Type == "BOOKMARK" {
				require.GreaterOrEqual(t, e.Object.Version(), written.Version)
				require.Equal(t, "true", e.Object.Metadata.Annotations["k8s.io/initial-events-end"])
				return false
			}
			require.Equal(t, "ADDED", e.Type)
			initial[e.Object.Metadata.Name] = e.Object.ConfigMap()
			return true
		}))
		require.Equal(t, map[string]testbed.ConfigMap{"read": written}, initial, "round %d", i)
		for _, o := range []testbed.ConfigMap{written, before} {
			list := there.Must(200, "GET", fmt.Sprintf("%s?labelSelector=epoch%%3Dreads&resourceVersionMatch=Exact&resourceVersion=%d", testbed.ConfigMaps, o.Version), "")
			require.Equal(t, o.Version, list.Version())
			require.Equal(t, map[string]testbed.ConfigMap{"read": o}, list.ConfigMaps(), "round %d", i)
		}
		list := there.Must(200, "GET", fmt.Sprintf("%s?labelSelector=epoch%%3Dreads&resourceVersionMatch=NotOlderThan&resourceVersion=%d", testbed.ConfigMaps, written.Version), "")
		require.Equal(t, map[string]testbed.ConfigMap{"read": written}, list.ConfigMaps(), "round %d", i)
		got := there.Must(200, "GET", testbed.ConfigMaps+"/read", "")
		require.Equal(t, written, got.ConfigMap(), "round %d", i)
	}
}
