package main

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
	"time"
)

const mapsPath = "/api/v1/namespaces/default/configmaps"

// object holds the fields of a ConfigMap that the tests use.
type object struct {
	Name    string
	Version uint64
	Value   string // unique in the test
	Epoch   string
}

type wireObject struct {
	Metadata struct {
		Name            string            `json:"name,omitempty"`
		ResourceVersion string            `json:"resourceVersion,omitempty"`
		Continue        string            `json:"continue,omitempty"`
		Labels          map[string]string `json:"labels,omitempty"`
		Annotations     map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Data  map[string]string `json:"data,omitempty"`
	Spec  *spec             `json:"spec,omitempty"`
	Items []wireObject      `json:"items,omitempty"`
	Code  int               `json:"code,omitempty"`    // of a Status
	Text  string            `json:"message,omitempty"` // of a Status
}

// spec holds the fields of Services and Leases that the tests use.
type spec struct {
	ClusterIP string `json:"clusterIP,omitempty"`
	Ports     []struct {
		NodePort int `json:"nodePort,omitempty"`
	} `json:"ports,omitempty"`
	HolderIdentity string    `json:"holderIdentity,omitempty"`
	AcquireTime    time.Time `json:"acquireTime,omitzero"`
	RenewTime      time.Time `json:"renewTime,omitzero"`
}

func (w *wireObject) version() uint64 {
	v, _ := strconv.ParseUint(w.Metadata.ResourceVersion, 10, 64)
	return v
}

func (w *wireObject) object() object {
	return object{w.Metadata.Name, w.version(), w.Data["value"], w.Metadata.Labels["epoch"]}
}

// objects returns the objects of a load in a list.
func (w *wireObject) objects() map[string]object {
	found := map[string]object{}
	for i := range w.Items {
		if o := w.Items[i].object(); o.Epoch != "" {
			found[o.Name] = o
		}
	}
	return found
}

// body returns the JSON of an object. Without a version, it replaces any version.
func (o object) body() string {
	version := ""
	if o.Version != 0 {
		version = fmt.Sprintf(`,"resourceVersion":"%d"`, o.Version)
	}
	return fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"epoch":%q}%s},"data":{"value":%q}}`, o.Name, o.Epoch, version, o.Value)
}

// Errors of requests with an unknown outcome, or that the server certainly did not execute.
var (
	errUnknown  = errors.New("it may have happened")
	errNotTaken = errors.New("it was not taken")
)

// call makes a request and returns the status code and the answer. The error is errNotTaken if the
// server certainly did not execute the request.
func (p *process) call(ctx context.Context, method, path, body string) (code int, answer wireObject, err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(p.patience, 2*time.Second))
	defer cancel()
	return p.patientCall(ctx, method, path, body)
}

// patientCall is call without a time limit.
func (p *process) patientCall(ctx context.Context, method, path, body string) (code int, answer wireObject, err error) {
	r, err := http.NewRequestWithContext(ctx, method, p.url+path, strings.NewReader(body))
	if err != nil {
		return 0, answer, err
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := p.client.Do(r)
	if err != nil {
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return 0, answer, fmt.Errorf("%w: %w", errNotTaken, err)
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
		return 0, answer, fmt.Errorf("%w: %s", errNotTaken, text)
	case res.StatusCode >= 500:
		return 0, answer, fmt.Errorf("%w: %s", errUnknown, text)
	}
	return res.StatusCode, answer, nil
}

// event is an event of a watch.
type event struct {
	Type   string     `json:"type"`
	Object wireObject `json:"object"`
}

// watch yields the events after a version until the watch ends or yield returns false.
func (p *process) watch(ctx context.Context, after uint64, yield func(event) bool) error {
	return p.follow(ctx, fmt.Sprintf("resourceVersion=%d", after), yield)
}

// follow is watch with a query.
func (p *process) follow(ctx context.Context, query string, yield func(event) bool) error {
	return p.followAt(ctx, mapsPath, query, yield)
}

// followAt is follow for another path.
func (p *process) followAt(ctx context.Context, path, query string, yield func(event) bool) error {
	r, err := http.NewRequestWithContext(ctx, "GET", p.url+path+"?watch=true&allowWatchBookmarks=true&"+query, nil)
	if err != nil {
		return err
	}
	res, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		text, _ := io.ReadAll(res.Body)
		return fmt.Errorf("%d %s", res.StatusCode, text)
	}
	for events := json.NewDecoder(res.Body); ; {
		var e event
		if err := events.Decode(&e); err != nil {
			return err
		}
		if !yield(e) {
			return nil
		}
	}
}
