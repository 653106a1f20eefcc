package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/admission/internal/matcher"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/webhookclient"
)

// table has the webhooks of each configuration, by its name.
type table map[string][]*hook

// put sets the webhooks of a configuration, or removes the configuration if list is nil.
func (t table) put(configuration string, list []*hook) {
	if t[configuration] = list; list == nil {
		delete(t, configuration)
	}
}

func (t table) list() (list []*hook) {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		list = append(list, t[name]...)
	}
	return list
}

// show replaces the list that requests use, and closes the clients of removed webhooks. Calls in flight
// complete first.
func (w *webhooks) show(list []*hook) {
	w.counts.show(list)
	kept := make(map[*hook]bool, len(list))
	for _, h := range list {
		kept[h] = true
	}
	for _, h := range *w.list.Swap(&list) {
		if !kept[h] {
			h.end()
		}
	}
}

// hook is a compiled webhook. It is immutable.
type hook struct {
	configuration, name string

	constraints matcher.Constraints
	conditions  matcher.Conditions

	review   string // version of AdmissionReview
	timeout  time.Duration
	ignore   bool // failurePolicy is Ignore
	dryRuns  bool // it has no side effects in a dry run
	reinvoke bool // reinvocationPolicy is IfNeeded

	remote *webhookclient.Remote
	fault  error // why it cannot be called; nil if it can
}

func (h *hook) end() {
	if h.remote != nil {
		h.remote.Close()
	}
}

// The default and the maximum timeout of a call, in seconds.
const (
	defaultTimeout = 10
	longestTimeout = 30
)

// maxAnswer is the maximum size of a response in bytes.
const maxAnswer = 3 << 20

// reviewVersions are the supported versions of AdmissionReview.
var reviewVersions = []string{"v1", "v1beta1"}

// compile returns the webhooks of a configuration, or nil if it is nil. Errors are stored in the webhooks, so that
// they are subject to the failure policy.
func (w *webhooks) compile(configuration *meta.Object) []*hook {
	if configuration == nil {
		return nil
	}
	list := []*hook{}
	for _, o := range configuration.Objects("webhooks") {
		h := &hook{
			configuration: configuration.Name(), name: o.String("name"), conditions: matcher.NewConditions(w.expressions, o),
			timeout:  time.Duration(min(max(cmp.Or(o.Int("timeoutSeconds"), defaultTimeout), 1), longestTimeout)) * time.Second,
			ignore:   o.String("failurePolicy") == "Ignore",
			dryRuns:  strings.HasPrefix(o.String("sideEffects"), "None"),
			reinvoke: o.String("reinvocationPolicy") == "IfNeeded",
		}
		for _, version := range o.Strings("admissionReviewVersions") {
			if slices.Contains(reviewVersions, version) {
				h.review = version
				break
			}
		}
		var faults [3]error
		if h.review == "" {
			faults[0] = fmt.Errorf("webhook does not accept known AdmissionReview versions (%s)", strings.Join(reviewVersions, ", "))
		}
		h.constraints, faults[1] = matcher.New(o, "rules", "")
		h.remote, faults[2] = w.dialer.Remote(o.Map("clientConfig"), webhookclient.Bounds{Time: h.timeout, Answer: maxAnswer})
		h.fault = errors.Join(faults[:]...)
		list = append(list, h)
	}
	return list
}
