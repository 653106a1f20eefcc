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

// stallTime is the maximum time of one write to a client.
const stallTime = time.Minute

// errorTrailer is the name of the HTTP trailer with the error of an incomplete backup.
const errorTrailer = "Backup-Broken-Off"

// Handler returns a handler that serves a backup of a store for GET requests. It is meant for a store that only the serving
// process can open; the store can be used meanwhile. The query parameters since and id, the fields of a Position, request
// an incremental backup. The handler answers 409 if the backup cannot be based on that position.
//
// A backup contains all secrets of the store, so the handler must be mounted behind access control. Handlers of
// server.Builder.Handlers are behind the access control of the server, as non-resource paths.
//
// If the store or the connection fails, the answer ends early, and the received file is truncated, which Restore and Verify
// detect. The handler gives up if the client does not read for a minute.
func Handler(from storage.Backend) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		since, err := position(r.URL.Query())
		switch {
		case r.Method != http.MethodGet:
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "method not allowed: use GET", http.StatusMethodNotAllowed)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out := &answer{to: w, control: http.NewResponseController(w)}
		_, err = Backup(r.Context(), from, out, Options{Base: since, Progress: func(Progress) {}}) // a Progress function makes Backup write the number of versions into the header
		switch {
		case err == nil:
		case out.begun:
			w.Header().Set(http.TrailerPrefix+errorTrailer, fmt.Sprintf("%q", err.Error()))
		case errors.Is(err, ErrWrongBase):
			http.Error(w, err.Error(), http.StatusConflict)
		default:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
		out.write(func() error { return out.control.Flush() })
	})
}

// Fetch requests a backup from a Handler at an address. The caller must close the result. If the backup fails on the server,
// Read returns the error of the server at the end. If since is not zero, the backup is incremental, and Fetch fails with
// ErrWrongBase if it cannot be based on that position.
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
	err = fmt.Errorf("server answered %s: %.2000q", res.Status, bytes.TrimSpace(why))
	if res.StatusCode == http.StatusConflict {
		err = fmt.Errorf("%w: %w", ErrWrongBase, err)
	}
	return nil, errors.Join(err, res.Body.Close())
}

// maxWhy is the maximum number of bytes that are read of an error response.
const maxWhy = 4 << 10

// fetched is the body of a response. At its end it returns the error in the trailer, if any.
type fetched struct{ *http.Response }

func (f *fetched) Close() error { return f.Body.Close() }

func (f *fetched) Read(b []byte) (int, error) {
	n, err := f.Body.Read(b)
	if why := f.Trailer.Get(errorTrailer); err == io.EOF && why != "" {
		err = fmt.Errorf("%w: the backup failed on the server: %.2000s", ErrDamaged, why)
	}
	return n, err
}

// position returns the position in the query parameters, zero if there are none.
func position(q url.Values) (Position, error) {
	if !q.Has("since") && !q.Has("id") {
		return Position{}, nil
	}
	revision, err := strconv.ParseInt(q.Get("since"), 10, 64)
	p := Position{storage.Revision(revision), q.Get("id")}
	if err != nil || !p.valid() {
		return Position{}, errors.New("invalid parameters: since must be the revision of a backup, and id its hash")
	}
	return p, nil
}

// answer writes a response with a deadline for each write to the client. The time to read the store between writes is not
// limited.
type answer struct {
	to      http.ResponseWriter
	control *http.ResponseController
	begun   bool // something was written
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

// write calls do with the deadline, or without one if the ResponseWriter does not support deadlines.
func (a *answer) write(do func() error) {
	_ = a.control.SetWriteDeadline(time.Now().Add(stallTime))
	if do() == nil {
		_ = a.control.SetWriteDeadline(time.Time{})
	}
}
