// Package tokenfile authenticates users by a static list of bearer tokens.
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

// maxFile is the maximum size of a file in bytes.
const maxFile = 64 << 20

// Authenticator authenticates by the tokens of a file. It is immutable, so its methods
// are safe for concurrent use.
type Authenticator struct {
	salt  [32]byte                // random, so that lookup times disclose nothing about tokens
	users map[[32]byte]*auth.User // by salted digest of the token
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

// Parse reads a token file in CSV format. The columns are token, user name and uid;
// further columns are groups. A quoted column may have several groups, separated by
// commas. The returned error joins the errors of all lines.
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
		errs = append(errs, fmt.Errorf("tokenfile: file is larger than %d bytes", maxFile))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return a, nil
}

// add adds the user of a line.
func (a *Authenticator) add(rec []string) error {
	switch {
	case len(rec) < 3:
		return fmt.Errorf("%d columns, at least 3 (token, user name, uid) are required", len(rec))
	case rec[0] == "":
		return errors.New("the token is empty")
	case len(rec[0]) > auth.MaxToken:
		return fmt.Errorf("the token is longer than %d bytes", auth.MaxToken)
	case strings.ContainsAny(rec[0], " \t\r\n"):
		return errors.New("the token contains white space")
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
		return errors.New("duplicate token")
	}
	a.users[k] = u
	return nil
}

// Authenticate implements auth.Authenticator.
func (a *Authenticator) Authenticate(r *http.Request) (*auth.User, error) {
	return auth.AuthenticateBearer(a, r)
}

// AuthenticateToken implements auth.TokenAuthenticator. It looks up a salted digest, so
// its duration discloses only the length of the token. The caller must not modify the
// user.
func (a *Authenticator) AuthenticateToken(_ context.Context, token string, _ []string) (*auth.User, []string, error) {
	return a.users[a.digest(token)], nil, nil
}

func (a *Authenticator) digest(token string) [32]byte {
	var buf [256]byte // avoids an allocation for short tokens
	return sha256.Sum256(append(append(buf[:0], a.salt[:]...), token...))
}
