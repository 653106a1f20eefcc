// Package documents checks what the documents of the repository show: their Go code compiles, and
// their console sessions run.
//
// The word after the three backquotes of a block is its language, go, sh or console. What may
// follow it is an instruction for this package, which readers do not see:
//
//	go continues         the block stands in the function of the block before
//	console after: a; b  what has to happen before the block, see Session
//	console not run: why nobody runs the block, for a reason
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
	File string // slash-separated, from the root of the repository
	Line int    // of its first line
	Lang string
	Note string // what follows the language
	Text string
}

func (b Block) String() string { return fmt.Sprintf("%s:%d", b.File, b.Line) }

// Skipped returns why the block is not run, or "".
func (b Block) Skipped() string {
	why, _ := strings.CutPrefix(b.Note, "not run: ")
	if why == b.Note {
		return ""
	}
	return why
}

// Read returns the blocks of all documents below root, in the order of the files' names.
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
