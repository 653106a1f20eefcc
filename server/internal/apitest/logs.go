package apitest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// AuditEvent holds the fields of an audit event that tests examine.
type AuditEvent struct {
	Level, Stage, Verb, AuditID   string
	User, ImpersonatedUser        struct{ Username string }
	ObjectRef                     struct{ Resource, Namespace, Name, Subresource string }
	ResponseStatus                struct{ Code int }
	RequestObject, ResponseObject map[string]any
	Annotations                   map[string]string
}

// ErrorLog is a slog.Handler that collects records of level error.
type ErrorLog struct {
	Warnings bool // also collect records of level warning

	mu     sync.Mutex
	errors []string
}

// Enabled implements slog.Handler.
func (q *ErrorLog) Enabled(_ context.Context, l slog.Level) bool {
	return l >= slog.LevelError || q.Warnings && l >= slog.LevelWarn
}

// WithAttrs implements slog.Handler.
func (q *ErrorLog) WithAttrs([]slog.Attr) slog.Handler { return q }

// WithGroup implements slog.Handler.
func (q *ErrorLog) WithGroup(string) slog.Handler { return q }

// Handle implements slog.Handler.
func (q *ErrorLog) Handle(_ context.Context, r slog.Record) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += fmt.Sprintf(" %s=%v", a.Key, a.Value); return true })
	q.errors = append(q.errors, text)
	return nil
}

// Take returns the records since the last call.
func (q *ErrorLog) Take() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.errors
	q.errors = nil
	return list
}

// NewErrorFree starts a server and fails the test if errors are left in its log at the
// end.
func NewErrorFree(t testing.TB, configure ...func(*server.Builder)) (*servertest.Server, *ErrorLog) {
	log := &ErrorLog{}
	s := servertest.New(t, append(configure, func(b *server.Builder) { b.Logger = slog.New(log) })...)
	t.Cleanup(func() { assert.Empty(t, log.Take(), "errors were logged") })
	return s, log
}

// LogBuffer collects written text. It is safe for concurrent use.
type LogBuffer struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

// Write implements io.Writer.
func (l *LogBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String returns the text written so far.
func (l *LogBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
