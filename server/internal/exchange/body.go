package exchange

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"orch.io/controlplane/api/meta"
)

const (
	firstPiece = 4 << 10  // bytes of buffer before anything of a body has arrived
	smallBody  = 16 << 10 // bytes that need no reservation: the slots bound their number
)

// ReadBody reads the body of the request, of at most limit bytes. A body that does not arrive
// before the request's time is over is a 408.
func (r *Request) ReadBody(ctx context.Context, limit int64) ([]byte, error) {
	h := r.HTTP
	if h.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	if h.ContentLength == 0 {
		return nil, nil
	}
	if e := h.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, meta.Failure(http.StatusUnsupportedMediaType, meta.ReasonUnsupportedMediaType, "bodies encoded as %q are not read", e)
	}
	body, err := r.read(ctx, limit)
	var tooLong *http.MaxBytesError
	var full *meta.Status
	switch {
	case errors.As(err, &tooLong), errors.As(err, &full):
		return nil, err
	case errors.Is(err, os.ErrDeadlineExceeded): // the deadline stays, because the rest is not needed
		return nil, meta.Failure(http.StatusRequestTimeout, meta.ReasonTimeout, "Timeout: the body did not arrive in time")
	case err != nil:
		return nil, meta.BadRequest("reading the body: %v", err)
	}
	_ = r.Deadline.Control.SetReadDeadline(time.Time{})
	return body, nil
}

// read reads the body. It grows the buffer as bytes arrive, so that a body that is only
// announced takes no memory.
func (r *Request) read(ctx context.Context, limit int64) ([]byte, error) {
	in, size := io.Reader(r.HTTP.Body), r.HTTP.ContentLength
	if size < 0 {
		in, size = http.MaxBytesReader(nil, r.HTTP.Body, limit), limit+1
	}
	body := make([]byte, 0, min(size, firstPiece))
	for {
		n, err := in.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) == r.HTTP.ContentLength, err == io.EOF && r.HTTP.ContentLength < 0:
			return body, nil
		case err == io.EOF:
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		case len(body) < cap(body):
			continue
		}
		room := min(size, 4*int64(cap(body)))
		if len(body) >= smallBody {
			if err := r.Usage.ReserveBody(ctx, room, min(size, limit)); err != nil {
				return nil, err
			}
		}
		more := make([]byte, len(body), room)
		copy(more, body)
		body = more
	}
}
