// Package client provides typed access to the objects of a server, in the same process or over
// HTTP.
//
// A Conn describes the connection to a server. Of returns the objects of a kind there, which are
// read, written and watched as values of the kind's Go struct. A Cache holds objects in memory, a
// Controller reconciles them when they change, and an Election elects the leader among several
// programs.
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

// Conn describes a connection to a server and options of requests. It is a plain value: it may be
// copied, and changes do not affect objects that were made from it before. If the server refuses a
// request with 429 or 503 and Retry-After, the request is retried up to ten times in all. If a
// response does not begin within two minutes, the request fails.
type Conn struct {
	// URL is the address that the paths of the API are appended to, such as https://10.0.0.1:6443.
	// It may be empty if Transport needs no address, such as the Transport of a server in the same
	// process.
	URL string

	// Transport sends the requests, with credentials. Redirects are not followed. nil means
	// http.DefaultTransport. Examples are the Transport of server.Server.Conn, the Transport of a
	// kubeconfig (package kubeconfig), and an *http.Transport with a client certificate.
	Transport http.RoundTripper

	// Token is sent as bearer token if it is not empty.
	Token string

	// Names are the names that the server uses on the wire. The zero Profile has the product's own
	// names.
	Names names.Profile

	// Manager is the field manager of all writes. Apply requires it; other writes without a Manager use
	// the name that the server derives from the user agent.
	Manager string

	// DryRun makes the server answer writes as if they were carried out, without storing anything.
	DryRun bool

	// Warn is called with each warning of the server. It may be called concurrently. nil ignores
	// warnings.
	Warn func(text string)

	// Log receives messages about retries in the background. nil discards them.
	Log *slog.Logger
}

// Bounds of response bodies, in bytes.
const (
	maxResponse = 256 << 20
	maxEvent    = 32 << 20
	maxStatus   = 4 << 20
)

const (
	jsonType        = "application/json"
	defaultAgent    = "controlplane-client"
	responseTimeout = 2 * time.Minute       // for the begin of a response; servers bound requests by a shorter time
	maxTries        = 10                    // attempts of a request that the server refuses with Retry-After
	maxRetryAfter   = time.Minute           // longest Retry-After that is respected
	minPause        = 50 * time.Millisecond // before the first retry in the background
	maxPause        = 30 * time.Second
)

// request is one request to a server.
type request struct {
	method, path string
	query        url.Values
	media        string // content type of body
	body         []byte
}

// send makes a request, retries it while the server asks for that, and returns the 2xx response,
// whose body the caller closes. Other responses are returned as *meta.Status.
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
		if err := statusError(res); !later || try == maxTries {
			return nil, err
		}
		if err := pause(ctx, after); err != nil {
			return nil, err
		}
	}
}

// errNoServer is returned for a Conn that names no server.
var errNoServer = errors.New("Conn has neither URL nor Transport")

// errNoResponse is returned if a response does not begin in time.
var errNoResponse = fmt.Errorf("the server did not respond for %s", responseTimeout)

// sendOnce makes a single attempt of a request.
func (c *Conn) sendOnce(ctx context.Context, r request) (*http.Response, error) {
	if c.URL == "" && c.Transport == nil {
		return nil, errNoServer
	}
	address := cmp.Or(strings.TrimRight(c.URL, "/"), "http://in-process.invalid") + r.path // a host name that never resolves
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
	return roundTrip(transport, h)
}

// roundTrip makes a request and returns errNoResponse if its response does not begin within
// responseTimeout.
func roundTrip(transport http.RoundTripper, h *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(h.Context())
	late := time.AfterFunc(responseTimeout, func() { cancel(errNoResponse) })
	res, err := transport.RoundTrip(h.WithContext(ctx))
	late.Stop()
	if err != nil {
		defer cancel(nil)
		if errors.Is(context.Cause(ctx), errNoResponse) {
			return nil, errNoResponse
		}
		return nil, err
	}
	res.Body = &responseBody{res.Body, cancel}
	return res, nil
}

// responseBody is the body of a response. Close cancels the context of the request.
type responseBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *responseBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

// warn calls c.Warn with the warnings in the header of a response.
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

// warningText returns the text of a Warning header such as 299 - "text".
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

// retryAfter returns the pause before the next attempt. It reports false if the server does not ask
// for a retry.
func retryAfter(res *http.Response) (time.Duration, bool) {
	if res.StatusCode != http.StatusTooManyRequests && res.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	text := res.Header.Get("Retry-After")
	if at, err := http.ParseTime(text); err == nil {
		return max(0, min(time.Until(at), maxRetryAfter)), true
	}
	seconds, err := strconv.ParseUint(text, 10, 31)
	return min(time.Duration(seconds)*time.Second, maxRetryAfter), err == nil
}

// jitter returns a random duration between d/2 and d, so that many clients do not retry at the same
// time.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// pause waits for d. If the context ends first, it returns the context's error.
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

// status is the wire format of a Status.
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

// statusError returns the *meta.Status of a response that is not 2xx, and closes the body. If the
// body is not a Status, its message quotes the begin of the body.
func statusError(res *http.Response) error {
	defer res.Body.Close()
	text, err := readBounded(res.Body, maxStatus)
	if err != nil {
		return meta.Failure(res.StatusCode, reasonOf(res.StatusCode), "the server responded with %s: %v", res.Status, err)
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
	return meta.Failure(res.StatusCode, reasonOf(res.StatusCode), "the server responded with %s: %s", res.Status, bytes.TrimSpace(text))
}

// reasonOf returns the reason for a status code without a Status.
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

// errTooLong is returned for a response or event that exceeds its bound.
var errTooLong = errors.New("the response is too large")

// readBounded reads r to its end and returns errTooLong if it has more than the given number of
// bytes.
func readBounded(r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, fmt.Errorf("reading the response: %w", err)
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%w: more than %d bytes", errTooLong, most)
	}
	return text, nil
}

// call makes a request and returns the body of its 2xx response.
func (c *Conn) call(ctx context.Context, r request) ([]byte, error) {
	res, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := readBounded(res.Body, maxResponse)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	return text, nil
}

// log returns the logger, which is never nil.
func (c *Conn) log() *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log
}
