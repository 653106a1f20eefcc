// Package bearer holds functions that the bearer token Authenticators share.
package bearer

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// Issuer returns the claim iss of a JWT, or "" if jwt is not a JWT. It does not verify the
// signature: use the result only to select the Authenticator.
func Issuer(jwt string) string {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return ""
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var c struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(body, &c) != nil {
		return ""
	}
	return c.Issuer
}

// Audiences returns the members of asked that are in good, in order and without
// duplicates.
func Audiences(asked, good []string) []string {
	var both []string
	for _, a := range asked {
		if slices.Contains(good, a) && !slices.Contains(both, a) {
			both = append(both, a)
		}
	}
	return both
}
