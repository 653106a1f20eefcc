package apply

import (
	"fmt"
	"net/http"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"orch.io/controlplane/api/meta"
)

// Conflict is a field that an Apply would change although another manager owns it.
type Conflict struct {
	Manager     string
	Operation   string // Apply or Update
	APIVersion  string // the version in which the manager wrote; autoscaling/v1 in a conflict through scale
	Subresource string // empty: the object itself
	Path        string // such as .spec.containers[name="app"].image
}

// ConflictError is the error of an Apply that would change fields of other managers.
type ConflictError struct {
	Conflicts []Conflict // grouped by manager
}

// Error returns the message that clients print: it lists the fields by manager.
func (e *ConflictError) Error() string {
	if len(e.Conflicts) == 1 {
		return fmt.Sprintf("Apply failed with 1 conflict: conflict with %s: %s", e.Conflicts[0].owner(), e.Conflicts[0].Path)
	}
	var lines []string
	last := ""
	for _, c := range e.Conflicts {
		if owner := c.owner(); owner != last {
			lines, last = append(lines, "conflicts with "+owner+":"), owner
		}
		lines = append(lines, "- "+c.Path)
	}
	return fmt.Sprintf("Apply failed with %d conflicts: %s", len(e.Conflicts), strings.Join(lines, "\n"))
}

// Unwrap returns the *meta.Status that a server answers: 409 (Conflict) with a cause for
// each field.
func (e *ConflictError) Unwrap() error {
	var causes []meta.StatusCause
	for _, c := range e.Conflicts {
		causes = append(causes, meta.StatusCause{Reason: meta.CauseFieldManager, Message: "conflict with " + c.owner(), Field: c.Path})
	}
	s := meta.Failure(http.StatusConflict, meta.ReasonConflict, "%s", e.Error())
	s.Details = &meta.StatusDetails{Causes: causes}
	return s
}

// owner describes the manager.
func (c Conflict) owner() string {
	s := fmt.Sprintf("%q", c.Manager)
	if c.Subresource != "" {
		s += fmt.Sprintf(" with subresource %q", c.Subresource)
	}
	if c.Operation == opUpdate {
		s += " using " + c.APIVersion
	}
	return s
}

// conflictError returns the error for contested fields.
func (o Options) conflictError(list []contested) error {
	e := &ConflictError{}
	for _, x := range list {
		c := Conflict{Manager: x.owner.manager, Operation: x.owner.operation, APIVersion: x.owner.apiVersion, Subresource: x.owner.subresource}
		if o.Subresource == "scale" {
			c.APIVersion = "autoscaling/v1" // the writer sees nothing of the object but its scale
		}
		x.fields.Iterate(func(p fieldpath.Path) {
			c.Path = p.String()
			e.Conflicts = append(e.Conflicts, c)
		})
	}
	return e
}
