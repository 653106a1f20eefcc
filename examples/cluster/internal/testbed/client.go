package testbed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ConfigMaps is the path of the ConfigMaps that a load uses.
const ConfigMaps = "/api/v1/namespaces/default/configmaps"

// ConfigMap holds the fields of a ConfigMap that the tests use.
type ConfigMap struct {
	Name    string
	Version uint64
	Value   string // unique in the test
	Epoch   string // label of the objects of a load
}

// Object holds the fields of objects, lists and Statuses that the tests use.
type Object struct {
	Metadata struct {
		Name            string            `json:"name,omitempty"`
		ResourceVersion string            `json:"resourceVersion,omitempty"`
		Continue        string            `json:"continue,omitempty"`
		Labels          map[string]string `json:"labels,omitempty"`
		Annotations     map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Data  map[string]string `json:"data,omitempty"`
	Spec  *Spec             `json:"spec,omitempty"`
	Items []Object          `json:"items,omitempty"`

	Code    int    `json:"code,omitempty"`    // of a Status
	Message string `json:"message,omitempty"` // of a Status
}

// Spec holds the fields of Services and Leases that the tests use.
type Spec struct {
	ClusterIP string `json:"clusterIP,omitempty"`
	Ports     []struct {
		NodePort int `json:"nodePort,omitempty"`
	} `json:"ports,omitempty"`
	HolderIdentity   string    `json:"holderIdentity,omitempty"`
	LeaseTransitions int       `json:"leaseTransitions,omitempty"`
	AcquireTime      time.Time `json:"acquireTime,omitzero"`
	RenewTime        time.Time `json:"renewTime,omitzero"`
}

// Version returns the resource version, or 0 if there is none.
func (o *Object) Version() uint64 {
	v, _ := strconv.ParseUint(o.Metadata.ResourceVersion, 10, 64)
	return v
}

// ConfigMap returns the fields of a ConfigMap.
func (o *Object) ConfigMap() ConfigMap {
	return ConfigMap{o.Metadata.Name, o.Version(), o.Data["value"], o.Metadata.Labels["epoch"]}
}

// ConfigMaps returns the ConfigMaps of a list that have an epoch, by name.
func (o *Object) ConfigMaps() map[string]ConfigMap {
	found := map[string]ConfigMap{}
	for i := range o.Items {
		if m := o.Items[i].ConfigMap(); m.Epoch != "" {
			found[m.Name] = m
		}
	}
	return found
}

// JSON returns the ConfigMap as the body of a write. Without a version, the write replaces any version.
func (m ConfigMap) JSON() string {
	version := ""
	if m.Version != 0 {
		version = fmt.Sprintf(`,"resourceVersion":"%d"`, m.Version)
	}
	return fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"epoch":%q}%s},"data":{"value":%q}}`, m.Name, m.Epoch, version, m.Value)
}

// Errors of Call: the server may have executed the request, or certainly has not.
var (
	errUnknown     = errors.New("the outcome is unknown")
	errNotExecuted = errors.New("the request was not executed")
)

// Client makes requests to a server, or to the servers behind a balancer. It does not retry.
type Client struct {
	URL  string
	HTTP *http.Client

	t       testing.TB
	timeout time.Duration // of requests of a load; 0 is 2 seconds
}

// callWithin is Call with the time limit of the client.
func (c *Client) callWithin(ctx context.Context, method, path, body string) (code int, answer Object, err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.timeout, 2*time.Second))
	defer cancel()
	return c.Call(ctx, method, path, body)
}

// Call makes a request and returns the status code and the answer. An answer with a status code of 429
// or from 500 is an error.
func (c *Client) Call(ctx context.Context, method, path, body string) (code int, answer Object, err error) {
	r, err := http.NewRequestWithContext(ctx, method, c.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, answer, err
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := c.HTTP.Do(r)
	if err != nil {
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return 0, answer, fmt.Errorf("%w: %w", errNotExecuted, err)
		}
		return 0, answer, fmt.Errorf("%w: %w", errUnknown, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, &answer)
	}
	switch {
	case err != nil && res.StatusCode < 400:
		return 0, answer, fmt.Errorf("%w: %w", errUnknown, err)
	case res.StatusCode == http.StatusTooManyRequests:
		return 0, answer, fmt.Errorf("%w: %s", errNotExecuted, text)
	case res.StatusCode >= 500:
		return 0, answer, fmt.Errorf("%w: %s", errUnknown, text)
	}
	return res.StatusCode, answer, nil
}

// Must makes a request and requires the status code of the answer.
func (c *Client) Must(code int, method, path, body string) *Object {
	c.t.Helper()
	got, answer, err := c.Call(c.t.Context(), method, path, body)
	require.NoError(c.t, err)
	require.Equal(c.t, code, got, "%s %s: %s", method, path, answer.Message)
	return &answer
}

// Event is an event of a watch.
type Event struct {
	Type   string `json:"type"`
	Object Object `json:"object"`
}

// Watch yields the events of a watch with a query until the watch ends or yield returns false.
func (c *Client) Watch(ctx context.Context, path, query string, yield func(Event) bool) error {
	r, err := http.NewRequestWithContext(ctx, "GET", c.URL+path+"?watch=true&allowWatchBookmarks=true&"+query, nil)
	if err != nil {
		return err
	}
	res, err := c.HTTP.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		text, _ := io.ReadAll(res.Body)
		return fmt.Errorf("%d %s", res.StatusCode, text)
	}
	for events := json.NewDecoder(res.Body); ; {
		var e Event
		if err := events.Decode(&e); err != nil {
			return err
		}
		if !yield(e) {
			return nil
		}
	}
}
