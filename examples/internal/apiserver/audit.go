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

// auditFlags configure the audit policy and the audit sinks.
type auditFlags struct {
	policyFile  string
	logPath     string
	maxSize     int
	maxBackups  int
	maxAge      int
	webhookFile string
}

func (f *auditFlags) define(set *flag.FlagSet) {
	set.StringVar(&f.policyFile, "audit-policy-file", "", "file with the audit policy")
	set.StringVar(&f.logPath, "audit-log-path", "", "file to which audit records are appended; - is the standard output")
	set.IntVar(&f.maxSize, "audit-log-maxsize", 0, "size in megabytes at which the audit log is rotated")
	set.IntVar(&f.maxBackups, "audit-log-maxbackup", 0, "number of rotated audit logs to keep; 0 keeps all")
	set.IntVar(&f.maxAge, "audit-log-maxage", 0, "days to keep rotated audit logs; 0 keeps them forever")
	set.StringVar(&f.webhookFile, "audit-webhook-config-file", "", "client configuration (kubeconfig) for the webhook that receives audit records")
}

// auditTimeout limits how long a stopping server waits for its audit log and webhook.
const auditTimeout = 10 * time.Second

// configureAudit configures auditing in b. The caller must call close after the server has stopped; it writes
// the queued records, for up to the given time.
func (f *flags) configureAudit(b *server.Builder, within time.Duration) (close func(), err error) {
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
		if err := log.Close(ctx); err != nil { // lost records do not make the shutdown fail
			b.Logger.Error("audit records are lost at shutdown", "lost", log.Dropped(), "err", err)
		}
	}, nil
}
