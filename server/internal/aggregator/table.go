package aggregator

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/services"
	"orch.io/controlplane/internal/wellknown"
)

// Table is what the APIServices say at a time, and what is known of the other servers. It
// never changes, and another one says something else.
type Table struct {
	Serial int64 // higher than of those before

	names    names.Profile
	own      string
	byName   map[string]*Version
	versions map[meta.GroupVersion]*Version
	remote   []*Version
	backs    map[string]*back // by the keys of ways
}

// back is another server with the versions that it serves, in the order of their names.
type back struct {
	way      *way
	versions []*Version
}

// Version is a version of a group that has an APIService. It never changes.
type Version struct {
	meta.GroupVersion
	Name      string // of the object
	Priority  Priority
	Available bool      // as its condition says
	Documents Documents // what is known of the other server

	known    int64 // since when its documents are: another number if nothing is known from before
	reserved bool  // it is served here although the object says otherwise
	way      *way  // nil: it is served here
}

// equal reports whether two versions of a name say the same.
func (v *Version) equal(of *Version) bool {
	return v.GroupVersion == of.GroupVersion && v.Priority == of.Priority && v.Available == of.Available &&
		v.known == of.known && v.reserved == of.reserved && v.way == of.way && v.Documents.equal(&of.Documents)
}

// record is what is known of an APIService.
type record struct {
	revision int64
	version  *Version
	said     state // by its condition
	verdict  verdict
}

// Priority is the place of a version in discovery, the higher the earlier.
type Priority struct{ Group, Version int64 }

// Documents are what another server told of a version when it was asked last.
type Documents struct {
	Stale     bool       // it did not answer since
	Resources *Resources // nil: it told none
	Hash      string     // of the OpenAPI document of version 3; empty: it has none
	Swagger   *Swagger   // nil: it told none
}

// List returns the resources of the version.
func (d Documents) List() []any {
	if d.Resources == nil {
		return nil
	}
	return slices.Clone(d.Resources.List)
}

func (d *Documents) equal(of *Documents) bool { return *d == *of }

// Table returns what the objects say now.
func (a *Aggregator) Table() *Table {
	if a == nil {
		return nil
	}
	if a.o.Objects.Changed() != a.synced.Load() {
		a.follow()
	}
	return a.table.Load()
}

// follow reads the objects that changed.
func (a *Aggregator) follow() {
	a.mu.Lock()
	defer a.mu.Unlock()
	upTo := a.o.Objects.Changed()
	if upTo == a.synced.Load() {
		return
	}
	there, changed := map[string]bool{}, a.table.Load() == nil
	for _, r := range a.o.Objects.List() {
		there[r.Name] = true
		old := a.known[r.Name]
		if old != nil && old.revision == r.Revision {
			continue
		}
		now := a.read(r, old)
		changed = changed || old == nil || !now.version.equal(old.version)
		a.known[r.Name] = now
	}
	for name := range a.known {
		if !there[name] {
			delete(a.known, name)
			changed = true
		}
	}
	if changed {
		a.forsake()
		a.publish()
	}
	a.synced.Store(upTo)
}

// forsake ends the ways to servers that no version leads to any more. The lock is held.
func (a *Aggregator) forsake() {
	used := map[*way]bool{}
	for _, r := range a.known {
		used[r.version.way] = true
	}
	for t, w := range a.ways {
		if !used[w] {
			w.end()
			delete(a.ways, t)
		}
	}
}

// publish makes the table of what is known. The lock is held.
func (a *Aggregator) publish() {
	a.serial++
	t := &Table{
		Serial: a.serial, names: a.o.Names, own: a.own, byName: map[string]*Version{}, versions: map[meta.GroupVersion]*Version{}, backs: map[string]*back{},
	}
	for _, name := range slices.Sorted(maps.Keys(a.known)) { // the same documents whenever it is made
		v := a.known[name].version
		t.byName[name], t.versions[v.GroupVersion] = v, v
		if v.way == nil {
			continue
		}
		t.remote = append(t.remote, v)
		if t.backs[v.way.key] == nil {
			t.backs[v.way.key] = &back{way: v.way}
		}
		b := t.backs[v.way.key]
		b.versions = append(b.versions, v)
	}
	a.table.Store(t)
}

// read makes the record of an object. What is known of the other server stays, unless that
// is another one now. The lock is held.
func (a *Aggregator) read(r Record, old *record) *record {
	o := r.Object()
	now := &record{revision: r.Revision, said: stateOf(o)}
	v := &Version{
		Name: r.Name, Available: now.said.status == statusTrue,
		GroupVersion: meta.GroupVersion{Group: o.String("spec", "group"), Version: o.String("spec", "version")},
		Priority:     Priority{o.Int("spec", "groupPriorityMinimum"), o.Int("spec", "versionPriority")},
	}
	now.version = v
	local := o.Map("spec", "service") == nil
	v.reserved = !local && (v.Group == "" || v.Group == a.own)
	if !local && !v.reserved {
		t := target{
			services.Service{
				Namespace: o.String("spec", "service", "namespace"), Name: o.String("spec", "service", "name"),
				Port: int32(cmp.Or(o.Int("spec", "service", "port"), 443)),
			},
			trust{o.Bool("spec", "insecureSkipTLSVerify"), o.String("spec", "caBundle")},
		}
		if a.ways[t] == nil {
			a.ways[t] = a.newWay(t)
		}
		v.way, v.Documents.Stale = a.ways[t], true
	}
	if old != nil && old.version.way == v.way && old.version.GroupVersion == v.GroupVersion && old.version.reserved == v.reserved {
		v.Documents, v.known, now.verdict = old.version.Documents, old.version.known, old.verdict
	} else {
		a.unknown++
		v.known = a.unknown
	}
	return now
}

// learn keeps what another server told, unless it is not the one any more.
func (a *Aggregator) learn(of *Version, change func(*Documents)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.known[of.Name]
	if now == nil || now.version.way != of.way || now.version.GroupVersion != of.GroupVersion {
		return
	}
	next := *now.version
	if change(&next.Documents); next.equal(now.version) {
		return
	}
	now.version = &next
	a.publish()
}

// Remote returns a version that another server serves, or nil. A nil Table has no such versions.
func (t *Table) Remote(gv meta.GroupVersion) *Version {
	if t == nil {
		return nil
	}
	if v := t.versions[gv]; v != nil && v.way != nil {
		return v
	}
	return nil
}

// AllRemote returns the versions that other servers serve.
func (t *Table) AllRemote() []*Version { return t.remote }

// Priority returns that of a version: what its object says, else what it is by default.
func (t *Table) Priority(gv meta.GroupVersion) Priority {
	switch v := t.versions[gv]; {
	case gv.Group == t.own:
		return Priority{Group: 1 << 30} // these names come before all others
	case v != nil:
		return v.Priority
	}
	return defaultPriority(t.names, gv)
}

// pathVersion returns the version that a path is about that names no resource: that of its
// discovery document, or of its OpenAPI document.
func pathVersion(path string) (gv meta.GroupVersion, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(path, "/"), "/apis/")
	if !ok {
		rest, ok = strings.CutPrefix(path, "/openapi/v3/apis/")
	}
	gv.Group, gv.Version, _ = strings.Cut(rest, "/")
	return gv, ok && gv.Group != "" && gv.Version != "" && !strings.Contains(gv.Version, "/")
}

// groupPriorities are those of the groups that every cluster has.
var groupPriorities = map[string]int64{
	"": 18000, wellknown.GroupApps: 17800, wellknown.GroupEvents: 17750, wellknown.GroupAuthentication: 17700, wellknown.GroupAuthorization: 17600,
	wellknown.GroupAutoscaling: 17500, wellknown.GroupBatch: 17400, wellknown.GroupCertificates: 17300, wellknown.GroupNetworking: 17200, wellknown.GroupPolicy: 17100,
	wellknown.GroupRBAC: 17000, wellknown.GroupStorage: 16800, wellknown.GroupExtensions: 16700, wellknown.GroupRegistration: 16700, wellknown.GroupScheduling: 16600,
	wellknown.GroupCoordination: 16500, wellknown.GroupNode: 16300, wellknown.GroupEndpoints: 16200, wellknown.GroupDevices: 16200, wellknown.GroupFlowControl: 16100,
	wellknown.GroupMigration: 15800,
}

// The priorities of groups that are none of those, as definitions make them.
const (
	otherGroup   = 1000
	otherVersion = 100
)

// defaultPriority is that of a version that is served here.
func defaultPriority(p names.Profile, gv meta.GroupVersion) Priority {
	for group, priority := range groupPriorities {
		if p.Group(group) == gv.Group {
			return Priority{priority, versionPriority(gv.Version)}
		}
	}
	return Priority{otherGroup, otherVersion}
}

// versionPriority is higher for a more stable version, and for a later stable one.
func versionPriority(version string) int64 {
	switch {
	case strings.Contains(version, "alpha"):
		return 1
	case strings.Contains(version, "beta"):
		return 9
	}
	n, _ := strconv.ParseInt(strings.TrimPrefix(version, "v"), 10, 32) // of another name: the least
	return 15 * max(1, min(n, 60))
}
