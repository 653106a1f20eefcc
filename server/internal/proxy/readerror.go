package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/internal/exchange"
)

// maxErrorText bounds the part of an error response that is forwarded, in bytes.
const maxErrorText = 10 << 10

// readErrors are the reasons and messages for the status codes of targets, as clients expect them.
var readErrors = map[int]struct {
	reason meta.Reason
	text   string
}{
	http.StatusUnauthorized:       {meta.ReasonUnauthorized, "the server has asked for the client to provide credentials"},
	http.StatusForbidden:          {meta.ReasonForbidden, ""},
	http.StatusNotFound:           {meta.ReasonNotFound, "the server could not find the requested resource"},
	http.StatusConflict:           {meta.ReasonConflict, "the server reported a conflict"},
	http.StatusTooManyRequests:    {meta.ReasonTooManyRequests, "the server has received too many requests and has asked us to try again later"},
	http.StatusServiceUnavailable: {meta.ReasonServiceUnavailable, "the server is currently unable to handle the request"},
}

// readError returns the Status for a request to a subresource that reads, such as log, if the target responded with
// an error. It closes the body of the response.
func readError(r *exchange.Request, res *http.Response) *meta.Status {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorText))
	_ = res.Body.Close()
	text := strings.ToValidUTF8(string(body), "")
	if res.StatusCode == http.StatusInternalServerError {
		return meta.Internal(errors.New(text))
	}
	if res.StatusCode == http.StatusBadRequest {
		return meta.BadRequest("%s", text)
	}
	known := readErrors[res.StatusCode]
	message := cmp.Or(known.text, fmt.Sprintf("the server responded with the status code %d but did not return more information", res.StatusCode))
	if res.StatusCode == http.StatusForbidden {
		message = text
	}
	kind := r.Resource + "/" + r.Subresource
	st := meta.Failure(res.StatusCode, known.reason, "%s ( %s %s)", message, kind, r.Name)
	st.Details = &meta.StatusDetails{Group: r.Group, Kind: kind, Name: r.Name}
	return st
}
