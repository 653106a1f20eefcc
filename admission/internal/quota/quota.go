package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/podspec"
	"orch.io/controlplane/storage"
)

// bounds is a quota as it stands in the store. It never changes.
type bounds struct {
	terms     *terms
	key       meta.Key
	uid       string
	version   string
	revision  storage.Revision // of version
	hard      Amounts
	used      Amounts   // those of hard
	complete  bool      // used tells of all that hard bounds
	born      time.Time // of a quota whose status says nothing yet, in whole seconds
	selectors []Selector
	names     map[meta.GroupResource][]string // of hard, in order, by the resource whose objects use them
	rises     []rise                          // of used, the latest last
	since     storage.Revision                // up to which others may have taken what rises do not tell of
	own       *own                            // of rises; states share it
}

// rise is by how much a write of the status raised what is used.
type rise struct {
	version  string // that it made
	revision storage.Revision
	seen     time.Time
	amounts  Amounts
}

// own are the versions of a quota that this server made, as long as they are among its rises.
type own struct {
	mu       sync.Mutex
	versions map[string]bool
}

func (o *own) add(version string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.versions[version] = true
}

func (o *own) has(version string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.versions[version]
}

// drop forgets a version, and reports whether it was there.
func (o *own) drop(version string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.versions[version]
	delete(o.versions, version)
	return was
}

// flight is how long writes are expected to be under way after what they take was counted. For
// one that takes longer others may have to make their writes once more, but nothing is wrong.
const flight = 5 * time.Second

// after notes how the state of a quota came of the one before it, nil if that is not
// known.
func (q *bounds) after(before *bounds, now time.Time) {
	if before == nil || before.uid != q.uid {
		before = &bounds{own: &own{versions: map[string]bool{}}}
	}
	q.own = before.own
	if before.complete && maps.EqualFunc(before.hard, q.hard, meta.Quantity.Equal) {
		q.rises, q.since = before.rises, before.since
	} else {
		before = &bounds{} // all that is told may have been taken at any time before
	}
	r := rise{q.version, q.revision, now, Amounts{}}
	for name, n := range q.used {
		if more := n.Sub(before.used[name]); more.Sign() > 0 {
			r.amounts[name] = more
		}
	}
	for len(q.rises) > 0 && now.Sub(q.rises[0].seen) > flight {
		if first := q.rises[0]; !q.own.drop(first.version) {
			q.since = first.revision
		}
		q.rises = q.rises[1:]
	}
	if len(r.amounts) > 0 {
		q.rises = append(q.rises, r) // states share the array: each is made of the one before
	}
}

// others returns what writes of other servers took since the fence was raised, and what they
// took lately, before or after that. known is false if the former may be more than is told.
func (q *bounds) others(raised storage.Revision) (since, lately Amounts, known bool) {
	since, lately = Amounts{}, Amounts{}
	for _, r := range q.rises {
		if q.own.has(r.version) {
			continue
		}
		if r.revision > raised {
			podspec.Add(since, r.amounts)
		}
		if time.Since(r.seen) <= flight {
			podspec.Add(lately, r.amounts)
		}
	}
	return since, lately, q.since <= raised
}

func newBounds(t *terms, o *meta.Object) *bounds {
	q := &bounds{
		terms: t, key: meta.Key{Namespace: o.Namespace(), Name: o.Name()}, uid: o.UID(), version: o.ResourceVersion(),
		hard: podspec.AmountsOf(o.Map("spec", "hard")), used: Amounts{}, names: map[meta.GroupResource][]string{},
	}
	told, used := podspec.AmountsOf(o.Map("status", "hard")), podspec.AmountsOf(o.Map("status", "used"))
	q.complete = maps.EqualFunc(q.hard, told, meta.Quantity.Equal) && len(used) == len(q.hard)
	if len(told) == 0 {
		q.born = o.CreationTimestamp()
	}
	for _, name := range slices.Sorted(maps.Keys(q.hard)) {
		now, known := used[name]
		q.complete = q.complete && known
		q.used[name] = now
		if r := t.user(name); r.Resource != "" {
			q.names[r] = append(q.names[r], name)
		}
	}
	for _, scope := range o.Strings("spec", "scopes") {
		q.selectors = append(q.selectors, Selector{ScopeName: scope, Operator: "Exists"})
	}
	for _, e := range o.Objects("spec", "scopeSelector", "matchExpressions") {
		q.selectors = append(q.selectors, Selector{e.String("scopeName"), e.String("operator"), e.Strings("values")})
	}
	return q
}

// same reports whether two states of a quota bound the same and tell the same.
func (q *bounds) same(other *bounds) bool {
	return q.complete == other.complete && maps.EqualFunc(q.hard, other.hard, meta.Quantity.Equal) && maps.EqualFunc(q.used, other.used, meta.Quantity.Equal)
}

// matches reports whether objects like this one count.
func (q *bounds) matches(r meta.GroupResource, o *meta.Object) bool {
	return len(q.names[r]) > 0 && !slices.ContainsFunc(q.selectors, func(s Selector) bool { return !s.holds(r, o) })
}

// use returns what an object uses of what the quota bounds.
func (q *bounds) use(r meta.GroupResource, o *meta.Object) Amounts {
	masked := Amounts{}
	if o == nil || !q.matches(r, o) {
		return masked
	}
	all := q.terms.usage(r, o, time.Now())
	for _, name := range q.names[r] {
		if n := all[name]; n.Sign() > 0 {
			masked[name] = n
		}
	}
	return masked
}

// demand returns by how much a write raises what is used. What it lowers is seen when it
// is made.
func (q *bounds) demand(c *charge) Amounts {
	more := q.use(c.resource, c.object)
	for name, before := range q.use(c.resource, c.old) {
		if more[name] = more[name].Sub(before); more[name].Sign() <= 0 {
			delete(more, name)
		}
	}
	return more
}

// check returns why a demand is refused where so much is used.
func (q *bounds) check(demand, used Amounts) error {
	var asked, have, most []string
	for _, name := range slices.Sorted(maps.Keys(demand)) {
		if used[name].Add(demand[name]).Cmp(q.hard[name]) > 0 {
			asked = append(asked, name+"="+demand[name].String())
			have = append(have, name+"="+used[name].String())
			most = append(most, name+"="+q.hard[name].String())
		}
	}
	if len(asked) == 0 {
		return nil
	}
	return fmt.Errorf("exceeded quota: %s, requested: %s, used: %s, limited: %s", q.key.Name, strings.Join(asked, ","), strings.Join(have, ","), strings.Join(most, ","))
}

// explicit are the names of which containers have to say how much they use, if it counts.
var explicit = []string{"cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"}

// unsaid returns why a pod is refused that says too little for the quota.
func (q *bounds) unsaid(r meta.GroupResource, pod *meta.Object) error {
	if r != pods {
		return nil
	}
	spec := meta.NewObject(pod.Map("spec"))
	var faults []string
	for _, name := range explicit {
		field, of := "requests", strings.TrimPrefix(name, "requests.")
		if limited, ok := strings.CutPrefix(name, "limits."); ok {
			field, of = "limits", limited
		}
		if _, whole := podspec.Resources(spec, field)[of]; whole || !slices.Contains(q.names[r], name) {
			continue
		}
		var silent []string
		for _, c := range podspec.Of(spec, podspec.Containers, podspec.Init) {
			if _, says := podspec.Resources(c, field)[of]; !says {
				silent = append(silent, c.String("name"))
			}
		}
		if slices.Sort(silent); len(silent) > 0 {
			faults = append(faults, name+" for: "+strings.Join(silent, ","))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("failed quota: %s: must specify %s", q.key.Name, strings.Join(faults, "; "))
}

// book holds the quotas of all namespaces that have some, by name.
type book map[string]map[string]*bounds

func (b book) apply(t *terms, e client.Event) {
	before := b[e.Key.Namespace][e.Key.Name]
	delete(b[e.Key.Namespace], e.Key.Name)
	if e.Object == nil {
		if len(b[e.Key.Namespace]) == 0 {
			delete(b, e.Key.Namespace)
		}
		return
	}
	if b[e.Key.Namespace] == nil {
		b[e.Key.Namespace] = map[string]*bounds{}
	}
	now := newBounds(t, e.Object)
	now.revision = e.Revision
	now.after(before, time.Now())
	b[e.Key.Namespace][e.Key.Name] = now
}

// of returns the quotas of a namespace in order.
func (b book) of(namespace string) (list []*bounds) {
	for _, name := range slices.Sorted(maps.Keys(b[namespace])) {
		list = append(list, b[namespace][name])
	}
	return list
}
