package core

import (
	"orch.io/controlplane/api/check"
)

// running checks probes and lifecycle actions, which only containers that keep running have.
func (r *podRules) running(at *check.Path, c *Container) {
	if l := c.Lifecycle; l != nil {
		r.lifecycle(at.Field("lifecycle").Field("postStart"), l.PostStart)
		r.lifecycle(at.Field("lifecycle").Field("preStop"), l.PreStop)
		if l.StopSignal != nil && r.spec.OS == nil {
			r.Forbidden(at.Field("lifecycle").Field("stopSignal"), "may not be set for containers with empty `spec.os.name`")
		}
	}
	r.probe(at.Field("livenessProbe"), c.LivenessProbe, true)
	r.probe(at.Field("readinessProbe"), c.ReadinessProbe, false)
	r.probe(at.Field("startupProbe"), c.StartupProbe, true)
}

// probe checks a probe. once demands a success threshold of 1.
func (r *podRules) probe(at *check.Path, p *Probe, once bool) {
	if p == nil {
		return
	}
	r.handler(at, handler{p.Exec, p.HTTPGet, p.TCPSocket, p.GRPC, nil})
	if g := p.TerminationGracePeriodSeconds; g != nil && !once {
		r.Invalid(at.Field("terminationGracePeriodSeconds"), *g, "must not be set for readinessProbes")
	}
	if once && p.SuccessThreshold != 1 {
		r.Invalid(at.Field("successThreshold"), p.SuccessThreshold, "must be 1")
	}
}

func (r *podRules) lifecycle(at *check.Path, l *LifecycleHandler) {
	if l != nil {
		r.handler(at, handler{l.Exec, l.HTTPGet, l.TCPSocket, nil, l.Sleep})
	}
}

// handler has the actions of probes and lifecycle handlers.
type handler struct {
	exec  *ExecAction
	http  *HTTPGetAction
	tcp   *TCPSocketAction
	grpc  *GRPCAction
	sleep *SleepAction
}

func (r *podRules) handler(at *check.Path, h handler) {
	n := 0
	// first counts an action, and reports whether it is the first; further actions are rejected.
	first := func(field string) bool {
		if n++; n > 1 {
			r.Forbidden(at.Field(field), "may not specify more than 1 handler type")
		}
		return n == 1
	}
	if h.exec != nil {
		first("exec")
	}
	if h.http != nil && first("httpGet") {
		if p := h.http.Protocol; p != nil && *p == "HTTP2" && h.http.Scheme != "HTTP" {
			r.Invalid(at.Field("httpGet").Field("protocol"), *p, "needs the scheme HTTP")
		}
		for _, header := range h.http.HTTPHeaders {
			// the path of the list, as at kube-apiserver
			r.Format(at.Field("httpGet").Field("httpHeaders"), header.Name, check.HeaderName(header.Name))
		}
	}
	if h.tcp != nil {
		first("tcpSocket")
	}
	if h.grpc != nil {
		first("grpc")
	}
	if h.sleep != nil && first("sleep") {
		limit := int64(0)
		if g := r.spec.TerminationGracePeriodSeconds; g != nil {
			limit = *g
		}
		if s := h.sleep.Seconds; s < 0 || s > limit {
			r.Invalid(at.Field("sleep"), s, "must be non-negative and not above terminationGracePeriodSeconds")
		}
	}
	if n == 0 {
		r.Required(at, "must specify a handler type")
	}
}
