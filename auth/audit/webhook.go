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

// Webhook is a Sink that posts EventLists to a remote server. It retries a call
// that failed with a network error, a 5xx code or 429, up to three times. Set its
// fields before Open.
type Webhook struct {
	// Wait is the pause after a call if the batch was not full, so that the next
	// call has more events; zero is one second.
	Wait time.Duration
	// Backoff is the pause before the first retry; it doubles for each retry.
	// Zero is 500 ms.
	Backoff time.Duration

	caller *webhookclient.Caller
	names  names.Profile
}

// NewWebhook returns a Webhook for the server in the current context of a
// kubeconfig.
func NewWebhook(c *kubeconfig.Config, p names.Profile) (*Webhook, error) {
	r, err := c.Current()
	if err != nil {
		return nil, err
	}
	return &Webhook{caller: webhookclient.NewCaller(r), names: p}, nil
}

// tries is the maximum number of attempts of a call.
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
		if try == tries || !retryable(err) || !pause(ctx, backoff) {
			return err
		}
		backoff *= 2
	}
	if len(events) < maxBatch {
		pause(ctx, wait)
	}
	return nil
}

// retryable reports whether a retry may succeed after err.
func retryable(err error) bool {
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
