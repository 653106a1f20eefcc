package audit

import (
	"context"
	"errors"
	"net/http"
	"time"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client/kubeconfig"
	"orch.io/controlplane/internal/webhookclient"
)

// Webhook is a Sink that posts lists of events to a remote server. A call that
// fails in a way that may pass is tried again, a few times.
type Webhook struct {
	// Wait is how long to gather events for one call; zero is one second.
	Wait time.Duration
	// Backoff is the wait before the second try; it doubles. Zero is 500 ms.
	Backoff time.Duration

	caller *webhookclient.Caller
	names  names.Profile
}

// NewWebhook returns a Webhook for the current context of a client
// configuration.
func NewWebhook(c *kubeconfig.Config, p names.Profile) (*Webhook, error) {
	r, err := c.Current()
	if err != nil {
		return nil, err
	}
	return &Webhook{caller: webhookclient.NewCaller(r), names: p}, nil
}

// tries is how often one call is made.
const tries = 4

// Write implements Sink.
func (w *Webhook) Write(ctx context.Context, events [][]byte) error {
	backoff, wait := w.Backoff, w.Wait
	if backoff <= 0 {
		backoff = 500 * time.Millisecond
	}
	if wait <= 0 {
		wait = time.Second
	}
	body := list(w.names, events)
	for try := 1; ; try++ {
		_, err := w.caller.Post(ctx, body)
		if err == nil {
			break
		}
		if try == tries || !passing(err) || !pause(ctx, backoff) {
			return err
		}
		backoff *= 2
	}
	if len(events) < maxBatch {
		pause(ctx, wait)
	}
	return nil
}

// passing reports whether a failure may be another one's next time.
func passing(err error) bool {
	var code *webhookclient.CodeError
	if errors.As(err, &code) {
		return code.Code >= 500 || code.Code == http.StatusTooManyRequests
	}
	return true
}

// Close implements Sink.
func (w *Webhook) Close() error {
	w.caller.Close()
	return nil
}
