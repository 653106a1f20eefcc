package definitions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/pki"
	"orch.io/controlplane/server/internal/objects"
)

// The prefixes of the controller's keys. After acceptKey comes the group of the names to accept, after
// removeKey the name of a definition that is being deleted.
const (
	acceptKey = "accept "
	removeKey = "remove "
)

// reconciler is the controller of definitions.
type reconciler struct {
	*Catalog
	store  *objects.Store
	client *objects.Client
}

// Controller returns the controller that accepts the names of definitions, in the order of their creation within a
// group, and that deletes the objects of definitions that are being deleted.
func (c *Catalog) Controller(store *objects.Store, cl *objects.Client) client.Controller {
	r := &reconciler{c, store, cl}
	return client.Controller{
		Name: "definitions", Types: []meta.GroupResource{c.resource}, Identity: true,
		MapEvent: func(e client.Event) []string {
			if e.Object == nil { // deleted: its names are free again
				return r.waitingGroups()
			}
			var keys []string
			if o := c.definitionOf(e.Key.Name).outline; o != nil {
				keys = append(keys, acceptKey+o.String("spec", "group"))
			}
			if e.Object.Terminating() {
				keys = append(keys, removeKey+e.Key.Name)
			}
			return keys
		},
		Reconcile: func(ctx context.Context, cl client.Client, key string) (time.Duration, error) {
			if name, ok := strings.CutPrefix(key, removeKey); ok {
				return r.remove(ctx, cl, name)
			}
			return 0, r.acceptNames(ctx, strings.TrimPrefix(key, acceptKey))
		},
	}
}

// acceptNames decides which names each definition of a group gets. Writes in a group are serialized over all servers
// that share the store, so no name is given to two definitions. If the status of a definition cannot be written, the
// others are not delayed.
func (r *reconciler) acceptNames(ctx context.Context, group string) error {
	if err := r.store.CatchUp(ctx); err != nil {
		return err
	}
	own := r.registeredNames(group)
	waiting := slices.DeleteFunc(r.inGroup(group), func(o *meta.Object) bool {
		return o.Terminating() || hasNames(o) && !own.conflicts(o)
	})
	slices.SortStableFunc(waiting, func(a, b *meta.Object) int {
		return cmp.Or(a.CreationTimestamp().Compare(b.CreationTimestamp()), strings.Compare(a.Name(), b.Name()))
	})
	var errs []error
	for _, o := range waiting {
		_, err := r.client.UpdateSerially(ctx, "definitions."+group, r.resource, meta.Key{Name: o.Name()}, "status", func(o *meta.Object) error {
			taken := r.registeredNames(group)
			for _, other := range r.inGroup(group) {
				if other.Name() != o.Name() {
					taken.add(meta.NewObject(other.Map("status", "acceptedNames")))
				}
			}
			accept(o, taken)
			return nil
		})
		if err != nil && !meta.IsNotFound(err) {
			errs = append(errs, err)
		}
		if ctx.Err() != nil || unavailable(err) {
			break // later definitions would fail, too, or get names that belong to this definition
		}
	}
	return errors.Join(errs...)
}

// unavailable reports whether an error means that the store did not respond.
func unavailable(err error) bool {
	reason := meta.ReasonOf(err)
	return reason == meta.ReasonServiceUnavailable || reason == meta.ReasonTimeout
}

// hasNames reports whether a definition has all the names that it requests. It keeps them, even if other definitions
// request them.
func hasNames(crd *meta.Object) bool {
	return crd.HasCondition("NamesAccepted") && crd.HasCondition("Established") &&
		meta.Equal(crd.Map("spec", "names"), crd.Map("status", "acceptedNames"))
}

// inGroup returns the outlines of the definitions of a group.
func (r *reconciler) inGroup(group string) []*meta.Object {
	return r.outlines(func(o *meta.Object) bool { return o.String("spec", "group") == group })
}

// waitingGroups returns the keys of the groups in which a definition does not have all its names.
func (r *reconciler) waitingGroups() (keys []string) {
	for _, o := range r.outlines(func(o *meta.Object) bool { return !hasNames(o) }) {
		keys = append(keys, acceptKey+o.String("spec", "group"))
	}
	return keys
}

// takenNames are the names in a group that are in use. The values complete the sentence "NAME is ...".
type takenNames struct{ resources, kinds map[string]string }

const inUse = "already in use"

// registeredNames returns the names of the registered kinds of a group, including withheld kinds, because the objects
// of a withheld kind are stored under its names.
func (r *reconciler) registeredNames(group string) takenNames {
	n := takenNames{map[string]string{}, map[string]string{}}
	now := r.Types()
	for _, t := range slices.Concat(now.Withheld(), now.Types()) {
		if t.Group != group || t.Defined() {
			continue
		}
		by := inUse
		if len(t.ServedVersions) == 0 {
			by += " by a kind that this server has and does not serve"
		}
		for _, w := range append([]string{t.Plural, t.Singular}, t.ShortNames...) {
			n.resources[w] = by
		}
		n.kinds[t.Kind], n.kinds[t.ListKind] = by, by
	}
	return n
}

// add adds the accepted names of a definition.
func (n takenNames) add(accepted *meta.Object) {
	for _, w := range append(accepted.Strings("shortNames"), accepted.String("plural"), accepted.String("singular")) {
		if w != "" {
			n.resources[w] = inUse
		}
	}
	for _, f := range []string{"kind", "listKind"} {
		if w := accepted.String(f); w != "" {
			n.kinds[w] = inUse
		}
	}
}

// nameField is a field of spec.names with values that must be unique within the group.
type nameField struct {
	name, reason string // reason of the condition if a value is taken
	taken        map[string]string
}

func (n takenNames) fields() []nameField {
	return []nameField{
		{"plural", "PluralConflict", n.resources}, {"singular", "SingularConflict", n.resources},
		{"shortNames", "ShortNamesConflict", n.resources},
		{"kind", "KindConflict", n.kinds}, {"listKind", "ListKindConflict", n.kinds},
	}
}

// conflicts reports whether a definition requests a name that is taken.
func (n takenNames) conflicts(crd *meta.Object) bool {
	return slices.ContainsFunc(n.fields(), func(f nameField) bool {
		want, _ := crd.Get("spec", "names", f.name)
		return conflict(want, f.taken) != ""
	})
}

// accept writes the free names of a definition into its status, and sets its conditions. A
// definition that was established stays established.
func accept(crd *meta.Object, taken takenNames) {
	accepted := meta.NewObject(map[string]any{})
	if old := crd.Map("status", "acceptedNames"); old != nil {
		accepted = meta.NewObject(old).Clone()
	}
	reason, message := "NoConflicts", "no conflicts found"
	for _, f := range taken.fields() {
		want, ok := crd.Get("spec", "names", f.name)
		if word := conflict(want, f.taken); word != "" {
			reason, message = f.reason, fmt.Sprintf("%q is %s", word, f.taken[word])
			continue
		}
		setOrDelete(accepted, f.name, want, ok)
	}
	categories, ok := crd.Get("spec", "names", "categories")
	setOrDelete(accepted, "categories", categories, ok)
	crd.Set(accepted.Tree(), "status", "acceptedNames")
	if reason != "NoConflicts" {
		crd.SetCondition("NamesAccepted", "False", reason, message)
		if !crd.HasCondition("Established") {
			crd.SetCondition("Established", "False", "NotAccepted", "not all names are accepted")
		}
		return
	}
	crd.SetCondition("NamesAccepted", "True", reason, message)
	if crd.HasCondition("Established") {
		return
	}
	if err := pki.CheckBundle(crd.String("spec", "conversion", "webhook", "clientConfig", "caBundle")); err != nil {
		crd.SetCondition("Established", "False", "InvalidCABundle", "the CA bundle of the conversion webhook is invalid: "+err.Error())
		return
	}
	crd.SetCondition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
}

// conflict returns the first name in want, a string or a list of strings, that is taken, or "".
func conflict(want any, taken map[string]string) string {
	list, ok := want.([]any)
	if !ok {
		list = []any{want}
	}
	for _, w := range list {
		if text, _ := w.(string); taken[text] != "" {
			return text
		}
	}
	return ""
}

func setOrDelete(o *meta.Object, field string, value any, set bool) {
	if set {
		o.Set(meta.Clone(value), field)
		return
	}
	o.Delete(field)
}
