// Package documents tests the examples in the documents of the repository: Go code must compile, and
// console sessions must run.
//
// The word after the three backquotes of a block is its language: go, sh or console. It may be followed
// by an instruction for this package, which is not displayed:
//
//	go continues         the block continues the function of the block before
//	console after: a; b  commands to run before the block, see Session
//	console not run: why the block is not run, for a reason
package documents

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Block is a fenced block of a document.
type Block struct {
	File string // slash-separated, relative to the root of the repository
	Line int    // line number of the first line
	Lang string
	Note string // the text after the language
	Text string
}

func (b Block) String() string { return fmt.Sprintf("%s:%d", b.File, b.Line) }

// Skipped returns the reason why the block is not run, or "".
func (b Block) Skipped() string {
	why, _ := strings.CutPrefix(b.Note, "not run: ")
	if why == b.Note {
		return ""
	}
	return why
}

// Read returns the blocks of all documents below root, in the order of the file names.
func Read(root string) (all []Block, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		all = append(all, blocks(filepath.ToSlash(name), string(text))...)
		return err
	})
	return all, err
}

func blocks(file, text string) (all []Block) {
	var open *Block
	number := 0
	for line := range strings.Lines(text) {
		number++
		info, fence := strings.CutPrefix(strings.TrimRight(line, "\n"), "```")
		switch {
		case fence && open == nil:
			lang, note, _ := strings.Cut(info, " ")
			open = &Block{File: file, Line: number + 1, Lang: lang, Note: note}
		case fence:
			all, open = append(all, *open), nil
		case open != nil:
			open.Text += line
		}
	}
	return all
}
