package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"orch.io/controlplane/storage"
)

// stallTime is how long a caller may hold up one write of an answer.
const stallTime = time.Minute

// brokenOff is the trailer of an answer that says why it is not whole.
const brokenOff = "Backup-Broken-Off"

// Handler answers GET with a backup of a store, which goes on to be used: for a store that
// the serving process alone can open. With the parameters since and id, of a Position, it is one
// on top of an earlier one; 409 says that it cannot stand on that. The answer holds all secrets of
// the store, so whoever mounts it sees to it that only those get it who may: server.Builder.Handlers
// are behind the server's access control, as a path that is no resource.
//
// An answer whose store or connection fails ends early, and is then a file that is cut off. One
// that nobody reads for a minute is ended.
func Handler(from storage.Backend) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		since, err := position(r.URL.Query())
		switch {
		case r.Method != http.MethodGet:
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "a backup is got by GET", http.StatusMethodNotAllowed)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out := &answer{to: w, control: http.NewResponseController(w)}
		_, err = Backup(r.Context(), from, out, Options{Since: since, Progress: func(Progress) {}}) // so that the caller knows how much comes
		switch {
		case err == nil:
		case out.begun:
			w.Header().Set(http.TrailerPrefix+brokenOff, fmt.Sprintf("%q", err.Error()))
		case errors.Is(err, ErrNotOnTop):
			http.Error(w, err.Error(), http.StatusConflict)
		default:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
		out.write(func() error { return out.control.Flush() })
	})
}

// Fetch asks a Handler at an address for a backup. What it returns, which has to be closed, says
// at its end why it is not whole, if the handler knows. With a position other than the zero one it
// is on top of that, or ErrNotOnTop.
func Fetch(ctx context.Context, client *http.Client, address string, since Position) (io.ReadCloser, error) {
	if since != (Position{}) {
		address += "?" + url.Values{"since": {strconv.FormatInt(int64(since.Revision), 10)}, "id": {since.ID}}.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusOK {
		return &fetched{res}, nil
	}
	why, _ := io.ReadAll(io.LimitReader(res.Body, maxWhy))
	err = fmt.Errorf("the server answers %s: %.2000q", res.Status, bytes.TrimSpace(why))
	if res.StatusCode == http.StatusConflict {
		err = fmt.Errorf("%w: %w", ErrNotOnTop, err)
	}
	return nil, errors.Join(err, res.Body.Close())
}

// maxWhy is how much of a refusal is read, in bytes.
const maxWhy = 4 << 10

// fetched is the body of an answer.
type fetched struct{ *http.Response }

func (f *fetched) Close() error { return f.Body.Close() }

func (f *fetched) Read(b []byte) (int, error) {
	n, err := f.Body.Read(b)
	if why := f.Trailer.Get(brokenOff); err == io.EOF && why != "" {
		err = fmt.Errorf("%w: the server broke it off: %.2000s", ErrDamaged, why)
	}
	return n, err
}

func position(q url.Values) (Position, error) {
	if !q.Has("since") && !q.Has("id") {
		return Position{}, nil
	}
	revision, err := strconv.ParseInt(q.Get("since"), 10, 64)
	p := Position{storage.Revision(revision), q.Get("id")}
	if err != nil || !p.valid() {
		return Position{}, errors.New("since must be the revision of a backup, and id its hash")
	}
	return p, nil
}

// answer gives each write to a caller time of its own, and none to the reading of the store in
// between.
type answer struct {
	to      http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

func (a *answer) Write(b []byte) (n int, err error) {
	if !a.begun {
		a.begun = true
		a.to.Header().Set("Content-Type", "application/octet-stream")
	}
	for n < len(b) && err == nil {
		piece := b[n:min(n+blockBytes, len(b))]
		var wrote int
		a.write(func() error {
			wrote, err = a.to.Write(piece)
			return err
		})
		n += wrote
	}
	return n, err
}

// write is without a limit where the writer knows none, as that of a test.
func (a *answer) write(do func() error) {
	_ = a.control.SetWriteDeadline(time.Now().Add(stallTime))
	if do() == nil {
		_ = a.control.SetWriteDeadline(time.Time{})
	}
}
