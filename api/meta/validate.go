package meta

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// MaxAnnotations is the maximum size of an object's annotations: bytes of all keys and values.
const MaxAnnotations = 256 << 10

const (
	maxManager     = 128
	maxSubresource = 256
	maxFaults      = 1000 // causes reported for an object
)

// Finalizers for deletion propagation policies. They need no domain.
const (
	FinalizerOrphan     = "orphan"
	FinalizerForeground = "foregroundDeletion"
)

// MetadataRules has the metadata rules of a kind.
type MetadataRules struct {
	Namespaced bool
	Name       func(name string, prefix bool) []string // nil means a DNS subdomain; see NameChecker
	Finalizers []string                                // standard names of the kind, in addition to orphan and foregroundDeletion
	// AnyFinalizer allows finalizers without a domain and reports them in MetadataWarnings. By
	// default they are invalid.
	AnyFinalizer bool
	// FreeFinalizers allows finalizers without a domain and without a warning.
	FreeFinalizers bool
	Embedded       bool // the object is embedded in another object: its name may be empty or any path segment
}

// ValidateMetadata returns the violations in the metadata of obj, which is a new
// object (old is nil) or an update of old. The fields that the server sets must
// already be in place. An update does not check the form of the name again.
// (Spec: conventions, metadata.)
func ValidateMetadata(obj, old *Object, rules MetadataRules) []StatusCause {
	switch {
	case rules.Embedded:
		rules.Name = segment
	case rules.Name == nil:
		rules.Name = NameChecker(CheckDNSSubdomain)
	}
	f := metadataFaults{obj: obj, old: old, rules: rules}
	if old == nil {
		f.common(rules.Name)
	} else {
		f.common(segment)
		f.update()
	}
	f.kindFinalizers()
	return f.causes
}

func segment(name string, prefix bool) []string {
	if prefix {
		return checkPathSegmentPrefix(name)
	}
	return CheckPathSegment(name)
}

type metadataFaults struct {
	obj, old *Object
	rules    MetadataRules
	causes   []StatusCause
}

func (f *metadataFaults) add(reason CauseType, field, format string, args ...any) {
	if !f.full() {
		f.causes = append(f.causes, StatusCause{Reason: reason, Field: "metadata." + field, Message: fmt.Sprintf(format, args...)})
	}
}

// full reports whether the limit on causes is reached. A body can have as many violations as
// labels, and each message is longer than a label.
func (f *metadataFaults) full() bool { return len(f.causes) >= maxFaults }

func (f *metadataFaults) invalid(field, value, why string) {
	f.add(CauseInvalid, field, "Invalid value: %q: %s", clip(value), why)
}

func (f *metadataFaults) required(field string) {
	f.add(CauseRequired, field, "Required value: must not be empty")
}

// invalidJSON adds a cause for a value that is not a string.
func (f *metadataFaults) invalidJSON(field string, value any, why string) {
	text, err := json.Marshal(value)
	if err != nil {
		text = []byte("null")
	}
	f.add(CauseInvalid, field, "Invalid value: %s: %s", clip(string(text)), why)
}

// common checks the rules that apply to creates and updates.
func (f *metadataFaults) common(nameForm func(string, bool) []string) {
	if prefix := f.obj.GenerateName(); prefix != "" {
		for _, why := range nameForm(prefix, true) {
			f.invalid("generateName", prefix, why)
		}
	}
	name := f.obj.Name()
	if name == "" && !f.rules.Embedded {
		f.add(CauseRequired, "name", "Required value: name or generateName is required")
	}
	if name != "" {
		for _, why := range nameForm(name, false) {
			f.invalid("name", name, why)
		}
	}
	f.namespace()
	if n := f.obj.Generation(); n < 0 {
		f.invalidJSON("generation", n, "must be greater than or equal to 0")
	}
	f.labels()
	f.owners()
	f.finalizers()
	f.managers()
}

func (f *metadataFaults) namespace() {
	switch ns := f.obj.Namespace(); {
	case !f.rules.Namespaced && ns != "":
		f.add(CauseForbidden, "namespace", "Forbidden: not allowed on this type")
	case f.rules.Namespaced && ns == "":
		f.add(CauseRequired, "namespace", "Required value")
	case f.rules.Namespaced:
		for _, why := range CheckDNSLabel(ns) {
			f.invalid("namespace", ns, why)
		}
	}
}

func (f *metadataFaults) labels() {
	labels := f.obj.Map("metadata", "labels")
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if f.full() {
			return
		}
		for _, why := range CheckQualifiedName(k) {
			f.invalid("labels", k, why)
		}
		v, _ := labels[k].(string)
		for _, why := range CheckLabelValue(v) {
			f.invalid("labels", v, why)
		}
	}
	annotations, size := f.obj.Map("metadata", "annotations"), 0
	for _, k := range slices.Sorted(maps.Keys(annotations)) {
		if f.full() {
			return
		}
		for _, why := range CheckQualifiedName(strings.ToLower(k)) {
			f.invalid("annotations", k, why)
		}
		v, _ := annotations[k].(string)
		size += len(k) + len(v)
	}
	if size > MaxAnnotations {
		f.add(CauseTooLong, "annotations", "Too long: may not be more than %d bytes", MaxAnnotations)
	}
}

func (f *metadataFaults) owners() {
	const field = "ownerReferences"
	controller := ""
	owners := f.obj.OwnerReferences()
	for i, o := range owners {
		if f.full() {
			return
		}
		at := fmt.Sprintf("%s[%d]", field, i)
		gv := ParseAPIVersion(o.APIVersion)
		switch {
		case o.APIVersion == "":
			f.required(at + ".apiVersion")
		case gv.Version == "" || strings.Contains(gv.Version, "/"):
			f.invalid(at+".apiVersion", o.APIVersion, "must be <group>/<version> or <version>")
		}
		for _, part := range [][2]string{{"kind", o.Kind}, {"name", o.Name}, {"uid", o.UID}} {
			if part[1] == "" {
				f.required(at + "." + part[0])
			}
		}
		if gv == (GroupVersion{"", "v1"}) && o.Kind == "Event" {
			f.invalidJSON(at, o, "/v1, Kind=Event is disallowed from being an owner")
		}
		if !o.Controller {
			continue
		}
		if controller != "" {
			f.invalidJSON(field, owners, fmt.Sprintf(`Only one reference can have Controller set to true. Found "true" in references for %s and %s`, clip(controller), clip(o.Kind+"/"+o.Name)))
		}
		controller = o.Kind + "/" + o.Name
	}
}

func (f *metadataFaults) finalizers() {
	list := f.obj.Finalizers()
	for _, name := range list {
		if f.full() {
			return
		}
		for _, why := range CheckQualifiedName(name) {
			f.invalid("finalizers", name, why)
		}
	}
	if slices.Contains(list, FinalizerOrphan) && slices.Contains(list, FinalizerForeground) {
		f.invalidJSON("finalizers", list, fmt.Sprintf("finalizer %s and %s cannot be both set", FinalizerOrphan, FinalizerForeground))
	}
}

// kindFinalizers requires a domain for finalizers that are not standard.
func (f *metadataFaults) kindFinalizers() {
	if f.rules.AnyFinalizer || f.rules.FreeFinalizers {
		return
	}
	for i, name := range f.obj.Finalizers() {
		standard := name == FinalizerOrphan || name == FinalizerForeground || slices.Contains(f.rules.Finalizers, name)
		if !standard && !strings.Contains(name, "/") {
			f.invalid(fmt.Sprintf("finalizers[%d]", i), name, "name is neither a standard finalizer name nor is it fully qualified")
		}
	}
}

func (f *metadataFaults) managers() {
	for i, v := range f.obj.List("metadata", "managedFields") {
		m, _ := v.(map[string]any)
		entry, field := NewObject(m), fmt.Sprintf("managedFields[%d].", i)
		if op := entry.String("operation"); op != "Apply" && op != "Update" {
			f.invalid(field+"operation", op, "must be `Apply` or `Update`")
		}
		if t := entry.String("fieldsType"); t != "" && t != "FieldsV1" {
			f.invalid(field+"fieldsType", t, "must be FieldsV1")
		}
		if checkManager(entry.String("manager")) != nil {
			f.invalid(field+"manager", entry.String("manager"), checkManager(entry.String("manager"))[0])
		}
		if len(entry.String("subresource")) > maxSubresource {
			f.add(CauseTooLong, field+"subresource", "Too long: may not be more than %d bytes", maxSubresource)
		}
	}
}

// checkManager checks the name of a field manager: at most 128 printable characters.
func checkManager(s string) []string {
	if len(s) > maxManager {
		return []string{tooLong(maxManager)}
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return []string{"should only contain printable characters"}
	}
	return nil
}

// update checks the rules for changes.
func (f *metadataFaults) update() {
	if f.old.Terminating() {
		var added []string
		for _, name := range f.obj.Finalizers() {
			if !slices.Contains(f.old.Finalizers(), name) {
				added = append(added, strconv.Quote(name))
			}
		}
		if len(added) > 0 {
			f.add(CauseForbidden, "finalizers", "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{%s}", clip(strings.Join(added, ", ")))
		}
	}
	for _, field := range []string{"name", "namespace", "uid"} {
		if now := f.obj.String("metadata", field); now != f.old.String("metadata", field) {
			f.invalid(field, now, "field is immutable")
		}
	}
	if now, before := f.obj.Generation(), f.old.Generation(); now < before {
		f.invalidJSON("generation", now, "must not be decremented")
	}
	for _, field := range []string{"creationTimestamp", "deletionTimestamp"} {
		if now := f.obj.String("metadata", field); now != "" && !sameTime(now, f.old.String("metadata", field)) {
			f.invalid(field, now, "field is immutable")
		}
	}
	now, set := f.obj.Get("metadata", "deletionGracePeriodSeconds")
	before, _ := f.old.Get("metadata", "deletionGracePeriodSeconds")
	if set && now != nil && !Equal(now, before) {
		f.invalidJSON("deletionGracePeriodSeconds", now, "field is immutable")
	}
}

func sameTime(a, b string) bool {
	ta, errA := time.Parse(time.RFC3339, a)
	tb, errB := time.Parse(time.RFC3339, b)
	return a == b || errA == nil && errB == nil && ta.Equal(tb)
}

// MetadataWarnings returns warnings about valid metadata that is probably a mistake: a
// duplicate owner, or a finalizer of a custom kind without a domain. old is nil for a new
// object.
func MetadataWarnings(obj, old *Object, rules MetadataRules) []string {
	var out []string
	seen := map[Owner]bool{}
	for i, o := range obj.OwnerReferences() {
		if seen[o] {
			out = append(out, fmt.Sprintf("metadata.ownerReferences[%d]: duplicate owner %s %q", i, clip(o.Kind), clip(o.Name)))
		}
		seen[o] = true
	}
	if !rules.AnyFinalizer {
		return out
	}
	for _, name := range obj.Finalizers() {
		standard := name == FinalizerOrphan || name == FinalizerForeground || slices.Contains(rules.Finalizers, name)
		known := old != nil && slices.Contains(old.Finalizers(), name)
		if !standard && !known && !strings.Contains(name, "/") {
			out = append(out, fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers", clip(name)))
		}
	}
	return out
}
