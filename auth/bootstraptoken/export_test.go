package bootstraptoken

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"strings"
)

type Token = token

var Read, Sign = parseSecret, sign

// Verify reports whether signature is a valid signature of the document by the token.
func Verify(document []byte, signature string, t token) bool {
	header, rest, ok := strings.Cut(signature, ".")
	sum, empty := strings.CutPrefix(rest, ".")
	if !ok || !empty {
		return false
	}
	plain, err := base64.RawURLEncoding.DecodeString(header)
	if err != nil {
		return false
	}
	var fields struct {
		Alg string `json:"alg"`
		Kid string `json:"kid"`
	}
	if json.Unmarshal(plain, &fields) != nil || fields.Alg != "HS256" || fields.Kid != t.ID {
		return false
	}
	got, err := base64.RawURLEncoding.DecodeString(sum)
	return err == nil && hmac.Equal(got, mac(header, document, t))
}
