package apply

import (
	"net/http"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"orch.io/controlplane/api/meta"
)

// ownersFit checks that each tree fits the schema of every version in which fields of the
// object are owned, see Config.OwnersFit. The trees are of the writer's version.
func (r *applyRun) ownersFit(trees ...map[string]any) error {
	stored := r.t.versions[r.t.config.OwnersFit]
	if stored == nil {
		return nil
	}
	done := []string{r.w.APIVersion}
	for _, e := range r.owners {
		v := r.t.versions[e.apiVersion]
		if v == nil || v == stored || slices.Contains(done, e.apiVersion) {
			continue
		}
		done = append(done, e.apiVersion)
		for _, tree := range trees {
			texts, err := v.faults(tree)
			if err != nil {
				return err
			}
			if len(texts) == 0 {
				continue
			}
			known, err := stored.faults(tree)
			if err != nil {
				return err
			}
			texts = slices.DeleteFunc(texts, func(text string) bool {
				_, found := slices.BinarySearch(known, text)
				return found
			})
			if len(texts) > 0 {
				return meta.Failure(http.StatusInternalServerError, "", "%s", listed(texts[:min(len(texts), maxCauses)]))
			}
		}
	}
	return nil
}

// faults returns the sorted violations of the schema in tree.
func (t *typing) faults(tree map[string]any) ([]string, error) {
	if t.plan.collect(tree, nil) {
		return nil, nil
	}
	if _, ok := pathsWithin(tree, 0, maxPaths); !ok {
		return nil, untracked(errLongPaths)
	}
	_, err := t.strict().FromUnstructured(tree, typed.AllowDuplicates)
	found, _ := err.(typed.ValidationErrors)
	texts := make([]string, len(found))
	for i, e := range found {
		e.Path = meta.CutPath([]byte(e.Path))
		texts[i] = e.Error()
	}
	slices.Sort(texts)
	return texts, nil
}

// listed joins the texts of one fault or several.
func listed(texts []string) string {
	if len(texts) == 1 {
		return texts[0]
	}
	return "errors:\n  " + strings.Join(texts, "\n  ")
}
