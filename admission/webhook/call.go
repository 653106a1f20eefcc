package webhook

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

// maxAnswer bounds the answer of a webhook in bytes.
const maxAnswer = 3 << 20

// dialer makes the ways to webhooks.
type dialer struct {
	config   *clientconfig.Config // whose users are the credentials
	services clientconfig.Services
	agent    string
}

// remote is the way to one webhook, with connections of its own.
type remote struct {
	caller *clientconfig.Caller
	ended  atomic.Bool
}

// remote returns the way to a webhook.
func (d *dialer) remote(o *meta.Object, timeout time.Duration) (*remote, error) {
	address, service, err := target(meta.NewObject(o.Map("clientConfig")))
	if err != nil {
		return nil, err
	}
	address.RawQuery = url.Values{"timeout": {timeout.String()}}.Encode()
	cluster := clientconfig.Cluster{Server: address.String()}
	if text := o.String("clientConfig", "caBundle"); text != "" {
		if cluster.CertificateAuthorityData, err = bundle(text); err != nil {
			return nil, err
		}
	}
	r, err := d.config.Remote(cluster, d.user(address.Host))
	if err != nil {
		return nil, err
	}
	if service != nil {
		r.Endpoint = func(ctx context.Context) (clientconfig.Endpoint, error) { return d.services(ctx, *service) }
	}
	caller := r.Caller()
	caller.Timeout, caller.MaxAnswer, caller.UserAgent = timeout, maxAnswer, d.agent
	return &remote{caller: caller}, nil
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
func (d *dialer) user(host string) clientconfig.User {
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
		if u, ok := d.config.User(name); ok {
			return u
		}
	}
	for _, c := range d.config.Contexts {
		if c.Name == d.config.CurrentContext {
			u, _ := d.config.User(c.Context.User)
			return u
		}
	}
	return clientconfig.User{}
}

// post sends a review and returns the answer.
func (r *remote) post(ctx context.Context, body []byte) ([]byte, error) {
	answer, err := r.caller.Post(ctx, body)
	if r.ended.Load() { // while it was called: the connection is not for others any more
		r.caller.Close()
	}
	if cause := (*url.Error)(nil); errors.As(err, &cause) {
		err = cause
	}
	return answer, err
}

// end lets the connections go.
func (r *remote) end() {
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
