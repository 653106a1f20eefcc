package apiserver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client/kubeconfig"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/backup"
)

// backupPath is where a running server hands out backups.
const backupPath = "/backup"

// backups hands out backups of a store to administrators alone: they have everything that is secret, and
// access control that lets everybody read all paths does not mean that.
func backups(store storage.Backend) http.Handler {
	all := backup.Handler(store)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u := meta.UserFrom(r.Context()); u == nil || !u.InGroup(auth.Masters) {
			http.Error(w, "backups are for the group "+auth.Masters, http.StatusForbidden)
			return
		}
		all.ServeHTTP(w, r)
	})
}

// backup is the command that saves what a store holds in a file.
func (c Command) backup(ctx context.Context, args []string, out io.Writer) error {
	var from place
	set := c.command("backup", "[flags] FILE", "saves what a store holds, with its history, in a new file: of a running server with --kubeconfig, else of a\n"+
		"directory that no server has open, or of another engine. Keys and certificates (*.pem) are not in it.")
	from.define(set, c.Engines, "", "./controlplane-data", "directory of the data of a server that does not run")
	kubeconfig := set.String("kubeconfig", "", "client configuration of an administrator of a running server, whose store is saved while it serves")
	earlier := set.String("since", "", "backup that was made before, also one with --since: what that has is left out, and to restore takes both")
	files, err := parseCommand(set, args, &from)
	if err != nil {
		return err
	}
	set.Visit(func(x *flag.Flag) {
		if *kubeconfig != "" && x.Name != "kubeconfig" && x.Name != "since" {
			err = errors.Join(err, fmt.Errorf("--%s means nothing with --kubeconfig", x.Name))
		}
	})
	if err != nil {
		return err
	}
	if len(files) != 1 {
		return fmt.Errorf("one name of a file is needed, there are %d", len(files))
	}
	var since backup.Position
	if *earlier != "" {
		report, err := verifyFiles(ctx, []string{*earlier})
		if err != nil {
			return fmt.Errorf("--since %s: %w", *earlier, err)
		}
		since = report.Position
	}
	removeUnfinished(filepath.Dir(files[0]))
	var report *backup.Report
	err = save(files[0], func(w io.Writer) (err error) {
		if *kubeconfig != "" {
			report, err = fetch(ctx, *kubeconfig, since, w)
		} else {
			report, err = from.backup(ctx, since, w)
		}
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s\n", files[0], describe(report))
	return nil
}

// backup saves a store that no server has, or that several processes may open.
func (p *place) backup(ctx context.Context, since backup.Position, w io.Writer) (*backup.Report, error) {
	store, err := p.openFilled(ctx, logFrom(slog.LevelWarn))
	if err != nil {
		return nil, inUse(err, "to save the store of a running server give --kubeconfig")
	}
	shown := onStderr()
	defer shown.end()
	report, err := backup.Backup(ctx, store, w, backup.Options{Base: since, Progress: shown.tell})
	return report, errors.Join(err, store.Close())
}

// fetch saves the store of a running server. What comes in is checked, so that it is whole when
// this returns.
func fetch(ctx context.Context, file string, since backup.Position, w io.Writer) (*backup.Report, error) {
	config, err := kubeconfig.Load(file)
	if err != nil {
		return nil, err
	}
	remote, err := config.Current()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	client := &http.Client{Transport: remote.Transport()}
	defer client.CloseIdleConnections()
	body, err := backup.Fetch(ctx, client, remote.URL.JoinPath(backupPath).String(), since)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	shown := onStderr()
	defer shown.end()
	report, err := backup.Verify(ctx, backup.Options{Progress: shown.tell}, io.TeeReader(body, w))
	if err == nil && report.Base != since {
		err = fmt.Errorf("the server sent a backup on top of revision %d, not of %d", report.Base.Revision, since.Revision)
	}
	return report, err
}

// save writes a new file, which has its name only once it is whole and on the disk. It replaces none.
func save(path string, write func(io.Writer) error) (err error) {
	there := fmt.Errorf("%s is there already", path)
	switch _, err := os.Lstat(path); { // known early; that counts which Link says
	case err == nil:
		return there
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+partMark) // for its owner alone
	if err != nil {
		return err
	}
	defer f.Close() // a second time does not hurt
	if err := holdFile(f); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Link(f.Name(), path)
		if errors.Is(err, fs.ErrExist) {
			err = there
		}
	}
	if err = errors.Join(err, os.Remove(f.Name()), f.Close()); err != nil {
		return err
	}
	return syncDir(dir)
}

// partMark precedes the random number in the name of an unfinished backup file.
const partMark = ".part-"

// backupBegin is the first bytes of every backup.
const backupBegin = "cpbackup"

// removeUnfinished removes the files that killed backups left in a directory: files with partMark in their
// names that begin with backupBegin and that no process has locked.
func removeUnfinished(dir string) {
	paths, _ := filepath.Glob(filepath.Join(dir, "*"+partMark+"*")) // it fails for a pattern alone
	for _, path := range paths {
		number := path[strings.LastIndex(path, partMark)+len(partMark):]
		if _, err := strconv.ParseUint(number, 10, 64); err != nil {
			continue
		}
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if err := removeUnheld(path); err != nil {
			fmt.Fprintf(os.Stderr, "%s is left of a backup that was broken off, and cannot be removed: %v\n", path, err)
		}
	}
}

// removeUnheld removes a part of a backup unless a process writes it.
func removeUnheld(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if holdFile(f) != nil {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 && time.Since(info.ModTime()) < time.Minute {
		return nil // it may be held in a moment
	}
	begin := make([]byte, len(backupBegin))
	if _, err := io.ReadFull(f, begin); err == nil && string(begin) != backupBegin || err != nil && info.Size() > 0 {
		return nil // it is something else
	}
	return os.Remove(path)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
