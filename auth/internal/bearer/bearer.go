// Package bearer is what the methods that know bearer tokens have in common.
package bearer

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// Issuer returns what the claim iss of a JWT says, "" for anything else. The
// signature is not checked: it only tells which method the token is for.
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

// Audiences returns those of the asked audiences that a token is for, in order,
// each once.
func Audiences(asked, good []string) []string {
	var both []string
	for _, a := range asked {
		if slices.Contains(good, a) && !slices.Contains(both, a) {
			both = append(both, a)
		}
	}
	return both
}
