package apiserver

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
	"orch.io/controlplane/storage/memstore"
)

// Engine is a storage engine that a program offers by --storage.
type Engine struct {
	// Flags defines what the engine is told on the command line. Nothing of it may be given
	// for a server with another engine.
	Flags func(set *flag.FlagSet)

	// Open opens the store that the flags describe.
	Open func(ctx context.Context, log *slog.Logger) (storage.Backend, error)
}

// directory is the engine that every program has.
const directory = "directory"

// defineEngines defines the flags that choose among engines and those of each of them.
func (c Command) defineEngines(set *flag.FlagSet, f *flags) {
	f.storage, f.engineFlags = directory, map[string][]string{}
	if len(c.Engines) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(c.Engines))
	set.Func("storage", "where objects are kept: in a directory, that of --data-dir, which for other engines holds the server's keys alone, or in "+
		strings.Join(names, ", ")+" (default "+directory+")", func(name string) error {
		if _, known := c.Engines[name]; !known && name != directory {
			return fmt.Errorf("there is %s or %s", directory, strings.Join(names, ", "))
		}
		f.storage = name
		return nil
	})
	for _, name := range names {
		own := flag.NewFlagSet(name, flag.ContinueOnError)
		c.Engines[name].Flags(own)
		own.VisitAll(func(x *flag.Flag) {
			set.Var(x.Value, x.Name, x.Usage)
			f.engineFlags[name] = append(f.engineFlags[name], x.Name)
		})
	}
}

// validateEngines refuses flags of engines that were not chosen.
func (f *flags) validateEngines(given map[string]bool) (faults []error) {
	for engine, names := range f.engineFlags {
		for _, name := range names {
			if given[name] && engine != f.storage {
				faults = append(faults, fmt.Errorf("--%s means nothing without --storage %s", name, engine))
			}
		}
	}
	return faults
}

// openStore opens what objects are kept in.
func (c Command) openStore(ctx context.Context, f *flags, log *slog.Logger) (storage.Backend, error) {
	switch {
	case f.storage != directory:
		return c.Engines[f.storage].Open(ctx, log)
	case f.dataDir == "":
		return memstore.New(memstore.Options{}), nil
	}
	return badgerstore.Open(badgerstore.Options{Dir: f.dataDir, Logger: log})
}
