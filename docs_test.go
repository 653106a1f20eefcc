package controlplane_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission/plugins"
)

var (
	mdLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	mdHeading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInSlug = regexp.MustCompile("[^a-z0-9 _-]")
)

// TestLinksOfDocuments checks that each relative link leads to an existing file and, if it has
// a fragment, to a heading of that file.
func TestLinksOfDocuments(t *testing.T) {
	count := 0
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range mdLink.FindAllStringSubmatch(string(text), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			count++
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
			}
			there, err := os.Stat(file)
			if assert.NoError(t, err, "%s: %s", path, m[1]) && anchor != "" && !there.IsDir() {
				assert.Contains(t, headings(t, file), anchor, "%s: %s", path, m[1])
			}
		}
		return err
	}))
	assert.Greater(t, count, 50)
}

// headings returns the link fragments of the headings of a document.
func headings(t *testing.T, file string) (slugs []string) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, m := range mdHeading.FindAllStringSubmatch(string(text), -1) {
		slugs = append(slugs, strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return slugs
}

// TestPluginsAreDocumented: the page of admission names each plugin.
func TestPluginsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("docs/admission.md")
	require.NoError(t, err)
	for _, p := range plugins.Table() {
		assert.True(t, regexp.MustCompile(`\b`+p.Name+`\b`).Match(page), p.Name)
	}
}
