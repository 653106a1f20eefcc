package apiserver

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"orch.io/controlplane/auth/audit"
	"orch.io/controlplane/client/kubeconfig"
	"orch.io/controlplane/server"
)

// auditFlags say what is recorded of requests and where.
type auditFlags struct {
	policyFile  string
	logPath     string
	maxSize     int
	maxBackups  int
	maxAge      int
	webhookFile string
}

func (f *auditFlags) define(set *flag.FlagSet) {
	set.StringVar(&f.policyFile, "audit-policy-file", "", "policy of what is recorded")
	set.StringVar(&f.logPath, "audit-log-path", "", "file that records are appended to; - is the standard output")
	set.IntVar(&f.maxSize, "audit-log-maxsize", 0, "megabytes after which the file gives way to a new one")
	set.IntVar(&f.maxBackups, "audit-log-maxbackup", 0, "how many old files stay; 0 is all")
	set.IntVar(&f.maxAge, "audit-log-maxage", 0, "days that old files stay; 0 is for ever")
	set.StringVar(&f.webhookFile, "audit-webhook-config-file", "", "client configuration of the server that gets the records")
}

// auditPatience is how long a server that ends waits for its audit log and its audit webhook.
const auditPatience = 10 * time.Second

// record adds the configured audit to a Builder. close writes the queued records and gives up after within.
func (f *flags) record(b *server.Builder, within time.Duration) (close func(), err error) {
	a := &f.audit
	none := func() {}
	if a.policyFile == "" {
		return none, nil
	}
	policy, err := audit.LoadPolicy(a.policyFile, f.names)
	if err != nil {
		return none, fmt.Errorf("--audit-policy-file: %w", err)
	}
	var sinks []audit.Sink
	switch a.logPath {
	case "":
	case "-":
		sinks = append(sinks, audit.Writer{W: os.Stdout})
	default:
		file, err := audit.OpenFile(a.logPath, audit.FileOptions{
			MaxSize: int64(a.maxSize) << 20, MaxBackups: a.maxBackups, MaxAge: time.Duration(a.maxAge) * 24 * time.Hour,
		})
		if err != nil {
			return none, fmt.Errorf("--audit-log-path: %w", err)
		}
		sinks = append(sinks, file)
	}
	if a.webhookFile != "" {
		c, err := kubeconfig.Load(a.webhookFile)
		if err != nil {
			return none, fmt.Errorf("--audit-webhook-config-file: %w", err)
		}
		hook, err := audit.NewWebhook(c, f.names)
		if err != nil {
			return none, fmt.Errorf("--audit-webhook-config-file: %w", err)
		}
		sinks = append(sinks, hook)
	}
	if len(sinks) == 0 {
		return none, nil
	}
	log, err := audit.Open(audit.Config{Policy: policy, Sinks: sinks, Names: f.names, Logger: b.Logger})
	if err != nil {
		return none, err
	}
	b.Audit = log
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		if err := log.Close(ctx); err != nil { // no reason to say that the server did not end in order
			b.Logger.Error("audit records are lost at the end of the server", "lost", log.Dropped(), "err", err)
		}
	}, nil
}
