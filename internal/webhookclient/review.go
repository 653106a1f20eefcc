package webhookclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"orch.io/controlplane/client/kubeconfig"
)

// maxText bounds what the remote server says to people, in bytes.
const maxText = 1024

// Reviewer asks a remote server with reviews of one kind: objects whose spec is the
// question and whose status is the answer.
type Reviewer struct {
	api, kind string
	caller    *Caller
}

// Version returns the version in which a kind is asked for: v1 if none is wanted.
func Version(wanted, kind string) (string, error) {
	switch wanted {
	case "":
		return "v1", nil
	case "v1", "v1beta1":
		return wanted, nil
	}
	return "", fmt.Errorf("unknown version %q of %s", wanted, kind)
}

// NewReviewer returns a Reviewer for a version of a kind of a group. Timeout is for one
// call; zero is ten seconds.
func NewReviewer(r *kubeconfig.Remote, group, version, kind string, timeout time.Duration) (*Reviewer, error) {
	if r == nil || r.URL == nil {
		return nil, errors.New("no remote server")
	}
	caller := NewCaller(r)
	caller.Timeout = timeout
	return &Reviewer{api: group + "/" + version, kind: kind, caller: caller}, nil
}

// Close closes the connections.
func (r *Reviewer) Close() { r.caller.Close() }

type review struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   struct{} `json:"metadata"`
	Spec       any      `json:"spec"`
	Status     any      `json:"status"`
}

// Body returns a review as Ask posts it. status is the empty one.
func (r *Reviewer) Body(spec, status any) ([]byte, error) {
	return json.Marshal(review{APIVersion: r.api, Kind: r.kind, Spec: spec, Status: status})
}

// Ask posts a review once and reads the status of the answer into the pointer
// status. An answer with another code than 2xx is a
// *CodeError.
func (r *Reviewer) Ask(ctx context.Context, body []byte, status any) error {
	data, err := r.caller.Post(ctx, body)
	if err != nil {
		return err
	}
	answer := review{Status: status}
	if err := json.Unmarshal(data, &answer); err != nil {
		return fmt.Errorf("the answer is no %s", r.kind)
	}
	if answer.APIVersion != r.api || answer.Kind != r.kind {
		return fmt.Errorf("asked %s, Kind=%s, answered %q, Kind=%q", r.api, r.kind, answer.APIVersion, answer.Kind)
	}
	return nil
}

// tries are how often a review is asked if there is no answer.
const tries = 3

// Persist calls ask, which asks a review, again if there is no answer but none that the
// caller is to blame for. first is the pause after the first call; each is four times the
// one before.
func Persist(ctx context.Context, first time.Duration, ask func() error) error {
	wait := first
	for try := 1; ; try++ {
		err := ask()
		var code *CodeError
		if err == nil || try == tries || ctx.Err() != nil || errors.As(err, &code) && code.Code < 500 {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		wait *= 4
	}
}

// Text bounds what the remote server says to people.
func Text(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	return strings.ToValidUTF8(s, "?")
}
