// Package callout calls the webhooks that objects name: a URL or a service, with the
// certificates that vouch for it.
package callout

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/clientconfig"
)

// Dialer makes the ways to webhooks.
type Dialer struct {
	Config   *clientconfig.Config // whose users are the credentials; nil: none
	Services clientconfig.Services
	Agent    string // who calls
}

// Bounds are those of one call.
type Bounds struct {
	Time   time.Duration
	Answer int64 // bytes
}

// Remote is the way to one webhook, with connections of its own.
type Remote struct {
	caller *clientconfig.Caller
	ended  atomic.Bool
}

// Remote returns the way to the webhook of a clientConfig.
func (d *Dialer) Remote(at map[string]any, b Bounds) (*Remote, error) {
	o := meta.NewObject(at)
	address, service, err := target(o)
	if err != nil {
		return nil, err
	}
	address.RawQuery = url.Values{"timeout": {b.Time.String()}}.Encode()
	cluster := clientconfig.Cluster{Server: address.String()}
	if text := o.String("caBundle"); text != "" {
		if cluster.CertificateAuthorityData, err = bundle(text); err != nil {
			return nil, err
		}
	}
	config := d.Config
	if config == nil {
		config = &clientconfig.Config{}
	}
	r, err := config.Remote(cluster, user(config, address.Host))
	if err != nil {
		return nil, err
	}
	if service != nil {
		r.Endpoint = func(ctx context.Context) (clientconfig.Endpoint, error) { return d.Services(ctx, *service) }
	}
	caller := r.Caller()
	caller.Timeout, caller.MaxAnswer, caller.UserAgent = b.Time, b.Answer, d.Agent
	return &Remote{caller: caller}, nil
}

// target returns where a webhook is, and the service, if it is behind one. Its path is
// cleaned: those who write one with two slashes count on that.
func target(o *meta.Object) (*url.URL, *clientconfig.Service, error) {
	if o.Map("service") == nil {
		u, err := url.Parse(o.String("url"))
		if err != nil {
			return nil, nil, err
		}
		if u.Scheme != "https" {
			return nil, nil, fmt.Errorf("%q is no https URL", o.String("url"))
		}
		u.Path, u.RawPath = path.Join("/", u.Path), ""
		return u, nil, nil
	}
	s := &clientconfig.Service{Namespace: o.String("service", "namespace"), Name: o.String("service", "name"), Port: 443}
	if port := o.Int("service", "port"); port != 0 {
		s.Port = int32(port)
	}
	return &url.URL{Scheme: "https", Host: s.Address(), Path: path.Join("/", o.String("service", "path"))}, s, nil
}

// user returns the credentials for a host: those of the longest name that means it,
// else those of the current context.
func user(config *clientconfig.Config, host string) clientconfig.User {
	candidates := []string{host}
	if bare, port, err := net.SplitHostPort(host); err == nil && port == "443" {
		candidates = append(candidates, bare)
	}
	all := candidates
	for _, name := range candidates {
		for {
			_, rest, more := strings.Cut(name, ".")
			if !more {
				break
			}
			name, all = rest, append(all, "*."+rest)
		}
	}
	for _, name := range append(all, "*") {
		if u, ok := config.User(name); ok {
			return u
		}
	}
	for _, c := range config.Contexts {
		if c.Name == config.CurrentContext {
			u, _ := config.User(c.Context.User)
			return u
		}
	}
	return clientconfig.User{}
}

// Post sends a review and returns the answer.
func (r *Remote) Post(ctx context.Context, body []byte) ([]byte, error) {
	answer, err := r.caller.Post(ctx, body)
	if r.ended.Load() { // while it was called: the connection is not for others any more
		r.caller.Close()
	}
	if cause := (*url.Error)(nil); errors.As(err, &cause) {
		err = cause
	}
	return answer, err
}

// End lets the connections go. Calls that are under way come to their end.
func (r *Remote) End() {
	r.ended.Store(true)
	r.caller.Close()
}

// bundle returns the authorities of a caBundle, PEM in base64.
func bundle(text string) ([]byte, error) {
	pem, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("caBundle: %w", err)
	}
	return pem, nil
}
