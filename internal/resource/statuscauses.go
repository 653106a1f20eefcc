package resource

import (
	"strings"

	"orch.io/controlplane/api/meta"
)

// BelowStatus rewrites the causes of a rejected status update of a custom resource to the form that
// kube-apiserver uses: the field of a cause is the whole path, but the message gives the path
// relative to status. For example, the message for the field status.addresses[0].value is
// "addresses[0].value in body must be of type string".
func BelowStatus(causes []meta.StatusCause) {
	for i := range causes {
		c := &causes[i]
		if c.Field == "<nil>" { // only the message contains the path
			message := strings.NewReplacer(`"status.`, `"`, `"status"`, `""`, " in status.", " in ").Replace(c.Message)
			if message != c.Message {
				c.Field, c.Message = "status", message
			}
			continue
		}
		below, ok := strings.CutPrefix(c.Field, "status")
		if !ok {
			continue
		}
		if at := strings.LastIndex(c.Message, c.Field+" in body"); at >= 0 {
			c.Message = c.Message[:at] + strings.TrimPrefix(below, ".") + c.Message[at+len(c.Field):]
		}
	}
}
