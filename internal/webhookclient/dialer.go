// Package webhookclient calls webhooks: those that objects configure, by URL or service, and
// remote servers that answer reviews.
package webhookclient

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"sync/atomic"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client/kubeconfig"
	"orch.io/controlplane/internal/inprocess"
	"orch.io/controlplane/internal/services"
)

// Dialer connects to webhooks.
type Dialer struct {
	Config   *kubeconfig.Config // credentials, by host; nil means none
	Services services.Resolver
	Agent    string // User-Agent header
}

// Bounds limits a call.
type Bounds struct {
	Time   time.Duration
	Answer int64 // bytes
}

// Remote calls a webhook over connections of its own.
type Remote struct {
	caller *Caller
	ended  atomic.Bool
}

// Remote returns a Remote for the webhook that a clientConfig names.
func (d *Dialer) Remote(at map[string]any, b Bounds) (*Remote, error) {
	o := meta.NewObject(at)
	address, service, err := target(o)
	if err != nil {
		return nil, err
	}
	address.RawQuery = url.Values{"timeout": {b.Time.String()}}.Encode()
	var authority []byte
	if text := o.String("caBundle"); text != "" {
		if authority, err = bundle(text); err != nil {
			return nil, err
		}
	}
	config := d.Config
	if config == nil {
		config = &kubeconfig.Config{}
	}
	r, err := config.For(address, authority)
	if err != nil {
		return nil, err
	}
	caller := NewCaller(r)
	if service != nil {
		caller = d.serviceCaller(r, *service)
	}
	caller.Timeout, caller.MaxAnswer, caller.UserAgent = b.Time, b.Answer, d.Agent
	return &Remote{caller: caller}, nil
}

// target returns the URL of a webhook, and its service, or nil. The path is cleaned:
// some configurations have duplicate slashes.
func target(o *meta.Object) (*url.URL, *services.Service, error) {
	if o.Map("service") == nil {
		u, err := url.Parse(o.String("url"))
		if err != nil {
			return nil, nil, err
		}
		if u.Scheme != "https" {
			return nil, nil, fmt.Errorf("%q is not an https URL", o.String("url"))
		}
		u.Path, u.RawPath = path.Join("/", u.Path), ""
		return u, nil, nil
	}
	s := &services.Service{Namespace: o.String("service", "namespace"), Name: o.String("service", "name"), Port: 443}
	if port := o.Int("service", "port"); port != 0 {
		s.Port = int32(port)
	}
	return &url.URL{Scheme: "https", Host: s.Address(), Path: path.Join("/", o.String("service", "path"))}, s, nil
}

// errNoEndpoint means that the resolver returned an empty Endpoint.
var errNoEndpoint = errors.New("the service has no endpoint")

// serviceCaller returns a Caller that resolves the service for each request and each new
// connection.
func (d *Dialer) serviceCaller(r *kubeconfig.Remote, s services.Service) *Caller {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	r.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		e, err := d.Services(ctx, s)
		if err != nil {
			return nil, err
		}
		if e.Address == "" {
			return nil, errNoEndpoint
		}
		return dialer.DialContext(ctx, network, e.Address)
	}
	return newCaller(r, &serviceTransport{RoundTripper: r.Transport(), resolve: d.Services, service: s})
}

// serviceTransport sends requests to the handler of a service in this process, or to the
// network if the service has no such handler.
type serviceTransport struct {
	http.RoundTripper
	resolve services.Resolver
	service services.Service
}

// RoundTrip implements http.RoundTripper.
func (t *serviceTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	e, err := t.resolve(req.Context(), t.service)
	if err != nil {
		return nil, err
	}
	if e.Handler != nil {
		return inprocess.Transport(e.Handler).RoundTrip(req)
	}
	return t.RoundTripper.RoundTrip(req)
}

// CloseIdleConnections closes idle connections.
func (t *serviceTransport) CloseIdleConnections() {
	(&http.Client{Transport: t.RoundTripper}).CloseIdleConnections()
}

// Post sends a review and returns the answer.
func (r *Remote) Post(ctx context.Context, body []byte) ([]byte, error) {
	answer, err := r.caller.Post(ctx, body)
	if r.ended.Load() { // End may have run during the call: do not leave this connection idle
		r.caller.Close()
	}
	if cause := (*url.Error)(nil); errors.As(err, &cause) {
		err = cause
	}
	return answer, err
}

// Close closes idle connections and, when the running calls have ended, theirs.
func (r *Remote) Close() {
	r.ended.Store(true)
	r.caller.Close()
}

// bundle decodes a caBundle: PEM in base64.
func bundle(text string) ([]byte, error) {
	pem, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("caBundle: %w", err)
	}
	return pem, nil
}
