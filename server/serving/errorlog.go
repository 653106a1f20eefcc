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

// errorLog takes what net/http says of connections, a line at a time, and counts what
// dashboards ask for.
type errorLog struct {
	next       io.Writer
	handshakes prometheus.Counter
}

// newErrorLog makes the log of an http.Server.
func newErrorLog(to prometheus.Registerer, logger *slog.Logger) (*log.Logger, error) {
	set := metrics.For(to)
	failed := set.Counters(metrics.Family{Name: "apiserver_tls_handshake_errors_total", Help: "Connections that ended before TLS was agreed on."})
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
