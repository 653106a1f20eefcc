// Package remote asks other servers with reviews.
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"orch.io/controlplane/clientconfig"
)

// maxText bounds what the remote server says to people, in bytes.
const maxText = 1024

// Reviewer asks a remote server with reviews of one kind: objects whose spec is the
// question and whose status is the answer.
type Reviewer struct {
	api, kind string
	caller    *clientconfig.Caller
}

// NewReviewer returns a Reviewer for a kind of a group in version v1 or v1beta1. Timeout
// is for one call; zero is ten seconds.
func NewReviewer(r *clientconfig.Remote, group, version, kind string, timeout time.Duration) (*Reviewer, error) {
	if r == nil || r.URL == nil {
		return nil, errors.New("no remote server")
	}
	if version != "v1" && version != "v1beta1" {
		return nil, fmt.Errorf("unknown version %q of %s", version, kind)
	}
	caller := r.Caller()
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
// *clientconfig.CodeError.
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

// Text bounds what the remote server says to people.
func Text(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	return strings.ToValidUTF8(s, "?")
}
