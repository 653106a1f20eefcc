package apply

import (
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"orch.io/controlplane/api/meta"
)

// Owner is an entry of metadata.managedFields: a manager with the fields that it owns.
type Owner struct {
	Manager     string
	Operation   string    // Apply or Update
	APIVersion  string    // the version of Paths
	Subresource string    // empty: the object itself
	Time        time.Time // of the last change; zero: unknown
	Paths       []string  // such as .spec.containers[name="app"].image, in the order of the field set
}

// maxOwnerPaths limits the bytes of the paths that Owners returns. A field set of n bytes
// can have paths of n² bytes.
const maxOwnerPaths = 64 << 20

// Owners returns the owners of the fields of obj in the order of its managedFields. It fails
// if the managedFields are malformed or their paths are longer than 64 MiB.
func Owners(obj *meta.Object) ([]Owner, error) {
	es, err := readEntries(obj.List("metadata", "managedFields"), parseFieldSet)
	if err != nil {
		return nil, err
	}
	owners := make([]Owner, len(es))
	left := maxOwnerPaths
	for i, e := range es {
		owners[i] = Owner{Manager: e.manager, Operation: e.operation, APIVersion: e.apiVersion, Subresource: e.subresource, Time: e.time}
		e.set.Iterate(func(p fieldpath.Path) { // not All: it panics if the loop ends early
			if left >= 0 {
				path := p.String()
				left -= len(path)
				owners[i].Paths = append(owners[i].Paths, path)
			}
		})
		if left < 0 {
			return nil, fmt.Errorf("the paths of managedFields have more than %d bytes", maxOwnerPaths)
		}
	}
	return owners, nil
}

// parseFieldSet parses a field set without a schema.
func parseFieldSet(_ string, raw meta.RawJSON) (fieldSet, error) {
	set, err := parseSet(raw)
	return fieldSet{set, raw}, err
}

// Extract returns the fields of obj that the manager owns by Apply through the subresource
// (empty: through the object itself), with the apiVersion, kind, name and namespace of obj.
// To change the applied fields, change the result and apply it again. If the manager
// has applied nothing, the result has only these four fields. The result shares nothing with
// obj. Extract fails if the managedFields are malformed or the manager's version is unknown.
func (m *FieldManager) Extract(obj *meta.Object, manager, subresource string) (*meta.Object, error) {
	es, err := readEntries(obj.List("metadata", "managedFields"), m.readSet)
	if err != nil {
		return nil, err
	}
	tree, version := map[string]any{}, obj.APIVersion()
	if e := es.find(&entry{manager: manager, operation: opApply, subresource: subresource}); e != nil {
		version = e.apiVersion
		if tree, err = m.extract(obj, e); err != nil {
			return nil, fmt.Errorf("extracting the fields of manager %q: %w", manager, err)
		}
	}
	tree["apiVersion"], tree["kind"] = version, obj.Kind()
	extracted := meta.NewObject(tree)
	if name := obj.Name(); name != "" {
		extracted.SetName(name)
	}
	if namespace := obj.Namespace(); namespace != "" {
		extracted.SetNamespace(namespace)
	}
	return extracted, nil
}

// extract returns the fields of an entry. Items of lists have their keys, so that they can
// be applied again.
func (m *FieldManager) extract(obj *meta.Object, e *entry) (map[string]any, error) {
	v, err := m.version(e.apiVersion)
	if err != nil {
		return nil, err
	}
	converted, err := m.convert(e.apiVersion, withoutManagedFields(obj))
	if err != nil {
		return nil, err
	}
	if len(converted) == 0 {
		return nil, fmt.Errorf("version %s cannot represent the object", e.apiVersion)
	}
	fields := v.Value(converted[0]).ExtractItems(e.set.Leaves(), typed.WithAppendKeyFields())
	tree, _ := meta.Clone(fields.AsValue().Unstructured()).(map[string]any)
	if tree == nil {
		tree = map[string]any{}
	}
	return tree, nil
}

// ClientSideManagers returns the names of the managers that own the last-applied annotation
// by Update, because they wrote the object by client-side apply.
func ClientSideManagers(obj *meta.Object, annotation string) ([]string, error) {
	es, err := readEntries(obj.List("metadata", "managedFields"), parseFieldSet)
	if err != nil {
		return nil, err
	}
	path := fieldpath.MakePathOrDie("metadata", "annotations", annotation)
	var managers []string
	for _, e := range es {
		if e.operation == opUpdate && e.set.Has(path) && !slices.Contains(managers, e.manager) {
			managers = append(managers, e.manager)
		}
	}
	return managers, nil
}

// UpgradeManagedFields returns a copy of obj in which manager owns by Apply the fields that
// the clientSide managers owned by Update, such as kubectl-client-side-apply. An object that
// client-side apply wrote needs this before the manager's first Apply: otherwise the old
// entries keep the fields alive that the manager stops applying. Without an entry of a
// clientSide manager the copy equals obj. Entries of subresources stay as they are.
//
// Store the result with its resourceVersion as precondition, or send CreateJSONPatch of obj
// and the result behind a test operation on /metadata/resourceVersion, because the patch names the
// entries by their positions.
func UpgradeManagedFields(obj *meta.Object, manager string, clientSide ...string) (*meta.Object, error) {
	es, err := readEntries(obj.List("metadata", "managedFields"), parseFieldSet)
	if err != nil {
		return nil, err
	}
	for _, from := range clientSide {
		if es, err = upgradeEntries(es, manager, from); err != nil {
			return nil, err
		}
	}
	out := obj.Clone()
	if len(es) == 0 {
		return out, nil
	}
	list := make([]any, len(es))
	for i, e := range es {
		list[i] = e.encode()
	}
	out.Metadata()["managedFields"] = meta.Clone(list)
	return out, nil
}

// upgradeEntries gives the Update entries of the manager from to the Apply entry of manager.
// If there is none, the first of them becomes it. A field set is in the version of its
// entry: of the others, only the fields of the same version are taken.
func upgradeEntries(es entries, manager, from string) (entries, error) {
	isFrom := func(e *entry) bool { return e.manager == from && e.operation == opUpdate && e.subresource == "" }
	to := es.find(&entry{manager: manager, operation: opApply})
	if to == nil {
		i := slices.IndexFunc(es, isFrom)
		if i < 0 {
			return es, nil
		}
		to = es[i]
		to.manager, to.operation, to.tree = manager, opApply, nil
	}
	for _, e := range es {
		if !isFrom(e) || e.apiVersion != to.apiVersion {
			continue
		}
		text, err := to.set.Union(e.set).ToJSON()
		if err != nil {
			return nil, err
		}
		to.setFields(to.set.Union(e.set))
		to.text = meta.RawJSON(text)
		break
	}
	return slices.DeleteFunc(es, isFrom), nil
}
