package plugins_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/server"
)

// TestAfterReportsTheOutcome checks that After reports the outcome of each attempt at a write.
func TestAfterReportsTheOutcome(t *testing.T) {
	var outcomes []bool
	s := newServer(t, admission.Options{}, func(b *server.Builder) {
		b.Admission = append(b.Admission, admission.Plugin{
			Name: "Observer", Rules: []admission.Rule{{Resources: []string{"configmaps"}}},
			Validate: func(_ context.Context, r *admission.Request) error {
				r.After(func(written, _ bool) { outcomes = append(outcomes, written) })
				if r.Object.String("data", "a") == "no" {
					return errors.New("no")
				}
				return nil
			},
		})
	})
	for _, tc := range []struct {
		step
		want bool
	}{
		{step{do: "POST configmaps?dryRun=All", body: `{metadata: {name: a}}`, want: `201`}, false},
		{step{do: "POST configmaps", body: `{metadata: {name: a}, data: {a: "no"}}`, want: `403 no`}, false},
		{step{do: "POST configmaps", body: `{metadata: {name: a}}`, want: `201`}, true},
		{step{do: "POST configmaps", body: `{metadata: {name: a}}`, want: `409 already exists`}, false},
		{step{do: "PATCH configmaps/a", body: `{data: {a: b}}`, want: `200`}, true},
		{step{do: "PATCH configmaps/a", body: `{data: {a: b}}`, want: `200`}, false},
		{step{do: "DELETE configmaps/a?dryRun=All", want: `200`}, false},
		{step{do: "DELETE configmaps/a", want: `200`}, true},
	} {
		outcomes = nil
		runSteps(t, s, tc.step)
		assert.Equal(t, []bool{tc.want}, outcomes, tc.do)
	}
}
