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

// snapshot is a ResourceQuota at one revision. It never changes.
type snapshot struct {
	naming    *naming
	key       meta.Key
	uid       string
	version   string
	revision  storage.Revision // of version
	hard      Amounts
	used      Amounts   // status.used, for the names in hard
	complete  bool      // the status has all of hard
	born      time.Time // creationTimestamp, if there is no status yet
	selectors []Selector
	names     map[meta.GroupResource][]string // of hard, sorted, by the resource whose objects they count

	// How status.used came about, as far as this server has seen it.
	increases []increase
	since     storage.Revision // other servers may have reserved up to here what increases do not have
	own       *ownVersions     // of increases; all snapshots of a quota share it
}

// increase is by how much one update of a status raised the usage.
type increase struct {
	version  string // that the update made
	revision storage.Revision
	seen     time.Time
	amounts  Amounts
}

// ownVersions are the versions of a quota that this server made, as long as they are among its increases.
type ownVersions struct {
	mu       sync.Mutex
	versions map[string]bool
}

func (o *ownVersions) add(version string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.versions[version] = true
}

func (o *ownVersions) has(version string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.versions[version]
}

// remove removes a version and reports whether it was there.
func (o *ownVersions) remove(version string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.versions[version]
	delete(o.versions, version)
	return was
}

// writeTime is how long a write is expected to take after its usage was added to the quotas. If one takes longer,
// other writes may have to be retried; the usage stays right.
const writeTime = 5 * time.Second

// follow derives increases from the snapshot before this one, nil if there is none.
func (q *snapshot) follow(before *snapshot, now time.Time) {
	if before == nil || before.uid != q.uid {
		before = &snapshot{own: &ownVersions{versions: map[string]bool{}}}
	}
	q.own = before.own
	if before.complete && maps.EqualFunc(before.hard, q.hard, meta.Quantity.Equal) {
		q.increases, q.since = before.increases, before.since
	} else {
		before = &snapshot{} // all of the usage counts as an increase: it may have been reserved at any time
	}
	r := increase{q.version, q.revision, now, Amounts{}}
	for name, n := range q.used {
		if more := n.Sub(before.used[name]); more.Sign() > 0 {
			r.amounts[name] = more
		}
	}
	for len(q.increases) > 0 && now.Sub(q.increases[0].seen) > writeTime {
		if first := q.increases[0]; !q.own.remove(first.version) {
			q.since = first.revision
		}
		q.increases = q.increases[1:]
	}
	if len(r.amounts) > 0 {
		q.increases = append(q.increases, r) // snapshots share the array, because each has one successor
	}
}

// others returns what other servers reserved after a revision of the fence, and what they reserved within writeTime,
// before or after that revision. If known is false, they may have reserved more after that revision.
func (q *snapshot) others(raised storage.Revision) (since, lately Amounts, known bool) {
	since, lately = Amounts{}, Amounts{}
	for _, r := range q.increases {
		if q.own.has(r.version) {
			continue
		}
		if r.revision > raised {
			podspec.Add(since, r.amounts)
		}
		if time.Since(r.seen) <= writeTime {
			podspec.Add(lately, r.amounts)
		}
	}
	return since, lately, q.since <= raised
}

func newSnapshot(n *naming, o *meta.Object) *snapshot {
	q := &snapshot{
		naming: n, key: meta.Key{Namespace: o.Namespace(), Name: o.Name()}, uid: o.UID(), version: o.ResourceVersion(),
		hard: podspec.AmountsOf(o.Map("spec", "hard")), used: Amounts{}, names: map[meta.GroupResource][]string{},
	}
	hard, used := podspec.AmountsOf(o.Map("status", "hard")), podspec.AmountsOf(o.Map("status", "used"))
	q.complete = maps.EqualFunc(q.hard, hard, meta.Quantity.Equal) && len(used) == len(q.hard)
	if len(hard) == 0 {
		q.born = o.CreationTimestamp()
	}
	for _, name := range slices.Sorted(maps.Keys(q.hard)) {
		amount, known := used[name]
		q.complete = q.complete && known
		q.used[name] = amount
		if r := n.user(name); r.Resource != "" {
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

// same reports whether two snapshots have the same bounds and usage.
func (q *snapshot) same(other *snapshot) bool {
	return q.complete == other.complete && maps.EqualFunc(q.hard, other.hard, meta.Quantity.Equal) && maps.EqualFunc(q.used, other.used, meta.Quantity.Equal)
}

// matches reports whether the quota counts an object.
func (q *snapshot) matches(r meta.GroupResource, o *meta.Object) bool {
	return len(q.names[r]) > 0 && !slices.ContainsFunc(q.selectors, func(s Selector) bool { return !s.holds(r, o) })
}

// usage returns the usage of an object, or nil, for the names that the quota bounds.
func (q *snapshot) usage(r meta.GroupResource, o *meta.Object) Amounts {
	masked := Amounts{}
	if o == nil || !q.matches(r, o) {
		return masked
	}
	all := q.naming.usage(r, o, time.Now())
	for _, name := range q.names[r] {
		if n := all[name]; n.Sign() > 0 {
			masked[name] = n
		}
	}
	return masked
}

// demand returns by how much a write raises the usage. A count after the write finds by how much it lowers it.
func (q *snapshot) demand(c *charge) Amounts {
	more := q.usage(c.resource, c.object)
	for name, before := range q.usage(c.resource, c.old) {
		if more[name] = more[name].Sub(before); more[name].Sign() <= 0 {
			delete(more, name)
		}
	}
	return more
}

// check returns the refusal of a demand that exceeds the quota at the given usage.
func (q *snapshot) check(demand, used Amounts) error {
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

// explicit are the names that each container has to specify if the quota bounds them.
var explicit = []string{"cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"}

// unspecified returns the refusal of a pod with a container that lacks a request or limit which the quota bounds.
func (q *snapshot) unspecified(r meta.GroupResource, pod *meta.Object) error {
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
		var missing []string
		for _, c := range podspec.Of(spec, podspec.Containers, podspec.Init) {
			if _, set := podspec.Resources(c, field)[of]; !set {
				missing = append(missing, c.String("name"))
			}
		}
		if slices.Sort(missing); len(missing) > 0 {
			faults = append(faults, name+" for: "+strings.Join(missing, ","))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("failed quota: %s: must specify %s", q.key.Name, strings.Join(faults, "; "))
}

// index has the quotas of all namespaces by name.
type index map[string]map[string]*snapshot

func (x index) apply(n *naming, e client.Event) {
	before := x[e.Key.Namespace][e.Key.Name]
	delete(x[e.Key.Namespace], e.Key.Name)
	if e.Object == nil {
		if len(x[e.Key.Namespace]) == 0 {
			delete(x, e.Key.Namespace)
		}
		return
	}
	if x[e.Key.Namespace] == nil {
		x[e.Key.Namespace] = map[string]*snapshot{}
	}
	now := newSnapshot(n, e.Object)
	now.revision = e.Revision
	now.follow(before, time.Now())
	x[e.Key.Namespace][e.Key.Name] = now
}

// of returns the quotas of a namespace by name.
func (x index) of(namespace string) (list []*snapshot) {
	for _, name := range slices.Sorted(maps.Keys(x[namespace])) {
		list = append(list, x[namespace][name])
	}
	return list
}
