// Package client is typed access to the objects of a server: of kinds in code, in the
// process of the server or over HTTP.
//
// A Conn is a way to a server, Of gives the objects of one kind there: they are read,
// written and watched as values of the kind's struct. A Cache holds them in memory, a
// Controller makes things right when they change, and an Election lets one of several
// programs do so at a time.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// Conn says how to reach a server, and how requests are made. It may be copied and
// changed: what was made with it before stays as it is. A request that the server sends
// away with 429 or 503 and Retry-After is sent again, a few times; one that it does not
// begin to answer within two minutes fails.
type Conn struct {
	// URL is what the paths of the API follow, such as https://10.0.0.1:6443. Empty is for
	// a Transport that needs none, such as that of a server in the process, and only then.
	URL string

	// Transport carries the requests, with the credentials; redirects are not followed. nil
	// is http.DefaultTransport. A server in the process has one (Conn of server.Server), a
	// kubeconfig gives one (package kubeconfig), and an *http.Transport with certificates is one.
	Transport http.RoundTripper

	// Token is sent as bearer token, if it is not empty.
	Token string

	// Names are the words that the server uses on the wire; zero is the product's own.
	Names names.Profile

	// Manager is the field manager of all writes; Apply needs one.
	Manager string

	// DryRun lets writes be answered as if they were made, and makes none.
	DryRun bool

	// Warn is told what the server warns of, also by several goroutines at a time; nil:
	// nobody is.
	Warn func(text string)

	// Log is told of what is tried again in the background; nil: nobody is.
	Log *slog.Logger
}

// Bounds of what a server may send, in bytes.
const (
	maxAnswer = 256 << 20
	maxEvent  = 32 << 20
	maxStatus = 4 << 20
)

const (
	jsonType      = "application/json"
	defaultAgent  = "controlplane-client"
	longestSilent = 2 * time.Minute // before an answer begins: servers give requests less
	mostTries     = 10              // of a request that the server sends away with Retry-After
	longestSentBy = time.Minute     // that the server may ask to wait for
	firstPause    = 50 * time.Millisecond
	longestPause  = 30 * time.Second
)

// request is one request to a server.
type request struct {
	method, path string
	query        url.Values
	media        string // of the body
	body         []byte
}

// send makes a request and returns its answer, which is a 2xx: the caller closes its body.
// It goes on as long as the server asks to try again later, within bounds.
func (c *Conn) send(ctx context.Context, r request) (*http.Response, error) {
	for try := 1; ; try++ {
		res, err := c.sendOnce(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
		c.warn(res.Header)
		if res.StatusCode/100 == 2 {
			return res, nil
		}
		after, later := retryAfter(res)
		if err := refusal(res); !later || try == mostTries {
			return nil, err
		}
		if err := pause(ctx, after); err != nil {
			return nil, err
		}
	}
}

// errNowhere is of a Conn that leads nowhere.
var errNowhere = errors.New("a Conn without URL and Transport")

// errSilent is of a request that the server does not answer.
var errSilent = fmt.Errorf("the server does not answer for %s", longestSilent)

func (c *Conn) sendOnce(ctx context.Context, r request) (*http.Response, error) {
	if c.URL == "" && c.Transport == nil {
		return nil, errNowhere
	}
	address := cmp.Or(strings.TrimRight(c.URL, "/"), "http://in-process.invalid") + r.path // no name that leads to anybody
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	h, err := http.NewRequestWithContext(ctx, r.method, address, body)
	if err != nil {
		return nil, err
	}
	h.Header.Set("Accept", jsonType)
	h.Header.Set("User-Agent", cmp.Or(c.Manager, defaultAgent))
	if r.media != "" {
		h.Header.Set("Content-Type", r.media)
	}
	if c.Token != "" {
		h.Header.Set("Authorization", "Bearer "+c.Token)
	}
	transport := c.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	return answered(transport, h)
}

// answered makes a request, whose answer has to begin in time.
func answered(transport http.RoundTripper, h *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(h.Context())
	late := time.AfterFunc(longestSilent, func() { cancel(errSilent) })
	res, err := transport.RoundTrip(h.WithContext(ctx))
	late.Stop()
	if err != nil {
		defer cancel(nil)
		if errors.Is(context.Cause(ctx), errSilent) {
			return nil, errSilent
		}
		return nil, err
	}
	res.Body = &answer{res.Body, cancel}
	return res, nil
}

// answer is the body of an answer, with which its request ends.
type answer struct {
	io.ReadCloser
	end context.CancelCauseFunc
}

func (a *answer) Close() error {
	defer a.end(nil)
	return a.ReadCloser.Close()
}

// warn tells what the Warning headers of an answer say.
func (c *Conn) warn(h http.Header) {
	if c.Warn == nil {
		return
	}
	for _, value := range h.Values("Warning") {
		if text, ok := warningText(value); ok {
			c.Warn(text)
		}
	}
}

// warningText is the text of a header value such as 299 - "text".
func warningText(value string) (string, bool) {
	_, rest, ok := strings.Cut(value, " ")
	if !ok {
		return "", false
	}
	if _, rest, ok = strings.Cut(rest, " "); !ok {
		return "", false
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return "", false
	}
	text, err := strconv.Unquote(quoted)
	return text, err == nil
}

// retryAfter says when to send a request again that the server did not take, if it asks
// for that.
func retryAfter(res *http.Response) (time.Duration, bool) {
	if res.StatusCode != http.StatusTooManyRequests && res.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	text := res.Header.Get("Retry-After")
	if at, err := http.ParseTime(text); err == nil {
		return max(0, min(time.Until(at), longestSentBy)), true
	}
	seconds, err := strconv.ParseUint(text, 10, 31)
	return min(time.Duration(seconds)*time.Second, longestSentBy), err == nil
}

// jitter is a pause of about that length, so that not all come back at the same time.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// pause waits; the error is that of the context, if it ends before.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// status is a Status as it is on the wire.
type status struct {
	Kind, Status, Message string
	Reason                meta.Reason
	Details               *meta.StatusDetails
	Code                  int
	Metadata              struct{ Continue string }
}

func (s *status) err() *meta.Status {
	return &meta.Status{Status: s.Status, Message: s.Message, Reason: s.Reason, Details: s.Details, Code: s.Code, Continue: s.Metadata.Continue}
}

// refusal returns what an answer that is no 2xx says, and closes its body.
func refusal(res *http.Response) error {
	defer res.Body.Close()
	text, err := read(res.Body, maxStatus)
	if err != nil {
		return meta.Failure(res.StatusCode, reasonOf(res.StatusCode), "the server answered %s: %v", res.Status, err)
	}
	var s status
	if json.Unmarshal(text, &s) == nil && s.Kind == "Status" && s.Message+string(s.Reason) != "" {
		s.Code = cmp.Or(s.Code, res.StatusCode)
		s.Reason = cmp.Or(s.Reason, reasonOf(s.Code))
		return s.err()
	}
	const most = 1 << 10
	if len(text) > most {
		text = append(text[:most:most], "..."...)
	}
	return meta.Failure(res.StatusCode, reasonOf(res.StatusCode), "the server answered %s: %s", res.Status, bytes.TrimSpace(text))
}

// reasonOf is the reason of a code for which the server gave none.
func reasonOf(code int) meta.Reason {
	switch code {
	case http.StatusBadRequest:
		return meta.ReasonBadRequest
	case http.StatusUnauthorized:
		return meta.ReasonUnauthorized
	case http.StatusForbidden:
		return meta.ReasonForbidden
	case http.StatusNotFound:
		return meta.ReasonNotFound
	case http.StatusMethodNotAllowed:
		return meta.ReasonMethodNotAllowed
	case http.StatusConflict:
		return meta.ReasonConflict
	case http.StatusGone:
		return meta.ReasonGone
	case http.StatusTooManyRequests:
		return meta.ReasonTooManyRequests
	case http.StatusServiceUnavailable:
		return meta.ReasonServiceUnavailable
	}
	return meta.ReasonInternalError
}

// errTooLong is of an answer that exceeds its bound.
var errTooLong = errors.New("the server sends more than it may")

func read(r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, fmt.Errorf("the answer breaks off: %w", err)
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%w: %d bytes", errTooLong, most)
	}
	return text, nil
}

// call makes a request and returns the body of its answer.
func (c *Conn) call(ctx context.Context, r request) ([]byte, error) {
	res, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := read(res.Body, maxAnswer)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	return text, nil
}

// log is where what is tried again is told.
func (c *Conn) log() *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log
}
