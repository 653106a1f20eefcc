package audit

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// FileOptions configure the rotation of a log file. With the zero value the
// file is never rotated.
type FileOptions struct {
	MaxSize    int64            // in bytes: a write that would exceed it rotates the file; zero: no limit
	MaxBackups int              // number of rotated files to keep; zero keeps all
	MaxAge     time.Duration    // rotated files are removed after this time; zero keeps all
	Now        func() time.Time // nil: time.Now
}

// File is a Sink that appends lines to a file and rotates it. A batch is never
// divided between two files, so a file exceeds MaxSize if a single batch does.
// Old files are removed at rotation.
type File struct {
	path    string
	options FileOptions
	file    *os.File
	size    int64
}

// OpenFile opens a log file for appending. If the file does not exist, it is
// created with mode 0600.
func OpenFile(path string, o FileOptions) (*File, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	f := &File{path: path, options: o}
	if err := f.open(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) open() error {
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return fmt.Errorf("audit: %w", err)
	}
	f.file, f.size = file, info.Size()
	return nil
}

// Write implements Sink.
func (f *File) Write(_ context.Context, events [][]byte) error {
	var b bytes.Buffer
	for _, e := range events {
		b.Write(e)
		b.WriteByte('\n')
	}
	if f.options.MaxSize > 0 && f.size > 0 && f.size+int64(b.Len()) > f.options.MaxSize {
		if err := f.rotate(); err != nil {
			return err
		}
	}
	if f.file == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	if n, err := f.file.Write(b.Bytes()); err != nil {
		f.discard(n)
		return fmt.Errorf("audit: %w", err)
	}
	f.size += int64(b.Len())
	return nil
}

// discard removes the n bytes that a failed write left at the end of the file.
// The whole batch counts as lost, so the file must hold no part of it.
func (f *File) discard(n int) {
	if n > 0 && f.file.Truncate(f.size) != nil {
		f.size += int64(n)
	}
}

// rotate adds the current time to the file's name, opens a new file and removes
// old files. If it fails, f.file may be nil; the next Write opens the file again.
func (f *File) rotate() error {
	if f.file != nil {
		f.file.Close()
		f.file = nil
	}
	ext := filepath.Ext(f.path)
	base := strings.TrimSuffix(f.path, ext)
	stamp := f.options.Now().UTC().Format("2006-01-02T15-04-05.000000000")
	if err := os.Rename(f.path, base+"-"+stamp+ext); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("audit: %w", err)
	}
	if err := f.open(); err != nil {
		return err
	}
	f.prune(base+"-", ext)
	return nil
}

// prune removes rotated files that exceed MaxBackups or MaxAge. It ignores
// errors: a file that cannot be removed costs space, but no events.
func (f *File) prune(prefix, ext string) {
	old, _ := filepath.Glob(escape(prefix) + "[0-9]*" + escape(ext)) // the pattern is valid, so there is no error
	slices.Sort(old)                                                 // the names contain the time: oldest first
	for i, path := range old {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		many := f.options.MaxBackups > 0 && i < len(old)-f.options.MaxBackups
		aged := f.options.MaxAge > 0 && f.options.Now().Sub(info.ModTime()) > f.options.MaxAge
		if many || aged {
			_ = os.Remove(path)
		}
	}
}

// escape returns a pattern that matches only s.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// Close implements Sink.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// Writer is a Sink that writes lines to W, such as standard output. Close does
// not close W.
type Writer struct{ W io.Writer }

// Write implements Sink.
func (w Writer) Write(_ context.Context, events [][]byte) error {
	for _, e := range events {
		if _, err := w.W.Write(append(slices.Clip(e), '\n')); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
	}
	return nil
}

// Close implements Sink.
func (Writer) Close() error { return nil }
