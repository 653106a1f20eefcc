package apiserver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
	"orch.io/controlplane/storage/memstore"
)

// Engine is a storage engine that a program offers as a value of --storage. It defines its flags in set
// and returns the function that opens the store that the flags describe. Its flags are errors if
// another engine is selected.
type Engine func(set *flag.FlagSet) Opener

// Opener opens a store. For a command (server is false) the store must not compact its history, which
// only servers do.
type Opener func(ctx context.Context, log *slog.Logger, server bool) (storage.Backend, error)

// directory is the name of the engine that every program has.
const directory = "directory"

// manifest is a file that every store in a directory has.
const manifest = "MANIFEST"

// location is the location of a store, as given by flags.
type location struct {
	dataDir string
	storage string                 // name of the engine
	memory  func() storage.Backend // opens the store if dataDir is empty

	prefix  string              // prefix of the flag names
	openers map[string]Opener   // by engine
	flags   map[string][]string // names of the flags by engine
}

func newMemory() storage.Backend { return memstore.New(memstore.Options{}) }

// define defines --data-dir, --storage and the flags of each engine, with a prefix.
func (p *location) define(set *flag.FlagSet, engines map[string]Engine, prefix, dir, usage string) {
	*p = location{storage: directory, memory: newMemory, prefix: prefix, openers: map[string]Opener{}, flags: map[string][]string{}}
	set.StringVar(&p.dataDir, prefix+"data-dir", dir, usage)
	if len(engines) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(engines))
	set.Func(prefix+"storage", "storage engine: "+directory+" for the directory of --"+prefix+"data-dir, which for other engines only holds the keys of the server, or "+
		strings.Join(names, ", ")+" (default "+directory+")", func(name string) error {
		if _, known := engines[name]; !known && name != directory {
			return fmt.Errorf("must be %s or %s", directory, strings.Join(names, ", "))
		}
		p.storage = name
		return nil
	})
	for _, name := range names {
		own := flag.NewFlagSet(name, flag.ContinueOnError)
		p.openers[name] = engines[name](own)
		own.VisitAll(func(x *flag.Flag) {
			set.Var(x.Value, prefix+x.Name, x.Usage)
			p.flags[name] = append(p.flags[name], prefix+x.Name)
		})
	}
}

// validate rejects flags of engines that were not selected.
func (p *location) validate(set *flag.FlagSet) (faults []error) {
	set.Visit(func(x *flag.Flag) {
		for engine, names := range p.flags {
			if engine != p.storage && slices.Contains(names, x.Name) {
				faults = append(faults, fmt.Errorf("--%s requires --%sstorage %s", x.Name, p.prefix, engine))
			}
		}
	})
	return faults
}

// isSet reports whether the flags name a store.
func (p *location) isSet() bool { return p.storage != directory || p.dataDir != "" }

// check returns an error if the flags name no store, or a file instead of a directory.
func (p *location) check() error {
	if !p.isSet() {
		return fmt.Errorf("--%sdata-dir is empty", p.prefix)
	}
	if info, err := os.Stat(p.dataDir); err == nil && !info.IsDir() {
		return fmt.Errorf("--%sdata-dir: %s is a file, not a directory", p.prefix, p.dataDir)
	}
	return nil
}

func (p *location) String() string {
	if p.storage != directory {
		return p.storage
	}
	return p.dataDir
}

// open opens the store. Without a directory it is in memory.
func (p *location) open(ctx context.Context, log *slog.Logger, server bool) (storage.Backend, error) {
	switch {
	case p.storage != directory:
		return p.openers[p.storage](ctx, log, server)
	case p.dataDir == "":
		return p.memory(), nil
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := checkNotMoved(p.dataDir); err != nil {
		return nil, err
	}
	o := badgerstore.Options{Dir: p.dataDir, Logger: log}
	if !server {
		o.Retain = -1
	}
	return badgerstore.Open(o)
}

// openFilled opens a store for reading. It fails if the store is empty, and does not create a store in
// a directory.
func (p *location) openFilled(ctx context.Context, log *slog.Logger) (storage.Backend, error) {
	if p.storage == directory {
		if err := p.check(); err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(p.dataDir, manifest)); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("no store in directory %q", p.dataDir)
		}
	}
	store, err := p.open(ctx, log, false)
	if err != nil {
		return nil, err
	}
	_, records, err := store.Scan(ctx, "", "", 0)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	for range records {
		return store, nil
	}
	return nil, errors.Join(fmt.Errorf("the store in %s is empty", p), store.Close())
}

// fill opens an empty store and calls fill to write it. It first discards the remains of an interrupted
// attempt. If fill fails, a directory is empty again; in any other store, fill must leave a mark that
// the store is incomplete.
func (p *location) fill(ctx context.Context, log *slog.Logger, fill func(storage.Backend) error) error {
	if err := p.check(); err != nil {
		return err
	}
	if p.storage == directory {
		if err := checkNotMoved(p.dataDir); err != nil {
			return err
		}
		return badgerstore.Fill(badgerstore.Options{Dir: p.dataDir, Retain: -1, Logger: log}, func(store *badgerstore.Store) error { return fill(store) })
	}
	store, err := p.open(ctx, log, false)
	if err != nil {
		return err
	}
	return errors.Join(fill(store), store.Close())
}

// checkIncomplete returns nil if it is certain that a store whose filling failed is incomplete and will
// stay so.
func (p *location) checkIncomplete(ctx context.Context, log *slog.Logger) error {
	if p.storage == directory {
		_, err := os.Lstat(filepath.Join(p.dataDir, manifest))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("the store in %s may be complete", p.dataDir))
	}
	store, err := p.open(ctx, log, false)
	if err != nil {
		return err
	}
	mark, err := store.Get(ctx, storage.IncompleteKey, 0)
	if err == nil { // rewriting the mark makes a delayed commit that removes it fail, because that commit expects the current revision
		_, err = store.Commit(ctx, storage.Write{Key: mark.Key, Value: mark.Value, Expect: mark.Revision})
	}
	return errors.Join(err, store.Close())
}
