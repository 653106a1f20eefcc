package webhookclient

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"orch.io/controlplane/client/kubeconfig"
)

// Caller posts JSON to a URL.
type Caller struct {
	// Timeout bounds a call, from dialing to the end of the answer; zero is 10 seconds.
	Timeout time.Duration
	// MaxAnswer is the largest accepted answer in bytes; zero is 1 MiB.
	MaxAnswer int64
	// UserAgent is the User-Agent header; empty means the default of net/http.
	UserAgent string

	url    string
	client *http.Client
}

// NewCaller returns a Caller for the URL of a Remote, with connections of its own.
func NewCaller(r *kubeconfig.Remote) *Caller { return newCaller(r, r.Transport()) }

func newCaller(r *kubeconfig.Remote, t http.RoundTripper) *Caller {
	return &Caller{url: r.URL.String(), client: &http.Client{
		Transport: t,
		// Redirects are not followed: a review is for the configured server only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// CodeError reports an answer with another status code than 2xx.
type CodeError struct{ Code int }

// Error implements error.
func (e *CodeError) Error() string { return fmt.Sprintf("the remote server answered %d", e.Code) }

// Post sends body and returns the body of a 2xx answer. Any other status code is a *CodeError.
func (c *Caller) Post(ctx context.Context, body []byte) ([]byte, error) {
	timeout, most := c.Timeout, c.MaxAnswer
	if timeout <= 0 {
		timeout = 10 * time.Second
	}
	if most <= 0 {
		most = 1 << 20
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if c.UserAgent != "" {
		req.Header.Set("User-Agent", c.UserAgent)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer: %w", err)
	case int64(len(answer)) > most:
		return nil, fmt.Errorf("the answer has more than %d bytes", most)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, &CodeError{resp.StatusCode}
	}
	return answer, nil
}

// Close closes idle connections.
func (c *Caller) Close() { c.client.CloseIdleConnections() }
