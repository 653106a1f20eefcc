package apiserver

import (
	"errors"
	"flag"
	"time"

	"orch.io/controlplane/server"
)

// limitFlags bound requests and what is stored.
type limitFlags struct {
	reads, writes int // at a time; they share the sum
	watchSeconds  int
	bounds        server.Limits
}

func (f *limitFlags) define(set *flag.FlagSet) {
	set.Int64Var(&f.bounds.ObjectBytes, "max-object-bytes", 0, "bytes of one object; a write of a larger one is refused, 0 is no bound")
	set.Int64Var(&f.bounds.NamespaceBytes, "max-namespace-bytes", 0, "bytes of all objects of one namespace; what would exceed it is 403, 0 is no bound")
	set.Int64Var(&f.bounds.StoreBytes, "max-store-bytes", 0, "bytes of all objects; what would exceed it is 507, 0 is no bound")
	set.IntVar(&f.reads, "max-requests-inflight", 400, "with --max-mutating-requests-inflight how many requests are worked on at a time, of both kinds; if both are 0 it is as many as by default")
	set.IntVar(&f.writes, "max-mutating-requests-inflight", 200, "see --max-requests-inflight")
	set.DurationVar(&f.bounds.RequestTime, "request-timeout", time.Minute, "longest time of a request that is no watch; 0 is a minute")
	set.IntVar(&f.watchSeconds, "min-request-timeout", 1800, "seconds after which a watch ends that does not say when, or up to twice as many; 0 is 1800")
}

func (f *limitFlags) validate() []error {
	if f.reads < 0 || f.writes < 0 || f.bounds.RequestTime < 0 || f.watchSeconds < 0 {
		return []error{errors.New("--max-requests-inflight, --max-mutating-requests-inflight, --request-timeout and --min-request-timeout must not be negative")}
	}
	return nil
}

// limits are the server's.
func (f *limitFlags) limits() server.Limits {
	l := f.bounds
	l.InFlight, l.WatchTime = f.reads+f.writes, time.Duration(f.watchSeconds)*time.Second
	return l
}
