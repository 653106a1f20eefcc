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

// snapshot is a ResourceQuota at a revision. It is immutable, except own.
type snapshot struct {
	naming    *naming
	key       meta.Key
	uid       string
	version   string
	revision  storage.Revision // of version
	hard      Amounts
	used      Amounts   // status.used, for the names in hard
	complete  bool      // the status has the values of spec.hard, and used for each
	born      time.Time // creationTimestamp, if there is no status yet
	selectors []Selector
	names     map[meta.GroupResource][]string // sorted names in hard, by the resource of the objects that they count

	// The recent history of status.used that this server has seen.
	increases []increase       // oldest first
	since     storage.Revision // reservations of other servers up to this revision may be missing in increases
	own       *ownVersions     // shared by all snapshots of a quota
}

// increase is an update of a status that raised the usage.
type increase struct {
	version  string // of the quota after the update
	revision storage.Revision
	seen     time.Time
	amounts  Amounts
}

// ownVersions are the versions in increases that this server wrote.
type ownVersions struct {
	mu       sync.Mutex // guards versions
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

// writeTime is the expected maximum time between a reservation and the commit of its write. If a write takes longer,
// other writes may be retried, but the usage stays correct.
const writeTime = 5 * time.Second

// inheritHistory sets the history from the previous snapshot, which is nil for a new quota. now is the time at which this
// server saw the snapshot.
func (q *snapshot) inheritHistory(before *snapshot, now time.Time) {
	if before == nil || before.uid != q.uid {
		before = &snapshot{own: &ownVersions{versions: map[string]bool{}}}
	}
	q.own = before.own
	if before.complete && maps.EqualFunc(before.hard, q.hard, meta.Quantity.Equal) {
		q.increases, q.since = before.increases, before.since
	} else {
		before = &snapshot{} // treat the whole usage as an increase, because the time of its reservations is not known
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
		q.increases = append(q.increases, r) // may share the array of before, because each snapshot has a single successor
	}
}

// otherReservations returns the amounts that other servers reserved after the revision raised of the fence, and the amounts that
// they reserved within writeTime, before or after that revision. If known is false, since may be incomplete.
func (q *snapshot) otherReservations(raised storage.Revision) (since, lately Amounts, known bool) {
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

// newSnapshot returns the snapshot of an object, without revision and history.
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
		if r := n.resourceOf(name); r.Resource != "" {
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

// same reports whether two snapshots have the same limits and usage.
func (q *snapshot) same(other *snapshot) bool {
	return q.complete == other.complete && maps.EqualFunc(q.hard, other.hard, meta.Quantity.Equal) && maps.EqualFunc(q.used, other.used, meta.Quantity.Equal)
}

// matches reports whether the quota counts an object.
func (q *snapshot) matches(r meta.GroupResource, o *meta.Object) bool {
	return len(q.names[r]) > 0 && !slices.ContainsFunc(q.selectors, func(s Selector) bool { return !s.selects(r, o) })
}

// usage returns the usage of an object for the names that the quota bounds. It is empty if the quota does not count the
// object or o is nil.
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

// demand returns the amounts by which a write raises the usage. It omits decreases, which a count after the write finds.
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

// explicit are the names of the requests and limits that each container must specify if the quota bounds them.
var explicit = []string{"cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"}

// unspecified returns the refusal of a pod if a container lacks a request or limit that the quota bounds.
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

// index has the quotas by namespace and name.
type index map[string]map[string]*snapshot

// apply updates the index for an event; e.Object is nil after a deletion.
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
	now.inheritHistory(before, time.Now())
	x[e.Key.Namespace][e.Key.Name] = now
}

// of returns the quotas of a namespace, sorted by name.
func (x index) of(namespace string) (list []*snapshot) {
	for _, name := range slices.Sorted(maps.Keys(x[namespace])) {
		list = append(list, x[namespace][name])
	}
	return list
}
