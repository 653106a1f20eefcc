package apiserver

import (
	"errors"
	"flag"
	"time"

	"orch.io/controlplane/server"
)

// limitFlags limit requests and stored objects.
type limitFlags struct {
	reads, writes int // concurrent requests; the limit is the sum of both
	watchSeconds  int
	bounds        server.Limits
}

func (f *limitFlags) define(set *flag.FlagSet) {
	set.Int64Var(&f.bounds.ObjectBytes, "max-object-bytes", 0, "maximum size of an object in bytes; larger writes are rejected; 0 is no limit")
	set.Int64Var(&f.bounds.NamespaceBytes, "max-namespace-bytes", 0, "maximum size of all objects of a namespace in bytes; writes beyond it get 403; 0 is no limit")
	set.Int64Var(&f.bounds.StoreBytes, "max-store-bytes", 0, "maximum size of all objects in bytes; writes beyond it get 507; 0 is no limit")
	set.IntVar(&f.reads, "max-requests-inflight", 400, "added to --max-mutating-requests-inflight, the maximum number of concurrent requests of both kinds; if both are 0, the default applies")
	set.IntVar(&f.writes, "max-mutating-requests-inflight", 200, "see --max-requests-inflight")
	set.DurationVar(&f.bounds.RequestTime, "request-timeout", time.Minute, "maximum duration of a request other than a watch; 0 is one minute")
	set.IntVar(&f.watchSeconds, "min-request-timeout", 1800, "seconds after which a watch without a timeout ends; the actual time is up to twice as long; 0 is 1800")
}

func (f *limitFlags) validate() []error {
	if f.reads < 0 || f.writes < 0 || f.bounds.RequestTime < 0 || f.watchSeconds < 0 {
		return []error{errors.New("--max-requests-inflight, --max-mutating-requests-inflight, --request-timeout and --min-request-timeout must not be negative")}
	}
	return nil
}

// limits returns the limits of the server.
func (f *limitFlags) limits() server.Limits {
	l := f.bounds
	l.InFlight, l.WatchTime = f.reads+f.writes, time.Duration(f.watchSeconds)*time.Second
	return l
}
