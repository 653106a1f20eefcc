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

// Table is a snapshot of the APIServices and the documents of the extension servers. It is immutable.
type Table struct {
	Serial int64 // larger than that of any earlier Table

	names    names.Profile
	own      string
	byName   map[string]*Version
	versions map[meta.GroupVersion]*Version
	remote   []*Version
	servers  map[string]*server // by transport.key
}

// server is an extension server with its versions, in the order of their names.
type server struct {
	transport *transport
	versions  []*Version
}

// Version is a group version that has an APIService. It is immutable.
type Version struct {
	meta.GroupVersion
	Name      string // of the APIService
	Priority  Priority
	Available bool      // according to its condition
	Documents Documents // from the extension server

	generation int64      // changes when the documents of an earlier server or version are discarded
	reserved   bool       // this server serves the version itself, although the object names a service
	transport  *transport // nil: this server serves the version itself
}

// equal reports whether two states of a Version are equal.
func (v *Version) equal(of *Version) bool {
	return v.GroupVersion == of.GroupVersion && v.Priority == of.Priority && v.Available == of.Available &&
		v.generation == of.generation && v.reserved == of.reserved && v.transport == of.transport && v.Documents.equal(&of.Documents)
}

// record is the state of an APIService.
type record struct {
	revision  int64
	version   *Version
	condition state // its present condition
	result    probeResult
}

// Priority determines the order of a version in discovery. Higher priorities come first.
type Priority struct{ Group, Version int64 }

// Documents are the documents of a version that were last read from its extension server.
type Documents struct {
	Stale     bool       // the last probe failed
	Resources *Resources // nil: none, or not read yet
	Hash      string     // of the OpenAPI document of version 3; "": none
	Swagger   *Swagger   // nil: none, or not read yet
}

// List returns the resources of the version.
func (d Documents) List() []any {
	if d.Resources == nil {
		return nil
	}
	return slices.Clone(d.Resources.List)
}

func (d *Documents) equal(of *Documents) bool { return *d == *of }

// Table returns the present Table. A nil Aggregator has none.
func (a *Aggregator) Table() *Table {
	if a == nil {
		return nil
	}
	if a.o.Objects.Changed() != a.synced.Load() {
		a.sync()
	}
	return a.table.Load()
}

// sync reads the APIServices that have changed and publishes a new Table.
func (a *Aggregator) sync() {
	a.mu.Lock()
	defer a.mu.Unlock()
	upTo := a.o.Objects.Changed()
	if upTo == a.synced.Load() {
		return
	}
	present, changed := map[string]bool{}, a.table.Load() == nil
	for _, r := range a.o.Objects.List() {
		present[r.Name] = true
		old := a.known[r.Name]
		if old != nil && old.revision == r.Revision {
			continue
		}
		now := a.read(r, old)
		changed = changed || old == nil || !now.version.equal(old.version)
		a.known[r.Name] = now
	}
	for name := range a.known {
		if !present[name] {
			delete(a.known, name)
			changed = true
		}
	}
	if changed {
		a.closeUnused()
		a.publish()
	}
	a.synced.Store(upTo)
}

// closeUnused closes and forgets the transports that no version uses. The caller holds mu.
func (a *Aggregator) closeUnused() {
	used := map[*transport]bool{}
	for _, r := range a.known {
		used[r.version.transport] = true
	}
	for t, w := range a.transports {
		if !used[w] {
			w.closeIdle()
			delete(a.transports, t)
		}
	}
}

// publish stores a new Table. The caller holds mu.
func (a *Aggregator) publish() {
	a.serial++
	t := &Table{
		Serial: a.serial, names: a.o.Names, own: a.own, byName: map[string]*Version{}, versions: map[meta.GroupVersion]*Version{}, servers: map[string]*server{},
	}
	for _, name := range slices.Sorted(maps.Keys(a.known)) { // sorted, so that the documents are deterministic
		v := a.known[name].version
		t.byName[name], t.versions[v.GroupVersion] = v, v
		if v.transport == nil {
			continue
		}
		t.remote = append(t.remote, v)
		if t.servers[v.transport.key] == nil {
			t.servers[v.transport.key] = &server{transport: v.transport}
		}
		b := t.servers[v.transport.key]
		b.versions = append(b.versions, v)
	}
	a.table.Store(t)
}

// read returns the record of an APIService. It keeps the documents and probe result of old, if that has the same
// server and group version. The caller holds mu.
func (a *Aggregator) read(r Record, old *record) *record {
	o := r.Object()
	now := &record{revision: r.Revision, condition: stateOf(o)}
	v := &Version{
		Name: r.Name, Available: now.condition.status == statusTrue,
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
		if a.transports[t] == nil {
			a.transports[t] = a.newTransport(t)
		}
		v.transport, v.Documents.Stale = a.transports[t], true
	}
	if old != nil && old.version.transport == v.transport && old.version.GroupVersion == v.GroupVersion && old.version.reserved == v.reserved {
		v.Documents, v.generation, now.result = old.version.Documents, old.version.generation, old.result
	} else {
		a.lastGeneration++
		v.generation = a.lastGeneration
	}
	return now
}

// updateDocuments changes the documents of a version, unless its server or group version has changed since of was
// read.
func (a *Aggregator) updateDocuments(of *Version, change func(*Documents)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.known[of.Name]
	if now == nil || now.version.transport != of.transport || now.version.GroupVersion != of.GroupVersion {
		return
	}
	next := *now.version
	if change(&next.Documents); next.equal(now.version) {
		return
	}
	now.version = &next
	a.publish()
}

// Remote returns a version that an extension server serves, or nil. A nil Table has no such versions.
func (t *Table) Remote(gv meta.GroupVersion) *Version {
	if t == nil {
		return nil
	}
	if v := t.versions[gv]; v != nil && v.transport != nil {
		return v
	}
	return nil
}

// AllRemote returns the versions that extension servers serve. The caller must not modify the slice.
func (t *Table) AllRemote() []*Version { return t.remote }

// Priority returns the priority of a version: that of its APIService, or the default.
func (t *Table) Priority(gv meta.GroupVersion) Priority {
	switch v := t.versions[gv]; {
	case gv.Group == t.own:
		return Priority{Group: 1 << 30} // the group of APIServices comes first
	case v != nil:
		return v.Priority
	}
	return defaultPriority(t.names, gv)
}

// pathVersion returns the version of a path that names no resource: the path of its discovery document, or of its
// OpenAPI document.
func pathVersion(path string) (gv meta.GroupVersion, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(path, "/"), "/apis/")
	if !ok {
		rest, ok = strings.CutPrefix(path, "/openapi/v3/apis/")
	}
	gv.Group, gv.Version, _ = strings.Cut(rest, "/")
	return gv, ok && gv.Group != "" && gv.Version != "" && !strings.Contains(gv.Version, "/")
}

// groupPriorities are the priorities of the groups that every cluster has.
var groupPriorities = map[string]int64{
	"": 18000, wellknown.GroupApps: 17800, wellknown.GroupEvents: 17750, wellknown.GroupAuthentication: 17700, wellknown.GroupAuthorization: 17600,
	wellknown.GroupAutoscaling: 17500, wellknown.GroupBatch: 17400, wellknown.GroupCertificates: 17300, wellknown.GroupNetworking: 17200, wellknown.GroupPolicy: 17100,
	wellknown.GroupRBAC: 17000, wellknown.GroupStorage: 16800, wellknown.GroupExtensions: 16700, wellknown.GroupRegistration: 16700, wellknown.GroupScheduling: 16600,
	wellknown.GroupCoordination: 16500, wellknown.GroupNode: 16300, wellknown.GroupEndpoints: 16200, wellknown.GroupDevices: 16200, wellknown.GroupFlowControl: 16100,
	wellknown.GroupMigration: 15800,
}

// The default priorities of all other groups, such as the groups of definitions.
const (
	otherGroup   = 1000
	otherVersion = 100
)

// defaultPriority returns the priority of a version that this server serves itself.
func defaultPriority(p names.Profile, gv meta.GroupVersion) Priority {
	for group, priority := range groupPriorities {
		if p.Group(group) == gv.Group {
			return Priority{priority, versionPriority(gv.Version)}
		}
	}
	return Priority{otherGroup, otherVersion}
}

// versionPriority returns the priority of a version in its group. Stable versions have a higher priority than beta
// and alpha versions, and later stable versions a higher priority than earlier ones.
func versionPriority(version string) int64 {
	switch {
	case strings.Contains(version, "alpha"):
		return 1
	case strings.Contains(version, "beta"):
		return 9
	}
	n, _ := strconv.ParseInt(strings.TrimPrefix(version, "v"), 10, 32) // 0 for any other name
	return 15 * max(1, min(n, 60))
}
