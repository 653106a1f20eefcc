package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/pki"
	"orch.io/controlplane/server/internal/controllers"
	"orch.io/controlplane/server/internal/objects"
)

// removeAgain is when a definition that waits for the finalizers of its objects
// is looked at again.
const removeAgain = 250 * time.Millisecond

// The keys of the definition controller: a group whose names are to be accepted out, or a
// definition that is being deleted.
const (
	acceptKey = "accept "
	removeKey = "remove "
)

// definitionController gives out the names in each group, first come, first served,
// and removes the objects of definitions that are being deleted.
func (s *Server) definitionController() client.Controller {
	return client.Controller{
		Name: "definitions", Types: []meta.GroupResource{s.definitions.resource}, Identity: true,
		MapEvent: func(c client.Event) []string {
			if c.Object == nil {
				return s.waiting() // whatever names it had
			}
			var keys []string
			if o := s.defined(c.Key.Name).outline; o != nil {
				keys = append(keys, acceptKey+o.String("spec", "group"))
			}
			if c.Object.Terminating() {
				keys = append(keys, removeKey+c.Key.Name)
			}
			return keys
		},
		Reconcile: func(ctx context.Context, cl client.Client, key string) (time.Duration, error) {
			if name, ok := strings.CutPrefix(key, removeKey); ok {
				return s.removeDefined(ctx, cl, name)
			}
			return 0, s.acceptNames(ctx, strings.TrimPrefix(key, acceptKey))
		},
	}
}

// acceptNames decides which names each definition of a group gets: one definition at a time,
// whichever server over the store does it, so that two never get the same. One that cannot be
// told is in nobody's way.
func (s *Server) acceptNames(ctx context.Context, group string) error {
	if err := s.objects.CatchUp(ctx); err != nil {
		return err
	}
	own := s.takenNames(group)
	waiting := slices.DeleteFunc(s.outlines(group), func(o *meta.Object) bool { return o.Terminating() || settled(o) && !own.clash(o) })
	slices.SortStableFunc(waiting, func(a, b *meta.Object) int {
		return cmp.Or(a.CreationTimestamp().Compare(b.CreationTimestamp()), strings.Compare(a.Name(), b.Name()))
	})
	var faults []error
	for _, o := range waiting {
		_, err := s.client.UpdateSerially(ctx, "definitions."+group, s.definitions.resource, meta.Key{Name: o.Name()}, "status", func(o *meta.Object) error {
			taken := s.takenNames(group)
			for _, other := range s.outlines(group) {
				if other.Name() != o.Name() {
					taken.add(meta.NewObject(other.Map("status", "acceptedNames")))
				}
			}
			accept(o, taken)
			return nil
		})
		if err != nil && !meta.IsNotFound(err) {
			faults = append(faults, err)
		}
		if ctx.Err() != nil || passes(err) {
			break // the others would fail, too, or get what this one is to have
		}
	}
	return errors.Join(faults...)
}

// passes reports whether an error is the store's, and not about what was written.
func passes(err error) bool {
	reason := meta.ReasonOf(err)
	return reason == meta.ReasonServiceUnavailable || reason == meta.ReasonTimeout
}

// settled reports whether a definition has all the names that it asks for: they
// stay its own, whatever other definitions ask for.
func settled(crd *meta.Object) bool {
	return crd.HasCondition("NamesAccepted") && crd.HasCondition("Established") &&
		meta.Equal(crd.Map("spec", "names"), crd.Map("status", "acceptedNames"))
}

// outlines returns the definitions of a group, without their schemas.
func (s *Server) outlines(group string) (list []*meta.Object) {
	s.types()
	d := &s.definitions
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, def := range d.served {
		if def.outline.String("spec", "group") == group {
			list = append(list, def.outline)
		}
	}
	return list
}

// waiting returns the keys of the groups with definitions that have not all of their names.
func (s *Server) waiting() (keys []string) {
	s.types()
	d := &s.definitions
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, def := range d.served {
		if !settled(def.outline) {
			keys = append(keys, acceptKey+def.outline.String("spec", "group"))
		}
	}
	return keys
}

// takenNames are the names in a group that others have, with what is said of each.
type takenNames struct{ resources, kinds map[string]string }

const inUse = "already in use"

// takenNames returns those of the kinds that are registered, also of those that are not
// served: their objects are stored under their names.
func (s *Server) takenNames(group string) takenNames {
	n := takenNames{map[string]string{}, map[string]string{}}
	now := s.types()
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
func (n takenNames) add(words *meta.Object) {
	for _, w := range append(words.Strings("shortNames"), words.String("plural"), words.String("singular")) {
		if w != "" {
			n.resources[w] = inUse
		}
	}
	for _, f := range []string{"kind", "listKind"} {
		if w := words.String(f); w != "" {
			n.kinds[w] = inUse
		}
	}
}

// field is one of spec.names that says what nobody else may be called.
type field struct {
	name, reason string
	taken        map[string]string
}

func (n takenNames) fields() []field {
	return []field{
		{"plural", "PluralConflict", n.resources}, {"singular", "SingularConflict", n.resources},
		{"shortNames", "ShortNamesConflict", n.resources},
		{"kind", "KindConflict", n.kinds}, {"listKind", "ListKindConflict", n.kinds},
	}
}

// clash reports whether a definition asks for a name that is taken.
func (n takenNames) clash(crd *meta.Object) bool {
	return slices.ContainsFunc(n.fields(), func(f field) bool {
		want, _ := crd.Get("spec", "names", f.name)
		return clash(want, f.taken) != ""
	})
}

// accept gives a definition the names that are free, and says in its conditions
// whether it got all of them. One that was established once stays so.
func accept(crd *meta.Object, taken takenNames) {
	accepted := meta.NewObject(map[string]any{})
	if old := crd.Map("status", "acceptedNames"); old != nil {
		accepted = meta.NewObject(old).Clone()
	}
	reason, message := "NoConflicts", "no conflicts found"
	for _, f := range taken.fields() {
		want, ok := crd.Get("spec", "names", f.name)
		if word := clash(want, f.taken); word != "" {
			reason, message = f.reason, fmt.Sprintf("%q is %s", word, f.taken[word])
			continue
		}
		take(accepted, f.name, want, ok)
	}
	categories, ok := crd.Get("spec", "names", "categories")
	take(accepted, "categories", categories, ok)
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

// clash returns the first of the words, one or a list, that is taken.
func clash(want any, taken map[string]string) string {
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

func take(accepted *meta.Object, field string, want any, ok bool) {
	if ok {
		accepted.Set(meta.Clone(want), field)
		return
	}
	accepted.Delete(field)
}

// removeDefined deletes the objects of a definition that is being deleted, and
// lets it go when they are gone. Admission is not asked about the objects: it allowed the deletion
// of the definition, and its webhooks often go together with the definition. One that cannot be served stays until it is repaired, or
// somebody takes its finalizer away: the next definition of the name would find its objects.
func (s *Server) removeDefined(ctx context.Context, cl client.Client, name string) (time.Duration, error) {
	key := meta.Key{Name: name}
	crd, err := cl.Get(ctx, s.definitions.resource, key)
	if meta.IsNotFound(err) || err == nil && !crd.Terminating() {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	mine := s.names.Wire(names.DefinitionFinalizer)
	if !slices.Contains(crd.Finalizers(), mine) {
		return 0, nil
	}
	def := s.defined(name)
	if def.broken != nil { // a change of it comes here again
		return 0, s.tellRemoval(ctx, cl, key, "InstanceDeletionFailed", "the objects of this kind cannot be deleted: "+def.broken.Error())
	}
	if t := def.typ; t != nil {
		left, err := controllers.DeleteAll(objects.Unadmitted(ctx), cl, &t.Type, "")
		if left.Objects > 0 || err != nil {
			if stored := s.hub.Cache(t.GroupResource()); err != nil { // objects that could not be listed are left, too
				left.Objects = stored.Len() + len(stored.Damaged(""))
			}
			reason, message := removalState(left, err, time.Since(crd.DeletionTimestamp()))
			if err == nil {
				return removeAgain, s.tellRemoval(ctx, cl, key, reason, message)
			}
			err = fmt.Errorf("deleting %s: %w", t.GroupResource(), err)
			if told(crd, reason, left.Objects) {
				return removeAgain, err
			}
			return removeAgain, errors.Join(err, s.tellRemoval(ctx, cl, key, reason, message))
		}
	}
	_, err = cl.Update(ctx, s.definitions.resource, key, "", func(o *meta.Object) error {
		o.RemoveFinalizer(mine)
		return nil
	})
	if meta.IsNotFound(err) {
		return 0, nil
	}
	return 0, err
}

// removalTime is how long the deletion of a definition may wait for finalizers of its objects
// before its condition calls that a failure.
const removalTime = time.Minute

// removalState returns the reason and the message of a definition's Terminating condition
// while objects of its kind are left: how many, and what keeps them.
func removalState(left controllers.Remaining, err error, since time.Duration) (reason, message string) {
	causes := []string{}
	if err != nil {
		causes = append(causes, err.Error())
	}
	if left.Unreadable != nil && err == nil {
		causes = append(causes, left.Unreadable.Error())
	}
	reason = "InstanceDeletionInProgress"
	if len(causes) > 0 || since >= removalTime {
		reason = "InstanceDeletionFailed"
	}
	for _, f := range slices.Sorted(maps.Keys(left.Finalizers)) {
		causes = append(causes, fmt.Sprintf("the finalizer %s holds %d", f, left.Finalizers[f]))
	}
	message = fmt.Sprintf("%d objects of this kind are left", left.Objects)
	if len(causes) > 0 {
		message += ": " + strings.Join(causes, "; ")
	}
	return reason, message
}

// told reports whether the Terminating condition of a definition has the reason and the number of
// objects. It is not written again then, although the text of the error may be another one:
// each write of the condition is a change for which the controller is called again at once.
func told(crd *meta.Object, reason string, objects int) bool {
	for _, v := range crd.List("status", "conditions") {
		m, _ := v.(map[string]any)
		c := meta.NewObject(m)
		if c.String("type") == "Terminating" {
			return c.String("reason") == reason && strings.HasPrefix(c.String("message"), fmt.Sprintf("%d objects ", objects))
		}
	}
	return false
}

// tellRemoval writes into a definition's status what it waits for.
func (s *Server) tellRemoval(ctx context.Context, cl client.Client, key meta.Key, reason, message string) error {
	_, err := cl.Update(ctx, s.definitions.resource, key, "status", func(o *meta.Object) error {
		o.SetCondition("Terminating", "True", reason, message)
		return nil
	})
	if meta.IsNotFound(err) {
		return nil
	}
	return err
}

// defined returns what the server made of a definition.
func (s *Server) defined(name string) defined {
	s.types()
	d := &s.definitions
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.served[name]
}
