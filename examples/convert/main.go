// Command convert rewrites manifests to another version of their API, with the conversions of
// the kinds themselves and without a server.
//
//	go run ./examples/convert -f deploy/ --output-version apps/v1
//
// A program with kinds of its own takes package convert, and gives it those.
package main

import (
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
	"orch.io/controlplane/convert"
	"orch.io/controlplane/registry/builtin"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(2)
		}
		fmt.Fprintln(os.Stderr, "convert:", err)
		os.Exit(1)
	}
}

// paths are the values of a flag that may be given several times, or with commas.
type paths []string

func (p *paths) String() string { return strings.Join(*p, ",") }

func (p *paths) Set(s string) error {
	*p = append(*p, strings.Split(s, ",")...)
	return nil
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var from paths
	flags := flag.NewFlagSet("convert", flag.ContinueOnError)
	flags.Var(&from, "f", "a file or a directory of manifests, or - for what comes in; may be given several times")
	deep := flags.Bool("R", false, "also the directories below")
	version := flags.String("output-version", "", "the group/version that objects shall have; empty: the one that clients of today prefer, of each")
	native := flags.Bool("orch-names", false, "manifests have the product's own names, such as storage.orch.io")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if len(from) == 0 || flags.NArg() > 0 {
		return errors.New("say what is to be converted: -f FILE, -f DIRECTORY or -f -")
	}
	profile := names.Kubernetes
	if *native {
		profile = names.Orch
	}
	c, err := convert.New(profile, builtin.Kinds()...)
	if err != nil {
		return err
	}
	files, err := listed(from, *deep)
	if err != nil {
		return err
	}
	for i, name := range files {
		if err := one(ctx, c, name, *version, in, out, i > 0); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// one converts the manifests of a file.
func one(ctx context.Context, c *convert.Converter, name, version string, in io.Reader, out io.Writer, follows bool) error {
	read := func() ([]byte, error) { return os.ReadFile(name) }
	if name == "-" {
		read = func() ([]byte, error) { return io.ReadAll(in) }
	}
	before, err := read()
	if err != nil {
		return err
	}
	after, err := c.Manifests(ctx, before, version)
	switch {
	case err != nil || len(after) == 0:
		return err
	case follows:
		after = slices.Concat([]byte("---\n"), after)
	}
	_, err = out.Write(after)
	return err
}

// listed returns the files that paths name; of directories the manifests, in order.
func listed(from paths, deep bool) (files []string, err error) {
	for _, path := range from {
		if path == "-" {
			files = append(files, path)
			continue
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
			files = append(files, name)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}
