package objects

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// TestUnavailableStoreReturns503: callers receive the kind of the failure without details, and a Retry-After header
// unless the write may have been made.
func TestUnavailableStoreReturns503(t *testing.T) {
	trouble := &storage.UnavailableError{Kind: "the database does not answer", Err: errors.New("dial tcp 10.0.0.1")}
	st := Status(fmt.Errorf("get: %w", trouble))
	require.EqualValues(t, 503, st.Code)
	require.Contains(t, st.Message, trouble.Kind)
	require.NotContains(t, st.Message, "10.0.0.1")
	require.EqualValues(t, 1, st.Details.RetryAfterSeconds)
	st = Status(uncertain(trouble))
	require.EqualValues(t, 503, st.Code)
	require.Contains(t, st.Message, "not known whether")
	require.Nil(t, st.Details)
}
