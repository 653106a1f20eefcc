package apply

import (
	"net/http"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/apply/internal/ownership"
)

// checkOwnersVersions checks trees, which are in the writer's version, against the schema
// of every version in which fields are owned. See Config.StoredVersion.
func (r *applyRun) checkOwnersVersions(trees ...map[string]any) error {
	stored := r.m.versions[r.m.config.StoredVersion]
	if stored == nil {
		return nil
	}
	done := []string{r.opts.APIVersion}
	for _, e := range r.owners {
		v := r.m.versions[e.apiVersion]
		if v == nil || v == stored || slices.Contains(done, e.apiVersion) {
			continue
		}
		done = append(done, e.apiVersion)
		for _, tree := range trees {
			violations, err := v.Violations(tree)
			if err != nil {
				return err
			}
			if len(violations) == 0 {
				continue
			}
			known, err := stored.Violations(tree)
			if err != nil {
				return err
			}
			violations = slices.DeleteFunc(violations, func(text string) bool {
				_, found := slices.BinarySearch(known, text)
				return found
			})
			if len(violations) > 0 {
				return meta.Failure(http.StatusInternalServerError, "", "%s", ownership.JoinTexts(violations[:min(len(violations), ownership.MaxCauses)]))
			}
		}
	}
	return nil
}
