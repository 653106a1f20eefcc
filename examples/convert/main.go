// Command convert converts manifests to another version of their API, with the conversions of the kinds
// and without a server.
//
//	go run ./examples/convert -f deploy/ --output-version apps/v1
//
// A program with its own kinds uses package convert with these kinds.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/registry/convert"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(2)
		}
		fmt.Fprintln(os.Stderr, "convert:", err)
		os.Exit(1)
	}
}

// paths is a flag that may be repeated or have several values separated by commas.
type paths []string

func (p *paths) String() string { return strings.Join(*p, ",") }

func (p *paths) Set(s string) error {
	*p = append(*p, strings.Split(s, ",")...)
	return nil
}

func run(ctx context.Context, args []string, in io.Reader, out, warnings io.Writer) error {
	var from paths
	flags := flag.NewFlagSet("convert", flag.ContinueOnError)
	flags.Var(&from, "f", "a file or a directory of manifests, or - for what comes in; may be given several times")
	deep := flags.Bool("R", false, "also the directories below")
	version := flags.String("output-version", "", "the group/version that objects shall have; empty: the one that clients of today prefer, of each")
	form := flags.String("o", "", "yaml or json; empty: each document in the form that it has")
	native := flags.Bool("orch-names", false, "manifests have the product's own names, such as storage.orch.io")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if len(from) == 0 || flags.NArg() > 0 {
		return errors.New("no input: use -f FILE, -f DIRECTORY or -f -")
	}
	profile := names.Kubernetes
	if *native {
		profile = names.Orch
	}
	c, err := convert.New(profile, builtin.Kinds()...)
	if err != nil {
		return err
	}
	c.Form = *form
	files, err := listFiles(from, *deep)
	if err != nil {
		return err
	}
	w := writer{out: out, json: *form == "json"}
	for _, name := range files {
		before, err := read(name, in)
		if err != nil {
			return err
		}
		after, told, err := c.Manifests(ctx, before, *version)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, text := range told {
			fmt.Fprintf(warnings, "warning: %s: %s\n", name, text)
		}
		if err := w.write(after); err != nil {
			return err
		}
	}
	return nil
}

// maxRead is larger than the files that package convert accepts.
const maxRead = 65 << 20

// read reads the manifests of a file.
func read(name string, in io.Reader) ([]byte, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, maxRead))
}

// writer writes files one after another, YAML with separators between them.
type writer struct {
	out  io.Writer
	json bool
	last byte // last byte that was written
}

func (w *writer) write(text []byte) error {
	if w.last != 0 {
		text = bytes.TrimPrefix(text, []byte("\ufeff")) // a byte order mark at the beginning of a file
	}
	if len(text) == 0 {
		return nil
	}
	if w.last != 0 && !w.json && !bytes.HasPrefix(text, []byte("---")) {
		text = slices.Concat([]byte("---\n"), text)
	}
	if w.last != 0 && w.last != '\n' {
		text = slices.Concat([]byte("\n"), text)
	}
	w.last = text[len(text)-1]
	_, err := w.out.Write(text)
	return err
}

// listFiles returns the files that paths name; for directories, the manifests in them, in order.
func listFiles(from paths, deep bool) (files []string, err error) {
	for _, path := range from {
		if path == "-" {
			files = append(files, path)
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			path += string(filepath.Separator) // also follows a link
		}
		err := filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && name != path && !deep:
				return filepath.SkipDir
			case e.IsDir() || name != path && !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)):
				return nil
			}
			info, err := os.Stat(name)
			if err != nil {
				return err
			}
			if name == path || info.Mode().IsRegular() { // reading a pipe would block, so pipes are read only if they are named
				files = append(files, name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}
