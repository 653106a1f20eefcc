package serving

import (
	"bytes"
	"cmp"
	"io"
	"log"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/internal/metrics"
)

// errorLog is the output of the error log of an http.Server. It counts TLS handshake errors and passes the
// lines on.
type errorLog struct {
	next       io.Writer
	handshakes prometheus.Counter
}

// newErrorLog returns the ErrorLog of an http.Server. It logs at level debug.
func newErrorLog(to prometheus.Registerer, logger *slog.Logger) (*log.Logger, error) {
	set := metrics.For(to)
	failed := set.Counters(metrics.Family{Name: "apiserver_tls_handshake_errors_total", Help: "Connections that failed in the TLS handshake."})
	next := slog.NewLogLogger(cmp.Or(logger, slog.New(slog.DiscardHandler)).Handler(), slog.LevelDebug)
	return log.New(&errorLog{next.Writer(), failed.WithLabelValues()}, "", 0), set.Err()
}

// Write implements io.Writer.
func (l *errorLog) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("TLS handshake error")) {
		l.handshakes.Inc()
	}
	return l.next.Write(line)
}
