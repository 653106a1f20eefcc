// Package tokenfile authenticates callers by a fixed list of bearer tokens.
package tokenfile

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"orch.io/controlplane/auth"
)

// maxFile bounds what Parse reads, in bytes.
const maxFile = 64 << 20

// Authenticator knows the users of some tokens.
type Authenticator struct {
	salt  [32]byte // makes the digests useless to whoever measures lookups
	users map[[32]byte]*auth.User
}

// Load reads a token file; see Parse.
func Load(path string) (*Authenticator, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("tokenfile: %w", err)
	}
	defer f.Close()
	a, err := Parse(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// Parse reads lines of comma-separated values: token, user name, uid and, if
// there are more columns, groups, separated by commas inside a quoted column
// too. Every fault is reported with its line.
func Parse(r io.Reader) (*Authenticator, error) {
	a := &Authenticator{users: map[[32]byte]*auth.User{}}
	if _, err := rand.Read(a.salt[:]); err != nil {
		return nil, fmt.Errorf("tokenfile: %w", err)
	}
	bounded := &io.LimitedReader{R: r, N: maxFile + 1}
	lines := csv.NewReader(bounded)
	lines.FieldsPerRecord = -1
	lines.TrimLeadingSpace = true
	var errs []error
	for {
		rec, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.Join(append(errs, fmt.Errorf("tokenfile: %w", err))...)
		}
		line, _ := lines.FieldPos(0)
		if err := a.add(rec); err != nil {
			errs = append(errs, fmt.Errorf("tokenfile: line %d: %w", line, err))
		}
	}
	if bounded.N <= 0 {
		errs = append(errs, fmt.Errorf("tokenfile: more than %d bytes", maxFile))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return a, nil
}

func (a *Authenticator) add(rec []string) error {
	switch {
	case len(rec) < 3:
		return fmt.Errorf("%d columns, at least token, user name and uid are needed", len(rec))
	case rec[0] == "":
		return errors.New("the token is empty")
	case len(rec[0]) > auth.MaxToken:
		return fmt.Errorf("a token of more than %d bytes", auth.MaxToken)
	case strings.ContainsAny(rec[0], " \t\r\n"):
		return errors.New("the token holds a space")
	case rec[1] == "":
		return errors.New("the user name is empty")
	}
	u := &auth.User{Name: rec[1], UID: rec[2]}
	for _, column := range rec[3:] {
		for g := range strings.SplitSeq(column, ",") {
			if g = strings.TrimSpace(g); g != "" && !slices.Contains(u.Groups, g) {
				u.Groups = append(u.Groups, g)
			}
		}
	}
	k := a.digest(rec[0])
	if a.users[k] != nil {
		return errors.New("the token is on another line already")
	}
	a.users[k] = u
	return nil
}

// Authenticate implements auth.Authenticator.
func (a *Authenticator) Authenticate(r *http.Request) (*auth.User, error) {
	return auth.AuthenticateBearer(a, r)
}

// AuthenticateToken implements auth.TokenAuthenticator. Its time depends on the
// length of the token alone: what is looked up is a salted digest.
func (a *Authenticator) AuthenticateToken(_ context.Context, token string, _ []string) (*auth.User, []string, error) {
	return a.users[a.digest(token)], nil, nil
}

func (a *Authenticator) digest(token string) [32]byte {
	var room [256]byte
	return sha256.Sum256(append(append(room[:0], a.salt[:]...), token...))
}
