package backup_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/backup"
)

// fetch returns the response of a handler and the error of reading it.
func fetch(t *testing.T, web *httptest.Server, since backup.Position) ([]byte, error) {
	t.Helper()
	from, err := backup.Fetch(t.Context(), web.Client(), web.URL, since)
	if err != nil {
		return nil, err
	}
	file, err := io.ReadAll(from)
	require.NoError(t, from.Close())
	return file, err
}

// TestHandlerServesBackups fetches a full and an incremental backup of a store that is written to, over
// HTTP/1 and HTTP/2.
func TestHandlerServesBackups(t *testing.T) {
	for _, two := range []bool{false, true} {
		a := open(t, "badger")
		web := httptest.NewUnstartedServer(backup.Handler(a))
		web.EnableHTTP2 = two
		web.StartTLS()
		w := work(t.Context(), a, 4)
		w.reach(t, 300)
		first, err := fetch(t, web, backup.Position{})
		require.NoError(t, err)
		at, err := backup.Verify(t.Context(), backup.Options{}, bytes.NewReader(first))
		require.NoError(t, err)
		w.reach(t, 600)
		w.end(t)
		second, err := fetch(t, web, at.Position)
		require.NoError(t, err)
		b := open(t, "memory")
		report, err := backup.Restore(t.Context(), b, backup.Options{}, bytes.NewReader(first), bytes.NewReader(second))
		require.NoError(t, err)
		newest, err := a.Revision(t.Context())
		require.NoError(t, err)
		require.Equal(t, newest, report.Revision)
		requireSame(t, a, b, report.Oldest, newest)

		ahead := at.Position
		ahead.Revision = newest + 1
		_, err = fetch(t, web, ahead)
		require.ErrorIs(t, err, backup.ErrWrongBase)
		require.ErrorContains(t, err, "409")
		web.Close()
	}
}

// TestHandlerRejectsInvalidRequests checks the responses to invalid requests.
func TestHandlerRejectsInvalidRequests(t *testing.T) {
	h := backup.Handler(open(t, "memory"))
	id := strings.Repeat("0", 64)
	for target, code := range map[string]int{
		"POST /": 405, "HEAD /": 405, "GET /?since=1": 400, "GET /?since=": 400, "GET /?id=" + id: 400, "GET /?since=x&id=" + id: 400, "GET /?since=-1&id=" + id: 400,
		"GET /?since=9223372036854775807&id=" + id: 400, "GET /?since=0&id=x": 400, "GET /?since=0&id=" + id: 200, "GET /": 200,
	} {
		method, path, _ := strings.Cut(target, " ")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		require.Equal(t, code, w.Code, target)
	}
	broken := faultinject.Wrap(open(t, "memory"), nil)
	broken.SetPlan(func(faultinject.Call) faultinject.Fault {
		return faultinject.Fault{Err: errors.New("the disk is gone")}
	})
	w := httptest.NewRecorder()
	backup.Handler(broken).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	require.Equal(t, 500, w.Code)
	require.Contains(t, w.Body.String(), "the disk is gone")
}

// TestHandlerReportsFailure checks that an incomplete backup is rejected, and that the reader gets the error of the
// store. A broken connection also leaves no valid backup.
func TestHandlerReportsFailure(t *testing.T) {
	a := faultinject.Wrap(open(t, "memory"), nil)
	for i := range 40 {
		put(t, a, strings.Repeat("k", i+1), strings.Repeat("x", 100<<10))
	}
	web := httptest.NewServer(backup.Handler(a))
	defer web.Close()
	whole, err := fetch(t, web, backup.Position{})
	require.NoError(t, err)
	records := 0
	a.SetPlan(func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpRecord {
			if records++; records == 30+41 { // the first 40 are counted for the header
				return faultinject.Fault{Err: errors.New("the disk is\ngone")}
			}
		}
		return faultinject.Fault{}
	})
	part, err := fetch(t, web, backup.Position{})
	require.ErrorIs(t, err, backup.ErrDamaged)
	require.ErrorContains(t, err, `the disk is\ngone`)
	require.Less(t, len(part), len(whole))
	_, err = backup.Verify(t.Context(), backup.Options{}, bytes.NewReader(part))
	require.ErrorIs(t, err, backup.ErrDamaged)

	a.SetPlan(nil)
	ended := make(chan struct{})
	cutting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		backup.Handler(a).ServeHTTP(&cutter{ResponseWriter: w, after: 500 << 10}, r)
	}))
	defer cutting.Close()
	part, err = fetch(t, cutting, backup.Position{})
	require.Error(t, err)
	_, err = backup.Verify(t.Context(), backup.Options{}, bytes.NewReader(part))
	require.ErrorIs(t, err, backup.ErrDamaged)
	<-ended
}

// cutter closes the connection of a response after some bytes.
type cutter struct {
	http.ResponseWriter
	after int
}

func (c *cutter) Write(b []byte) (int, error) {
	if c.after -= len(b); c.after < 0 {
		conn, _, err := http.NewResponseController(c.ResponseWriter).Hijack()
		if err != nil {
			return 0, err
		}
		return 0, errors.Join(conn.Close(), net.ErrClosed)
	}
	return c.ResponseWriter.Write(b)
}

// TestHandlerEndsWithItsClient checks that the handler returns if the client disconnects.
func TestHandlerEndsWithItsClient(t *testing.T) {
	a := open(t, "memory")
	for i := range 200 {
		put(t, a, strings.Repeat("k", i+1), strings.Repeat("x", 100<<10))
	}
	ended := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		backup.Handler(a).ServeHTTP(w, r)
	}))
	defer web.Close()
	ctx, cancel := context.WithCancel(t.Context())
	from, err := backup.Fetch(ctx, web.Client(), web.URL, backup.Position{})
	require.NoError(t, err)
	_, err = io.ReadFull(from, make([]byte, 1000))
	require.NoError(t, err)
	cancel()
	<-ended
	_, err = io.ReadAll(from)
	require.Error(t, err)
	require.NoError(t, from.Close())
}

// TestProgressDuringHistoryAndComparison checks that progress is reported while a long history is read and while it is
// compared.
func TestProgressDuringHistoryAndComparison(t *testing.T) {
	a, b := open(t, "memory"), open(t, "memory")
	for i := range 300 {
		put(t, a, "k", strings.Repeat("x", 100<<10+i))
	}
	for i := range 300 {
		put(t, a, strings.Repeat("k", i+1), strings.Repeat("x", 100<<10))
	}
	count := func(told *map[backup.Phase]int) backup.Options {
		*told = map[backup.Phase]int{}
		last := storage.Revision(0)
		return backup.Options{Progress: func(p backup.Progress) {
			(*told)[p.Phase]++
			require.GreaterOrEqual(t, p.Revision, last)
			last = p.Revision
		}}
	}
	var file bytes.Buffer
	var told map[backup.Phase]int
	_, err := backup.Backup(t.Context(), a, &file, count(&told))
	require.NoError(t, err)
	require.Greater(t, told[backup.Copying], 25)
	_, err = backup.Copy(t.Context(), a, b, count(&told))
	require.NoError(t, err)
	require.Greater(t, told[backup.Verifying], 20)
	_, err = backup.Verify(t.Context(), count(&told), bytes.NewReader(file.Bytes()))
	require.NoError(t, err)
	require.Greater(t, told[backup.Copying], 25)
}

// TestRaisingIsReported checks that progress is reported in the phase Raising, which takes long if the source has many
// commits.
func TestRaisingIsReported(t *testing.T) {
	a := open(t, "memory")
	require.NoError(t, a.(storage.Importer).Import(t.Context(), nil, 5_000, func(yield func(storage.Record, error) bool) {
		yield(storage.Record{Key: "a", Value: []byte("1"), Revision: 7}, nil)
	}))
	var told []storage.Revision
	_, err := backup.Copy(t.Context(), a, own{open(t, "memory")}, backup.Options{Progress: func(p backup.Progress) {
		if p.Phase == backup.Raising {
			told = append(told, p.Revision)
		}
	}})
	require.NoError(t, err)
	require.Len(t, told, 5)
	require.IsIncreasing(t, told)
}
