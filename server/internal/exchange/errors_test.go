package exchange

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/internal/errorlog"
	"orch.io/controlplane/storage"
)

// TestInternalErrorsNameTheAuditID responds with errors of the store: the response has the audit ID
// and a public cause, and the log has the error under the same ID.
func TestInternalErrorsNameTheAuditID(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("open /var/lib/secret: i/o error"), "the store failed"},
		{fmt.Errorf("committing: %w", storage.ErrStopped), "the store accepts no writes since a write failed"},
		{&storage.DamagedError{Key: "secrets/a/b", Err: errors.New("checksum")}, "a stored record is damaged"},
	} {
		var log strings.Builder
		s := &Responder{Errors: &errorlog.Log{Logger: slog.New(slog.NewTextHandler(&log, nil))}, Compress: Compressor{From: -1}}
		rec := httptest.NewRecorder()
		h := httptest.NewRequest("GET", "/api/v1/pods", nil)
		h.Header.Set(AuditHeader, "my-id")
		w, _ := s.New(rec, h)
		w.Fail(c.err)
		require.Equal(t, http.StatusInternalServerError, rec.Code)
		var st struct{ Message string }
		require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &st))
		assert.Equal(t, "Internal error occurred: "+c.want+" (audit ID my-id)", st.Message)
		assert.Contains(t, log.String(), "auditID=my-id")
		assert.Contains(t, log.String(), c.err.Error()[:6])
	}
}

// TestPanicsNameTheAuditID responds to a request whose handler panicked.
func TestPanicsNameTheAuditID(t *testing.T) {
	var log strings.Builder
	panics := 0
	s := &Responder{Errors: &errorlog.Log{Logger: slog.New(slog.NewTextHandler(&log, nil)), Panics: func(string) { panics++ }}, Compress: Compressor{From: -1}}
	rec := httptest.NewRecorder()
	w, r := s.New(rec, httptest.NewRequest("GET", "/", nil))
	func() {
		defer func() { w.Panicked(recover()) }()
		panic("loud")
	}()
	assert.Equal(t, 1, panics)
	assert.Contains(t, rec.Body.String(), "the server panicked while it handled the request (audit ID "+r.ID+")")
	assert.NotContains(t, rec.Body.String(), "loud")
	assert.Contains(t, log.String(), "loud")
	assert.Contains(t, log.String(), "auditID="+r.ID)
}
