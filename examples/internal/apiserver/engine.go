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

// Engine is a storage engine that a program offers by --storage. It defines what it is told on
// the command line, and returns what opens the store that those flags describe. Nothing of it
// may be given for a server with another engine.
type Engine func(set *flag.FlagSet) Opener

// Opener opens a store: for a server, or for a command, under which it forgets nothing of its
// history, of which servers see to that.
type Opener func(ctx context.Context, log *slog.Logger, server bool) (storage.Backend, error)

// directory is the engine that every program has.
const directory = "directory"

// manifest is a file of every store in a directory.
const manifest = "MANIFEST"

// place is where objects are kept, as flags say.
type place struct {
	dataDir string
	storage string                 // an engine
	memory  func() storage.Backend // makes the store of no directory

	prefix  string              // of the flags
	openers map[string]Opener   // by engines
	flags   map[string][]string // by the engines that they belong to
}

func newMemory() storage.Backend { return memstore.New(memstore.Options{}) }

// define defines --data-dir, --storage and the flags of each engine, all behind a prefix.
func (p *place) define(set *flag.FlagSet, engines map[string]Engine, prefix, dir, usage string) {
	*p = place{storage: directory, memory: newMemory, prefix: prefix, openers: map[string]Opener{}, flags: map[string][]string{}}
	set.StringVar(&p.dataDir, prefix+"data-dir", dir, usage)
	if len(engines) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(engines))
	set.Func(prefix+"storage", "where objects are kept: in a directory, that of --"+prefix+"data-dir, which for other engines holds the server's keys alone, or in "+
		strings.Join(names, ", ")+" (default "+directory+")", func(name string) error {
		if _, known := engines[name]; !known && name != directory {
			return fmt.Errorf("there is %s or %s", directory, strings.Join(names, ", "))
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

// validate refuses flags of engines that were not chosen, whatever they were given.
func (p *place) validate(set *flag.FlagSet) (faults []error) {
	set.Visit(func(x *flag.Flag) {
		for engine, names := range p.flags {
			if engine != p.storage && slices.Contains(names, x.Name) {
				faults = append(faults, fmt.Errorf("--%s means nothing without --%sstorage %s", x.Name, p.prefix, engine))
			}
		}
	})
	return faults
}

// named reports whether the flags say anything.
func (p *place) named() bool { return p.storage != directory || p.dataDir != "" }

// needed refuses flags that say nothing, and a directory that is none.
func (p *place) needed() error {
	if !p.named() {
		return fmt.Errorf("--%sdata-dir is empty", p.prefix)
	}
	if info, err := os.Stat(p.dataDir); err == nil && !info.IsDir() {
		return fmt.Errorf("--%sdata-dir: %s is a file, not a directory", p.prefix, p.dataDir)
	}
	return nil
}

func (p *place) String() string {
	if p.storage != directory {
		return p.storage
	}
	return p.dataDir
}

// open opens the store, that of no directory is in memory.
func (p *place) open(ctx context.Context, log *slog.Logger, server bool) (storage.Backend, error) {
	switch {
	case p.storage != directory:
		return p.openers[p.storage](ctx, log, server)
	case p.dataDir == "":
		return p.memory(), nil
	}
	if err := p.needed(); err != nil {
		return nil, err
	}
	if err := hasMoved(p.dataDir); err != nil {
		return nil, err
	}
	o := badgerstore.Options{Dir: p.dataDir, Logger: log}
	if !server {
		o.Retain = -1
	}
	return badgerstore.Open(o)
}

// openFilled opens a store to read it. A directory without one stays as it is.
func (p *place) openFilled(ctx context.Context, log *slog.Logger) (storage.Backend, error) {
	if p.storage == directory {
		if err := p.needed(); err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(p.dataDir, manifest)); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no store in the directory %q", p.dataDir)
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
	return nil, errors.Join(fmt.Errorf("nothing is stored in %s", p), store.Close())
}

// fill opens an empty store and has it filled. What was left by an attempt that was broken off
// is discarded before. Of one that fails nothing is left in a directory; any other store is
// marked by what fills it.
func (p *place) fill(ctx context.Context, log *slog.Logger, fill func(storage.Backend) error) error {
	if err := p.needed(); err != nil {
		return err
	}
	if p.storage == directory {
		if err := hasMoved(p.dataDir); err != nil {
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

// unfinished makes sure that a store whose filling failed is not whole, and will not be.
func (p *place) unfinished(ctx context.Context, log *slog.Logger) error {
	if p.storage == directory {
		_, err := os.Lstat(filepath.Join(p.dataDir, manifest))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("there is a store in %s", p.dataDir))
	}
	store, err := p.open(ctx, log, false)
	if err != nil {
		return err
	}
	mark, err := store.Get(ctx, storage.IncompleteKey, 0)
	if err == nil { // a commit that takes the mark away and is still under way expects the one that was there
		_, err = store.Commit(ctx, storage.Write{Key: mark.Key, Value: mark.Value, Expect: mark.Revision})
	}
	return errors.Join(err, store.Close())
}
