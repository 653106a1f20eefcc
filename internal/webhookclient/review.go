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

// maxText limits the text of a remote server that is passed on to users, in bytes.
const maxText = 1024

// Reviewer posts reviews of a kind to a remote server. A review is an object with the question in its
// spec and the answer in its status. A Reviewer is safe for concurrent use.
type Reviewer struct {
	api, kind string
	caller    *Caller
}

// Version returns the version of a review kind to use: wanted, or v1 if wanted is empty. It is an
// error if wanted is neither v1 nor v1beta1.
func Version(wanted, kind string) (string, error) {
	switch wanted {
	case "":
		return "v1", nil
	case "v1", "v1beta1":
		return wanted, nil
	}
	return "", fmt.Errorf("unknown version %q of %s", wanted, kind)
}

// NewReviewer returns a Reviewer for a version of a kind. timeout limits each call; zero means ten
// seconds.
func NewReviewer(r *kubeconfig.Remote, group, version, kind string, timeout time.Duration) (*Reviewer, error) {
	if r == nil || r.URL == nil {
		return nil, errors.New("no remote server")
	}
	caller := NewCaller(r)
	caller.Timeout = timeout
	return &Reviewer{api: group + "/" + version, kind: kind, caller: caller}, nil
}

// Close closes idle connections.
func (r *Reviewer) Close() { r.caller.Close() }

type review struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   struct{} `json:"metadata"`
	Spec       any      `json:"spec"`
	Status     any      `json:"status"`
}

// Body returns the encoded review for Ask. status is an empty status.
func (r *Reviewer) Body(spec, status any) ([]byte, error) {
	return json.Marshal(review{APIVersion: r.api, Kind: r.kind, Spec: spec, Status: status})
}

// Ask posts a review once and decodes the status of the answer into the pointer status. A status
// code other than 2xx is a *CodeError.
func (r *Reviewer) Ask(ctx context.Context, body []byte, status any) error {
	data, err := r.caller.Post(ctx, body)
	if err != nil {
		return err
	}
	answer := review{Status: status}
	if err := json.Unmarshal(data, &answer); err != nil {
		return fmt.Errorf("the answer is not a %s", r.kind)
	}
	if answer.APIVersion != r.api || answer.Kind != r.kind {
		return fmt.Errorf("asked %s, Kind=%s, answered %q, Kind=%q", r.api, r.kind, answer.APIVersion, answer.Kind)
	}
	return nil
}

// tries is the maximum number of calls of Persist.
const tries = 3

// Retry calls ask up to three times, until it succeeds or fails with a status code below 500,
// which a retry would not change. first is the pause after the first call; the next is four times
// as long. If ctx ends during a pause, its error is returned.
func Retry(ctx context.Context, first time.Duration, ask func() error) error {
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

// ClipText returns s truncated to the limit for texts of remote servers, as valid UTF-8.
func ClipText(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	return strings.ToValidUTF8(s, "?")
}
