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

// table holds the webhooks of all configurations by their names.
type table map[string][]*hook

// put sets the webhooks of a configuration; nil: it is gone.
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

// show makes a list the one that requests see, and ends the webhooks that are in it no
// more. Calls of them that are under way come to their end.
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

// hook is one webhook, compiled. It never changes.
type hook struct {
	configuration, name string

	about      matcher.Constraints
	conditions matcher.Conditions

	review   string // the version of AdmissionReview
	timeout  time.Duration
	ignore   bool // a failure lets the request pass
	dryRuns  bool // it may be asked in a dry run
	reinvoke bool // it wants to see what others changed after it

	remote *webhookclient.Remote
	fault  error // why it cannot be called
}

func (h *hook) end() {
	if h.remote != nil {
		h.remote.End()
	}
}

// Bounds of the time for one call.
const (
	defaultTimeout = 10
	longestTimeout = 30
)

// maxAnswer bounds the answer of a webhook in bytes.
const maxAnswer = 3 << 20

// reviewVersions are those of AdmissionReview that can be sent.
var reviewVersions = []string{"v1", "v1beta1"}

// compile makes the webhooks of a configuration; nil is none.
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
		h.about, faults[1] = matcher.New(o, "rules", "")
		h.remote, faults[2] = w.dialer.Remote(o.Map("clientConfig"), webhookclient.Bounds{Time: h.timeout, Answer: maxAnswer})
		h.fault = errors.Join(faults[:]...)
		list = append(list, h)
	}
	return list
}
